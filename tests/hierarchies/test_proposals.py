"""Hierarchies proposed for columns that have none."""

from __future__ import annotations

import datetime
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpupif
from gpupif.encoding.encode import encode_column
from gpupif.hierarchies.open import open_hierarchies, open_hierarchy
from gpupif.hierarchies.proposals import propose_hierarchy, round_widths
from gpupif.protection.column_levels import ColumnLevels
from tests.helpers.tables import tables


def proposed(values, **how):
    return propose_hierarchy(encode_column("x", pd.Series(values, **how))).to_plan()


def of_counts(**counts):
    return [value for value, times in counts.items() for _ in range(times)]


def test_ages_are_proposed_widths_of_5_10_and_20():
    # The middle nine tenths are from 19 to 63, as of adult.
    ages = np.concatenate([np.repeat(np.arange(19, 64), 100), np.arange(17, 91)])
    assert proposed(ages) == {"widths": [5, 10, 20]}
    assert proposed(ages.astype(str)) == {"widths": [5, 10, 20]}
    assert proposed(np.append(ages, np.nan)) == {"widths": [5, 10, 20]}


@pytest.mark.parametrize(
    ("numbers", "widths"),
    [
        (range(1001), [50, 100, 200]),
        (range(8), [2]),
        (np.arange(21) / 20, [0.1, 0.2]),
        ([0, 1], []),
        ([7], []),
        ([-5, 5], []),
        ([1e-3, 1.5e-3, 9e-3], [0.001]),
        ([0.0, 5e-324], []),
        ([0.0, 1e-310, 2e-310], []),
    ],
)
def test_proposed_widths_follow_the_range_of_numbers(numbers, widths):
    found = proposed(list(numbers))["widths"]
    assert found == widths


@given(st.lists(st.floats(-1e12, 1e12), min_size=2, unique=True), st.integers(1, 9))
def test_proposed_round_widths_nest(numbers, times):
    widths = round_widths(np.array(numbers), np.full(len(numbers), times))
    assert open_hierarchy("x", {"widths": widths}).height <= 5
    assert {f"{width:e}"[0] for width in widths} <= {"1", "2", "5"}


def test_extreme_values_do_not_widen_proposed_intervals():
    rows = [*range(100), 10**9]
    assert proposed(rows) == {"widths": [5, 10, 20]}


def test_dates_are_proposed_units_of_time():
    days = [datetime.date(1950, 1, 1) + datetime.timedelta(days=37 * place) for place in range(500)]
    wanted = {"dates": ["quarter", "year", "decade"]}
    months = {"dates": ["month", *wanted["dates"]]}
    dense = [datetime.date(2015, 1, 1) + datetime.timedelta(days=place) for place in range(3000)]
    assert proposed(days) == proposed([day.isoformat() for day in days]) == proposed(pd.to_datetime(days))
    assert proposed(days)["dates"][-3:] == wanted["dates"]
    assert proposed(dense) == months
    times = pd.date_range("2020-01-01", periods=3000, freq="7h")
    assert proposed(times) == {"dates": ["day", "month", "quarter", "year"]}
    assert proposed(["2001-05-17", "soon"]) == {"common": [], "keep": []}


def test_codes_are_proposed_fewer_digits():
    codes = [f"{place:05}" for place in range(0, 40_000, 7)]
    assert proposed(codes) == {"digits": [1, 2, 3, 4]}
    assert proposed([f"{place:09}" for place in range(0, 10**9, 100_001)])["digits"] == [6, 8]
    assert proposed([f"{town}{place % 20} {place % 9}AB" for town in ("M", "LS") for place in range(80)]) == {
        "digits": [4, 6]
    }
    assert "digits" not in proposed(["12", "34"] * 3)


def test_codes_of_diagnoses_are_proposed_by_their_first_characters():
    codes = [f"{letter}{number}{end}" for letter in "EI" for number in range(10, 30) for end in ("", ".9", ".90")]
    assert proposed(codes) == {"first": [5, 3, 2, 1]}
    assert proposed([code.replace(".", "") for code in codes])["first"][-3:] == [3, 2, 1]


def test_texts_of_digits_with_zeros_in_front_are_codes():
    """A postcode such as 02139 is no number, whatever the lengths of the texts."""
    assert proposed(["02139", "00501", "10001", "02140"]) == {"digits": [2, 4]}
    assert proposed(["01", "02", "11", "12"]) == {"digits": [1]}
    assert proposed(["02139", "2140", "501", "99"])["digits"]
    assert "widths" not in proposed(["02139", "2140.5", "501"])
    assert proposed(["0", "2", "4", "30"])["widths"]
    assert proposed(["0.5", "1.5", "8"])["widths"] is not None


def test_rare_categories_are_pooled_first():
    assert proposed(of_counts(a=9, b=8, c=7, d=2, e=1, f=1, g=1)) == {"common": list("abcd"), "keep": [4, 2]}
    # Values that are as common are treated alike.
    assert proposed(of_counts(a=3, b=3, c=3, d=3, e=3)) == {"common": [], "keep": []}
    assert proposed(of_counts(a=3, b=2, c=2, d=2, e=1)) == {"common": ["a"], "keep": [1]}
    assert proposed([f"name {place}" for place in range(1000)]) == {"common": [], "keep": []}
    many = [f"v{place}" for place in range(300) for _ in range(300 - place)]
    assert proposed(many)["keep"] == [100, 20, 5]
    assert proposed(of_counts(other=9, b=8, c=7, d=2))["common"] == ["other", "b"]


@pytest.mark.parametrize("values", [[True, False, None], ["f", "m"], [None, None], ["x"]])
def test_a_column_without_other_levels_is_proposed_the_top(values):
    hierarchy = propose_hierarchy(encode_column("x", pd.Series(values, dtype=object)))
    assert hierarchy.height == 1
    assert hierarchy.groups(pa.array(["anything"]), 1).to_pylist() == ["*"]


@given(tables())
def test_every_column_of_any_table_is_proposed_a_hierarchy(table):
    frame = pd.DataFrame(table)
    columns = [encode_column(name, frame[name]) for name in frame]
    found = {column.name: propose_hierarchy(column) for column in columns}
    assert list(found) == list(table)
    plan = gpupif.Plan([], found)
    assert gpupif.Plan.from_dict(plan.to_dict()) == plan
    for column in columns:
        coded = ColumnLevels.from_hierarchy(column, found[column.name])
        sizes = [level.cardinality for level in coded.levels]
        values = [size - column.missing for size in sizes[:-1]]
        assert all(1 < above < below for below, above in pairwise(values))


@pytest.mark.slow
@given(st.lists(st.sampled_from(["a", "b", "c", "dd", "é", None]), min_size=1), st.randoms())
def test_every_kind_of_table_is_proposed_the_same_hierarchy(values, random):
    shuffled = random.sample(values, len(values))
    kinds = [
        pd.Series(shuffled, dtype=object),
        pd.Series(values, dtype="category"),
        pa.chunked_array([pa.array(values, pa.string())]),
        pa.chunked_array([pl.Series(shuffled, dtype=pl.String).to_arrow()]),
    ]
    plans = [propose_hierarchy(encode_column("x", kind)).to_plan() for kind in kinds]
    assert plans == plans[:1] * 4


@given(st.lists(st.integers(0, 500), min_size=1))
def test_every_type_of_numbers_is_proposed_the_same_hierarchy(values):
    kinds = [pa.int16(), pa.int64(), pa.float64(), pa.string()]
    plans = [
        propose_hierarchy(encode_column("x", pa.chunked_array([pa.array(values).cast(kind)]))).to_plan()
        for kind in kinds[: 3 if len({len(str(value)) for value in values}) == 1 else 4]
    ]
    assert plans == plans[:1] * len(plans)


def test_proposals_are_hierarchies_of_plans():
    found = {"age": propose_hierarchy(encode_column("age", pd.Series(range(100))))}
    assert open_hierarchies(found) == found == open_hierarchies({"age": {"widths": [5, 10, 20]}})
