"""Random treatments by `gpupif.treat`: in plans, on frames of several kinds, with estimates."""

from __future__ import annotations

import datetime as dt
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gpupif
from gpupif.errors import ColumnNotFoundError, InputError, SeedWarning

SECRET = bytes(range(60, 92))
ROWS = 4000
LETTERS = {"x": {"x": 0.9, "y": 0.1}, "y": {"y": 1}, "z": {"z": 0.5, "x": 0.5}}


def visits():
    random = np.random.default_rng(8)
    days = [dt.date(2020, 1, 1) + dt.timedelta(int(day)) for day in random.integers(0, 900, ROWS)]
    stays = random.integers(0, 30, ROWS).tolist()
    return pa.table(
        {
            "person": random.integers(0, 500, ROWS),
            "drug": pa.array(random.choice(["a", "b", "c"], ROWS, p=[0.6, 0.3, 0.1]), mask=random.random(ROWS) < 0.1),
            "ward": random.choice(["x", "y", "z"], ROWS),
            "in": days,
            "out": [day + dt.timedelta(more) for day, more in zip(days, stays, strict=True)],
            "cost": random.random(ROWS).round(2) * 1000,
            "beds": random.integers(1, 6, ROWS),
            "job": random.choice(["u", "v", "w"], ROWS),
        }
    )


def plan(matrix):
    return gpupif.Plan(
        [
            gpupif.treatments.RandomizedResponse("drug", epsilon=1.5, missing="category"),
            gpupif.treatments.Pram("ward", matrix=matrix),
            gpupif.treatments.ShiftDates(["in", "out"], person="person", days=30),
            gpupif.treatments.Noise("cost", scale=0.05, distribution="laplace", relative="deviation"),
            gpupif.treatments.Jitter("beds", within=1),
            gpupif.treatments.Swap(["job"], within=["ward"], share=0.5),
        ]
    )


def rows_of(table):
    """Return the rows of any kind of table as Python's values."""
    if isinstance(table, pd.DataFrame):
        table = pa.Table.from_pandas(table, preserve_index=False)
    elif isinstance(table, pl.DataFrame):
        table = table.to_arrow()
    return [{name: value or None for name, value in row.items()} for row in table.to_pylist()]


def test_frames_of_all_kinds_are_treated_the_same():
    table = visits()
    expected = rows_of(gpupif.treat(table, plan(LETTERS), key=SECRET).table)
    for frame in (table.to_pandas(), pl.from_arrow(table)):
        done = gpupif.treat(frame, plan(LETTERS), key=SECRET)
        assert type(done.table) is type(frame)
        found = rows_of(done.table)
        assert found == expected
    assert found != rows_of(gpupif.treat(table, plan(LETTERS), key=bytes(32)).table)


def test_threads_and_later_rows_change_no_draw():
    """Check that draws depend on the row's number only: the first rows alone give equal values."""
    table, treatments = (
        visits(),
        [gpupif.treatments.RandomizedResponse("ward", 0.3), gpupif.treatments.Jitter("beds", 2)],
    )
    found = gpupif.treat(table, treatments, key=SECRET).table
    with gpupif.config(threads=1):
        assert gpupif.treat(table, treatments, key=SECRET).table.to_pylist() == found.to_pylist()
    assert gpupif.treat(table[:1000], treatments, key=SECRET).table.to_pylist() == found[:1000].to_pylist()


def test_saved_plans_draw_the_same_values(tmp_path):
    (tmp_path / "matrix.csv").write_text(",x,y,z\nx,.9,.1,0\ny,0,1,0\nz,.5,0,.5\n")
    gpupif.treatments.Key.from_any(SECRET).save(tmp_path / "key")
    plan(LETTERS).save(tmp_path / "plan.toml")
    text = (tmp_path / "plan.toml").read_text()
    for suffix, matrix in (("toml", None), ("toml", 'matrix = "matrix.csv"')):
        if matrix is not None:
            start = text.index("matrix =")
            text = text[:start] + matrix + text[text.index("\n", start) :]
        (tmp_path / f"other.{suffix}").write_text(text)
        found = gpupif.treat(visits(), tmp_path / f"other.{suffix}", key=tmp_path / "key").table
        assert found.to_pylist() == gpupif.treat(visits(), plan(LETTERS), key=SECRET).table.to_pylist()


def test_estimates_of_a_plan_are_close_and_the_record_is_complete():
    table = visits()
    done = gpupif.treat(table, plan(LETTERS), key=SECRET)
    found = done.estimates("drug")
    assert found.columns.tolist() == ["value", "share", "standard_error", "rows"]
    known = [np.mean([value == one for value in table["drug"].to_pylist()]) for one in ["a", "b", "c", None]]
    assert (abs(found["share"] - known) < 5 * found["standard_error"]).all()
    wards = done.estimates("ward")
    known = [np.mean(table["ward"].to_numpy() == one) for one in "xyz"]
    assert (abs(wards["share"] - known) < 5 * wards["standard_error"]).all()
    with pytest.raises(InputError, match="'beds': jitter changed it last"):
        done.estimates("beds")
    shown = str(json.loads(done.record.to_json())) + repr(done)
    assert gpupif.treatments.Key.from_any(SECRET).digest in shown
    assert SECRET.hex()[:12] not in shown


def test_a_column_randomised_twice_is_estimated_from_the_last_step():
    table = visits()
    done = gpupif.treat(table, [gpupif.treatments.RandomizedResponse("ward", 0.5)] * 2, key=SECRET)
    once = gpupif.treat(table, [gpupif.treatments.RandomizedResponse("ward", 0.5)], key=SECRET)
    found = done.estimates("ward")
    before = [np.mean(once.table["ward"].to_numpy() == one) for one in "xyz"]
    assert (abs(found["share"] - before) < 5 * found["standard_error"]).all()
    # At another position of the plan, other numbers are drawn and other rows are replaced.
    assert done.table["ward"].to_pylist() != once.table["ward"].to_pylist()


def test_columns_that_the_table_lacks_are_refused():
    with pytest.raises(ColumnNotFoundError, match=r"person: no column 'persn' .* Did you mean 'person'"):
        gpupif.treat(visits(), [gpupif.treatments.ShiftDates(["in"], "persn", 3)], key=SECRET)
    with pytest.raises(ColumnNotFoundError, match=r"within: no column 'wart' .* Did you mean 'ward'"):
        gpupif.treat(visits(), [gpupif.treatments.Swap(["job"], ["wart"], 1)], key=SECRET)


def test_a_seed_gives_a_warning():
    with pytest.warns(SeedWarning):
        one = gpupif.treat(visits(), [gpupif.treatments.Jitter("beds", 2)], seed=7)
    with pytest.warns(SeedWarning):
        assert gpupif.treat(visits(), [gpupif.treatments.Jitter("beds", 2)], seed=7).table.equals(one.table)
    assert '"seed"' in one.record.to_json()
