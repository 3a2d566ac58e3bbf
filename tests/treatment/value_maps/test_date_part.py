"""Parts of dates."""

from __future__ import annotations

import datetime

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupif.errors import ColumnTypeError, InputError
from gpupif.treatment.value_maps.date_part import DatePart
from tests.helpers.treated import treated, treated_type, treated_values

DAYS = [datetime.date(2001, 5, 17), datetime.date(1899, 12, 31), None]
PARTS = {"year": [2001, 1899, None], "quarter": ["2001-Q2", "1899-Q4", None], "month": ["2001-05", "1899-12", None]}


@pytest.mark.parametrize("to", PARTS)
def test_parts_of_dates_times_and_texts_are_the_same(to):
    texts = [None if day is None else str(day) for day in DAYS]
    moments = [None if text is None else f"{text}T23:30:00+02:00" for text in texts]
    frames = [DAYS, pd.to_datetime(pd.Series(DAYS)), texts, moments]
    for values in frames:
        assert treated_values(values, DatePart("x", to)) == PARTS[to]
    assert treated(pl.DataFrame({"x": DAYS}), DatePart("x", to))["x"] == PARTS[to]


def test_a_year_is_a_whole_number():
    assert treated_type(DAYS, DatePart("x", "year")) == pa.int64()


def test_times_with_a_zone_go_by_the_clock_of_their_zone():
    moments = pd.to_datetime(["2000-12-31 23:30"]).tz_localize("UTC").tz_convert("Europe/Berlin")
    assert treated_values(moments, DatePart("x", "year")) == [2001]


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ("%m/%d/%Y", ["05/17/2001", "5/17/2001", "02/29/2000"]),
        ("%d.%m.%Y", ["17.05.2001", "17.5.2001", "29.02.2000"]),
        ("%Y%m%d", ["20010517", "20010517", "20000229"]),
        ("%Y%m%d", [20010517, 20010517, 20000229]),
        ("%d %b %Y", ["17 May 2001", "17 may 2001", "29 Feb 2000"]),
    ],
)
def test_dates_in_another_layout_are_read_by_its_format(written, values):
    assert treated_values(values, DatePart("x", "month", format=written)) == ["2001-05", "2001-05", "2000-02"]


@pytest.mark.parametrize(
    ("values", "written"),
    [
        (["2001-05-17", "unknown"], None),
        (["2001-02-29"], None),
        (["05/17/2001"], None),
        (["02/31/2001"], "%m/%d/%Y"),
        (["05/17/2001 "], "%m/%d/%Y"),
        ([20010230], "%Y%m%d"),
    ],
)
def test_a_value_that_is_no_date_is_refused_or_suppressed(values, written):
    with pytest.raises(InputError, match=r"column 'x': expected dates as .*, got") as caught:
        treated_values(values, DatePart("x", "year", format=written))
    assert repr(values[-1]) in str(caught.value)
    assert treated_values(values, DatePart("x", "year", format=written, unmapped="suppress"))[-1] is None


@given(st.lists(st.dates(), min_size=1))
def test_every_date_has_the_year_of_the_calendar(days):
    assert treated_values([str(day) for day in days], DatePart("x", "year")) == [day.year for day in days]
    written = [f"{day.month}/{day.day}/{day.year:04}" for day in days]
    assert treated_values(written, DatePart("x", "year", format="%m/%d/%Y")) == [day.year for day in days]


def test_bad_columns_and_arguments_are_refused():
    with pytest.raises(ColumnTypeError, match=r"written as numbers, give their format: format = '%Y%m%d'"):
        treated_values([20010517], DatePart("x", "year"))
    with pytest.raises(ColumnTypeError, match="expected dates"):
        treated_values([True], DatePart("x", "year"))
    with pytest.raises(InputError, match="to: expected 'year' or 'quarter' or 'month', got 'week'"):
        treated_values(DAYS, DatePart("x", "week"))
    with pytest.raises(InputError, match=r"expected signs of strptime such as '%m/%d/%Y', got 'MM/DD'"):
        treated_values(DAYS, DatePart("x", "year", format="MM/DD"))
