"""CSV that is joined from texts has the bytes that Arrow writes, and its numbers read back with all their bits."""

from __future__ import annotations

import datetime
import decimal
import errno
import io

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow import csv as arrow_csv

import gpupif
from gpupif.io import csv_writer
from gpupif.io.csv_writer import CsvWriter
from gpupif.io.row_group import Multiple, RowGroup
from gpupif.utils.repeated import Repeated


def written(*groups, threads=2, block=None):
    sink = io.BytesIO()
    with pytest.MonkeyPatch.context() as patched:
        if block is not None:
            patched.setattr(csv_writer, "BLOCK_CELLS", block)
        with CsvWriter(sink, groups[0].schema, threads) as writer:
            writer.write(groups)
    return sink.getvalue()


def by_arrow(table):
    sink = pa.BufferOutputStream()
    arrow_csv.write_csv(table, sink)
    return sink.getvalue().to_pybytes()


def numbers_of(text, kind):
    """Return the numbers of a column of CSV, read one by one; an integer must consist of digits."""
    return np.array([kind.type(line) for line in text.decode().splitlines()[1:]], kind)


@st.composite
def numbers(draw):
    """Draw numbers of any type and any bits, with few or many distinct numbers."""
    kind = np.dtype(draw(st.sampled_from(["float64", "float64", "float32", "int64", "uint64", "int32", "uint32"])))
    patterns = st.integers(0, 2 ** (8 * kind.itemsize) - 1)
    few = draw(st.lists(patterns, min_size=1, max_size=draw(st.sampled_from([1, 3, 50]))))
    return np.array(draw(st.lists(st.sampled_from(few), max_size=120)), f"u{kind.itemsize}").view(kind)


EDGES = [0.0, -0.0, 5e-324, -2.2250738585072014e-308, 1.7976931348623157e308, np.inf, -np.inf, np.nan, 1e22, 1e23, 0.1]


@settings(deadline=None)
@given(values=numbers(), block=st.sampled_from([1, 7, 1 << 18]))
@example(values=np.array(EDGES), block=4)
@example(values=np.array(EDGES * 9), block=7)
@example(values=np.array([-3.6104084211118707e-06] * 100), block=1 << 18)
@example(values=np.array([0.1, -0.0, 1e-45, 3.4e38, np.inf, np.nan] * 9, "float32"), block=7)
def test_numbers_read_back_to_the_last_bit(values, block):
    table = pa.table({"a": values})
    text = written(RowGroup.from_table(table), block=block)
    assert text == by_arrow(table)
    back = numbers_of(text, values.dtype)
    known = values == values
    np.testing.assert_array_equal(known, back == back)
    assert back[known].tobytes() == values[known].tobytes()


def every_type(rows):
    """Return columns of all types that CSV has, some with missing values, some with repeating values."""
    half = rows // 2
    generator = np.random.default_rng(0)
    return pa.table(
        {
            'name "a,\nb"': generator.integers(7, size=rows) / 7,
            "random": generator.random(rows),
            "missing": pa.array([0.1, None] * half),
            "float32": (generator.integers(9, size=rows) / 3).astype("float32"),
            "float16": generator.integers(9, size=rows).astype("float16"),
            "int8": pa.array([-3, None] * half, pa.int8()),
            "text": pa.array(['x,"y"', None, "", "é" * 40] * (rows // 4)),
            "large text": pa.array(["x", None] * half, pa.large_string()),
            "dictionary": pa.array(["x", None] * half).dictionary_encode(),
            "numbers of a dictionary": pa.array([1.5, None] * half).dictionary_encode(),
            "boolean": pa.array([True, None] * half),
            "date": pa.array([datetime.date(2000, 1, 1), None] * half),
            "time": pa.array([1, None] * half, pa.timestamp("us")),
            "of a zone": pa.array([1, None] * half, pa.timestamp("s", "Europe/Berlin")),
            "span": pa.array([1, None] * half, pa.duration("s")),
            "decimal": pa.array([decimal.Decimal("1.50"), None] * half),
            "nothing": pa.nulls(rows),
        }
    )


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("size", "threads"), [(1, 3), (30, 1), (100, 3)])
def test_any_grouping_of_rows_gives_the_bytes_of_arrow(threads, size):
    table = every_type(100)
    groups = [RowGroup.from_table(table.slice(start, size)) for start in range(0, 100, size)]
    for block in (1, 17 * 5, 1 << 18):
        assert written(*groups, threads=threads, block=block) == by_arrow(table)
    for name in table.column_names:
        assert written(RowGroup.from_table(table.select([name])), threads=threads) == by_arrow(table.select([name])), (
            name
        )


def test_numbers_known_to_repeat_are_written_as_by_arrow():
    values = np.array([0.1, -0.0, 0.1, np.nan, 1e300])
    repeated = Repeated(np.array([1e300, -0.0, 0.1, np.nan]), np.array([2, 1, 2, 3, 0], np.uint16))
    table = pa.table({"a": values, "b": [str(number) for number in range(5)], "c": values})
    group = RowGroup(table.schema, [repeated, table["b"], repeated])
    for block in (1, 6, 100):
        assert written(group, group.cut(2)[1], block=block) == by_arrow(pa.concat_tables([table, table.slice(2, 2)]))


RAW = pa.array([b"x,y", b'q"z', b"1\n2"])


@pytest.mark.parametrize("raw", [RAW, RAW.cast(pa.large_binary()), RAW.cast(pa.binary(3)), RAW.dictionary_encode()])
def test_bytes_are_refused_in_csv(raw, tmp_path):
    scores = gpupif.score(pa.table({"a": [1, 2, 1], "b": [1, 1, 2], "raw": raw}), "cig", ["a"], known=["b"])
    with pytest.raises(gpupif.errors.OutputError, match=r"column 'raw', of type .*binary.*, has no place in CSV"):
        scores.write(tmp_path / "scores.csv", keep_input=True)
    assert list(tmp_path.iterdir()) == []


def test_multiples_of_a_column_are_written_as_by_arrow():
    numbers = np.random.default_rng(5).integers(0, 9, 300) / 7
    group = RowGroup(pa.schema([(name, pa.float64()) for name in "ab"]), [pa.array(numbers), Multiple(0, 0.3)])
    assert written(group) == by_arrow(pa.table({"a": numbers, "b": 0.3 * numbers}))


def test_a_table_without_rows_is_written_as_by_arrow():
    table = every_type(4).slice(0, 0)
    assert written(RowGroup.from_table(table)) == by_arrow(table)


@pytest.mark.parametrize("threads", [1, 4])
def test_a_full_disk_is_an_error(threads):
    class Full(io.BytesIO):
        def write(self, data):
            if self.tell() > 100:
                raise OSError(errno.ENOSPC, "No space left")
            return super().write(data)

    table = pa.table({"a": np.arange(1000)})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(csv_writer, "BLOCK_CELLS", 10)
        writer = CsvWriter(Full(), table.schema, threads)
        with pytest.raises(OSError, match="No space left"):
            writer.write([RowGroup.from_table(table)])
