"""Files that are read on the device: what the shared tests do not reach."""

from __future__ import annotations

import datetime
import decimal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpupif
from gpupif.datasets import census
from gpupif.encoding.encode import encode_column
from gpupif.errors import ColumnTypeError, DeviceError, InputError, TableReadError
from gpupif.frames.cudf_files import CsvOnDevice, ParquetOnDevice
from gpupif.frames.file_frame import FileFrame
from gpupif.frames.open import open_file
from gpupif.io.base import every_column
from gpupif.utils.arrays import on_host
from tests.helpers.gpu.on_device import Frames, assert_same_column, host_column
from tests.helpers.gpu.without_gpu import need_frames

need_frames()

pytestmark = pytest.mark.gpu
TYPES = {
    "text": pa.array(["b", "a", None, "b", ""]),
    "large text": pa.array(["b", "a", None, "b", ""], pa.large_string()),
    "dictionary": pa.array(["b", "a", None, "b", ""]).dictionary_encode(),
    "int8": pa.array([127, -128, 5, 5, 0], pa.int8()),
    "uint64": pa.array([2**64 - 1, 2**64 - 3, 2**64 - 1, 2**64 - 2, 2**64 - 2], pa.uint64()),
    "wide": pa.array([2**62, -(2**62), 3, 3, 2**62]),
    "missing integers": pa.array([3, None, 2**60 + 1, 2**60, 3]),
    "bool": pa.array([True, False, True, True, True]),
    "missing bool": pa.array([True, None, True, False, True]),
    "float": pa.array([0.0, -0.0, float("nan"), None, 1.5]),
    "float32": pa.array([0.5, -0.0, float("nan"), None, 0.5], pa.float32()),
    "date": pa.array([datetime.date(2020, 1, 1), None, datetime.date(1999, 12, 31)] + [datetime.date(2020, 1, 1)] * 2),
    "time stamp": pa.array([datetime.datetime(2020, 1, 1, 5), None] + [datetime.datetime(1999, 1, 1)] * 3),
    "zoned": pa.array([0, 1, 1, None, 5], pa.timestamp("us", "Europe/Berlin")),
    "duration": pa.array([0, 1, 1, None, 5], pa.duration("ms")),
    "decimal": pa.array([decimal.Decimal("1.50"), None] + [decimal.Decimal("2.25")] * 3),
    "nothing": pa.nulls(5),
    "no text": pa.nulls(5, pa.string()),
    "no number": pa.nulls(5, pa.float64()),
}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("group", [1, 2, 5])
def test_columns_of_parquet_files_are_encoded_as_on_the_host(tmp_path, library, kind, group, monkeypatch):
    monkeypatch.setattr("gpupif.frames.cudf_frame.PART_ROWS", 3)
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": TYPES[kind]}), file, row_group_size=group)
    frame = open_file(file, every_column, library=library)
    assert isinstance(frame, ParquetOnDevice)
    assert frame.rows == 5
    expected = open_file(file, every_column)
    assert type(expected) is FileFrame
    column = encode_column("x", frame.column(0))
    assert sorted(map(str, column.values())) == sorted(map(str, encode_column("x", expected.column(0)).values()))
    values, numbers = column.values(), encode_column("x", expected.column(0))
    assert [values[code] for code in on_host(column.codes)] == [numbers.values()[code] for code in numbers.codes]
    if kind not in ("wide", "uint64", "missing integers", "bool", "missing bool"):
        assert_same_column(column, numbers)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (pa.array([datetime.time(1), datetime.time(2)]), "time64"),
        (pa.array([b"a", b"b"]), "binary"),
        (pa.array([b"a", b"b"], pa.binary(1)), "fixed_size_binary"),
    ],
)
def test_an_error_names_a_column_of_a_type_that_cudf_lacks(tmp_path, library, values, said):
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"age": [1, 2], "odd": values}), file)
    with pytest.raises(
        InputError, match=rf"column 'odd': expected a type that cuDF has.*{said}.*to text.*device='cpu'"
    ):
        gpupif.score(file)
    assert gpupif.score(file, columns=["age"], known=["age"]).rows == 2
    with gpupif.config(device="cpu"):
        assert gpupif.score(file).rows == 2


@pytest.mark.parametrize("values", [[[1], [2]], [{"a": 1}, {"a": 2}]])
def test_nested_columns_are_refused_in_the_usual_words(tmp_path, values):
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"age": [1, 2], "odd": values}), file)
    messages = []
    for device in ("cpu", "cuda"):
        with pytest.raises(ColumnTypeError) as caught, gpupif.config(device=device):
            gpupif.score(file)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


PLAIN = "age,sex,town\n1,f,x\n2,m,y y\n\n3,,x\n1,f,00\n"


@pytest.mark.parametrize("part", [1, 3, 7, 1000])
def test_plain_csv_is_split_on_the_device(tmp_path, library, monkeypatch, part):
    monkeypatch.setattr("gpupif.frames.cudf_files.PART_BYTES", part)
    file = tmp_path / "t.csv"
    for content in (PLAIN, PLAIN.rstrip("\n"), "\n\n" + PLAIN, PLAIN.replace(",", ";")):
        file.write_text(content, encoding="utf-8")
        frame, expected = open_file(file, every_column, library=library), open_file(file, every_column)
        assert isinstance(frame, CsvOnDevice)
        assert (frame.names, frame.rows) == (expected.names, expected.rows)
        for position in range(3):
            column = encode_column("x", frame.column(position))
            assert_same_column(column, encode_column("x", expected.column(position)))
        assert frame.arrow().equals(expected.arrow())


@pytest.mark.parametrize(
    "content",
    [
        'age,sex\n1,"f"\n2,m\n',
        "age,sex\r\n1,f\r\n2,m\r\n",
        "age,sex\n1,f,3\n2,m\n",
        "age,sex\n1\n2,m\n",
        "age,sex\n1\n2\n",
        "age,sex\n1,f,\n2,m,\n",
        "age\n1\n\n2\n",
        "\ufeff\nage,sex\n1,f\n2,m\n",
        "\ufeffage,sex\n1,f\n2,m\n",
        "age,sex\n1,f\r2,m\n",
        "age,sex\n1,f\x00\n2,m\n",
        "age,sex\n",
        "age,sex",
        "age,sex\n\n\n",
    ],
)
def test_other_csv_files_are_left_to_the_parser_of_the_host(tmp_path, library, content):
    file = tmp_path / "t.csv"
    file.write_bytes(content.encode())
    told = []
    for chosen in (None, library):
        try:
            frame = open_file(file, every_column, library=chosen)
        except TableReadError as error:
            told.append(str(error))
        else:
            assert type(frame) is FileFrame
            told.append([encode_column("x", frame.column(place)).values() for place in range(len(frame.names))])
    assert told[0] == told[1]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_changed_file_is_not_written_beside_its_old_scores(tmp_path, ending):
    source, output = tmp_path / f"t.{ending}", tmp_path / "scores.parquet"
    frame = census(20)[["age", "sex"]].astype(str)
    write = {"parquet": frame.to_parquet, "csv": frame.to_csv}[ending]
    write(source, index=False)
    with gpupif.config(device="cuda"):
        scores = gpupif.score(source)
    scores.to_parquet(output, keep_input=True)
    assert pd.read_parquet(output)["age"].astype(str).tolist() == frame["age"].tolist()
    before = output.read_bytes()
    source.unlink()
    with pytest.raises(TableReadError, match=rf"t\.{ending}: the file changed since it was opened to be scored"):
        scores.to_parquet(output, keep_input=True)
    write(source, index=False)
    with pytest.raises(TableReadError, match="changed since it was opened to be scored"):
        scores.to_parquet(output, keep_input=True)
    assert output.read_bytes() == before


def test_a_parquet_file_that_changed_before_it_is_read_is_an_error(tmp_path, library):
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": ["a", "b"]}), file)
    frame = open_file(file, every_column, library=library)
    pq.write_table(pa.table({"x": ["a", "c"], "y": [1, 2]}), file)
    with pytest.raises(TableReadError, match="changed since it was opened to be scored"):
        encode_column("x", frame.column(0))


def test_an_empty_file_is_refused_in_the_usual_words(tmp_path):
    pq.write_table(pa.table({"age": pa.array([], pa.int64())}), tmp_path / "t.parquet")
    messages = []
    for device in ("cpu", "cuda"):
        with pytest.raises(TableReadError) as caught, gpupif.config(device=device):
            gpupif.score(tmp_path / "t.parquet")
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_row_groups_are_read_together_up_to_a_number_of_rows(tmp_path, monkeypatch):
    asked = []

    class Spy(Frames):
        def read_parquet(self, file, column, start, stop):
            asked.append((start, stop))
            return super().read_parquet(file, column, start, stop)

    monkeypatch.setattr("gpupif.frames.cudf_frame.PART_ROWS", 5)
    file = tmp_path / "t.parquet"
    with pq.ParquetWriter(file, pa.schema({"x": pa.int64()})) as writer:
        for rows in (2, 3, 1, 7, 4):
            writer.write_table(pa.table({"x": range(rows)}))
    encode_column("x", open_file(file, every_column, library=Spy()).column(0))
    assert asked == [(0, 5), (5, 6), (6, 13), (13, 17)]


@pytest.mark.parametrize("group", [1, 3, 8])
def test_rows_that_do_not_fit_are_read_in_halves(tmp_path, monkeypatch, group):
    monkeypatch.setattr("gpupif.frames.cudf_frame.LEAST_ROWS", 1)
    asked = []

    class Small(Frames):
        def read_parquet(self, file, column, start, stop):
            asked.append(stop - start)
            if stop - start > 2:
                raise MemoryError
            return super().read_parquet(file, column, start, stop)

    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": list("abcabcab")}), file, row_group_size=group)
    frame = open_file(file, every_column, library=Small())
    assert_same_column(encode_column("x", frame.column(0)), host_column(pa.array(list("abcabcab"))))
    assert asked == [8, 4, 2, 2, 4, 2, 2]


def test_a_file_that_only_the_host_can_read_is_an_error_with_advice(tmp_path):
    class Strict(Frames):
        def read_parquet(self, *_):
            raise RuntimeError("CUDF failure at:\nreader")

    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": list("ab")}), file)
    frame = open_file(file, every_column, library=Strict())
    with pytest.raises(
        DeviceError, match=r"cuDF could not read it \(CUDF failure at: reader\)\. Use gpupif\.config\(device='cpu'\)"
    ):
        encode_column("x", frame.column(0))
    content = bytearray(file.read_bytes())
    content[4:30] = b"\xff" * 26
    file.write_bytes(bytes(content))
    with pytest.raises(TableReadError, match="could not be read as Parquet"):
        encode_column("x", open_file(file, every_column, library=Strict()).column(0))


@pytest.mark.parametrize("few", [1, 20, 10_000])
def test_csv_that_does_not_fit_is_split_in_halves(tmp_path, monkeypatch, few):
    monkeypatch.setattr("gpupif.frames.cudf_files.LEAST_BYTES", few)
    asked = []

    class Small(Frames):
        def read_lines(self, file, start, size):
            asked.append(size)
            if size > 20:
                raise MemoryError
            return super().read_lines(file, start, size)

    file = tmp_path / "t.csv"
    file.write_text(PLAIN)
    monkeypatch.setattr("gpupif.frames.cudf_files.PART_BYTES", 64)
    if few > 64:
        with pytest.raises(
            DeviceError,
            match=r"t.csv: the GPU could not read it \(its memory ran out, .* GiB are free\)\. Use gpupif\.config",
        ):
            open_file(file, every_column, library=Small())
        return
    frame, expected = open_file(file, every_column, library=Small()), open_file(file, every_column)
    assert asked == [40, 20, 20]
    for position in range(3):
        column = encode_column("x", frame.column(position))
        assert_same_column(column, encode_column("x", expected.column(position)))
