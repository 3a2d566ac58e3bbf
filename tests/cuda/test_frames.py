"""Columns and frames on the device, and their scores: tests beside the shared tests."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.datasets import census
from gpupif.encoding.column import COUNTED_RANGE
from gpupif.encoding.device import merge_parts, number_values
from gpupif.encoding.encode import encode_column
from gpupif.engines.cpu.engine import CpuEngine
from gpupif.engines.cuda.engine import CudaEngine
from gpupif.errors import DeviceError, OutputError
from gpupif.gpu.cudf_frames import GuardedSink
from gpupif.gpu.status import cuda_status
from gpupif.measures import MEASURES
from gpupif.utils.arrays import on_host
from tests.helpers.gpu.on_device import (
    Frames,
    assert_same_column,
    assert_same_scores,
    host_column,
    is_there,
    series,
    to_device,
    to_pandas,
)
from tests.helpers.gpu.without_gpu import WITHOUT_GPU, need_frames
from tests.helpers.scores import job_of, where_they_lie

need_frames()

pytestmark = pytest.mark.gpu
ENGINES = {
    "one": lambda: CudaEngine(),
    "two": lambda: CudaEngine([0, 1] if WITHOUT_GPU else cuda_status().devices),
    "blocks": lambda: CudaEngine(share=0),
    "cpu": lambda: CpuEngine(),
}


@given(
    st.lists(st.one_of(st.none(), st.integers(-300, 300)), min_size=1, max_size=40)
    | st.lists(st.one_of(st.none(), st.text("ab\x00é", max_size=3)), min_size=1, max_size=40)
    | st.lists(st.one_of(st.none(), st.floats(width=32)), min_size=1, max_size=40),
    st.lists(st.integers(0, 40), max_size=4),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_parts_of_a_column_are_encoded_as_the_whole(values, cuts):
    library = Frames()
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
def test_a_frame_on_the_device_gets_scores_as_such_a_frame(tmp_path, monkeypatch, engine):
    frame = census(60).assign(tenure=lambda table: table["tenure"].astype("string").mask(table.index % 7 == 0))
    frame["sex"] = frame["sex"].astype("category")
    frame.index = pd.Index(range(100, 160), name="person")
    table = to_device(frame)
    with gpupif.config(device="cpu"):
        expected = gpupif.score(frame, list(MEASURES))
    monkeypatch.setattr("gpupif.scoring.score.choose_engine", lambda _: ENGINES[engine]())
    scores = gpupif.score(table, list(MEASURES))
    assert type(scores.cig) is type(table)
    assert is_there(scores.array("csf")) == (engine != "cpu")
    pd.testing.assert_frame_equal(to_pandas(scores.cig), expected.cig, check_exact=True)
    assert_same_scores(scores, expected)
    np.testing.assert_array_equal(on_host(scores.rig().values), expected.rig())
    pd.testing.assert_series_equal(scores.fig(), expected.fig(), check_exact=True)
    assert scores.pif([5, 95]) == expected.pif([5, 95])
    pd.testing.assert_frame_equal(scores.top(5, by="csf"), expected.top(5, by="csf"), check_exact=True)
    pd.testing.assert_frame_equal(scores.summary().columns, expected.summary().columns, check_exact=True)
    scores.to_parquet(tmp_path / "scores.parquet", keep_input=True)
    back = pd.read_parquet(tmp_path / "scores.parquet")
    assert back.index.tolist() == frame.index.tolist()
    np.testing.assert_array_equal(back["cig_sex"], expected.cig["sex"])
    assert back["tenure"].isna().sum() == frame["tenure"].isna().sum()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_frame_on_the_device_is_scored_against_any_known_columns(tmp_path, monkeypatch, engine):
    frame = census(20)[["age", "sex", "tenure"]]
    table = to_device(frame)
    with gpupif.config(device="cpu"):
        expected = gpupif.score(frame, ["cig", "wcig", "cohort_size"], known=1)
    monkeypatch.setattr("gpupif.scoring.score.choose_engine", lambda _: ENGINES[engine]())
    scores = gpupif.score(table, ["cig", "wcig", "cohort_size"], known=1)
    for ours, theirs in ((scores, expected), (scores.mean, expected.mean)):
        assert type(ours.cig) is type(table)
        assert is_there(ours.array("wcig")) == (engine != "cpu")
        assert_same_scores(ours, theirs)
        pd.testing.assert_frame_equal(ours.top(5), theirs.top(5), check_exact=True)
        pd.testing.assert_frame_equal(ours.summary().columns, theirs.summary().columns, check_exact=True)
    scores.to_parquet(tmp_path / "scores.parquet")
    written = pd.read_parquet(tmp_path / "scores.parquet")
    np.testing.assert_array_equal(written["cig_mean_sex"], expected.mean.cig["sex"])


def test_frames_encoded_in_parts_get_the_same_scores(monkeypatch):
    with gpupif.config(device="cpu"):
        expected = gpupif.score(census(50))
    monkeypatch.setattr("gpupif.frames.cudf_frame.PART_ROWS", 7)
    assert_same_scores(gpupif.score(to_device(census(50))), expected)


def test_a_frame_on_the_device_is_scored_without_known_columns():
    frame = to_device(pd.DataFrame({"age": [1, 1, 2], "sex": ["f", "m", "f"]}))
    top = gpupif.score(frame, ["prior"], columns=["age"], known=[]).top(1)
    assert top[["value", "cohort_size"]].to_numpy().tolist() == [[2, 3]]
    assert top.loc[0, "posterior"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("ending", ["parquet", "csv", "feather"])
def test_scores_on_the_device_are_written_as_those_of_the_host(tmp_path, monkeypatch, ending):
    monkeypatch.setattr("gpupif.io.write.GROUP_ROWS", 16)
    monkeypatch.setattr("gpupif.io.write.DEVICE_ROWS", 16)
    source = tmp_path / "t.parquet"
    census(50).to_parquet(source)
    told, tables = [], []
    for device in ("cpu", "cuda"):
        with gpupif.config(device=device):
            scores = gpupif.score(source, list(MEASURES))
        scores.write(tmp_path / f"{device}.{ending}", done=told.append)
        tables.append(gpupif.io.read.read_table(tmp_path / f"{device}.{ending}").to_pandas())
    assert told == [16, 16, 16, 2] * 2
    pd.testing.assert_frame_equal(*tables, check_exact=True, check_dtype=ending != "csv")


def test_scores_of_a_file_stay_on_the_device_until_read(tmp_path):
    source = tmp_path / "t.parquet"
    census(50).to_parquet(source)
    with gpupif.config(device="cuda"):
        scores = gpupif.score(source, ["cig", "csf"])
    assert is_there(where_they_lie(scores, "cig"))
    assert type(scores.array("cig")) is np.ndarray
    assert type(scores.cig) is pd.DataFrame
    assert is_there(where_they_lie(scores, "csf"))
    scores.to_parquet(tmp_path / "scores.parquet")
    assert len(pd.read_parquet(tmp_path / "scores.parquet")) == 50


@pytest.mark.parametrize(
    ("error", "said"), [(RuntimeError("device\nlost"), "device lost"), (MemoryError(), "out of mem")]
)
def test_a_device_that_fails_while_it_writes_leaves_no_file(tmp_path, monkeypatch, error, said):
    class Broken(Frames):
        def frame(self, columns, index=None):
            raise error

    scores = gpupif.score(to_device(census(20)))
    monkeypatch.setattr(scores._backing._frame, "_library", Broken())
    with pytest.raises(DeviceError, match=rf"scores.parquet: the GPU could not write it \({said}"):
        scores.to_parquet(tmp_path / "scores.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fails_at", ["first", "last"])
def test_a_full_disk_while_the_device_writes_leaves_no_new_file(tmp_path, monkeypatch, fails_at):
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


@pytest.mark.parametrize("labels", [127, 128, 129, 130, 32_767, 32_768, 32_769])
@pytest.mark.parametrize("missing", [False, True])
def test_codes_take_the_smallest_type_that_holds_all_labels(library, labels, missing):
    array = pa.array([str(label) for label in range(labels)] + [None] * missing + ["0", str(labels - 1)])
    part = number_values(library, "x", series(array))
    assert part.numbers.dtype.itemsize == (1 if labels <= 127 else 2 if labels <= 32_767 else 4)
    column = merge_parts("x", library, [part], array.type, True)
    assert_same_column(column, host_column(array))


@pytest.mark.parametrize("width", [COUNTED_RANGE - 1, COUNTED_RANGE, COUNTED_RANGE + 1])
@pytest.mark.parametrize("low", [0, -5, 2**62])
def test_whole_numbers_near_the_counted_width_are_encoded(library, width, low):
    array = pa.array([low + width, low, low + width, low + 1])
    part = number_values(library, "x", series(array))
    assert len(part.labels) == (width + 1 if width < COUNTED_RANGE else 3)
    column = merge_parts("x", library, [part], array.type, True)
    assert column.values() == [low, low + 1, low + width]
    assert on_host(column.codes).tolist() == [2, 0, 2, 1]


class Crowded(Frames):
    """A device without room for a further column if it has the codes of a number of columns."""

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
    monkeypatch.setattr("gpupif.frames.open.frame_library", lambda: library)
    with gpupif.config(device="cuda"):
        scores = gpupif.score(to_device(frame), list(MEASURES))
    assert library.released == 1
    assert [is_there(codes) for codes in job_of(scores).codes] == [False] * 3
    with gpupif.config(device="cpu"):
        assert_same_scores(scores, gpupif.score(frame, list(MEASURES)))
    assert scores.top(3).shape == (3, 4 + len(MEASURES))


def test_a_column_that_alone_does_not_fit_is_one_clear_error(monkeypatch):
    monkeypatch.setattr("gpupif.frames.open.frame_library", lambda: Crowded(1, until=99))
    with (
        pytest.raises(DeviceError, match=r"column 'b': the GPU ran out of memory .* GiB were free.*device='cpu'"),
        gpupif.config(device="cuda"),
    ):
        gpupif.score(to_device(pd.DataFrame({"a": [1, 2], "b": [1, 2]})))


def test_rows_of_a_frame_that_do_not_fit_are_numbered_in_halves(monkeypatch):
    monkeypatch.setattr("gpupif.frames.cudf_frame.LEAST_ROWS", 1)

    class Small(Frames):
        def array(self, series):
            if len(series) > 6:
                raise MemoryError
            return super().array(series)

    monkeypatch.setattr("gpupif.frames.open.frame_library", Small)
    frame = pd.DataFrame({"a": [1, 2, 1, 3, 3, 1, 1, 9, 9, 1], "b": [0] * 5 + [1] * 5})
    with gpupif.config(device="cuda"):
        found = gpupif.score(to_device(frame))
    with gpupif.config(device="cpu"):
        assert_same_scores(found, gpupif.score(frame))


def test_scores_are_read_only(tmp_path):
    source = tmp_path / "t.parquet"
    census(20).to_parquet(source)
    with gpupif.config(device="cuda"):
        scores = gpupif.score(source)
    with pytest.raises(ValueError, match="read-only"):
        scores.array("cig")[0, 0] = 99
    with gpupif.config(device="cuda"):
        scores = gpupif.score(to_device(census(20)))
    before = to_pandas(scores.cig)
    taken = scores.cig
    taken["age"] = 0.0
    pd.testing.assert_frame_equal(to_pandas(scores.cig), before)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_table_on_the_device_is_scored_with_wildcards(device):
    """The last column and its known columns have no missing values."""
    frame = census(40)[["age", "household_size", "sex"]].assign(sex=lambda table: pd.factorize(table["sex"])[0])
    frame["age"] = (frame["age"] // 20).astype("float64").mask(np.random.default_rng(0).random(len(frame)) < 0.2)
    arguments = {"missing": "wildcard", "known": ["household_size", "sex"]}
    with gpupif.config(device=device):
        scores = gpupif.score(to_device(frame), **arguments)
    with gpupif.config(device="cpu"):
        expected = gpupif.score(frame, **arguments)
    assert scores.device == device
    assert all(is_there(scores.array(measure)) == (device == "cuda") for measure in scores.measures)
    assert_same_scores(scores, expected)
    cells = ["row", "column", "cohort_size", "cig"]
    pd.testing.assert_frame_equal(scores.top(5)[cells], expected.top(5)[cells])
    assert scores.summary().columns["csf_mean"].to_dict() == expected.summary().columns["csf_mean"].to_dict()


def test_a_table_on_the_device_is_inspected():
    frame = census(300, columns=6).astype({"region": str, "sex": str})
    found, expected = gpupif.inspect(to_device(frame)), gpupif.inspect(frame)
    pd.testing.assert_frame_equal(found.columns, expected.columns)
