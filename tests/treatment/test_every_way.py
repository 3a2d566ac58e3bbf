"""Every treatment in every way to run: the same values, and the same record."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif.errors import InputError
from gpupif.treatment.plan import TREATMENTS
from tests.helpers.example_plans import EXAMPLES, KEY, PLANS, example_table
from tests.helpers.treatments import Bins, Drawn, Gone, Noisy, RareAway, RiskyAway, Shifted, Swapped
from tests.helpers.ways import FILE, MEMORY, OTHERS, Pieces, assert_same_treated, plain

TABLE = example_table()
# A treatment for each question to a table and each kind of change.
MECHANISM = [
    Bins("age"),
    RareAway("job", 8),
    Shifted("kept"),
    RareAway("note", 30),
    Drawn("sex"),
    RiskyAway("income", 2.5, known=("sex", "job")),
    Swapped("sex"),
    RiskyAway("age", 0.9, rows=True, known=("sex", "job")),
    Noisy("income"),
    Drawn("job", 2),
    RareAway("age", 12),
    Gone(("person",)),
]
# All treatments together are a quick test; each alone is a slow test.
TOGETHER = ("all", "rest")


def slow_but(name, *quick):
    """Return a case with the mark of slow tests, unless its name is among some names."""
    return () if name in quick else pytest.mark.slow


PIECES = {
    "thirds": Pieces(),
    "empty files": Pieces((0.0, 0.2, 0.2, 0.9), chunk_rows=11, partition_rows=3),
    "one": Pieces((), chunk_rows=1000, partition_rows=1000),
}


def test_every_treatment_has_an_example():
    assert set(EXAMPLES) >= set(TREATMENTS)


@pytest.mark.parametrize(
    "pieces",
    [pytest.param(pieces, id=name, marks=slow_but(name, "empty files")) for name, pieces in PIECES.items()],
)
def test_every_way_allows_all_that_a_treatment_may_do(way, pieces):
    found = way.treat(TABLE, MECHANISM, pieces)
    expected = MEMORY.treat(TABLE, MECHANISM)
    assert_same_treated(found, expected)
    assert expected.record.rows_removed > 0
    assert all(one.changed or one.dropped or one.rows_removed for one in expected.record.treatments)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("do", TOGETHER)
def test_every_way_treats_a_table_the_same(way, do):
    check_way(way, do)


# A table that is read from a file is treated in memory as all tables are.
@pytest.mark.slow
@pytest.mark.parametrize("way", [way for way in OTHERS if way.values[0] is not FILE], indirect=True)
@pytest.mark.parametrize("do", [do for do in PLANS if do not in TOGETHER])
def test_every_way_treats_a_table_the_same_by_each_treatment(way, do):
    check_way(way, do)


def check_way(way, do):
    expected = MEMORY.treat(TABLE, PLANS[do], key=KEY)
    assert_same_treated(way.treat(TABLE, PLANS[do], Pieces(chunk_rows=25, partition_rows=20), key=KEY), expected)
    assert any(one.changed or one.dropped or one.rows_removed for one in expected.record.treatments)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("rows", [pytest.param(rows, marks=slow_but(rows, 7)) for rows in (1, 7, 119)])
def test_any_threads_and_pieces_treat_a_table_the_same(threads, rows):
    expected = MEMORY.treat(TABLE, PLANS["all"], Pieces(chunk_rows=10_000), key=KEY)
    with gpupif.config(threads=threads):
        found = MEMORY.treat(TABLE, PLANS["all"], Pieces(chunk_rows=rows), key=KEY)
    pd.testing.assert_frame_equal(found.table, expected.table)
    assert_same_treated(found, expected)


@pytest.mark.parametrize("do", [do for do in PLANS if do not in TOGETHER])
def test_columns_without_a_treatment_stay_as_they_are(do):
    done = gpupif.treat(TABLE, PLANS[do], key=KEY)
    changed = {name for one in done.record.treatments for name, cells in one.changed.items() if cells}
    same = [name for name in done.table if name not in changed]
    assert same
    rows = done.table.index
    for name in same:
        expected = TABLE[name].loc[rows]
        assert plain(done.table[name]) == plain(expected)
        if len(rows) == len(TABLE):
            pd.testing.assert_series_equal(done.table[name], TABLE[name])
            if isinstance(TABLE[name].dtype, np.dtype) and TABLE[name].dtype != object:
                assert np.shares_memory(done.table[name].to_numpy(), TABLE[name].to_numpy())


def test_the_given_table_is_not_changed():
    table = TABLE.copy(deep=True)
    gpupif.treat(table, PLANS["all"], key=KEY)
    pd.testing.assert_frame_equal(table, TABLE)


def test_the_record_counts_the_cells_that_changed():
    for do in ("recode", "randomized_response", "jitter"):
        if do not in PLANS:
            continue
        for treatment in PLANS[do].treatments:
            done = gpupif.treat(TABLE, [treatment], key=KEY)
            [column] = treatment.named()
            before, after = plain(TABLE[column]), plain(done.table[column])
            [record] = done.record.treatments
            differ = sum(str(old) != str(new) for old, new in zip(before, after, strict=True))
            gone = sum(old is not None and new is None for old, new in zip(before, after, strict=True))
            assert record.changed == {column: differ}
            assert record.suppressed == ({column: gone} if gone else {})


@pytest.mark.parametrize("do", [pytest.param(do, marks=slow_but(do, "all", "rest")) for do in PLANS])
def test_the_record_and_the_comparison_count_the_cells_that_differ_at_the_end(do):
    """In the rows and columns that are left, whatever treatments did in between."""
    table = TABLE.assign(row=range(len(TABLE)))
    done = gpupif.treat(table, PLANS[do], key=KEY)
    left = table.loc[done.table["row"].to_numpy()]
    differ, gone = {}, {}
    for name in done.table:
        cells = list(zip(plain(left[name]), plain(done.table[name]), strict=True))
        differ[name] = sum(old != new and str(old) != str(new) for old, new in cells)
        gone[name] = sum(old is not None and new is None for old, new in cells)
    names = [name for name in done.table if name != "row" and differ[name]]
    assert {name: cells for name, cells in done.record.changed.items() if cells} == {n: differ[n] for n in names}
    assert done.record.suppressed == {name: gone[name] for name in names if gone[name]}
    if names:
        found = gpupif.compare(table, done.table, columns=names, row_id="row", linkage=None, numbers=[])
        assert found.columns["cells_changed"].tolist() == [differ[name] for name in names]
        assert found.utility.cells_changed == sum(done.record.changed.values())
        assert found.utility.cells == len(left) * len(names)


HALF_EMPTY = {
    "values come late": lambda column: column.mask(np.arange(len(column)) < len(column) * 2 // 3),
    "values end early": lambda column: column.mask(np.arange(len(column)) >= len(column) // 3),
}


ON_HALF_EMPTY = [
    gpupif.treatments.ShiftDates(["born"], person="person", days=9),
    gpupif.treatments.Swap(["born"], within=["sex"], share=0.7),
    gpupif.treatments.Round("income", base=100),
    gpupif.treatments.RandomizedResponse("job", keep=0.5, missing="keep"),
    gpupif.treatments.Pram("zip", invariant=0.5, missing="category"),
    gpupif.treatments.SuppressRows(where="cig > 3", columns=["zip"], known=["sex", "zip"]),
    gpupif.treatments.DatePart("born", to="quarter"),
]


@pytest.mark.parametrize("emptied", HALF_EMPTY.values(), ids=HALF_EMPTY)
@pytest.mark.parametrize(
    "treatments",
    [
        pytest.param(ON_HALF_EMPTY, id="all"),
        pytest.param([gpupif.treatments.DatePart("born", to="year")], id="year", marks=pytest.mark.slow),
    ],
)
def test_columns_without_values_in_some_pieces_are_treated_the_same(way, emptied, treatments):
    table = TABLE.assign(**{name: emptied(TABLE[name]) for name in ("born", "income", "job", "zip")})
    plan = [*treatments, gpupif.treatments.Rare("zip", below=3)]
    found = way.treat(table, plan, Pieces((0.2, 0.35, 0.7), chunk_rows=20, partition_rows=12), key=KEY)
    assert_same_treated(found, MEMORY.treat(table, plan, key=KEY))


def test_a_plan_that_leaves_no_rows_gives_the_same_in_every_way(way):
    plan = [
        gpupif.treatments.SuppressRows(k=121, quasi_identifiers=["sex"]),
        gpupif.treatments.RandomizedResponse("job", keep=0.5, missing="category"),
        gpupif.treatments.DatePart("born", to="year"),
        gpupif.treatments.Rare("zip", below=3),
    ]
    found = way.treat(TABLE, plan, Pieces((0.2, 0.35, 0.7), chunk_rows=7, partition_rows=3), key=KEY)
    assert_same_treated(found, MEMORY.treat(TABLE, plan, key=KEY))
    assert len(found.table) == 0


def test_errors_name_the_treatment_that_failed(way):
    """Check errors of rows that are treated late: when a later treatment asks for values, or when rows are written."""
    table = TABLE.assign(born=[*TABLE["born"].dt.strftime("%Y-%m-%d")[:-1], "9999-12-30"])
    for later in ([gpupif.treatments.Rare("zip", below=3)], [gpupif.treatments.Rare("born", below=3)]):
        plan = [gpupif.treatments.Round("age", base=5), gpupif.treatments.Jitter("born", within=10_000), *later]
        with pytest.raises(InputError, match=r"^treatment 2 \(jitter\): column 'born': a moved value does not fit"):
            way.treat(table, plan, Pieces((0.5,), chunk_rows=7, partition_rows=3), key=bytes(32))


def test_texts_of_a_plan_denote_the_values_of_distances(way, tmp_path):
    # "high" is far from the others in this hierarchy, and near them as numbers. A document has texts for its keys.
    table = TABLE.assign(pay=[1, 2, 3, 3] * (len(TABLE) // 4))
    arguments = {"require": "t<=0.1", "quasi_identifiers": ["sex", "job"], "sensitive": ["pay"]}
    tree = {"pay": {1: ["low"], 2: ["low"], 3: ["high"]}}
    plan = gpupif.Plan([gpupif.treatments.SuppressRows(**arguments, distances=tree)])
    expected = MEMORY.treat(table, plan)
    without = MEMORY.treat(table, [gpupif.treatments.SuppressRows(**arguments)])
    assert len(expected.table) != len(without.table)
    plan.save(tmp_path / "plan.toml")
    found = way.treat(table, gpupif.Plan.load(tmp_path / "plan.toml"), Pieces((0.2, 0.7), chunk_rows=7))
    assert_same_treated(found, expected)


def test_an_attribute_that_is_missing_in_all_rows_fails_no_class(way):
    table = TABLE.assign(pay=np.nan)
    plan = [gpupif.treatments.SuppressRows(require="t<=0.3", quasi_identifiers=["sex"], sensitive=["pay"])]
    found = way.treat(table, plan, Pieces((0.2, 0.7), chunk_rows=7))
    assert len(found.table) == len(table)
