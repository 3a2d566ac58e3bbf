"""The plan of Safe Harbor."""

from __future__ import annotations

import datetime

import pandas as pd
import pytest

import gpupif
from gpupif.errors import ColumnNotFoundError, InputError
from gpupif.treatment.plan import Plan
from gpupif.treatment.safe_harbor import KINDS
from tests.helpers.checkout import ROOT

PEOPLE = {"021": 700_000, "036": 9_000}
TABLE = pd.DataFrame(
    {
        "name": ["Ann", "Bo", "Cy", "Di"],
        "birth": ["1936-07-01", "1937-01-01", "2001-05-17", None],
        "admitted": ["03/31/2024", "12/01/1936", "1/2/2025", "01/02/2025"],
        "zip": ["02139", "03601", "02138-4307", None],
        "age": [90, 89, 25, None],
        "sex": ["f", "m", "m", None],
    }
)
DECLARED = {"name": "name", "birth": "date", "admitted": "date", "zip": "zip", "age": "age", "sex": "keep"}


def plan(columns=DECLARED):
    return Plan.safe_harbor(columns, PEOPLE, as_of=2026, date_format={"admitted": "%m/%d/%Y"})


def test_only_values_that_safe_harbor_allows_are_left():
    found = gpupif.treat(TABLE, plan()).table
    assert list(found.columns) == ["birth", "admitted", "zip", "age", "sex"]
    shown = found.astype(object).where(found.notna(), None)
    # A person born in 1936 may be 90 in 2026; a person born in 1937 is not.
    assert shown["birth"].tolist() == ["1936 or before", "1937", "2001", None]
    assert shown["admitted"].tolist() == ["2024", "1936 or before", "2025", "2025"]
    assert shown["zip"].tolist() == ["021", "000", "021", None]
    assert shown["age"].tolist() == ["90+", "89", "25", None]
    assert shown["sex"].tolist() == ["f", "m", "m", None]


def test_every_column_is_declared():
    with pytest.raises(InputError, match="every column to be declared, got none for 'sex'"):
        gpupif.treat(TABLE, plan({name: kind for name, kind in DECLARED.items() if name != "sex"}))
    with pytest.raises(InputError, match="got none for 'phone'"):
        gpupif.treat(TABLE.assign(phone="1"), plan())
    with pytest.raises(ColumnNotFoundError, match="'fax'"):
        gpupif.treat(TABLE, plan({**DECLARED, "fax": "fax"}))


@pytest.mark.parametrize("made", [pd.DataFrame, pytest.param("dask", marks=pytest.mark.dask)])
@pytest.mark.parametrize(
    "index",
    [
        pd.Index(["Ann", "Bo", "Cy"]),
        pd.Index([71, 20, 33], name="record"),
        pd.MultiIndex.from_arrays([["Ann", "Bo", "Cy"], [1, 2, 3]]),
        pd.DatetimeIndex(["1936-07-01", "1937-01-01", "2001-05-17"]),
    ],
)
def test_a_table_with_an_index_is_refused(made, index):
    table = pd.DataFrame({"age": [90, 89, 25]}, index=index)
    if made == "dask":
        if isinstance(index, pd.MultiIndex):
            pytest.skip("Dask has none")
        table = pytest.importorskip("dask.dataframe").from_pandas(table, npartitions=2, sort=False)
    with pytest.raises(InputError, match=r"got an index.*reset_index\(drop=True\)"):
        gpupif.treat(table, Plan.safe_harbor({"age": "age"}))


def test_an_index_of_places_goes_with_the_rows():
    table = pd.DataFrame({"age": [90, 89, 25]})
    assert gpupif.treat(table[table["age"] > 80], Plan.safe_harbor({"age": "age"})).table.index.tolist() == [0, 1]
    assert gpupif.treat(table.iloc[[2, 0]], Plan.safe_harbor({"age": "age"})).table.index.tolist() == [2, 0]


def test_all_eighteen_categories_have_their_paragraphs():
    named = {letter for kind in KINDS.values() if len(kind.paragraph) == 1 for letter in kind.paragraph}
    assert named == set("ABCDEFGHIJKLMNOPQR")
    dropped = {word for word, kind in KINDS.items() if kind.done == "dropped"}
    assert {kind.paragraph for word, kind in KINDS.items() if word in dropped and word != "direct"} == set(
        "ABDEFGHIJKLMNOPQR"
    )
    table = pd.DataFrame({word: ["v"] for word in [*dropped, "sex"]})
    done = gpupif.treat(table, Plan.safe_harbor({**dict.fromkeys(dropped, "direct"), "sex": "keep"}))
    assert list(done.table.columns) == ["sex"]
    done = gpupif.treat(table, Plan.safe_harbor({**{word: word for word in dropped}, "sex": "keep"}))
    assert list(done.table.columns) == ["sex"]


def test_the_page_has_all_words():
    page = (ROOT / "docs" / "how-to" / "safe-harbor.md").read_text("utf-8")
    rows = [f"| `{word}`: {kind.holds} | {kind.paragraph} | {kind.done} |" for word, kind in KINDS.items()]
    assert [row for row in rows if row not in page] == []


def test_years_are_pooled_as_dates_are():
    table = pd.DataFrame({"born": [1936, 1937]})
    for as_of in (2026, datetime.date(2026, 3, 1)):
        done = gpupif.treat(table, Plan.safe_harbor({"born": "year"}, as_of=as_of))
        assert done.table["born"].tolist() == ["1936 or before", "1937"]
    this = datetime.date.today().year
    by_default = gpupif.treat(pd.DataFrame({"born": [this - 90, this - 89]}), Plan.safe_harbor({"born": "year"}))
    assert by_default.table["born"].tolist() == [f"{this - 90} or before", str(this - 89)]


def test_a_saved_plan_treats_the_table_the_same(tmp_path):
    for ending in ("toml", "json"):
        path = tmp_path / f"plan.{ending}"
        plan().save(path)
        assert Plan.load(path) == plan()
        pd.testing.assert_frame_equal(gpupif.treat(TABLE, path).table, gpupif.treat(TABLE, plan()).table)


@pytest.mark.parametrize(
    ("how", "fragment"),
    [
        ({"columns": {}}, "columns: expected a dictionary with the content of every column"),
        ({"columns": ["name"]}, "expected a dictionary"),
        ({"columns": {"a": "adress"}}, "column 'a': expected its content, one of direct, name"),
        ({"columns": {"a": "medical_recor"}}, "Did you mean 'medical_record'?"),
        ({"columns": {"notes": "free_text"}}, "column 'notes': free text may say anything"),
        ({"columns": {"zip": "zip"}}, "populations: expected people by three-digit area, got none"),
        ({"columns": {"born": "year"}, "as_of": "today"}, "as_of: expected a year or a date, got 'today'"),
        ({"columns": {"born": "year"}, "date_format": {"born": "%Y"}}, "'born' is not declared as a date"),
        ({"columns": {"born": "date"}, "date_format": 3}, "date_format: expected a text such as"),
    ],
)
def test_bad_declarations_of_columns_are_refused(how, fragment):
    with pytest.raises(InputError) as caught:
        Plan.safe_harbor(**how)
    assert fragment in str(caught.value)


def test_dates_are_no_ages():
    table = pd.DataFrame({"age": pd.to_datetime(["1930-01-01"])})
    with pytest.raises(InputError, match="column 'age': expected numbers"):
        gpupif.treat(table, Plan.safe_harbor({"age": "age"}))
