"""Parquet files that are encoded column by column: what every reader of such files finds in them."""

from __future__ import annotations

import io
import math

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from gpupif.io import parquet_writer
from gpupif.io.parquet_writer import ParquetWriter, read_footer
from gpupif.io.row_group import Multiple, RowGroup
from gpupif.io.thrift import BYTE, DOUBLE, FALSE, I32, LIST, TRUE, read_struct, write_struct
from gpupif.utils import repeated as repeated_module

CODECS = ["none", "snappy", "lz4", "zstd"]
NUMBERS = ["float64", "float32", "int64", "uint64", "int32", "uint32"]


def written(*tables, codec="zstd", threads=2, said=None):
    return written_groups(*map(RowGroup.from_table, tables), codec=codec, threads=threads, said=said)


def written_groups(*groups, codec="zstd", threads=2, said=None):
    sink = io.BytesIO()
    with ParquetWriter(sink, groups[0].schema, codec, threads) as writer:
        for group in groups:
            writer.write([group])
        writer.add_key_value_metadata(said or {})
    return sink.getvalue()


def read(file):
    return pq.read_table(io.BytesIO(file))


def bits(table):
    """Return the bytes of each column of a table."""
    return [column.to_numpy().tobytes() for column in table.columns]


@pytest.fixture
def small_groups(monkeypatch):
    monkeypatch.setattr("gpupif.io.parquet_writer.GROUP_ROWS", 7)


@st.composite
def columns(draw):
    """Draw numbers of any type and any bits, with few or many distinct numbers, for row groups of any size."""
    kind = np.dtype(draw(st.sampled_from(NUMBERS)))
    patterns = st.integers(0, 2 ** (8 * kind.itemsize) - 1)
    few = draw(st.lists(patterns, min_size=1, max_size=draw(st.sampled_from([1, 2, 3, 9, 300]))))
    chosen = draw(st.lists(st.sampled_from(few), max_size=600))
    return np.array(chosen, f"u{kind.itemsize}").view(kind)


@settings(deadline=None)
@given(several=st.lists(columns(), min_size=1, max_size=3), codec=st.sampled_from(CODECS), nullable=st.booleans())
def test_a_written_file_is_read_back_with_the_same_bits(several, codec, nullable):
    rows = min(map(len, several))
    arrays = [pa.array(values[:rows]) for values in several]
    schema = pa.schema([pa.field(f"{k}", one.type, nullable) for k, one in enumerate(arrays)])
    table = pa.table(arrays, schema=schema)
    file = written(table, table.slice(0, rows // 2), codec=codec)
    found = read(file)
    assert found.schema == schema
    assert bits(found) == bits(pa.concat_tables([table, table.slice(0, rows // 2)]))


@settings(deadline=None)
@given(
    values=columns().filter(lambda values: values.dtype == "float64"),
    factor=st.floats(allow_nan=False),
    known=st.booleans(),
    first=st.booleans(),
)
def test_multiples_of_a_column_are_written_as_plain_columns(values, factor, known, first):
    repeated = repeated_module.find_repeated(values) if known else None
    own, multiple = pa.array(values) if repeated is None else repeated, Multiple(0 if first else 1, factor)
    names = ["own", "multiple"] if first else ["multiple", "own"]
    schema = pa.schema([(name, pa.float64()) for name in names])
    group = RowGroup(schema, [own, multiple] if first else [multiple, own])
    with np.errstate(all="ignore"):
        found, expected = read(written_groups(group)), factor * values
        assert found.schema == schema
        assert bits(found.select(["own"])) == [values.tobytes()]
        assert_array_equal(found["multiple"].to_numpy(), expected)
        assert group.table().equals(found) or np.isnan(expected).any()


def test_dictionary_codes_are_encoded_once_for_all_multiples(monkeypatch):
    calls, packed = [], parquet_writer._packed
    monkeypatch.setattr(parquet_writer, "_packed", lambda *given: calls.append(given) or packed(*given))
    values = pa.array(np.random.default_rng(2).integers(0, 1000, 20000) / 7)
    written_groups(RowGroup(pa.schema([(name, pa.float64()) for name in "abc"]), [values, *[Multiple(0, 3.0)] * 2]))
    assert len(calls) == 1


@pytest.mark.parametrize("codec", CODECS)
def test_other_readers_read_the_same_values(codec, tmp_path, small_groups):
    generator = np.random.default_rng(3)
    table = pa.table(
        {
            "few": generator.integers(5, size=100) / 7,
            "one": np.full(100, -0.0),
            "all": generator.random(100),
            "unknown": np.where(np.arange(100) % 3, np.nan, 1.5).astype("float32"),
            "count": generator.integers(9, size=100),
            "text": pa.array(generator.choice(["a", "b", None], size=100).tolist()),
            "coded": pa.array(generator.choice(["x", "y"], size=100).tolist()).dictionary_encode(),
            "none": pa.array([None] * 100, pa.float64()),
            "list": pa.array([[k] * (k % 3) for k in range(100)]),
        }
    )
    file = tmp_path / "out.parquet"
    file.write_bytes(written(table, codec=codec))
    assert str(pq.read_table(file).to_pydict()) == str(table.to_pydict())
    assert str(pl.read_parquet(file).to_arrow().to_pydict()) == str(table.to_pydict())
    with duckdb.connect() as connection:
        assert str(connection.sql(f"select * from '{file}'").to_arrow_table().to_pydict()) == str(table.to_pydict())
    metadata = pq.read_metadata(file)
    assert (metadata.num_rows, metadata.num_row_groups) == (100, 15)


@pytest.mark.parametrize("width", [0, 1, 2, 7, 8, 9, 12])
def test_dictionaries_of_any_size_are_written_and_read_back(width):
    """The column has as many distinct values as `width` bits number, or one more."""
    for distinct in (2**width, 2**width + 1):
        values = np.tile(np.arange(distinct) / 3, max(4, 2**16 // distinct))
        file = written(pa.table({"a": values}))
        assert bits(read(file)) == [values.tobytes()]
        assert pq.read_metadata(io.BytesIO(file)).row_group(0).column(0).has_dictionary_page


def test_values_that_begin_to_differ_late_come_back():
    """A column has more distinct values than a dictionary holds, and its sample does not show it."""
    rows = 20 * repeated_module.SAMPLE
    values = np.zeros(rows)
    values[np.arange(rows) % 20 != 0] = np.random.default_rng(0).random(rows - rows // 20)
    file = written(pa.table({"a": values}))
    assert bits(read(file)) == [values.tobytes()]
    assert not pq.read_metadata(io.BytesIO(file)).row_group(0).column(0).has_dictionary_page


@pytest.mark.parametrize("different", [100, 1_000, 60_000, 200_000])
def test_files_are_no_larger_than_those_of_arrow(different):
    generator = np.random.default_rng(4)
    table = pa.table({"a": generator.random(different)[generator.integers(different, size=400_000)]})
    others = io.BytesIO()
    pq.write_table(table, others, compression="zstd", row_group_size=1 << 20)
    file = written(table)
    assert len(file) <= 1.02 * others.getbuffer().nbytes
    assert read(file).equals(table)
    assert pq.read_metadata(io.BytesIO(file)).row_group(0).column(0).has_dictionary_page


@pytest.mark.parametrize("kind", ["f8", "f4", "i4"])
@pytest.mark.parametrize("rows", [1, 7, 64, 1_000, 20_000])
def test_a_dictionary_is_used_if_it_is_smaller(kind, rows):
    size = np.dtype(kind).itemsize

    def room(distinct):
        """Return the bytes of the distinct values and of the numbers of all rows."""
        return distinct * size + rows * (distinct - 1).bit_length() / 8

    most = repeated_module.most_distinct(rows, size)
    assert most == max((one for one in range(1, rows + 1) if room(one) < rows * size), default=0)
    for different in {most, most + 1} & {*range(1, rows + 1)}:
        values = (np.arange(rows) % different).astype(kind)
        assert (repeated_module.find_repeated(values) is not None) == (different <= most)


def test_no_dictionary_is_used_if_plain_values_compress_better():
    """Equal values are neighbours: a dictionary would save room only if nothing were compressed."""
    values = np.repeat(np.random.default_rng(5).random(60_000), 5)
    table = pa.table({"a": values})
    plain = io.BytesIO()
    pq.write_table(table, plain, compression="zstd", use_dictionary=False)
    file = written(table)
    assert len(file) <= 1.02 * plain.getbuffer().nbytes
    assert read(file).equals(table)


def test_statistics_have_no_bounds_beside_a_nan():
    """A reader that looks for values beyond the bounds would miss the NaN."""
    nothing = [math.nan] * 4
    columns = {"a": [0.0, 2.0, 1.0, 0.0], "b": nothing, "c": [5, -3, 5, 5], "d": [-1.0, -0.0, 0.0, -1.0]}
    more = {
        "e": [1.0, math.nan, 2.0, 1.0],
        "f": pa.array([1.0, math.nan, None, 1.0]),
        "g": pa.array([1.0, None, None, 2.0]),
        "h": pa.array([1.0, math.nan, 2.0, 1.0]).dictionary_encode(),
        "i": pa.array(np.array([1.0, math.nan, 2.0, 1.0], np.float16)),
        "j": pa.array([{"x": math.nan}, {"x": 1.0}, {"x": 2.0}, None]),
        "k": pa.array(["b", None, "a", "c"]),
    }
    group = pq.read_metadata(io.BytesIO(written(pa.table(columns | more)))).row_group(0)
    found = {name: group.column(place).statistics for place, name in enumerate(columns | more)}
    bounds = {name: (one.min, one.max) for name, one in found.items() if one.has_min_max}
    assert bounds == {"a": (0.0, 2.0), "c": (-3, 5), "d": (-1.0, 0.0), "g": (1.0, 2.0), "k": ("a", "c")}
    # Statistics do not tell the sign of a zero: their bounds include both zeros.
    assert math.copysign(1, found["a"].min) == -1
    assert math.copysign(1, found["d"].max) == 1
    assert [one.null_count for one in found.values()] == [0, 0, 0, 0, 0, 1, 2, 0, 0, 1, 1]


@pytest.mark.parametrize("nullable", [False, True])
def test_readers_that_prune_find_every_nan(tmp_path, small_groups, nullable):
    """DuckDB and Polars hold that NaN is more than any number; each row group has a NaN, or none."""
    values = [float(k) for k in range(40)]
    values[3] = values[25] = math.nan
    numbers = pa.array([None if nullable and k == 30 else value for k, value in enumerate(values)])
    file = tmp_path / "out.parquet"
    file.write_bytes(written(pa.table({"a": numbers, "row": range(40)})))
    bounds = [group.column(0).statistics.has_min_max for group in _groups(file)]
    assert False in bounds
    assert True in bounds
    beyond = [k for k, value in enumerate(values) if not value <= 36 and k != 30]
    with duckdb.connect() as connection:
        assert connection.sql(f"select row from '{file}' where a > 36").df()["row"].tolist() == beyond
    assert pl.scan_parquet(file).filter(pl.col("a") > 36).collect()["row"].to_list() == beyond
    assert pl.scan_parquet(file).filter(pl.col("a").is_nan()).collect()["row"].to_list() == [3, 25]
    dataset = ds.dataset(file)
    assert dataset.to_table(filter=pc.is_nan(ds.field("a")))["row"].to_pylist() == [3, 25]
    # For Arrow, NaN differs from every number, and no other comparison with it is true.
    assert dataset.to_table(filter=ds.field("a") > 36)["row"].to_pylist() == [37, 38, 39]
    # The row group has a single number and NaN: only NaN differs from the number.
    other = tmp_path / "other.parquet"
    other.write_bytes(written(pa.table({"a": [5.0, math.nan, 5.0, 5.0]})))
    assert ds.dataset(other).to_table(filter=ds.field("a") != 5).num_rows == 1


def _groups(file):
    metadata = pq.read_metadata(file)
    return [metadata.row_group(number) for number in range(metadata.num_row_groups)]


def test_a_file_has_its_schema_metadata_and_row_groups(small_groups):
    schema = pa.schema([pa.field("ä.b", pa.float32()), pa.field("", pa.int64())], {b"pandas": b"{}"})
    table = pa.table([pa.array([1.5] * 20, pa.float32()), pa.array(range(20))], schema=schema)
    file = written(table, said={b"gpupif": b"1"})
    metadata = pq.read_metadata(io.BytesIO(file))
    assert metadata.metadata[b"gpupif"] == b"1"
    assert metadata.created_by.startswith("gpupif version ")
    assert read(file).schema.equals(schema, check_metadata=True)
    group = metadata.row_group(1)
    assert group.num_rows == 7
    assert group.total_byte_size == sum(group.column(place).total_uncompressed_size for place in range(2))
    assert pq.ParquetFile(io.BytesIO(file)).read_row_group(2, ["ä.b"]).num_rows == 6


def test_a_table_without_rows_is_written_and_read_back():
    table = pa.table({"a": pa.array([], pa.float64()), "b": pa.array([], pa.string())})
    for file in (written(table), written(table, table)):
        assert read(file).equals(table)


def test_any_number_of_threads_writes_the_same_file(small_groups):
    table = pa.table({"a": np.arange(50) % 4 / 3, "b": [str(k) for k in range(50)]})
    assert written(table, threads=1) == written(table, threads=3)


def test_structs_come_back_as_they_were():
    file = written(pa.table({f"column {k}": np.arange(9) % 2 for k in range(40)}), said={b"x": bytes(range(256))})
    size = int.from_bytes(file[-8:-4], "little")
    assert write_struct(read_footer(file)) == file[-8 - size : -8]
    every = {
        1: (I32, -(2**31)),
        2: (TRUE, True),
        40: (FALSE, False),
        41: (DOUBLE, b"12345678"),
        300: (LIST, (TRUE, [True, False])),
        301: (BYTE, b"z"),
    }
    assert read_struct(write_struct(every)) == every


@pytest.mark.parametrize("rows", [(0,), (3,), (2, 1), (64,), (64, 1), (1, 70)])
@pytest.mark.parametrize("codec", CODECS)
def test_a_file_of_many_columns_and_few_rows_has_the_same_values(monkeypatch, rows, codec):
    monkeypatch.setattr(parquet_writer, "WIDE", 5)
    groups = []
    for number, size in enumerate(rows):
        numbers = pa.array(np.linspace(-1, number, size))
        repeated = repeated_module.Repeated(np.array([0.5, -0.0, np.nan]), np.arange(size, dtype=np.uint32) % 3)
        texts = pa.array(["é", None, "b"] * size).slice(0, size)
        codes = pa.array(np.arange(size) % 2)
        columns = [numbers, repeated, texts, codes, Multiple(0, 0.5), Multiple(1, 3.0)]
        types = [pa.float64(), pa.float64(), pa.string(), pa.int64(), pa.float64(), pa.float64()]
        schema = pa.schema(list(zip("abcdef", types, strict=True)), {b"pandas": b"{}"})
        groups.append(RowGroup(schema, columns))
    file = written_groups(*groups, codec=codec, said={b"key": b"value"})
    expected = pa.concat_tables([group.table() for group in groups])
    found = read(file)
    assert found.schema.equals(expected.schema)
    assert_array_equal(found["b"].to_numpy(), expected["b"].to_numpy())
    assert found.drop_columns(["b", "f"]).equals(expected.drop_columns(["b", "f"]))
    assert_array_equal(np.signbit(found["f"].to_numpy()), np.signbit(expected["f"].to_numpy()))
    metadata = pq.read_metadata(io.BytesIO(file))
    assert metadata.metadata[b"key"] == b"value"
    assert [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)] == [*rows]
    # Arrow writes only what has few rows.
    assert metadata.created_by.startswith("parquet-cpp-arrow") == (sum(rows) <= parquet_writer.FEW_ROWS)


def test_a_file_of_many_columns_that_fails_has_no_metadata(monkeypatch):
    monkeypatch.setattr(parquet_writer, "WIDE", 1)
    table, sink = pa.table({"a": [1]}), io.BytesIO()
    writer = ParquetWriter(sink, table.schema, "zstd")
    writer.write([RowGroup.from_table(table)])
    writer.__exit__(ZeroDivisionError, None, None)
    assert sink.getvalue() == b"PAR1"
