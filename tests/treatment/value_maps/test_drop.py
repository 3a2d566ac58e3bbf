"""Columns taken away."""

from __future__ import annotations

import pandas as pd
import pytest

import gpupif
from gpupif.errors import InputError
from gpupif.treatment.dropped_columns import Drop
from tests.helpers.treated import treated

TABLE = {"age": [1, 2], "sex": ["f", None], "name": ["Ann", "Bo"]}


def test_only_the_named_columns_are_dropped():
    assert treated(TABLE, Drop(["name", "age"])) == {"sex": ["f", None]}
    assert treated(TABLE, Drop("name")) == {"age": [1, 2], "sex": ["f", None]}


def test_a_level_of_an_index_can_be_dropped_alone():
    index = pd.MultiIndex.from_arrays([["Ann", "Bo"], [7, 8], [1, 2]], names=["name", None, "case"])
    table = pd.DataFrame({"age": [1, 2]}, index)
    after = gpupif.treat(table, [Drop("name")]).table
    assert (list(after), list(after.index.names), list(after.index)) == (["age"], [None, "case"], [(7, 1), (8, 2)])
    after = gpupif.treat(table, [Drop(["name", "case"])]).table
    assert (list(after), list(after.index)) == (["age"], [7, 8])
    assert list(table.index.names) == ["name", None, "case"]


def test_another_treatment_that_names_an_index_makes_it_a_column():
    table = pd.DataFrame({"age": [1, 2, 3]}, pd.Index(["Ann", "Bo", "Ann"], name="name"))
    after = gpupif.treat(table, [gpupif.treatments.Pseudonym("name", method="hmac")], key=bytes(range(32))).table
    assert list(after) == ["name", "age"]
    assert after["name"][0] == after["name"][2] != after["name"][1]
    assert not {"Ann", "Bo"} & {*after["name"], *after.index}


@pytest.mark.parametrize(
    ("columns", "fragment"),
    [
        ([], "expected at least one column"),
        (["age", "sex", "name"], "Leave one out of columns"),
    ],
)
def test_bad_columns_to_drop_are_refused(columns, fragment):
    with pytest.raises(InputError, match=r"^drop: ") as caught:
        treated(TABLE, Drop(columns))
    assert fragment in str(caught.value)
