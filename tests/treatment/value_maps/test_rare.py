"""Pooled rare values."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupif.errors import InputError
from gpupif.treatment.coded_columns import ColumnValues
from gpupif.treatment.value_maps.pooled_values import Rare, pooled_values
from tests.helpers.treated import treated_type, treated_values


def test_values_in_few_rows_become_other():
    values = ["a"] * 5 + ["b"] * 2 + ["c"] * 1 + [None]
    assert treated_values(values, Rare("x", below=3)) == ["a"] * 5 + ["other"] * 3 + [None]
    assert treated_values([1, 1, 2, 3], Rare("x", below=2)) == ["1", "1", "other", "other"]
    assert treated_values([1, 1, 2, 3], Rare("x", below=2, label=-1)) == [1, 1, -1, -1]
    assert treated_type([1, 1, 2, 3], Rare("x", below=2, label=-1)) == pa.int64()


def test_a_rare_pool_takes_in_the_next_rarest_value():
    values = ["a"] * 9 + ["c"] * 4 + ["b"] * 4 + ["d"]
    assert Counter(treated_values(values, Rare("x", below=3))) == {"a": 9, "c": 4, "other": 5}
    assert Counter(treated_values(["a"] * 9 + ["d"], Rare("x", below=3))) == {"other": 10}
    assert Counter(treated_values(["a"] * 9 + ["other"], Rare("x", below=3))) == {"other": 10}
    assert treated_values(["a", "b"], Rare("x", below=9)) == ["other", "other"]


@given(st.lists(st.sampled_from([*"abcdefg", "other", None]), min_size=1, max_size=60), st.integers(1, 20))
def test_no_rare_value_is_left(values, below):
    found = treated_values(values, Rare("x", below=below))
    before, after = Counter(values), Counter(found)
    after.pop(None, None)
    assert len(after) <= 1 or min(after.values()) >= below
    assert [a is None for a in values] == [b is None for b in found]
    pooled = {a for a, b in zip(values, found, strict=True) if b == "other" and a is not None}
    if pooled - {"other"}:
        needed = {value for value in before if value is not None and before[value] < below}
        extra = pooled - needed - {"other"}
        # Only as many further values are pooled as are needed, the rarest first.
        if extra:
            largest = max(extra, key=lambda value: (before[value], value))
            assert sum(before[value] for value in pooled - {largest}) < below
            assert all(before[value] >= before[largest] for value in after if value != "other")
    assert treated_values(found, Rare("x", below=below)) == found


def test_countries_of_less_than_a_million_people_are_pooled():
    """Compare with a count of countries: the rarest has log2(total / its people), not the value of "other"."""
    people = np.array([800, 5_000_000, 900_000, 7_500_000_000 - 5_900_800 - 1_000_000, 1_000_000])
    values = ColumnValues(pa.array(["a", "b", "c", "d", "e"]), people, 0)
    pooled = pooled_values(values, 1_000_000, "other")
    # 900,800 people together are too few: the next rarest country is pooled, too.
    assert pooled.tolist() == [True, False, True, False, True]
    rarest = min(people[~pooled].min(), people[pooled].sum())
    assert math.log2(people.sum() / rarest) <= math.log2(7.5e9 / 1e6)
    assert math.log2(7.5e9 / 1e6) == pytest.approx(12.87, abs=0.005)


@pytest.mark.parametrize(
    ("treatment", "fragment"),
    [
        (Rare("x", below=0), "below: expected a whole number of rows, 1 or more; got 0"),
        (Rare("x", below=2.5), "got 2.5"),
        (Rare("x", below=2, label=None), "label: expected a number or text, got None"),
    ],
)
def test_bad_arguments_are_refused(treatment, fragment):
    with pytest.raises(InputError) as caught:
        treated_values([1], treatment)
    assert fragment in str(caught.value)
