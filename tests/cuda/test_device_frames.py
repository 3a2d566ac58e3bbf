"""Tables on the device: cuDF's on a GPU, pandas in its place in the simulator; what the shared tests do not reach."""

from __future__ import annotations

import datetime
import decimal
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.csv_device import CsvOnDevice
from gpupif.datasets import census
from gpupif.device import cuda_status
from gpupif.encode import encode_column
from gpupif.encode_device import merge_parts, number_values
from gpupif.engines.base import on_host
from gpupif.engines.cpu import CpuEngine
from gpupif.engines.cuda import CudaEngine
from gpupif.engines.cuda_frames import GuardedSink
from gpupif.engines.cuda_library import frame_library, simulated
from gpupif.engines.cuda_simulated import DeviceFrame
from gpupif.errors import ColumnTypeError, DeviceError, InputError, OutputError, TableReadError
from gpupif.frames import ArrowFrame, open_file
from gpupif.labels import COUNTED_RANGE
from gpupif.measures import MEASURES
from gpupif.parquet_device import ParquetOnDevice
from gpupif.reading import every_column

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


pytestmark = pytest.mark.gpu
LIBRARY = frame_library()
Frames = type(LIBRARY)
ENGINES = {
    "one": lambda: CudaEngine(),
    "two": lambda: CudaEngine([0, 1] if simulated() else cuda_status().devices),
    "blocks": lambda: CudaEngine(share=0),
    "cpu": lambda: CpuEngine(),
}


@pytest.fixture
def library():
    return LIBRARY


def to_device(frame):
    return DeviceFrame(frame) if simulated() else LIBRARY.frames.from_pandas(frame)


def series(array):
    return pd.Series(pd.arrays.ArrowExtensionArray(array)) if simulated() else LIBRARY.frames.Series.from_arrow(array)


def is_there(array):
    return hasattr(array, "get")


def to_pandas(table):
    return pd.DataFrame(table) if simulated() else table.to_pandas()


def host_column(array):
    return encode_column("x", array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array]))


def assert_same_column(column, expected):
    assert is_there(column.codes)
    assert column.codes.dtype == expected.codes.dtype
    np.testing.assert_array_equal(on_host(column.codes), expected.codes)
    np.testing.assert_array_equal(column.counts, expected.counts)
    assert column.values() == expected.values()
    assert column.missing == expected.missing


def assert_same_scores(scores, expected):
    for measure in scores.measures:
        np.testing.assert_allclose(
            on_host(scores.array(measure)), on_host(expected.array(measure)), rtol=1e-12, atol=1e-14
        )


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("group", [1, 2, 5])
def test_columns_of_parquet_files_are_encoded_as_on_the_host(tmp_path, library, kind, group, monkeypatch):
    monkeypatch.setattr("gpupif.frames_device.PART_ROWS", 3)
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": TYPES[kind]}), file, row_group_size=group)
    frame = open_file(file, every_column, library=library)
    assert isinstance(frame, ParquetOnDevice)
    assert frame.rows == 5
    expected = open_file(file, every_column)
    assert isinstance(expected, ArrowFrame)
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
def test_types_that_cudf_lacks_are_named(tmp_path, library, values, said):
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"age": [1, 2], "odd": values}), file)
    with pytest.raises(
        InputError, match=rf"column 'odd': expected a type that cuDF has.*{said}.*to text.*device='cpu'"
    ):
        gpupif.score(file)
    assert gpupif.score(file, columns=["age"], known=["age"]).rows == 2
    assert gpupif.score(file, device="cpu").rows == 2


@pytest.mark.parametrize("values", [[[1], [2]], [{"a": 1}, {"a": 2}]])
def test_nested_columns_are_refused_in_the_usual_words(tmp_path, values):
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"age": [1, 2], "odd": values}), file)
    messages = []
    for device in ("cpu", "cuda"):
        with pytest.raises(ColumnTypeError) as caught:
            gpupif.score(file, device=device)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@given(
    st.lists(st.one_of(st.none(), st.integers(-300, 300)), min_size=1, max_size=40)
    | st.lists(st.one_of(st.none(), st.text("ab\x00é", max_size=3)), min_size=1, max_size=40)
    | st.lists(st.one_of(st.none(), st.floats(width=32)), min_size=1, max_size=40),
    st.lists(st.integers(0, 40), max_size=4),
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_parts_make_no_difference(values, cuts):
    library = LIBRARY
    array = pa.array(values)
    edges = sorted({0, len(values), *(cut for cut in cuts if cut < len(values))})
    ascending = pa.types.is_integer(array.type)
    for cut in (edges, [0, len(values)]):
        pieces = [series(array.slice(a, b - a)) for a, b in pairwise(cut)]
        parts = [number_values(library, "x", piece) for piece in pieces]
        column = merge_parts("x", library, parts, array.type, ascending)
        expected = encode_column("x", pa.chunked_array([array.dictionary_encode()]))
        assert [column.values()[code] for code in on_host(column.codes)] == [
            expected.values()[code] for code in expected.codes
        ]
        np.testing.assert_array_equal(np.bincount(on_host(column.codes)), column.counts)
        if ascending:
            assert column.labels.to_pylist() == sorted(column.labels.to_pylist())
        else:
            assert_same_column(column, expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_frame_of_the_device_comes_back_as_one(tmp_path, monkeypatch, engine):
    frame = census(60).assign(tenure=lambda table: table["tenure"].astype("string").mask(table.index % 7 == 0))
    frame["sex"] = frame["sex"].astype("category")
    frame.index = pd.Index(range(100, 160), name="person")
    table = to_device(frame)
    expected = gpupif.score(frame, list(MEASURES), device="cpu")
    monkeypatch.setattr("gpupif.scoring.choose_engine", lambda _: ENGINES[engine]())
    scores = gpupif.score(table, list(MEASURES))
    assert type(scores.cig) is type(table)
    assert is_there(scores.array("csf")) == (engine != "cpu")
    pd.testing.assert_frame_equal(to_pandas(scores.cig), expected.cig, rtol=1e-12)
    assert_same_scores(scores, expected)
    np.testing.assert_allclose(on_host(scores.rig().values), expected.rig(), rtol=1e-12)
    pd.testing.assert_series_equal(scores.fig(), expected.fig(), rtol=1e-12)
    assert scores.pif([5, 95]) == pytest.approx(expected.pif([5, 95]), rel=1e-12)
    pd.testing.assert_frame_equal(scores.top(5, by="csf"), expected.top(5, by="csf"), rtol=1e-12)
    pd.testing.assert_frame_equal(scores.summary().columns, expected.summary().columns, rtol=1e-12)
    scores.to_parquet(tmp_path / "scores.parquet", keep_input=True)
    back = pd.read_parquet(tmp_path / "scores.parquet")
    assert back.index.tolist() == frame.index.tolist()
    np.testing.assert_allclose(back["cig_sex"], expected.cig["sex"], rtol=1e-12)
    assert back["tenure"].isna().sum() == frame["tenure"].isna().sum()


def test_parts_of_frames(monkeypatch):
    expected = gpupif.score(census(50), device="cpu")
    monkeypatch.setattr("gpupif.frames_device.PART_ROWS", 7)
    assert_same_scores(gpupif.score(to_device(census(50))), expected)


def test_nothing_is_known_of_a_frame_of_the_device():
    frame = to_device(pd.DataFrame({"age": [1, 1, 2], "sex": ["f", "m", "f"]}))
    top = gpupif.score(frame, ["prior"], columns=["age"], known=[]).top(1)
    assert top[["value", "cohort_size"]].to_numpy().tolist() == [[2, 3]]
    assert top.loc[0, "posterior"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("ending", ["parquet", "csv", "feather"])
def test_scores_on_the_device_are_written_as_those_of_the_host(tmp_path, monkeypatch, ending):
    monkeypatch.setattr("gpupif.writing.ROWS_PER_GROUP", 16)
    monkeypatch.setattr("gpupif.writing.DEVICE_ROWS", 16)
    source = tmp_path / "t.parquet"
    census(50).to_parquet(source)
    told, tables = [], []
    for device in ("cpu", "cuda"):
        scores = gpupif.score(source, list(MEASURES), device=device)
        scores.write(tmp_path / f"{device}.{ending}", done=told.append)
        tables.append(gpupif.reading.read_table(tmp_path / f"{device}.{ending}").to_pandas())
    assert told == [16, 16, 16, 2] * 2
    pd.testing.assert_frame_equal(*tables, rtol=1e-12, check_dtype=ending != "csv")


def test_scores_of_a_file_lie_on_the_device_until_they_are_looked_at(tmp_path):
    source = tmp_path / "t.parquet"
    census(50).to_parquet(source)
    scores = gpupif.score(source, ["cig", "csf"], device="cuda")
    assert is_there(scores._values["cig"])
    assert type(scores.array("cig")) is np.ndarray
    assert type(scores.cig) is pd.DataFrame
    assert is_there(scores._values["csf"])
    scores.to_parquet(tmp_path / "scores.parquet")
    assert len(pd.read_parquet(tmp_path / "scores.parquet")) == 50


@pytest.mark.parametrize(
    ("error", "said"), [(RuntimeError("device\nlost"), "device lost"), (MemoryError(), "out of mem")]
)
def test_a_device_that_fails_while_it_writes_leaves_nothing(tmp_path, monkeypatch, error, said):
    class Broken(Frames):
        def frame(self, columns, index=None):
            raise error

    scores = gpupif.score(to_device(census(20)))
    monkeypatch.setattr(scores._frame, "_library", Broken())
    with pytest.raises(DeviceError, match=rf"scores.parquet: the GPU could not write it \({said}"):
        scores.to_parquet(tmp_path / "scores.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fails_at", ["first", "last"])
def test_a_full_disk_while_the_device_writes_leaves_nothing(tmp_path, monkeypatch, fails_at):
    scores = gpupif.score(to_device(census(50)))
    path = tmp_path / "scores.parquet"
    scores.to_parquet(path)
    before = path.read_bytes()
    asked = []
    real = GuardedSink.write

    def write(self, data):
        asked.append(len(data))
        if fails_at == "first" or sum(asked) == len(before):
            self._sink = SimpleNamespace(write=full)
        return real(self, data)

    def full(data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(GuardedSink, "write", write)
    with pytest.raises(OutputError, match=r"could not be written: No space left"):
        scores.to_parquet(path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {path.name: before}
    assert sum(asked) == len(before)


PLAIN = "age,sex,town\n1,f,x\n2,m,y y\n\n3,,x\n1,f,00\n"


@pytest.mark.parametrize("part", [1, 3, 7, 1000])
def test_plain_csv_is_split_on_the_device(tmp_path, library, monkeypatch, part):
    monkeypatch.setattr("gpupif.csv_device.PART_BYTES", part)
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
def test_any_other_csv_is_left_to_the_parser_of_the_host(tmp_path, library, content):
    file = tmp_path / "t.csv"
    file.write_bytes(content.encode())
    told = []
    for chosen in (None, library):
        try:
            frame = open_file(file, every_column, library=chosen)
        except TableReadError as error:
            told.append(str(error))
        else:
            assert isinstance(frame, ArrowFrame)
            told.append([encode_column("x", frame.column(place)).values() for place in range(len(frame.names))])
    assert told[0] == told[1]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_file_that_changes_meanwhile_is_not_put_beside_its_old_scores(tmp_path, ending):
    source, output = tmp_path / f"t.{ending}", tmp_path / "scores.parquet"
    frame = census(20)[["age", "sex"]].astype(str)
    write = {"parquet": frame.to_parquet, "csv": frame.to_csv}[ending]
    write(source, index=False)
    scores = gpupif.score(source, device="cuda")
    scores.to_parquet(output, keep_input=True)
    assert pd.read_parquet(output)["age"].astype(str).tolist() == frame["age"].tolist()
    before = output.read_bytes()
    source.unlink()
    with pytest.raises(TableReadError, match=rf"t\.{ending}: the file changed while it was scored"):
        scores.to_parquet(output, keep_input=True)
    write(source, index=False)
    with pytest.raises(TableReadError, match="changed while it was scored"):
        scores.to_parquet(output, keep_input=True)
    assert output.read_bytes() == before


def test_a_parquet_file_that_changes_before_its_columns_are_read(tmp_path, library):
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": ["a", "b"]}), file)
    frame = open_file(file, every_column, library=library)
    pq.write_table(pa.table({"x": ["a", "c"], "y": [1, 2]}), file)
    with pytest.raises(TableReadError, match="changed while it was scored"):
        encode_column("x", frame.column(0))


def test_folders_named_by_a_column_are_read_as_on_the_host(tmp_path):
    for region in (1, 2):
        (tmp_path / f"region={region}").mkdir()
        pq.write_table(pa.table({"age": [1, region], "sex": ["f", "m"]}), tmp_path / f"region={region}" / "a.parquet")
    assert_same_scores(gpupif.score(tmp_path, device="cuda"), gpupif.score(tmp_path, device="cpu"))


def test_an_empty_file_is_refused_in_the_usual_words(tmp_path):
    pq.write_table(pa.table({"age": pa.array([], pa.int64())}), tmp_path / "t.parquet")
    messages = []
    for device in ("cpu", "cuda"):
        with pytest.raises(TableReadError) as caught:
            gpupif.score(tmp_path / "t.parquet", device=device)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("labels", [127, 128, 129, 130, 32_767, 32_768, 32_769])
@pytest.mark.parametrize("missing", [False, True])
def test_as_many_labels_as_a_type_of_numbers_has(library, labels, missing):
    array = pa.array([str(label) for label in range(labels)] + [None] * missing + ["0", str(labels - 1)])
    part = number_values(library, "x", series(array))
    assert part.numbers.dtype.itemsize == (1 if labels <= 127 else 2 if labels <= 32_767 else 4)
    column = merge_parts("x", library, [part], array.type, True)
    assert_same_column(column, host_column(array))


@pytest.mark.parametrize("width", [COUNTED_RANGE - 1, COUNTED_RANGE, COUNTED_RANGE + 1])
@pytest.mark.parametrize("low", [0, -5, 2**62])
def test_whole_numbers_about_as_wide_as_are_counted(library, width, low):
    array = pa.array([low + width, low, low + width, low + 1])
    part = number_values(library, "x", series(array))
    assert len(part.labels) == (width + 1 if width < COUNTED_RANGE else 3)
    column = merge_parts("x", library, [part], array.type, True)
    assert column.values() == [low, low + 1, low + width]
    assert on_host(column.codes).tolist() == [2, 0, 2, 1]


def test_row_groups_are_read_together_up_to_a_number_of_rows(tmp_path, monkeypatch):
    asked = []

    class Spy(Frames):
        def read_parquet(self, file, column, row_groups):
            asked.append(list(row_groups))
            return super().read_parquet(file, column, row_groups)

    monkeypatch.setattr("gpupif.frames_device.PART_ROWS", 5)
    file = tmp_path / "t.parquet"
    with pq.ParquetWriter(file, pa.schema({"x": pa.int64()})) as writer:
        for rows in (2, 3, 1, 7, 4):
            writer.write_table(pa.table({"x": range(rows)}))
    encode_column("x", open_file(file, every_column, library=Spy()).column(0))
    assert asked == [[0, 1], [2], [3], [4]]


class Crowded(Frames):
    """A device that has no room for a column while codes of so many others lie there."""

    def __init__(self, most, until=2):
        super().__init__()
        self.most = most
        self.until = until
        self.asked = 0
        self.released = 0

    def array(self, series):
        self.asked += 1
        if self.most < self.asked < self.most + self.until:
            raise MemoryError
        return super().array(series)

    def release(self):
        self.released += 1


def test_codes_that_do_not_fit_the_device_go_to_the_host(monkeypatch):
    frame = census(40)[["age", "household_size", "sex"]].assign(sex=lambda table: pd.factorize(table["sex"])[0])
    library = Crowded(1)
    monkeypatch.setattr("gpupif.frames.frame_library", lambda: library)
    scores = gpupif.score(to_device(frame), list(MEASURES), device="cuda")
    assert library.released == 1
    assert [is_there(codes) for codes in scores._job.codes] == [False] * 3
    assert_same_scores(scores, gpupif.score(frame, list(MEASURES), device="cpu"))
    assert scores.top(3).shape == (3, 10)


def test_a_column_that_alone_does_not_fit_is_one_clear_error(monkeypatch):
    monkeypatch.setattr("gpupif.frames.frame_library", lambda: Crowded(1, until=99))
    with pytest.raises(DeviceError, match=r"column 'b': the GPU ran out of memory .* GiB were free.*device='cpu'"):
        gpupif.score(to_device(pd.DataFrame({"a": [1, 2], "b": [1, 2]})), device="cuda")


def test_rows_of_a_frame_that_do_not_fit_are_numbered_in_halves(monkeypatch):
    monkeypatch.setattr("gpupif.frames_device.LEAST_ROWS", 1)

    class Small(Frames):
        def array(self, series):
            if len(series) > 6:
                raise MemoryError
            return super().array(series)

    monkeypatch.setattr("gpupif.frames.frame_library", Small)
    frame = pd.DataFrame({"a": [1, 2, 1, 3, 3, 1, 1, 9, 9, 1], "b": [0] * 5 + [1] * 5})
    assert_same_scores(gpupif.score(to_device(frame), device="cuda"), gpupif.score(frame, device="cpu"))


def test_scores_cannot_be_changed_by_who_looks_at_them(tmp_path):
    source = tmp_path / "t.parquet"
    census(20).to_parquet(source)
    scores = gpupif.score(source, device="cuda")
    with pytest.raises(ValueError, match="read-only"):
        scores.array("cig")[0, 0] = 99
    scores = gpupif.score(to_device(census(20)), device="cuda")
    before = to_pandas(scores.cig)
    taken = scores.cig
    taken["age"] = 0.0
    pd.testing.assert_frame_equal(to_pandas(scores.cig), before)


def test_row_groups_that_do_not_fit_are_read_in_halves(tmp_path, monkeypatch):
    asked = []

    class Small(Frames):
        def read_parquet(self, file, column, row_groups):
            asked.append(len(row_groups))
            if len(row_groups) > 2:
                raise MemoryError
            return super().read_parquet(file, column, row_groups)

    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": list("abcabcab")}), file, row_group_size=1)
    frame = open_file(file, every_column, library=Small())
    assert_same_column(encode_column("x", frame.column(0)), host_column(pa.array(list("abcabcab"))))
    assert asked == [8, 4, 2, 2, 4, 2, 2]


def test_a_file_that_cudf_cannot_read_and_the_host_can(tmp_path):
    class Strict(Frames):
        def read_parquet(self, *_):
            raise RuntimeError("CUDF failure at:\nreader")

    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": list("ab")}), file)
    frame = open_file(file, every_column, library=Strict())
    with pytest.raises(DeviceError, match=r"cuDF could not read it \(CUDF failure at: reader\)\. Use device='cpu'"):
        encode_column("x", frame.column(0))
    content = bytearray(file.read_bytes())
    content[4:30] = b"\xff" * 26
    file.write_bytes(bytes(content))
    with pytest.raises(TableReadError, match="could not be read as Parquet"):
        encode_column("x", open_file(file, every_column, library=Strict()).column(0))


@pytest.mark.parametrize("few", [1, 20, 10_000])
def test_csv_that_does_not_fit_is_split_in_halves(tmp_path, monkeypatch, few):
    monkeypatch.setattr("gpupif.csv_device.LEAST_BYTES", few)
    asked = []

    class Small(Frames):
        def read_lines(self, file, start, size):
            asked.append(size)
            if size > 20:
                raise MemoryError
            return super().read_lines(file, start, size)

    file = tmp_path / "t.csv"
    file.write_text(PLAIN)
    monkeypatch.setattr("gpupif.csv_device.PART_BYTES", 64)
    if few > 64:
        with pytest.raises(DeviceError, match=r"t.csv: the GPU could not read it \(its memory ran out\)\. Use device"):
            open_file(file, every_column, library=Small())
        return
    frame, expected = open_file(file, every_column, library=Small()), open_file(file, every_column)
    assert asked == [40, 20, 20]
    for position in range(3):
        column = encode_column("x", frame.column(position))
        assert_same_column(column, encode_column("x", expected.column(position)))
