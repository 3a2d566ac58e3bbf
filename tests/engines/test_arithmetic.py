"""Logarithms and sums against exact arithmetic: the same in any order, and right to the last bits."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.kernels import logarithms, whole_sums
from gpupif.kernels.log_units import LOG_BITS
from gpupif.measures import MEASURES
from gpupif.utils.information import column_weight, conditional_entropy, log2_counts, log2_of_probabilities
from tests.helpers.kernels import from_python

pytestmark = pytest.mark.every_engine

mpmath.mp.prec = 240
exp2 = from_python(logarithms.exp2)
log2 = from_python(logarithms.log2)
digits_of_float = from_python(whole_sums.digits_of_float)
float_of_digits = from_python(whole_sums.float_of_digits)
float_of_rank = from_python(whole_sums.float_of_rank)
float_of_wide = from_python(whole_sums.float_of_wide)
multiply_wide = from_python(whole_sums.multiply_wide)
parts_of_wide = from_python(whole_sums.parts_of_wide)
rank_of_float = from_python(whole_sums.rank_of_float)
wide_of_digits = from_python(whole_sums.wide_of_digits)
wide_of_parts = from_python(whole_sums.wide_of_parts)
ALL = [
    *MEASURES,
    "recursive_2",
    "renyi_0",
    "renyi_0.5",
    "renyi_1.0001",
    "renyi_1.01",
    "renyi_2",
    "renyi_40",
    "renyi_inf",
]
COUNTS = st.integers(1, 2**61) | st.integers(1, 5000) | st.integers(0, 60).map(lambda power: 2**power)


def exact_log2(number):
    return mpmath.log(mpmath.mpf(number), 2)


def ulps(found, exact):
    """Return the error of a float in units in the last place of `exact`."""
    return abs(mpmath.mpf(found) - exact) / math.ulp(float(exact))


@settings(deadline=None)
@given(st.lists(COUNTS, min_size=1, max_size=50))
def test_logarithms_of_counts_are_right_to_half_a_unit(counts):
    for count, log in zip(counts, log2_counts(np.array(counts)).tolist(), strict=True):
        assert abs(log - exact_log2(count) * 2**LOG_BITS) < 0.51
        if count & (count - 1) == 0:
            assert log == (count.bit_length() - 1) << LOG_BITS


def test_logarithms_of_all_small_counts_rise():
    logs = log2_counts(np.arange(1, 200_000))
    assert (np.diff(logs) > 0).all()


@settings(deadline=None)
@given(st.floats(min_value=5e-324, max_value=1.7e308))
def test_logarithms_of_floats_are_right_to_half_a_unit(number):
    """The error is at most half a unit and half a unit in the last place."""
    exact = exact_log2(number)
    assert abs(mpmath.mpf(log2(number)) - exact) <= 0.51 * (2.0**-LOG_BITS + math.ulp(float(exact)))


@settings(deadline=None)
@given(st.floats(min_value=-199.0, max_value=1000.0))
def test_powers_of_two_are_right_to_three_units(exponent):
    exact = mpmath.power(2, mpmath.mpf(exponent))
    assert abs(mpmath.mpf(exp2(exponent)) - exact) <= 3 * math.ulp(float(exact))
    assert exp2(float(round(exponent))) == 2.0 ** round(exponent)


def test_logarithms_of_zero_infinity_and_nan_are_as_in_ieee_754():
    assert log2(0.0) == -math.inf
    assert log2(math.inf) == math.inf
    assert math.isnan(log2(math.nan))
    assert log2(8.0) == 3.0
    assert log2(2.0**-1074) == -1074.0


@pytest.mark.parametrize("least", [0.25, 2.0**-60, 2.0**-61, 1e-300, 2.3e-308])
def test_priors_of_any_size_have_logarithms(least):
    logs, bits = log2_of_probabilities(np.array([0.5, least]))
    assert logs[0] == -(1 << bits)
    assert abs(logs[1] - exact_log2(least) * 2**bits) < 0.51
    assert bits == (56 if least >= 2.0**-60 else 52)


@settings(deadline=None)
@given(st.integers(-(2**122), 2**122) | st.integers(-(2**70), 2**70))
def test_whole_numbers_become_the_nearest_floats(number):
    assert float_of_wide(number >> 64, np.uint64(number & (2**64 - 1))) == float(number)


@settings(deadline=None)
@given(st.integers(0, 2**61), st.integers(-(2**62), 2**62))
def test_products_are_exact(count, factor):
    high, low = multiply_wide(count, factor)
    assert (int(high) << 64) + int(low) == count * factor


@settings(deadline=None)
@given(st.lists(st.integers(-(2**123), 2**123), min_size=1, max_size=15), st.integers(0, 27))
def test_sums_of_parts_are_exact(numbers, doublings):
    """Up to 2^31 numbers whose sum fits 128 bits; each part of the sum fits 64."""
    numbers = [number >> doublings for number in numbers]
    parts = [parts_of_wide(number >> 64, np.uint64(number & (2**64 - 1))) for number in numbers]
    sums = [sum(map(int, part)) << doublings for part in zip(*parts, strict=True)]
    assert all(-(2**63) <= total < 2**63 for total in sums)
    high, low = wide_of_parts(*sums)
    assert (int(high) << 64) + int(low) == sum(numbers) << doublings


def test_parts_of_as_many_numbers_as_a_cohort_has_values_fit():
    largest = parts_of_wide(0, np.uint64(2**64 - 1))
    assert max(map(int, largest)) << 31 < 2**63


@settings(deadline=None)
@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_ranks_of_floats_are_in_their_order(one, other):
    assert float_of_rank(rank_of_float(one)) == one
    assert math.copysign(1.0, float_of_rank(rank_of_float(one))) == math.copysign(1.0, one)
    if one != other:
        assert (rank_of_float(one) < rank_of_float(other)) == (one < other)


@settings(deadline=None)
@given(st.lists(st.floats(-1.0, 1.0), max_size=200), st.randoms())
def test_sums_of_floats_do_not_depend_on_their_order(numbers, random):
    def total(some):
        upper = lower = 0
        for number in some:
            digits = digits_of_float(number)
            upper, lower = upper + digits[0], lower + digits[1]
        high, low = wide_of_digits(upper, lower)
        return float_of_digits(high, np.uint64(low))

    shuffled = random.sample(numbers, len(numbers))
    assert total(numbers) == total(shuffled)
    assert total(numbers) == pytest.approx(math.fsum(numbers), rel=1e-15, abs=len(numbers) * 2.0**-79)


def cohorts_of(table):
    """A row of each cohort of column b for who knows a; its counts by value; those of the whole table."""
    whole = table.b.value_counts().to_dict()
    for row in table.a.drop_duplicates().index.tolist():
        yield row, table.b[table.a == table.a[row]].value_counts().to_dict(), whole


def summed(cohort, whole, log):
    """CIG and entropy of a cohort, exactly, for logarithms of counts that `log` gives.

    Values that occur as often add the same, and are taken together.
    """
    size, total = sum(cohort.values()), sum(whole.values())
    alike = pd.Series([(count, whole[value]) for value, count in cohort.items()]).value_counts()
    gain = entropy = 0
    for (count, in_all), multiplicities in alike.items():
        gain += int(multiplicities) * count * (log(count) - log(size) - log(in_all) + log(total))
        entropy -= int(multiplicities) * count * (log(count) - log(size))
    return gain / size, entropy / size


LONG = pytest.mark.parametrize(
    ("rows", "groups", "values"),
    [(1_000, 3, 7), (50_000, 5, 400), (300_000, 3, 300_000), (10_000_000, 2, 1_000)],
)


def long_table(rows, groups, values):
    random = np.random.default_rng(rows)
    skewed = (random.pareto(1.0, rows) * 9).astype(np.int64) % values
    return pd.DataFrame(
        {"a": random.integers(0, groups, rows).astype(np.uint8), "b": np.arange(rows) if values == rows else skewed}
    )


@pytest.mark.slow
@LONG
def test_sums_are_exact_except_for_the_rounding_of_logarithms(rows, groups, values):
    """Two units in the last place of exact fractions of logarithms that are rounded to multiples of 2^-56 bits."""
    table = long_table(rows, groups, values)
    with gpupif.config(progress=False):
        scores = gpupif.score(table, ["cig", "entropy"], columns=["b"], known=["a"])
    for row, cohort, whole in cohorts_of(table):
        counts = np.array(sorted({*cohort.values(), *whole.values(), sum(cohort.values()), rows}))
        logs = dict(zip(counts.tolist(), log2_counts(counts).tolist(), strict=True))
        gain, entropy = summed(cohort, whole, lambda count, logs=logs: Fraction(logs[count], 1 << LOG_BITS))
        assert ulps(scores.cig.b[row], mpmath.mpf(gain.numerator) / gain.denominator) <= 2
        assert ulps(scores.entropy.b[row], mpmath.mpf(entropy.numerator) / entropy.denominator) <= 2


@pytest.mark.slow
@LONG
def test_scores_are_right_to_the_stated_error(rows, groups, values):
    """Against true logarithms: two units in the last place, or 2^-54 bits where terms cancel."""
    table = long_table(rows, groups, values)
    measures = ["cig", "entropy", "pointwise_information"]
    with gpupif.config(progress=False):
        scores = gpupif.score(table, measures, columns=["b"], known=["a"])
    for row, cohort, whole in cohorts_of(table):
        gain, entropy = summed(cohort, whole, exact_log2)
        count, in_all = cohort[table.b[row]], whole[table.b[row]]
        information = exact_log2(mpmath.mpf(count * rows) / (sum(cohort.values()) * in_all))
        for name, exact in zip(measures, (gain, entropy, information), strict=True):
            error = abs(mpmath.mpf(float(scores[name]["b"][row])) - exact)
            assert error <= max(2.0**-54, 2 * math.ulp(float(exact))), name


@pytest.mark.parametrize("least", [1e-12, 1e-18, 1e-30, 1e-300])
@pytest.mark.parametrize("order", [0.0, 0.5, 0.995, 1.0, 1.005, 2.0, 30.0, math.inf])
def test_divergences_from_tiny_priors_are_right(engine, least, order):
    """One cohort has only the value with the tiny prior, another cohort has a second value too."""
    table = pd.DataFrame({"k": [0, 0, 0, 1, 1], "c": list("abbaa")})
    prior = {"a": least, "b": 1.0 - least}
    name = f"renyi_{order:g}"
    with gpupif.config(progress=False):
        scores = gpupif.score(table, name, columns=["c"], known=["k"], priors={"c": prior})
    q, p = [mpmath.mpf(prior[value]) for value in "ab"], [mpmath.mpf(1) / 3, mpmath.mpf(2) / 3]
    if order == 1.0:
        both = mpmath.fsum(x * mpmath.log(x / y, 2) for x, y in zip(p, q, strict=True))
    elif order == math.inf:
        both = max(mpmath.log(x / y, 2) for x, y in zip(p, q, strict=True))
    else:
        total = mpmath.fsum(x**order * y ** (1 - mpmath.mpf(order)) for x, y in zip(p, q, strict=True))
        both = mpmath.log(total, 2) / (mpmath.mpf(order) - 1)
    found = scores.array(name)[0]
    np.testing.assert_allclose(
        found, [float(max(0, both))] * 3 + [float(-exact_log2(least))] * 2, rtol=1e-13, atol=1e-15
    )


def test_priors_too_small_for_their_digits_are_refused():
    table = pd.DataFrame({"k": [0, 1], "c": ["a", "b"]})
    with pytest.raises(
        gpupif.errors.PriorError, match=r"column 'c': expected a probability of at least 2\.23e-308 for 'a'"
    ):
        gpupif.score(table, priors={"c": {"a": 1e-309, "b": 1.0}})


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(
    seed=st.integers(0, 2**32 - 1),
    accuracy=st.sampled_from([1.0, 0.9, 0.3]),
    least=st.sampled_from([None, 0.01, 1e-30]),
)
def test_gains_with_accuracies_and_given_priors_are_right(seed, accuracy, least):
    """The error is at most 2^-49 bits or two units in the last place, for posteriors are rounded."""
    random = np.random.default_rng(seed)
    table = pd.DataFrame({"k": random.integers(0, 3, 40), "c": random.choice(list("abcd"), 40)})
    table.loc[:3, "c"] = list("abcd")
    shares = {"a": 0.5, "b": 0.25, "c": 0.25 - (least or 0.0), "d": least or 0.0}
    priors = {} if least is None else {"priors": {"c": shares}}
    options = {"columns": ["c"], "known": ["k"], "accuracies": {"c": accuracy}, **priors}
    with gpupif.config(progress=False):
        scores = gpupif.score(table, "cig", **options)
    counted = table.c.value_counts().to_dict()
    q = {v: mpmath.mpf(shares[v]) if least else mpmath.mpf(counted[v]) / 40 for v in "abcd"}
    for row in range(40):
        cohort = table.c[table.k == table.k[row]]
        gain = mpmath.mpf(0)
        for value, prior in q.items():
            share = mpmath.mpf(int((cohort == value).sum())) / len(cohort)
            posterior = mpmath.mpf(accuracy) * share + (1 - mpmath.mpf(accuracy)) * prior
            gain += posterior * mpmath.log(posterior / prior, 2) if posterior > 0 else 0
        error = abs(mpmath.mpf(float(scores.cig.c[row])) - gain)
        assert error <= max(2.0**-49, 2 * math.ulp(float(gain)))


def test_scores_of_an_attacker_who_knows_nothing_are_exactly_zero(engine):
    random = np.random.default_rng(3)
    table = pd.DataFrame({"a": random.integers(0, 37, 999), "b": random.choice(list("pqrstuv"), 999)})
    with gpupif.config(progress=False):
        scores = gpupif.score(table, list(MEASURES), known=[])
    for name in ("cig", "csf", "pointwise_information", "total_variation", "jensen_shannon", "hellinger"):
        assert (scores.array(name) == 0.0).all(), name


@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(1, 120),
    accuracy=st.sampled_from([1.0, 0.7]),
    weighted=st.booleans(),
)
def test_no_order_of_rows_changes_a_bit(seed, rows, accuracy, weighted):
    random = np.random.default_rng(seed)
    table = pd.DataFrame({name: random.integers(0, random.integers(1, 9), rows) for name in "abc"})
    table["weight"] = random.choice([1.0, 0.1, 3.7], rows) if weighted else 1
    options = {"known": ["a", "b"], "columns": ["a", "c"], "accuracies": {"a": accuracy, "c": accuracy}}
    options |= {"weights": "weight"} if weighted else {}
    with gpupif.config(progress=False):
        scores = gpupif.score(table, ALL, **options)
    order = random.permutation(rows)
    with gpupif.config(progress=False):
        again = gpupif.score(table.iloc[order], ALL, **options)
    for name in ALL:
        here, there = np.asarray(scores.array(name))[:, order], np.asarray(again.array(name))
        assert here.tobytes() == there.tobytes(), name
    assert scores.weights == again.weights


def test_weights_of_columns_are_rounded_once():
    counts = np.array([3, 5, 7, 1, 1, 9])
    logs = dict(zip(counts.tolist(), log2_counts(counts).tolist(), strict=True))
    total = sum(count * logs[count] for count in counts.tolist())
    distinct = gpupif.utils.information.Sizes.from_counts(counts).log_sum()
    whole = gpupif.utils.information.Sizes.from_counts(np.array([26])).log_sum()
    exact = Fraction(26 * int(log2_counts(np.array([26]))[0]) - total, 26 << LOG_BITS)
    assert conditional_entropy(whole, distinct, 26) == float(exact)
    assert column_weight(conditional_entropy(whole, distinct, 26), float(exact)) == 1.0


@pytest.mark.parametrize("order", [0.5, 2.0, 40.0])
def test_sums_of_powers_do_not_drift(order):
    """A million equal terms beside a column of three values, where a running sum would be off by 1e-11 of itself."""
    rows = 300_000
    table = pd.DataFrame({"a": np.arange(rows) % 3, "b": np.arange(rows)})
    with gpupif.config(progress=False):
        score = gpupif.score(table, f"renyi_{order:g}", columns=["b"], known=["a"])
    np.testing.assert_allclose(score.array(f"renyi_{order:g}"), float(exact_log2(3)), rtol=1e-14)
