"""Columns that names of folders hold: numbers where every name reads back the same, else the text that stands there."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpupif
from gpupif.dask.parquet_partitions import read_files
from gpupif.io.base import every_column
from gpupif.io.parquet_files import keys_of_files, open_parquet
from gpupif.io.paths import find_input

NULL = "__HIVE_DEFAULT_PARTITION__"
CASES = {
    "leading zeros": (["01", "1", "002", "10"], ["01", "1", "002", "10"]),
    "numbers": (["1", "2", "10", "-3"], [1, 2, 10, -3]),
    "numbers, one missing": (["1", "2", NULL], [1, 2, None]),
    "leading zeros, one missing": (["01", NULL, "2"], ["01", None, "2"]),
    "signs": (["+1", "1"], ["+1", "1"]),
    "minus zero": (["-0", "0"], ["-0", "0"]),
    "more than 32 bits": (["1", "9999999999"], ["1", "9999999999"]),
    "text": (["1", "a%2Fb"], ["1", "a/b"]),
}


@pytest.fixture(params=CASES.values(), ids=CASES)
def written(request, tmp_path):
    """Write a folder of files. Return it, and the table that it holds."""
    names, values = request.param
    tables = {}
    for number, (name, value) in enumerate(zip(names, values, strict=True)):
        for year in ("2020", "2021"):
            file = tmp_path / "in" / f"kreis={name}" / f"year={year}" / "t.parquet"
            file.parent.mkdir(parents=True)
            rows = pd.DataFrame({"sex": ["f", "m", "f"], "age": [number, 7, 8]})
            rows.to_parquet(file)
            tables[file] = rows.assign(kreis=[value] * 3, year=int(year))
    frame = pd.concat([tables[file] for file in sorted(tables)], ignore_index=True)
    kind = pa.string() if any(isinstance(value, str) for value in values) else pa.int32()
    fields = [("sex", pa.string()), ("age", pa.int64()), ("kreis", kind), ("year", pa.int32())]
    return tmp_path / "in", pa.Table.from_pandas(frame, pa.schema(fields), preserve_index=False)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("written", "pattern"),
    [
        pytest.param(case, pattern, id=name)
        for (name, case), pattern in zip(CASES.items(), cycle(["", "*/*/t.parquet", "**/*.parquet"]), strict=False)
    ],
    indirect=["written"],
)
def test_columns_of_folder_names_are_scored_and_kept(written, tmp_path, pattern):
    folder, table = written
    path, out = folder / pattern, tmp_path / "out.parquet"
    expected = gpupif.score(table, ["cig"]).cig
    scores = gpupif.score(path, ["cig"])
    assert pa.Table.from_pandas(scores.cig[table.column_names]).replace_schema_metadata(None) == expected
    # pandas 3 writes text as large_string.
    text = pq.read_schema(next(Path(folder).rglob("*.parquet"))).field("sex").type
    beside = scores.to_arrow(keep_input=True).select(table.column_names).replace_schema_metadata(None)
    assert beside == table.cast(pa.schema([("sex", text), *list(table.schema)[1:]]))
    with gpupif.config(memory_limit="16GiB"):
        gpupif.score_files(path, out, ["cig"], keep_input=True)
    kept = pq.read_table(out).replace_schema_metadata(None)
    assert kept.select(table.column_names) == beside
    assert kept.schema.field("kreis").type == table.schema.field("kreis").type
    for name in table.column_names:
        assert (kept[f"cig_{name}"].to_numpy() == expected[name].to_numpy()).all()


@pytest.mark.dask
def test_partitions_on_dask_have_the_types_of_the_whole(written):
    folder, table = written
    frame = read_files("table", find_input(Path(folder)), every_column).frame
    assert frame.dtypes["year"] == pd.ArrowDtype(table.schema.field("year").type)
    for one in (frame.partitions[0].compute(), frame.compute()):
        assert dict(one.dtypes) == dict(frame.dtypes)


def test_every_reader_gets_the_folder_columns_of_its_file(written):
    folder, table = written
    found = open_parquet(find_input(Path(folder)), every_column)
    assert found.schema.field("kreis").type == table.schema.field("kreis").type
    told = [keys["kreis"] for keys in keys_of_files(found).values() for _ in range(3)]
    assert told == table["kreis"].to_pylist()
