"""Postcodes, cut to three digits."""

from __future__ import annotations

import pandas as pd
import pytest

from gpupif.errors import ColumnTypeError, InputError, TableReadError
from gpupif.treatment.value_maps.zip3 import Zip3
from tests.helpers.treated import treated_values

PEOPLE = {"021": 700_000, "036": 20_000, "005": 20_001, "821": 0}


def test_areas_of_more_than_20_000_people_keep_three_digits():
    values = ["02139", "03601", "00501", "82190", "02139-4307", "021394307", None]
    expected = ["021", "000", "005", "000", "021", "021", None]
    assert treated_values(values, Zip3("x", PEOPLE)) == expected
    assert treated_values(["03601"], Zip3("x", PEOPLE, least=19_999)) == ["036"]


def test_zeros_lost_by_numbers_are_put_back():
    assert treated_values([2139, 3601, 501, 21394307, 82190], Zip3("x", PEOPLE)) == ["021", "000", "005", "021", "000"]
    assert treated_values([2139.0, None], Zip3("x", PEOPLE)) == ["021", None]
    assert treated_values(["2139", "2139-4307"], Zip3("x", PEOPLE)) == ["021", "021"]


def test_populations_by_postcode_are_added_up():
    assert treated_values(["02139", "03601"], Zip3("x", {"02139": 15_000, "02138": 6_000, "03601": 9})) == [
        "021",
        "000",
    ]
    assert treated_values(["02139"], Zip3("x", {2139: 15_000, 2138: 6_000, 82190: 1})) == ["021"]
    assert treated_values(["02139"], Zip3("x", {21: 30_000, 821: 1})) == ["021"]


@pytest.mark.parametrize(
    "table",
    [
        {"zip3": ["021", "036"], "people": [30_000, 12]},
        {"zip3": [21, 36], "people": [30_000, 12]},
        {"ZCTA5": [2138, 2139, 3601], "Population": [15_000, 15_000, 12]},
    ],
)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_populations_are_read_from_a_file(table, ending, tmp_path):
    path = tmp_path / f"people.{ending}"
    getattr(pd.DataFrame(table), f"to_{ending}")(path, index=False)
    assert treated_values(["02139", "03601"], Zip3("x", str(path))) == ["021", "000"]
    assert treated_values(["02139", "03601"], Zip3("x", path)) == ["021", "000"]


@pytest.mark.parametrize("value", ["2139x", "021", "1234567890", "", "02139-43", "٠٢١٣٩"])
def test_a_value_that_is_no_postcode_is_refused_or_suppressed(value):
    with pytest.raises(InputError, match=r"column 'x': expected postcodes of five digits, or nine") as caught:
        treated_values(["02139", value], Zip3("x", PEOPLE))
    assert repr(value) in str(caught.value)
    assert treated_values(["02139", value], Zip3("x", PEOPLE, unmapped="suppress")) == ["021", None]


def test_areas_without_people_are_refused_or_suppressed():
    with pytest.raises(InputError, match=r"populations: no people for the areas 100, 945, which the column has"):
        treated_values(["94501", "10001", "02139"], Zip3("x", PEOPLE))
    assert treated_values(["94501"], Zip3("x", PEOPLE, unmapped="suppress")) == [None]


@pytest.mark.parametrize(
    ("populations", "fragment"),
    [
        (None, "populations: expected people by three-digit area, got none"),
        (3, "populations: expected text or a path or a table of keys and values that are whole numbers, got 3"),
        ({}, "populations: expected people by area, got none"),
        (
            {"021": "many"},
            "or a path or a table of keys and values that are whole numbers, got {'021': 'many'}",
        ),
        ({"021": -1}, "expected people of '021' as a whole number, got -1"),
        ({"021": -1}, "got -1"),
        ({"abc": 1}, "expected areas of three digits, or postcodes of five, got 'abc'"),
        ({"021394307": 1}, "got '021394307'"),
        ({"021": 1, "21": 2}, "the area 021 is given twice"),
    ],
)
def test_bad_populations_are_refused(populations, fragment):
    with pytest.raises(InputError) as caught:
        treated_values(["02139"], Zip3("x", populations))
    assert fragment in str(caught.value)


def test_bad_files_of_populations_and_columns_are_refused(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("area,count\n021,5\n")
    with pytest.raises(InputError, match="expected columns zip3 and people, got area, count"):
        treated_values(["02139"], Zip3("x", path))
    path.write_text("zip3,people\n021,\n036,1\n")
    with pytest.raises(InputError, match="row 1: expected an area and its people"):
        treated_values(["02139"], Zip3("x", path))
    with pytest.raises(TableReadError):
        treated_values(["02139"], Zip3("x", tmp_path / "missing.csv"))
    with pytest.raises(ColumnTypeError, match="expected postcodes, as texts or whole numbers, got bool"):
        treated_values([True], Zip3("x", PEOPLE))
