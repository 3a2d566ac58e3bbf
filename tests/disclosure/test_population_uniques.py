"""Uniques in the population: every formula compared with sums and products written out, most of them in fractions."""

from __future__ import annotations

import doctest
import json
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import gpupif
import gpupif.disclosure.population_uniques
from gpupif.disclosure.population_uniques import decide, population_uniques
from gpupif.disclosure.uniques_models import (
    NoEstimateError,
    fit_pitman,
    fit_slide,
    log_rising,
    pitman_uniques,
    population_classes,
    root,
    sum_of_reciprocals,
)
from gpupif.errors import InputError
from gpupif.utils.information import Sizes

histograms = st.dictionaries(st.integers(2, 12), st.integers(1, 30), max_size=5).flatmap(
    lambda others: st.integers(1, 60).map(lambda ones: {1: ones, **dict(sorted(others.items()))})
)


def rows_of(histogram):
    return sum(size * times for size, times in histogram.items())


@given(x=st.fractions(Fraction(1, 100), 300), m=st.integers(0, 60))
@settings(deadline=None)
def test_sums_of_reciprocals_and_rising_factorials_are_exact(x, m):
    exact = sum((1 / (x + step) for step in range(m)), Fraction(0))
    assert float(sum_of_reciprocals(float(x), m)) == pytest.approx(float(exact), rel=1e-13)
    product = math.prod((x + step for step in range(m)), start=Fraction(1))
    logarithm = math.log(product.numerator) - math.log(product.denominator)
    assert log_rising(float(x), m) == pytest.approx(logarithm, rel=1e-12, abs=1e-12)


@given(x=st.floats(0.01, 1e12), m=st.integers(0, 10**9), more=st.integers(0, 10**9))
def test_sums_add_up(x, m, more):
    whole = float(sum_of_reciprocals(x, m + more))
    assert whole == pytest.approx(float(sum_of_reciprocals(x, m)) + float(sum_of_reciprocals(x + m, more)), rel=1e-12)
    np.testing.assert_array_equal(
        sum_of_reciprocals(x, np.array([m, more])), [sum_of_reciprocals(x, m), sum_of_reciprocals(x, more)]
    )
    both = log_rising(x, 0.25) + log_rising(x + 0.25, 0.5)
    assert log_rising(x, 0.75) == pytest.approx(both, rel=1e-12, abs=1e-12)
    assert log_rising(x + 1, -0.75) == pytest.approx(-log_rising(x + 0.25, 0.75), rel=1e-12, abs=1e-12)


def test_gamma_ratios_are_those_of_the_standard_library():
    for x, m in ((0.3, 0.5), (4.0, 2.5), (17.5, -0.75), (25.0, 1.0), (60.0, 3.25)):
        assert log_rising(x, m) == pytest.approx(math.lgamma(x + m) - math.lgamma(x), rel=1e-12)


def test_a_root_is_found_to_the_last_bits():
    assert root(lambda x: 2 - x * x, 0.0, 10.0) == pytest.approx(math.sqrt(2), rel=1e-15)


def pitman_partitions(theta, alpha, people):
    """Return the probability of each partition into class sizes: each person joins a class or founds one."""
    chances = {(1,): Fraction(1)}
    for seated in range(1, people):
        after = Counter()
        for sizes, chance in chances.items():
            for place, size in enumerate(sizes):
                joined = tuple(sorted((*sizes[:place], size + 1, *sizes[place + 1 :])))
                after[joined] += chance * (size - alpha) / (theta + seated)
            after[tuple(sorted((*sizes, 1)))] += chance * (theta + len(sizes) * alpha) / (theta + seated)
        chances = after
    return chances


PITMAN = [(Fraction(2), Fraction(1, 2)), (Fraction(-1, 4), Fraction(1, 3)), (Fraction(5), Fraction(0)),
          (Fraction(6), Fraction(-2)), (Fraction(7, 2), Fraction(-1, 2))]  # fmt: skip


@pytest.mark.parametrize(("theta", "alpha"), PITMAN)
@pytest.mark.parametrize("people", [2, 3, 7])
def test_pitman_uniques_are_the_mean_over_all_partitions(theta, alpha, people):
    expected = sum(chance * sizes.count(1) for sizes, chance in pitman_partitions(theta, alpha, people).items())
    assert pitman_uniques(float(theta), float(alpha), people) == pytest.approx(float(expected), rel=1e-12, abs=1e-14)


def test_pitman_uniques_are_near_the_limit_that_arx_takes():
    theta, alpha, people = 120.0, 0.4, 10**9
    limit = math.exp(math.lgamma(theta + 1) - math.lgamma(theta + alpha)) * people**alpha
    assert pitman_uniques(theta, alpha, people) == pytest.approx(limit, rel=1e-5)


def pitman_likelihood(histogram, theta, alpha):
    """Return the logarithm of Pitman's formula, without terms that depend on neither theta nor alpha."""
    classes = sum(histogram.values())
    factors = [theta + i * alpha for i in range(1, classes)]
    if min([*factors, theta + 1, 1 - alpha, theta + alpha if alpha > 0 else 1]) <= 0:
        return -math.inf
    return (
        math.fsum(map(math.log, factors))
        - math.fsum(math.log(theta + i) for i in range(1, rows_of(histogram)))
        + math.fsum(times * math.log(i - alpha) for size, times in histogram.items() for i in range(1, size))
    )


GRID = [(theta_over, alpha) for alpha in (-900, -30, -5, -1, -0.2, 0.001, 0.2, 0.5, 0.8, 0.95)
        for theta_over in np.geomspace(1e-2, 1e6, 33)]  # fmt: skip


def best_by_theta(histogram, alpha):
    """Return the highest likelihood for one alpha."""
    least = (sum(histogram.values()) - 1) * -alpha if alpha < 0 else -alpha
    found = minimize_scalar(
        lambda x: -pitman_likelihood(histogram, least + math.exp(x), alpha), bounds=(-10, 40), method="bounded"
    )
    return -found.fun


@pytest.mark.slow
@given(histogram=histograms)
@example(histogram={1: 2, 2: 1})
@settings(deadline=None, max_examples=15)
def test_pitman_fit_is_the_maximum(histogram):
    classes = sum(histogram.values())
    grid = [
        (pitman_likelihood(histogram, over + (classes - 1) * -alpha if alpha < 0 else over - alpha, alpha), alpha)
        for over, alpha in GRID
    ]
    try:
        theta, alpha = fit_pitman(histogram)
    except NoEstimateError:
        # The likelihood then rises towards a border: no alpha of the grid is better than an alpha near the border.
        border = max(best_by_theta(histogram, alpha) for alpha in (-1e6, 1 - 1e-6))
        assert border >= max(grid)[0] - 1e-4 or classes in (1, rows_of(histogram))
        return
    best = pitman_likelihood(histogram, theta, alpha)
    assert best >= max(grid)[0] - 1e-9
    for step in (1e-2, -1e-2):
        assert pitman_likelihood(histogram, theta + step * (theta + max(alpha, 0.01)), alpha) <= best + 1e-9
        assert pitman_likelihood(histogram, theta, alpha + step * min(1 - alpha, 0.1)) <= best + 1e-9


def test_pitman_finds_the_alpha_of_a_large_sample():
    """Take the classes that Pitman's formula expects in the limit, whose alpha is known."""
    alpha, share, histogram = 0.5, 0.5, {}
    for size in range(1, 3000):
        histogram[size] = round(2_000_000 * share)
        share *= (size - alpha) / (size + 1)
    theta, found = fit_pitman({size: times for size, times in histogram.items() if times})
    assert found == pytest.approx(alpha, abs=0.01)
    assert theta > -found


def zayatz(histogram, people):
    """Return the estimate in fractions, with binomial coefficients."""
    rows, classes = rows_of(histogram), sum(histogram.values())

    def seen_once(size):
        return Fraction(size * math.comb(people - size, rows - 1), math.comb(people, rows)) if people >= size else 0

    total = sum(Fraction(times, classes) * seen_once(size) for size, times in histogram.items())
    alone = Fraction(histogram[1], classes) * seen_once(1) / total
    return histogram[1] * alone * Fraction(people, rows)


@pytest.mark.slow
@given(histogram=histograms, others=st.integers(1, 3000))
@settings(deadline=None)
def test_zayatz_is_that_of_fractions(histogram, others):
    people = rows_of(histogram) + others
    found = population_uniques(histogram, population=people).estimates["zayatz"]
    assert found == pytest.approx(float(zayatz(histogram, people)), rel=1e-11)


def test_zayatz_holds_for_a_billion_people():
    found = population_uniques({1: 10**6, 2: 10**6, 10**7: 20}, population=10**9, model="zayatz")
    f = Fraction(203, 1000)
    expected = 10**6 * 10**6 / (10**6 + 2 * 10**6 * (1 - f)) / f
    assert found.uniques == pytest.approx(float(expected), rel=1e-8)


def shlosser(histogram, q):
    """Return Haas & Stokes' modified Shlosser estimator in fractions."""
    s = histogram.items()
    a = sum(i * q**2 * (1 - q**2) ** (i - 1) * t for i, t in s) / sum(
        (1 - q) ** i * ((1 + q) ** i - 1) * t for i, t in s
    )
    missed = sum((1 - q) ** i * t for i, t in s) / sum(i * q * (1 - q) ** (i - 1) * t for i, t in s)
    return sum(histogram.values()) + histogram.get(1, 0) * a * missed**2


@given(histogram=histograms, q=st.fractions(Fraction(1, 1000), Fraction(999, 1000), max_denominator=1000))
@settings(deadline=None)
def test_the_number_of_classes_is_that_of_fractions(histogram, q):
    assert population_classes(histogram, float(q)) == pytest.approx(float(shlosser(histogram, q)), rel=1e-9)


@pytest.mark.slow
@given(
    alpha=st.floats(0.05, 20),
    beta=st.floats(0.02, 0.95),
    fraction=st.sampled_from([0.01, 0.1, 0.3, 0.5, 0.9]),
    classes=st.sampled_from([10, 1234.5, 10**6]),
)
@settings(deadline=None)
def test_a_slide_fit_finds_the_model_of_expected_classes(alpha, beta, fraction, classes):
    """Compute the expected classes of one and of two rows as sums over the sizes of classes in the population."""
    chance, ones, twos, seen = beta**alpha, [], [], []
    for others in range(4000):
        size = others + 1
        ones.append(chance * size * fraction * (1 - fraction) ** (size - 1))
        twos.append(chance * size * (size - 1) / 2 * fraction**2 * (1 - fraction) ** max(size - 2, 0))
        seen.append(chance)
        chance *= (alpha + others) / (others + 1) * (1 - beta)
    assume(abs(math.fsum(seen) - 1) < 1e-12)
    found_alpha, found_beta = fit_slide(classes, classes * math.fsum(ones), classes * math.fsum(twos), fraction)
    assert found_alpha * math.log(found_beta) == pytest.approx(alpha * math.log(beta), rel=1e-6, abs=1e-6)


@pytest.mark.slow
@given(histogram=histograms, fraction=st.sampled_from([0.001, 0.05, 0.1, 0.11, 0.3, 0.7, 0.99]))
@settings(deadline=None)
def test_estimates_keep_their_invariants(histogram, fraction):
    found = population_uniques(histogram, sampling_fraction=fraction)
    assert set(found.estimates) == {"pitman", "zayatz", "snb"}
    assert found.population == round(found.rows / fraction)
    for model, uniques in found.estimates.items():
        assert math.isnan(uniques) == (model in found.reasons)
        assert math.isnan(uniques) or 0 <= uniques <= found.population * (1 + 1e-9)
        if found.population > found.rows:
            assert population_uniques(histogram, sampling_fraction=fraction, model=model).model == model
    assert found.uniques == found.estimates["zayatz" if found.model == "sample" else found.model]
    assert found.unique_share == found.uniques / found.population


@pytest.mark.parametrize(
    ("fraction", "pitman", "zayatz", "snb", "model"),
    [
        (0.1, 5.0, 9.0, 7.0, "pitman"),
        (0.1, math.nan, 9.0, 7.0, "zayatz"),
        (0.11, 5.0, 9.0, 7.0, "snb"),
        (0.11, 5.0, 6.0, 7.0, "zayatz"),
        (0.11, 5.0, 6.0, math.nan, "zayatz"),
        (0.11, 5.0, 7.0, 7.0, "snb"),
    ],
)
def test_the_decision_rule_chooses_as_published(fraction, pitman, zayatz, snb, model):
    assert decide({"pitman": pitman, "zayatz": zayatz, "snb": snb}, fraction) == model


def test_nothing_is_estimated_without_uniques_or_for_everybody():
    whole = population_uniques([1, 1, 2], sampling_fraction=1)
    assert (whole.model, whole.uniques, whole.population, whole.unique_share) == ("sample", 2.0, 4, 0.5)
    none = population_uniques([2, 3], population=50)
    assert none.estimates == {"pitman": 0.0, "zayatz": 0.0, "snb": 0.0}
    assert none.uniques == 0.0


@pytest.mark.parametrize("others", [1, 1000])
def test_a_sample_of_nearly_everybody_has_nearly_its_own_uniques(others):
    histogram = {1: 500_000, 2: 100_000, 5: 100_000}
    found = population_uniques(histogram, population=rows_of(histogram) + others)
    assert found.estimates["zayatz"] == pytest.approx(500_000, rel=3 * others / 500_000)
    assert found.estimates["snb"] == pytest.approx(500_000, rel=3 * others / 500_000)


def test_estimates_are_near_the_uniques_of_a_census():
    """Draw a twentieth and a fifth of a table whose uniques are known."""
    table = gpupif.datasets.census(50_000)
    names = ["age", "sex", "region", "occupation", "education", "birthplace"]
    truth = int((table.groupby(names, observed=True).size() == 1).sum())
    for fraction, near in ((0.05, 0.2), (0.2, 0.1)):
        sample = table.sample(frac=fraction, random_state=1).groupby(names, observed=True).size()
        found = population_uniques(sample, sampling_fraction=fraction)
        assert found.uniques == pytest.approx(truth, rel=near)


def test_no_estimate_is_nan_with_a_reason():
    alone = population_uniques([1] * 9, population=100, model="pitman")
    assert math.isnan(alone.uniques)
    assert "unique" in alone.reasons["pitman"]
    assert "two rows" in alone.reasons["snb"]
    assert alone.estimates["zayatz"] == pytest.approx(100.0)
    document = json.loads(json.dumps(alone.to_dict(), allow_nan=False))
    assert document["uniques"] is None
    assert document["unique_share"] is None
    assert document["estimates"]["pitman"] is None
    assert population_uniques([1] * 9, population=100).model == "zayatz"


def test_all_forms_of_the_sample_give_one_result():
    expected = population_uniques([1, 1, 1, 2, 2, 5], population=500)
    assert population_uniques({5: 1, 1: 3, 2: 2}, population=500) == expected
    assert population_uniques(Sizes.from_counts(np.array([5, 2, 2])), 12, population=500) == expected
    assert population_uniques(np.array([5, 2, 1, 1, 2, 1]), sampling_fraction=12 / 500) == expected


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        ({}, ["population, sampling_fraction", "one of them", "neither"]),
        ({"population": 9, "sampling_fraction": 0.5}, ["one of them", "both"]),
        ({"population": 2}, ["population", "at least the 3 rows", "got 2"]),
        ({"population": 0}, ["population", "got 0"]),
        ({"sampling_fraction": 0}, ["sampling_fraction", "above 0", "got 0"]),
        ({"sampling_fraction": 1.5}, ["sampling_fraction", "up to 1", "1.5"]),
        ({"sampling_fraction": -0.1}, ["sampling_fraction", "-0.1"]),
        ({"sampling_fraction": 10}, ["sampling_fraction", "Divide percentages"]),
        ({"sampling_fraction": math.nan}, ["sampling_fraction", "nan"]),
        ({"sampling_fraction": 1e-310}, ["sampling_fraction", "at most 2^62 people", "3 rows", "got 1e-310"]),
        ({"sampling_fraction": 0.5 + 0j}, ["sampling_fraction", "(0.5+0j)"]),
        ({"sampling_fraction": True}, ["sampling_fraction", "got True"]),
        ({"population": 10**400}, ["population", "at most 4.61e+18", "got 1000"]),
        ({"population": math.inf}, ["population", "got inf"]),
        ({"population": 9j}, ["population", "9j"]),
        ({"sampling_fraction": "all"}, ["sampling_fraction", "'all'"]),
        ({"population": 9, "model": "argus"}, ["model", "'dankar'", "'pitman'", "'zayatz'", "'snb'", "'argus'"]),
    ],
)
def test_bad_input_is_refused(arguments, fragments):
    with pytest.raises(InputError) as caught:
        gpupif.models.population_uniques([1, 2], **arguments)
    for fragment in fragments:
        assert fragment in str(caught.value)


@pytest.mark.parametrize("given", [{"population": 2**62}, {"sampling_fraction": 3 / 2**62}])
def test_populations_up_to_the_limit_do_not_overflow(given):
    found = gpupif.models.population_uniques([1, 2], **given)
    assert found.population == 2**62
    assert 0 <= found.unique_share <= 1 or math.isnan(found.unique_share)


def test_the_docstring_holds():
    assert doctest.testmod(gpupif.disclosure.population_uniques).failed == 0
