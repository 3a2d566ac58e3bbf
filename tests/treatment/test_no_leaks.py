"""Removed values are nowhere in the output: neither as a category, nor as a statistic, nor in metadata."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import gpupif
from tests.helpers.covering import covering
from tests.helpers.treatments import Bins, Gone, RareAway, RiskyAway

SECRET = "Xanthippe"
NUMBER = 987654321
ROWS = 200


def table():
    """Return a table with a row whose name, job and number occur in no other row."""
    names = ["Anna", "Bert", "Cora", "Dirk"] * (ROWS // 4)
    names[17] = SECRET
    numbers = list(range(10, 14)) * (ROWS // 4)
    numbers[17] = NUMBER
    frame = pd.DataFrame({"name": names, "job": pd.Categorical(names), "number": numbers, "other": names})
    frame.attrs["told by"] = SECRET
    return frame


# Plans that remove cells, columns, or rows with their values in untreated columns.
PLANS = {
    "cells": [RareAway("name", 2), RareAway("job", 2), RareAway("number", 2), RareAway("other", 2)],
    "groups": [RareAway("name", 2), RareAway("job", 2), Bins("number", 10**10), Gone(("other",))],
    "rows": [RiskyAway("number", 4.0, rows=True, known=("name",))],
}


def assert_not_in(data):
    for secret in (SECRET.encode(), np.int64(NUMBER).tobytes(), str(NUMBER).encode()):
        assert secret not in data


@pytest.fixture(params=PLANS)
def treatments(request):
    """The treatments of a plan, by its name."""
    return PLANS[request.param]


def test_the_check_finds_a_secret_that_is_there(tmp_path):
    """Check that the search finds the secret in an untreated table: the tests below could not fail otherwise."""
    pq.write_table(pa.Table.from_pandas(table()), tmp_path / "in.parquet", compression="none")
    assert SECRET.encode() in (tmp_path / "in.parquet").read_bytes()


def test_no_removed_value_is_left_in_pandas(treatments):
    found = gpupif.treat(table(), treatments).table
    for name in found:
        values = list(found[name].cat.categories) if found[name].dtype == "category" else list(found[name].dropna())
        assert SECRET not in values
        assert NUMBER not in values
    assert found.attrs == {}
    sink = io.BytesIO()
    found.to_parquet(sink, compression=None)
    assert_not_in(sink.getvalue())


def test_no_removed_value_is_left_in_pyarrow(treatments):
    given = pa.Table.from_pandas(table()).replace_schema_metadata({"bounds": f"{SECRET} {NUMBER}"})
    given = given.cast(
        pa.schema(
            [field.with_metadata({"highest": SECRET}) if field.name != "number" else field for field in given.schema],
            given.schema.metadata,
        )
    )
    found = gpupif.treat(given, treatments).table
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, found.schema) as writer:
        writer.write_table(found)
    assert_not_in(sink.getvalue().to_pybytes())
    for name in found.column_names:
        column = found.column(name)
        values = column.chunk(0).dictionary if pa.types.is_dictionary(column.type) else column
        assert SECRET not in values.to_pylist()
    assert not found.schema.metadata


def test_no_removed_value_is_left_in_polars(treatments):
    pl = pytest.importorskip("polars")
    given = pl.from_pandas(table()).with_columns(pl.col("job").cast(pl.Categorical))
    found = gpupif.treat(given, treatments).table
    for name in found.columns:
        kind = found.schema[name]
        values = kind.categories if isinstance(kind, pl.Enum) else found[name]
        assert kind != pl.Categorical
        assert SECRET not in values.to_list()
    sink = io.BytesIO()
    found.write_parquet(sink, compression="uncompressed")
    assert_not_in(sink.getvalue())


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("treatments", "source", "output"),
    covering(2, [*PLANS], ["in.parquet", "in.feather", "in.csv"], ["out", "out.parquet", "out.feather", "out.csv"]),
    indirect=["treatments"],
)
def test_no_removed_value_is_left_in_files(tmp_path, treatments, source, output):
    frame = table()
    if source == "in.parquet":
        frame.to_parquet(tmp_path / source)
    elif source == "in.feather":
        feather.write_feather(pa.Table.from_pandas(frame), tmp_path / source, chunksize=50)
    else:
        frame.to_csv(tmp_path / source, index=False)
    with gpupif.config(compression="none" if output != "out" else None):
        done = gpupif.treat_files(tmp_path / source, tmp_path / output, treatments)
    for file in done.files:
        if output == "out":
            written = pq.read_table(file, read_dictionary=["name"] if "name" in pq.read_schema(file).names else [])
            assert SECRET not in str(written.to_pylist())
            continue
        assert_not_in(file.read_bytes())


@pytest.mark.dask
@pytest.mark.usefixtures("on_cpu")
def test_no_removed_value_is_left_in_dask(treatments):
    import dask

    from tests.helpers.dask_frames import cut

    with dask.config.set(scheduler="sync"):
        found = gpupif.treat(cut(table(), [50, 100]), treatments).table
        for kinds in (found.dtypes, found.compute().dtypes, found.partitions[0].compute().dtypes):
            for kind in kinds:
                assert SECRET not in list(getattr(kind, "categories", []))


def with_unused():
    """Return a table in which the secret is an unused category: of a column, of an ordered column and of the index.

    The highest grade comes first: the order of values in a file is not the order of grades.
    """
    grades = pd.Categorical(["high", "low", "mid", "low"] * 10, ["low", SECRET, "mid", "high"], ordered=True)
    index = pd.CategoricalIndex(["a", "b"] * 20, [SECRET, "b", "a"], name="label")
    columns = {"job": pd.Categorical(["x", None] * 20, [SECRET, "x"]), "grade": grades, "number": range(40)}
    return pd.DataFrame(columns, index=index)


ONE_CHANGES = [Bins("number", 10)]


def test_unused_categories_are_removed_from_pandas():
    given = with_unused()
    arrow = pa.DictionaryArray.from_arrays([0, 0] * 20, ["x", SECRET])
    given["arrow"] = pd.arrays.ArrowExtensionArray(pa.chunked_array([arrow]))
    found = gpupif.treat(given, ONE_CHANGES).table
    assert list(found["job"].cat.categories) == ["x"]
    assert list(found["grade"].cat.categories) == ["low", "mid", "high"]
    assert found["grade"].cat.ordered
    assert found["arrow"].array.__arrow_array__().chunk(0).dictionary.to_pylist() == ["x"]
    assert list(found.index.categories) == ["b", "a"]
    for name in ("job", "grade", "arrow"):
        assert str(found[name].tolist()) == str(given[name].tolist())
    levels = given.set_index([given.index, pd.Index([SECRET, *"z" * 39])]).iloc[1:]
    found = gpupif.treat(levels, ONE_CHANGES).table
    assert found.index.tolist() == levels.index.tolist()
    assert all(SECRET not in level for level in found.index.levels)
    assert SECRET not in found.index.levels[0].categories


def test_unused_categories_are_removed_from_pyarrow():
    given = pa.Table.from_pandas(with_unused())
    inner = pa.DictionaryArray.from_arrays([0, 0, 1, 1], ["x", "y", SECRET])
    lists = pa.ListArray.from_arrays(pa.array([0, 2, *[4] * 39], pa.int32()), inner)
    structs = pa.StructArray.from_arrays([pa.DictionaryArray.from_arrays([0] * 40, ["x", SECRET])], ["of"])
    given = given.append_column("lists", lists).append_column("structs", structs)
    found = gpupif.treat(given, ONE_CHANGES).table
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, found.schema) as writer:
        writer.write_table(found)
    assert_not_in(sink.getvalue().to_pybytes())
    assert b"num_categories" not in found.schema.metadata[b"pandas"]
    assert [field.type for field in found.schema if field.name != "number"] == [
        field.type for field in given.schema if field.name != "number"
    ]
    others = [name for name in given.column_names if name != "number"]
    assert found.select(others).to_pylist() == given.select(others).to_pylist()
    assert found.to_pandas()["grade"].cat.categories.tolist() == ["low", "mid", "high"]


def test_unused_categories_are_removed_from_polars():
    pl = pytest.importorskip("polars")
    given = pl.from_pandas(with_unused()).with_columns(
        pl.col("grade").cast(pl.Enum(["low", SECRET, "mid", "high"])),
        shared=pl.Series(["x"] * 40, dtype=pl.Categorical),
    )
    # Categories of Polars are shared by the whole process.
    assert pl.Series([SECRET], dtype=pl.Categorical)[0] == SECRET
    found = gpupif.treat(given, ONE_CHANGES).table
    assert {name: found.schema[name].categories.to_list() for name in ("job", "grade", "shared")} == {
        "job": ["x"],
        "grade": ["low", "mid", "high"],
        "shared": ["x"],
    }
    for name in ("job", "grade", "shared"):
        assert found[name].cast(pl.String).to_list() == given[name].cast(pl.String).to_list()


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("source", "output", "removed"),
    covering(2, ["in.parquet", "in.feather", "in"], ["out", "out.parquet", "out.feather"], [False, True]),
)
def test_unused_categories_are_removed_from_files(tmp_path, monkeypatch, source, output, removed):
    monkeypatch.setattr("gpupif.treatment.file_table.CHUNK_ROWS", 3)
    monkeypatch.setattr("gpupif.treatment.treat_files.GROUP_ROWS", 7)
    given = pa.Table.from_pandas(with_unused())
    if source == "in.feather":
        feather.write_feather(given, tmp_path / source, chunksize=10)
    elif source == "in":
        (tmp_path / source).mkdir()
        for number, (start, stop) in enumerate([(0, 1), (1, 21), (21, 40)]):
            part = given.slice(start, stop - start)
            pq.write_table(part, tmp_path / source / f"{number}.parquet", compression="none")
    else:
        pq.write_table(given, tmp_path / source, row_group_size=10, compression="none")
    plan = [*ONE_CHANGES, *([RiskyAway("number", 4.0, rows=True, known=("job",))] if removed else [])]
    with gpupif.config(compression="none"):
        done = gpupif.treat_files(tmp_path / source, tmp_path / output, plan)
    for file in done.files:
        assert_not_in(file.read_bytes())
        assert b"num_categories" not in file.read_bytes()
    read = feather.read_table if output == "out.feather" else pq.read_table
    found = pa.concat_tables(read(file) for file in done.files).to_pandas()
    assert list(found["grade"].cat.categories) == ["low", "mid", "high"]
    assert found["grade"].cat.ordered
    expected = gpupif.treat(with_unused(), plan).table
    assert found["grade"].tolist() == expected["grade"].tolist()
    assert found["job"].astype(object).equals(expected["job"].astype(object))


@pytest.mark.dask
def test_unused_categories_are_removed_from_dask():
    import dask

    from tests.helpers.dask_frames import cut

    given = with_unused().reset_index(drop=True)
    given["when"] = pd.cut(range(40), [-1, 20, 40, 60])
    with dask.config.set(scheduler="sync"):
        found = gpupif.treat(cut(given, [1, 20]), ONE_CHANGES).table
        for frame in (found._meta, found.compute(), *(part.compute() for part in found.partitions)):
            assert list(frame["job"].cat.categories) == ["x"]
            assert list(frame["grade"].cat.categories) == ["low", "mid", "high"]
            assert frame["grade"].cat.ordered
            assert not any(50 in interval for interval in frame["when"].cat.categories)
        for name in ("job", "grade", "when"):
            assert found.compute()[name].astype(object).reset_index(drop=True).equals(given[name].astype(object))
