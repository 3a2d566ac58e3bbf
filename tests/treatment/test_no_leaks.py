"""No value that was treated away is left anywhere in what comes out: not as a category, a bound, nor in a note."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import gpupif
from tests.helpers.treatments import Bins, Gone, RareAway, RiskyAway

SECRET = "Xanthippe"
NUMBER = 987654321
ROWS = 200


def table():
    """One row has a name, a job and a number that no other has."""
    names = ["Anna", "Bert", "Cora", "Dirk"] * (ROWS // 4)
    names[17] = SECRET
    numbers = list(range(10, 14)) * (ROWS // 4)
    numbers[17] = NUMBER
    frame = pd.DataFrame({"name": names, "job": pd.Categorical(names), "number": numbers, "other": names})
    frame.attrs["told by"] = SECRET
    return frame


# Cells away, columns away, and rows away with what they have in columns that are not treated.
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
    return PLANS[request.param]


def test_the_secret_is_seen_where_it_is(tmp_path):
    """The tests below could not fail otherwise."""
    pq.write_table(pa.Table.from_pandas(table()), tmp_path / "in.parquet", compression="none")
    assert SECRET.encode() in (tmp_path / "in.parquet").read_bytes()


def test_pandas(treatments):
    found = gpupif.treat(table(), treatments).table
    for name in found:
        values = list(found[name].cat.categories) if found[name].dtype == "category" else list(found[name].dropna())
        assert SECRET not in values
        assert NUMBER not in values
    assert found.attrs == {}
    sink = io.BytesIO()
    found.to_parquet(sink, compression=None)
    assert_not_in(sink.getvalue())


def test_pyarrow(treatments):
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


def test_polars(treatments):
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


@pytest.mark.parametrize("output", ["out", "out.parquet", "out.feather", "out.csv"])
@pytest.mark.parametrize("source", ["in.parquet", "in.feather", "in.csv"])
def test_files(tmp_path, treatments, source, output):
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
def test_dask(treatments):
    import dask

    from tests.helpers.dask_frames import cut

    with dask.config.set(scheduler="sync"):
        found = gpupif.treat(cut(table(), [50, 100]), treatments).table
        for kinds in (found.dtypes, found.compute().dtypes, found.partitions[0].compute().dtypes):
            for kind in kinds:
                assert SECRET not in list(getattr(kind, "categories", []))
