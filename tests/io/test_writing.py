"""Written tables read back, and appear whole or not at all."""

from __future__ import annotations

import datetime
import errno
import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpupif
from gpupif.errors import InputError, OutputError
from gpupif.io.parquet_writer import ParquetWriter
from gpupif.io.write import check_output, row_groups, write_tables, write_text
from tests.helpers.file_formats import ALL, FRAME, arrow

pytestmark = pytest.mark.every_engine


def write_table(table, path, done=lambda rows: None, overwrite=True):
    edges = (span for several in row_groups(table.num_rows, columns=100) for span in several)
    write_tables((table.slice(start, stop - start) for start, stop in edges), path, done, overwrite)


READ = {
    "parquet": pq.read_table,
    "csv": lambda path: pa.Table.from_pandas(pd.read_csv(path, engine="pyarrow")),
    "feather": lambda path: pa.ipc.open_file(path).read_all(),
    "arrow": lambda path: pa.ipc.open_file(path).read_all(),
}


def read_back(path):
    """Return a written table, read with other code than the package's own."""
    return READ[path.suffix[1:]](path).to_pandas()


@pytest.mark.parametrize("ending", READ)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_written_scores_are_read_back(tmp_path, monkeypatch, ending, dtype):
    monkeypatch.setattr("gpupif.io.write.GROUP_ROWS", 3)
    scores = gpupif.score(FRAME, ALL, columns=["yes", "größe"], dtype=dtype)
    told = []
    scores.write(tmp_path / f"scores.{ending}", done=told.append)
    frame = read_back(tmp_path / f"scores.{ending}")
    assert told == [3, 3, 2]
    assert list(frame.columns) == [f"{measure}_{column}" for measure in ALL for column in ("yes", "größe")]
    for name in frame.columns:
        measure, _, column = name.rpartition("_")
        np.testing.assert_array_equal(frame[name].astype(scores[measure][column].dtype), scores[measure][column])
        if ending != "csv":
            assert frame[name].dtype == ("int64" if measure == "cohort_size" else dtype)


@pytest.mark.parametrize("frame", [FRAME, pl.from_arrow(arrow()), arrow()], ids=["pandas", "polars", "pyarrow"])
def test_keep_input_puts_the_table_before_the_scores(tmp_path, frame):
    gpupif.score(frame, columns=["yes", "a;b"]).to_parquet(tmp_path / "scores.parquet", keep_input=True)
    written = pq.read_table(tmp_path / "scores.parquet")
    assert written.column_names == [*FRAME.columns, "cig_yes", "cig_a;b", "csf_yes", "csf_a;b"]
    assert written.select(list(FRAME.columns)).to_pydict() == arrow().to_pydict()
    assert written["cig_a;b"].to_pylist() == gpupif.score(FRAME, columns=["yes", "a;b"]).cig["a;b"].tolist()


KEPT = {
    "category": pd.Categorical(["x", "y", None]),
    "date": [datetime.date(2000, 1, 1), None, datetime.date(2000, 1, 2)],
    "time span": pd.to_timedelta([1, 2, None], unit="s"),
}


@pytest.mark.parametrize("ending", READ)
@pytest.mark.parametrize("values", KEPT.values(), ids=KEPT)
def test_keep_input_keeps_columns_of_any_type(tmp_path, ending, values):
    path = tmp_path / f"scores.{ending}"
    write_table(gpupif.score(pd.DataFrame({"value": values, "age": [1, 2, 2]}), "cig").to_arrow(keep_input=True), path)
    back = read_back(path)
    assert back.columns.tolist() == ["value", "age", "cig_value", "cig_age"]
    assert back["age"].tolist() == [1, 2, 2]
    assert back["value"].isna().tolist() == pd.Series(values).isna().tolist()


@pytest.mark.parametrize("values", [[b"x", b"\xff"], [["x"], ["y"]]], ids=["bytes", "lists"])
def test_keep_input_of_a_type_that_csv_lacks_is_refused(tmp_path, values):
    scores = gpupif.score(pa.table({"age": [1, 2], "odd": values}), columns=["age"])
    with pytest.raises(OutputError, match=r"scores\.csv.*'odd'"):
        write_table(scores.to_arrow(keep_input=True), tmp_path / "scores.csv")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("values", [[1, "a"], [1j, 2], [object(), None]], ids=["mixed", "complex", "objects"])
def test_keep_input_of_a_type_that_arrow_lacks_is_refused(tmp_path, values):
    scores = gpupif.score(pd.DataFrame({"age": [1, 2], "odd": pd.Series(values, dtype=object)}))
    with pytest.raises(OutputError, match="'odd'"):
        scores.to_parquet(tmp_path / "scores.parquet", keep_input=True)
    assert list(tmp_path.iterdir()) == []
    scores.to_parquet(tmp_path / "scores.parquet")
    assert read_back(tmp_path / "scores.parquet")["cig_odd"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("frame", "name"),
    [
        (pd.DataFrame({"age": [1, 2], "cig_age": [1, 2]}), "cig_age"),
        (pd.DataFrame([[1, 2], [3, 4]], columns=[1, "1"]), "1"),
        (pd.DataFrame({"age": [1, 2]}, index=pd.Index([7, 8], name="cig_age")), "cig_age"),
        (pd.DataFrame({"age": [1, 2]}, index=pd.Index([7, 8], name="age")), "age"),
    ],
)
def test_colliding_names_of_columns_are_refused(tmp_path, frame, name):
    with pytest.raises(OutputError, match=f"called '{name}'.*Rename"):
        gpupif.score(frame).to_parquet(tmp_path / "scores.parquet", keep_input=True)
    assert list(tmp_path.iterdir()) == []


INDEXES = {
    "default": pd.RangeIndex(8),
    "default with a name": pd.RangeIndex(8, name="person"),
    "other range": pd.RangeIndex(5, 13),
    "duplicate numbers": pd.Index([3, 3, 1, 1, 2, 2, 3, 0]),
    "duplicate text": pd.Index(list("ppqrssqp"), name="person"),
    "float with missing": pd.Index([0.5, np.nan, 1, 1, 2, 3, 4, 5]),
    "times": pd.DatetimeIndex([f"2020-01-0{day}" for day in "12345611"], tz="Europe/Berlin", name="when"),
    "category": pd.CategoricalIndex(list("xyxyxyxx")),
    "levels": pd.MultiIndex.from_product([[1, 2], ["u", "v"], [0.5, 1.5]], names=["house", None, "person"]),
}


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
@pytest.mark.parametrize("keep_input", [False, True])
def test_the_index_is_written_and_read_back(tmp_path, index, keep_input):
    frame = FRAME[["a;b", "größe"]].set_axis(index)
    scores = gpupif.score(frame, "cig")
    scores.to_parquet(tmp_path / "scores.parquet", keep_input=keep_input)
    back = pd.read_parquet(tmp_path / "scores.parquet")
    assert back.columns.tolist() == ["a;b", "größe"] * keep_input + ["cig_a;b", "cig_größe"]
    pd.testing.assert_index_equal(back.index, index)
    np.testing.assert_array_equal(back["cig_größe"], scores.cig["größe"])


BIG = pa.table({"score": list(range(10))})


@pytest.fixture(params=["unnamed", "named"])
def folder(request, tmp_path, monkeypatch):
    """Return an empty folder, on a file system with unnamed files and on a file system without."""
    monkeypatch.setattr("gpupif.io.write.GROUP_ROWS", 4)
    if request.param == "named":
        real = os.open

        def refuse_unnamed(path, flags, *arguments, **more):
            if flags & os.O_TMPFILE == os.O_TMPFILE:
                raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
            return real(path, flags, *arguments, **more)

        monkeypatch.setattr(os, "open", refuse_unnamed)
    return tmp_path


@pytest.mark.parametrize("ending", READ)
@pytest.mark.parametrize("before", [None, b"what stood here before"])
@pytest.mark.parametrize("fails", [OSError(errno.ENOSPC, "No space left"), RuntimeError("?"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_old_file(folder, ending, before, fails):
    path = folder / f"scores.{ending}"
    if before:
        path.write_bytes(before)
    seen = []

    def done(rows):
        seen.append({file.name for file in folder.iterdir()} - {path.name})
        if len(seen) == 2:
            raise fails

    with pytest.raises(OutputError if isinstance(fails, OSError) else type(fails)) as caught:
        write_table(BIG, path, done)
    assert len(seen) == 2
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == ({path.name: before} if before else {})
    if isinstance(fails, OSError):
        mend = "Free some space, or choose another place for the output."
        assert str(caught.value) == f"{path}: could not be written: No space left. {mend}"
    write_table(BIG, path)
    assert read_back(path)["score"].tolist() == list(range(10))
    assert [file.name for file in folder.iterdir()] == [path.name]


def test_a_failed_parquet_writer_leaves_the_old_file(folder, monkeypatch):
    scores = gpupif.score(FRAME)
    path = folder / "scores.parquet"
    scores.to_parquet(path)
    before = path.read_bytes()
    real, calls = ParquetWriter.write, []

    def fail(self, *arguments):
        calls.append(arguments)
        if len(calls) > 1:
            raise OSError(errno.EIO, "Input/output error")
        real(self, *arguments)

    monkeypatch.setattr(ParquetWriter, "write", fail)
    with pytest.raises(OutputError, match=r"scores\.parquet: could not be written: Input/output error\."):
        scores.to_parquet(path)
    assert len(calls) == 2
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {path.name: before}


KILLED = """
import os, signal, sys
import gpupif.io.write, pyarrow as pa
if sys.argv[2] == "named":
    os.O_TMPFILE = os.O_EXCL | os.O_CREAT  # no way to open a folder: OSError
gpupif.io.write.GROUP_ROWS = 4
table = pa.table({"score": list(range(10))})
gpupif.io.write.write_tables([table], sys.argv[1], lambda rows: os.kill(os.getpid(), signal.SIGKILL))
"""


@pytest.mark.slow
@pytest.mark.subprocess
@pytest.mark.parametrize("way", ["unnamed", "named"])
@pytest.mark.parametrize("before", [None, b"what stood here before"])
def test_a_killed_process_leaves_the_old_file(tmp_path, way, before):
    """If the file system lacks unnamed files, a hidden file stays: the killed process cannot delete it."""
    path = tmp_path / "scores.parquet"
    if before:
        path.write_bytes(before)
    ended = subprocess.run([sys.executable, "-c", KILLED, path, way], check=False, capture_output=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    left = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    hidden = [name for name in left if name.startswith(".gpupif-") and name.endswith(".tmp")]
    assert len(hidden) == (way == "named")
    assert {name: left[name] for name in left if name not in hidden} == ({path.name: before} if before else {})
    write_table(BIG, path)
    assert read_back(path)["score"].tolist() == list(range(10))


def test_a_leftover_of_a_killed_process_with_the_same_number_is_replaced(folder):
    (folder / f".scores.parquet.{os.getpid()}.tmp").write_bytes(b"half a table")
    write_table(BIG, folder / "scores.parquet")
    assert read_back(folder / "scores.parquet")["score"].tolist() == list(range(10))


def test_existing_output_needs_overwrite(tmp_path):
    scores, path = gpupif.score(FRAME, "csf"), tmp_path / "scores.parquet"
    scores.to_parquet(path, overwrite=False)
    before = path.read_bytes()
    with pytest.raises(OutputError, match=r"scores\.parquet: exists already.*overwrite"):
        gpupif.score(FRAME, "cig").to_parquet(path, overwrite=False)
    assert path.read_bytes() == before
    gpupif.score(FRAME, "cig").to_parquet(path, overwrite=True)
    assert pq.read_schema(path).names == [f"cig_{name}" for name in FRAME.columns]


PLACES = {
    "no/scores.parquet": "no folder .*no. Make it",
    "folder.parquet": "is a folder",
    "scores.xlsx": r"ending in \.parquet",
    "scores": r"ending in \.parquet",
    "scores.csv": "parquet",
}


@pytest.mark.parametrize(("name", "message"), PLACES.items())
def test_parquet_at_a_bad_place_is_refused(tmp_path, name, message):
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(OutputError, match=message):
        gpupif.score(FRAME).to_parquet(tmp_path / name)
    assert [file.name for file in tmp_path.iterdir()] == ["folder.parquet"]


def test_an_output_made_during_the_write_is_kept(tmp_path):
    path = tmp_path / "scores.parquet"
    with pytest.raises(OutputError, match="meanwhile"):
        write_table(BIG, path, lambda rows: path.write_bytes(b"somebody's"), overwrite=False)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {path.name: b"somebody's"}


def test_scores_that_seldom_repeat_are_kept_without_a_dictionary(tmp_path):
    rows = 100_000
    generator = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "different": generator.random(rows),
            "sorted": np.arange(rows) / 7,
            "repeating": generator.integers(500, size=rows) / 7,
            "constant": np.zeros(rows),
            "count": generator.integers(rows, size=rows),
        }
    )
    write_table(pa.Table.from_pandas(frame), tmp_path / "scores.parquet")
    group = pq.ParquetFile(tmp_path / "scores.parquet").metadata.row_group(0)
    kept = {group.column(place).path_in_schema: group.column(place) for place in range(len(frame.columns))}
    assert {name for name, column in kept.items() if column.has_dictionary_page} == {"repeating", "constant"}
    compressed = {name for name, column in kept.items() if column.compression == "ZSTD"}
    assert compressed == {"repeating", "constant", "count", "sorted"}
    assert kept["different"].compression == "UNCOMPRESSED"
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "scores.parquet"), frame)


@pytest.mark.parametrize(
    ("name", "codec"), [("s.parquet", codec) for codec in ("zstd", "lz4", "snappy", "none")] + [("s.feather", "zstd")]
)
def test_scores_are_written_with_the_configured_compression(name, codec, tmp_path):
    frame = gpupif.datasets.census(3000, columns=3)
    scores = gpupif.score(frame)
    with gpupif.config(compression=codec):
        scores.write(tmp_path / name)
        gpupif.score_files(_as_file(frame, tmp_path), tmp_path / f"files-{name}")
    for file in (tmp_path / name, tmp_path / f"files-{name}"):
        found = gpupif.open_scores(file)
        pd.testing.assert_frame_equal(found.cig.to_pandas(), scores.cig)
        if file.suffix == ".parquet":
            group = pq.read_metadata(file).row_group(0)
            assert {group.column(place).compression for place in range(6)} == {
                codec.upper().replace("NONE", "UNCOMPRESSED")
            }


def _as_file(frame, folder):
    frame.to_parquet(folder / "table.parquet")
    return folder / "table.parquet"


@pytest.mark.parametrize(("name", "codec"), [("s.feather", "snappy"), ("s.csv", "zstd"), ("s.csv", "lz4")])
def test_a_compression_that_the_format_lacks_is_refused(name, codec, tmp_path):
    expected = rf"compression: .*{name}: expected one of auto, .* got '{codec}'"
    with gpupif.config(compression=codec):
        with pytest.raises(InputError, match=expected):
            gpupif.score(FRAME).write(tmp_path / name)
        with pytest.raises(InputError, match=expected):
            gpupif.score_files(_as_file(FRAME, tmp_path), tmp_path / name)
    assert not (tmp_path / name).exists()
    with pytest.raises(InputError, match="compression: expected one of auto, zstd, lz4, snappy, none; got 'zst'"):
        gpupif.config(compression="zst")


def test_a_pipe_behind_a_link_is_no_output(tmp_path):
    """A device would be replaced by a file in the same way."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link.csv").symlink_to(tmp_path / "pipe")
    with pytest.raises(OutputError, match=r"link\.csv: is a device or a pipe; expected the name of a file"):
        check_output(tmp_path / "link.csv", True)
    with pytest.raises(OutputError, match="is a device or a pipe"):
        write_text("text", tmp_path / "link.csv", True)
    assert (tmp_path / "pipe").is_fifo()
