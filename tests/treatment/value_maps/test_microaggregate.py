"""Microaggregation: numbers are replaced by means and medians of groups."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from decimal import Decimal
from fractions import Fraction
from statistics import median_low

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpupif.errors import ColumnTypeError, InputError
from gpupif.treatment.value_maps.microaggregate import Microaggregate
from tests.helpers.naive_microaggregation import least_squares, squares
from tests.helpers.treated import treated_type, treated_values

VALUES = st.lists(st.integers(-20, 20), min_size=1, max_size=9)


def groups_of(values, found):
    groups = defaultdict(list)
    for value, new in zip(values, found, strict=True):
        groups[new].append(value)
    return groups


def test_near_values_are_grouped():
    values = [1, 2, 3, 100, 101, 102, None]
    assert treated_values(values, Microaggregate("x", 3)) == [2.0, 2.0, 2.0, 101.0, 101.0, 101.0, None]
    assert treated_values(values, Microaggregate("x", 3, "median")) == [2.0, 2.0, 2.0, 101.0, 101.0, 101.0, None]
    assert treated_values([1, 2, 3, 100, 101, 102], Microaggregate("x", 2, "median")) == [2, 2, 2, 101, 101, 101]


@settings(deadline=None)
@given(VALUES, st.integers(1, 5), st.sampled_from(["mean", "median"]))
def test_the_groups_are_the_best_of_all(values, k, replaced):
    treatment = Microaggregate("x", k, replaced)
    if len(values) < k:
        with pytest.raises(InputError, match=f"expected at least k={k} rows with a number, got {len(values)}"):
            treated_values(values, treatment)
        return
    found = treated_values(values, treatment)
    groups = groups_of(values, found)
    assert min(map(len, groups.values())) >= k
    assert max(Counter(value for group in groups.values() for value in set(group)).values()) == 1
    counts = Counter(values)
    total = sum(squares(sorted(set(group)), counts) for group in groups.values())
    assert float(total) == pytest.approx(float(least_squares(values, k)), rel=1e-12, abs=1e-12)
    for new, group in groups.items():
        assert new == (sum(group) / len(group) if replaced == "mean" else median_low(group))


@given(VALUES, st.integers(1, 4), st.sampled_from(["int8", "float64", "str"]), st.randoms())
def test_the_order_of_rows_and_the_type_make_no_difference(values, k, kind, random):
    if len(values) < k:
        return
    found = dict(zip(values, treated_values(values, Microaggregate("x", k)), strict=True))
    shuffled = random.sample(values, len(values))
    again = treated_values(pd.Series(shuffled).astype(kind), Microaggregate("x", k))
    assert [float(one) for one in again] == pytest.approx([found[value] for value in shuffled], rel=1e-15)


@given(st.lists(st.floats(-1e300, 1e300), min_size=3, max_size=30), st.integers(1, 3))
def test_groups_of_floats_have_k_values_and_their_mean(values, k):
    found = treated_values(pd.Series(values), Microaggregate("x", k))
    for new, group in groups_of(values, found).items():
        assert len(group) >= k
        assert min(group) <= new <= max(group)
        mean = float(sum(map(Fraction, group)) / len(group))
        assert abs(new - mean) <= 4 * len(group) * max(math.ulp(value) for value in (*group, mean))


def test_the_type_of_a_mean_fits_the_column():
    assert treated_type([1, 2], Microaggregate("x", 2)) == pa.float64()
    assert treated_type([1, 2], Microaggregate("x", 2, "median")) == pa.int64()
    prices = [Decimal("1.00"), Decimal("1.01"), Decimal("1.02"), Decimal("9.99")]
    assert treated_values(prices, Microaggregate("x", 4)) == [Decimal("3.26")] * 4
    assert treated_values(prices[:2], Microaggregate("x", 2)) == [Decimal("1.00")] * 2
    assert treated_values(["1.50", "2"], Microaggregate("x", 2)) == ["1.75", "1.75"]
    assert treated_values(["1", "1.0", "3"], Microaggregate("x", 1, "median")) == ["1", "1", "3"]
    assert treated_values([2**62, 2**62 + 2], Microaggregate("x", 2)) == [float(2**62 + 1)] * 2


def test_groups_of_many_numbers_have_k_to_2k_values():
    values = np.random.default_rng(1).normal(size=20_000)
    found = treated_values(values, Microaggregate("x", 5))
    sizes = Counter(found).values()
    assert min(sizes) >= 5
    assert max(sizes) <= 9


def test_a_column_of_missing_values_stays_as_it_is():
    assert treated_values([None, None], Microaggregate("x", 3)) == [None, None]


@pytest.mark.parametrize(
    ("values", "treatment", "fragment"),
    [
        ([1, 2], Microaggregate("x", 0), "k: expected a whole number of rows, 1 or more"),
        ([1, 2], Microaggregate("x", 2, "mode"), "replaced: expected 'mean' or 'median', got 'mode'"),
        ([1, 2], Microaggregate(["x", "y"], 2), "For several columns together (MDAV) take microaggregate_together"),
        ([1.0, math.inf], Microaggregate("x", 2), "expected finite numbers, got infinite ones"),
        (["1", "a"], Microaggregate("x", 2), "expected numbers, got 'a'"),
        (["10", "02139"], Microaggregate("x", 2), "expected numbers, got codes, such as '02139'"),
    ],
)
def test_bad_values_and_arguments_are_refused(values, treatment, fragment):
    with pytest.raises(InputError) as caught:
        treated_values(values, treatment)
    assert fragment in str(caught.value)


def test_columns_that_are_no_numbers_are_refused():
    with pytest.raises(ColumnTypeError, match="expected numbers, got timestamp"):
        treated_values(pd.to_datetime(["2000-01-01"]), Microaggregate("x", 1))
