"""Warnings of scores that are computed all the same: nearly unique columns, attackers who know nothing."""

from __future__ import annotations

import warnings

import pandas as pd
import pytest

import gpupif
from gpupif.errors import ColumnNotFoundError, InputError, NearlyUniqueWarning
from tests.helpers.bad_input import FRAME, assert_refused, warned

pytestmark = pytest.mark.every_engine


def test_a_warning_names_nearly_unique_columns():
    names = [f"name {number}" for number in range(50)]
    table = pd.DataFrame({"id": [*range(45), 0, 1, 2, 3, 4], "sex": ["f", "m"] * 25, "name": names})
    with pytest.warns(NearlyUniqueWarning, match="'id': 45 distinct values in 50 rows") as caught:
        gpupif.score(table)
    assert len(caught) == 2
    of_id, of_name = warned(table)
    assert "'id'" in of_id
    assert "'name': 50 distinct" in of_name
    assert "columns=" in of_name
    assert warned(table, columns=["id", "sex"]) == [of_id]
    assert warned(table, columns=["sex"], known=["name"]) == [of_name]


def test_small_and_ordinary_tables_give_no_warning():
    unique = pd.DataFrame({"id": range(49), "name": [str(n) for n in range(49)]})
    assert warned(unique) == []
    assert warned(pd.DataFrame({"id": [*range(44)] + [0] * 6})) == []
    assert warned(pd.concat([unique] * 2)) == []
    assert warned(pd.DataFrame({"id": range(60), "sex": ["f"] * 60}), columns=["sex"], known=[]) == []
    assert warned(gpupif.datasets.census(1_000)) == []


def test_priors_of_an_unneeded_column_of_a_file_are_refused(tmp_path):
    file = tmp_path / "t.csv"
    FRAME.to_csv(file, index=False)
    expected = ["priors", "'sex'", "neither scored nor known"]
    assert_refused(InputError, expected, file, columns=["age"], priors={"sex": {"f": 1.0}})


@pytest.mark.parametrize(
    ("table", "arguments", "hint"),
    [(FRAME, {"columns": ["age"]}, "known="), (pd.DataFrame({"a;b": ["1;2", "3;4"]}), {}, "separator right")],
)
def test_a_warning_comes_if_the_attacker_knows_nothing(table, arguments, hint):
    with pytest.warns(gpupif.errors.NothingKnownWarning, match=hint):
        gpupif.score(table, **arguments)
    assert warned(table, **arguments, known=[]) == []
    assert warned(table, **arguments, known=0) == []
    assert warned(FRAME) == []


def test_a_warning_comes_if_the_only_known_column_is_scored():
    for columns in (["age"], None):
        with pytest.warns(gpupif.errors.NothingKnownWarning, match="only 'age'"):
            gpupif.score(FRAME, columns=columns, known=["age"])
    assert warned(FRAME, columns=["sex"], known=["age"]) == []


def test_an_unknown_column_is_refused_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_refused(ColumnNotFoundError, ["'agee'"], FRAME, columns=["agee"])
