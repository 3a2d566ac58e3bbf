"""Uniqueness before there is data, against all ways in which a few people can fall into a few slots."""

from __future__ import annotations

import doctest
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
import gpupif.disclosure.uniqueness
from gpupif.errors import InputError


def by_enumeration(people, columns):
    """Expected unique people and slots of two, per person, over every way to spread the people; columns: Fractions."""
    slots = [math.prod(combination, start=Fraction(1)) for combination in itertools.product(*columns)]
    unique = pairs = Fraction(0)
    for where in itertools.product(range(len(slots)), repeat=people):
        chance = math.prod((slots[slot] for slot in where), start=Fraction(1))
        found = [where.count(slot) for slot in set(where)]
        unique += chance * found.count(1)
        pairs += chance * found.count(2)
    return unique / people, pairs / people


def shares(weights):
    return [Fraction(weight, sum(weights)) for weight in weights]


small_columns = st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=3), min_size=1, max_size=2)


@pytest.mark.slow
@given(people=st.integers(1, 4), weights=small_columns)
@settings(deadline=None, max_examples=15)
def test_exact_shares_are_those_of_an_enumeration(people, weights):
    columns = [shares(one) for one in weights]
    found = gpupif.models.uniqueness(people, [list(map(float, one)) for one in columns])
    unique, pairs = by_enumeration(people, columns)
    assert found.unique_exact == pytest.approx(float(unique), rel=1e-12, abs=1e-14)
    assert found.pairs_exact == pytest.approx(float(pairs), rel=1e-12, abs=1e-14)
    assert found.in_pairs_exact == 2 * found.pairs_exact
    slots = [math.prod(combination) for combination in itertools.product(*columns)]
    assert found.slots == len(slots)
    assert found.unique == pytest.approx(sum(p * math.exp(-people * p) for p in slots), rel=1e-12)
    assert found.pairs == pytest.approx(people / 2 * sum(p * p * math.exp(-people * p) for p in slots), rel=1e-12)


@given(people=st.integers(1, 5), slots=st.integers(1, 4))
@settings(deadline=None, max_examples=10)
def test_equal_slots_have_the_shares_of_an_enumeration(people, slots):
    found = gpupif.models.uniqueness(people, slots)
    unique, pairs = by_enumeration(people, [[Fraction(1, slots)] * slots])
    assert found.unique_exact == pytest.approx(float(unique), rel=1e-12, abs=1e-15)
    assert found.pairs_exact == pytest.approx(float(pairs), rel=1e-12, abs=1e-15)
    assert found.unique == pytest.approx(math.exp(-people / slots), rel=1e-14)


def test_the_zip_code_has_the_shares_of_the_article():
    """exp(-9330/56940) is 0.84886, which the article gives as 84.8 %; of the people 7 % are the number of pairs."""
    found = gpupif.models.uniqueness(9_330, 56_940)
    assert math.floor(found.unique * 1000) == 848
    assert round(found.pairs, 2) == 0.07
    assert found.unique == pytest.approx(math.exp(-9330 / 56940), rel=1e-15)
    assert found.unique_exact == pytest.approx(float((1 - Fraction(1, 56940)) ** 9329), rel=1e-13)


@pytest.mark.parametrize(
    ("people", "unique", "pairs"),
    [
        (30_000_000, "0.03%", "0.11%"),
        (12_000_000, "3.73%", "6.14%"),
        (6_700_000, "15.95%", "14.64%"),
        (600_000, "84.84%", "6.97%"),
    ],
    ids=["Texas", "Ohio", "Tennessee", "Wyoming"],
)
def test_states_have_the_shares_of_the_article(people, unique, pairs):
    """Known by birthday and the last four digits of a number."""
    found = gpupif.models.uniqueness(people, [365, 10_000])
    assert (f"{found.unique:.2%}", f"{found.pairs:.2%}") == (unique, pairs)
    assert (f"{found.unique_exact:.2%}", f"{found.pairs_exact:.2%}") == (unique, pairs)


@given(people=st.integers(1, 10**12), slots=st.integers(1, 10**15))
def test_the_approximation_is_in_range_and_near(people, slots):
    found = gpupif.models.uniqueness(people, slots)
    assert 0 <= found.unique_exact <= 1
    assert 0 <= found.unique <= 1
    assert found.unique_exact + found.in_pairs_exact <= 1 + 1e-12
    assert found.unique + found.in_pairs <= 1
    if slots >= 1000:
        assert found.unique_exact == pytest.approx(found.unique, abs=2 / slots)
        assert found.pairs_exact == pytest.approx(found.pairs, abs=2 / slots)


def test_huge_numbers_keep_their_digits():
    found = gpupif.models.uniqueness(10**10, 10**12)
    # (1 - 1/d)^(z-1) = exp(-(z-1)/d - (z-1)/(2 d^2) - ...)
    assert found.unique_exact == pytest.approx(math.exp(-(10**10 - 1) / 10**12), rel=1e-14)
    assert gpupif.models.uniqueness(2, 10**300).unique_exact == 1.0
    assert gpupif.models.uniqueness(10**12, 2).unique == 0.0


@pytest.mark.slow
@given(weights=st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=5), min_size=1, max_size=4),
       people=st.integers(1, 500), equal=st.integers(1, 50))  # fmt: skip
@settings(deadline=None, max_examples=15)
def test_lattice_is_as_accurate_as_it_says(weights, people, equal):
    categories = [equal, *([weight / sum(one) for weight in one] for one in weights)]
    exact, lattice = (gpupif.models.uniqueness(people, categories, method=method) for method in ("exact", "lattice"))
    assert exact.accuracy == 0.0
    assert lattice.accuracy < 1e-7
    assert lattice.slots == exact.slots
    for name in ("unique", "pairs", "unique_exact", "pairs_exact"):
        assert getattr(lattice, name) == pytest.approx(getattr(exact, name), rel=0, abs=lattice.accuracy)


def test_the_size_of_blocks_does_not_matter(monkeypatch):
    random = np.random.default_rng(3)
    columns = [random.dirichlet(np.ones(size)).tolist() for size in (7, 5, 4)]
    whole = gpupif.models.uniqueness(50, columns)
    monkeypatch.setattr("gpupif.disclosure.uniqueness.BLOCK", 3)
    parts = gpupif.models.uniqueness(50, columns)
    assert parts.unique_exact == pytest.approx(whole.unique_exact, rel=1e-14)
    assert parts.pairs == pytest.approx(whole.pairs, rel=1e-14)


def test_all_forms_of_columns_give_one_result():
    first = gpupif.models.uniqueness(40, [{"f": 0.25, "m": 0.75, "x": 0}, 3, 4])
    assert first.slots == 24
    assert gpupif.models.uniqueness(np.int64(40), [12, (0.75, 0.25)]) == first
    assert gpupif.models.uniqueness(4e1, [np.array([0.25, 0.75]), 12.0]) == first
    assert gpupif.models.uniqueness(40, [[0.5, 0.5], 3]).unique_exact == pytest.approx(
        gpupif.models.uniqueness(40, 6).unique_exact
    )
    assert first.to_dict()["unique_exact"] == first.unique_exact


def test_rounded_probabilities_are_scaled_to_sum_to_1():
    third = round(1 / 3, 7)
    assert gpupif.models.uniqueness(1, [[third] * 3]).unique_exact == pytest.approx(1.0, rel=1e-15)


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        ((0, 5), ["population", "whole number", "1 or more", "got 0"]),
        ((2.5, 5), ["population", "got 2.5"]),
        ((True, 5), ["population", "got True"]),
        ((float("nan"), 5), ["population", "got nan"]),
        (("many", 5), ["population", "'many'"]),
        ((1 + 0j, 5), ["population", "(1+0j)"]),
        ((10**400, 5), ["population", "at most 4.61e+18", "got 1000"]),
        ((10**5000, 5), ["population", "thousands of digits"]),
        ((10, 10**400), ["categories", "at most 1e+300", "got 1000"]),
        ((10, [10**200, 10**200]), ["categories", "at most 1e+300 slots of all columns together"]),
        ((10, [2, [0.5, 0.5j]]), ["categories[1]", "0.5j"]),
        ((10, [2, [True, False]]), ["categories[1]", "True"]),
        ((10, 0), ["categories", "1 or more", "got 0"]),
        ((10, -3), ["categories", "got -3"]),
        ((10, 2.5), ["categories", "got 2.5"]),
        ((10, None), ["categories", "None"]),
        ((10, "sex"), ["categories", "'sex'"]),
        ((10, []), ["categories", "at least one column", "empty"]),
        ((10, [2, 0]), ["categories[1]", "1 or more", "got 0"]),
        ((10, [2, "age"]), ["categories[1]", "'age'"]),
        ((10, [[0.5, 0.4]]), ["categories[0]", "sum to 1", "0.9", "Divide"]),
        ((10, [2, [0.5, 1.5]]), ["categories[1]", "between 0 and 1", "1.5"]),
        ((10, [2, [50, 50]]), ["categories[1]", "50", "Divide counts"]),
        ((10, [2, [0.5, -0.5, 1]]), ["categories[1]", "-0.5"]),
        ((10, [2, [0.5, float("nan")]]), ["categories[1]", "nan"]),
        ((10, [2, {"f": "0.5"}]), ["categories[1]", "'0.5'"]),
        ((10, [2, []]), ["categories[1]", "sum to 1"]),
        ((10, [0.5, 0.5]), ["categories", "entry for each column", "[[...]]"]),
        ((10, {"f": 0.5, "m": 0.5}), ["categories", "[categories]"]),
    ],
)
def test_bad_input_is_refused(arguments, fragments):
    with pytest.raises(InputError) as caught:
        gpupif.models.uniqueness(*arguments)
    for fragment in fragments:
        assert fragment in str(caught.value)


@pytest.mark.slow
def test_too_many_combinations_are_refused():
    column = np.random.default_rng(0).dirichlet(np.ones(1000)).tolist()
    with pytest.raises(InputError, match=r"1,000,000,000.*method='lattice'"):
        gpupif.models.uniqueness(10, [column] * 3)
    with pytest.raises(InputError, match="method"):
        gpupif.models.uniqueness(10, 5, method="guess")
    with pytest.raises(InputError, match="Merge rare"):
        gpupif.models.uniqueness(10, [[1e-300, 1 - 1e-300]] * 4, method="lattice")


def test_the_docstring_holds():
    assert doctest.testmod(gpupif.disclosure.uniqueness).failed == 0
