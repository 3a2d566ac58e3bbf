"""The choice of the engine, and the exact reason why CUDA is not used, with a made-up driver."""

from __future__ import annotations

import ctypes

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gpupif
from gpupif.attack.arguments import Arguments
from gpupif.engines.choose import LEAST_CELLS, DeviceRequest, choose_engine, requested_device
from gpupif.errors import DeviceError, InputError
from gpupif.frames.open import device_for, open_frame
from gpupif.gpu import status as device
from gpupif.gpu.status import CudaStatus, Gpu, cuda_status, shown_gpus
from gpupif.pipeline.task_resources import task_engine, worker_device
from tests.helpers.checkout import ROOT
from tests.helpers.gpu.numpy_device import DeviceFrame, PandasFrames

VERSIONS = {"cupy": "14.2.0", "numba-cuda": "0.30.4", "cudf": "26.10.2"}
H200, OLD = ("NVIDIA H200", (9, 0)), ("Tesla V100", (7, 0))


def without(package):
    return {name: version for name, version in VERSIONS.items() if name != package}


class Driver:
    """libcuda.so.1 as far as it is asked."""

    def __init__(self, gpus, code=0):
        self.gpus = gpus
        self.code = code

    def cuInit(self, flags):  # noqa: N802
        return self.code

    def cuDeviceGetCount(self, count):  # noqa: N802
        count._obj.value = len(self.gpus)

    def cuDeviceGetName(self, name, size, number):  # noqa: N802
        name.value = self.gpus[number][0].encode()

    def cuDeviceGetAttribute(self, value, attribute, number):  # noqa: N802
        value._obj.value = self.gpus[number][1][{75: 0, 76: 1}[attribute]]


@pytest.fixture
def machine(monkeypatch):
    """Return a function that makes a machine. broken: what fails when it is tried, on which devices."""
    tried = []
    # Those of the package, whatever stands in for a GPU.
    monkeypatch.setattr(device, "cuda_status", cuda_status)
    monkeypatch.setattr(device, "shown_gpus", shown_gpus)

    def set_up(gpus=(), code=0, versions=VERSIONS, broken=None, on=(0, 1, 2)):
        def attempt(package):
            def run(number):
                tried.append((package, number))
                if package == broken and number in on:
                    raise RuntimeError("driver\nis old")

            return run

        monkeypatch.setattr(ctypes, "CDLL", lambda name: Driver(gpus, code))
        monkeypatch.setattr(device, "installed_version", versions.get)
        for package in ("cupy", "numba", "cudf"):
            monkeypatch.setattr(device, f"_try_{package}", attempt(package))
        device._worked.clear()
        return tried

    yield set_up
    device._worked.clear()


def test_a_missing_driver_is_named(machine, monkeypatch):
    def missing(name):
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    status = cuda_status()
    assert not status.usable
    assert "no NVIDIA driver" in status.reason


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"code": 100}, "cuInit returned 100"),
        ({}, "shows no GPU"),
        ({"gpus": [OLD]}, "Tesla V100 (compute capability 7.0), too old: at least compute capability 7.5"),
        ({"gpus": [H200], "versions": without("cupy")}, "the package cupy is not installed: pip install"),
        ({"gpus": [H200], "versions": without("numba-cuda")}, "the package numba-cuda is not installed: pip install"),
        ({"gpus": [H200], "versions": {**VERSIONS, "cupy": "14.0.1"}}, "cupy 14.0.1 is too old: at least 14.2"),
        (
            {"gpus": [H200], "versions": {**VERSIONS, "numba-cuda": "0.28.2"}},
            "numba-cuda 0.28.2 is too old: at least 0.30",
        ),
        ({"gpus": [H200], "broken": "cupy"}, "cupy 14.2.0 does not work here: driver is old"),
        ({"gpus": [H200], "broken": "numba"}, "numba-cuda 0.30.4 does not work here: driver is old"),
        ({"gpus": [H200, H200], "broken": "numba"}, "numba-cuda 0.30.4 does not work here"),
    ],
)
@pytest.mark.filterwarnings("ignore::gpupif.errors.DeviceWarning")
def test_a_missing_requirement_of_cuda_is_named(machine, settings, reason):
    machine(**settings)
    status = cuda_status()
    assert not status.usable
    assert reason in status.reason
    with pytest.raises(DeviceError, match=r"device 'cuda' cannot be used here: .*device='cpu'"):
        choose_engine(DeviceRequest("cuda"))
    assert choose_engine(DeviceRequest("auto")).device == "cpu"


NO_CUDF = [
    ({"versions": without("cudf")}, "the package cudf is not installed: pip install 'gpupif[gpu-cu13]'"),
    ({"versions": {**VERSIONS, "cudf": "26.6.01"}}, "cudf 26.6.01 is too old: at least 26.8 is needed"),
    ({"broken": "cudf"}, "cudf 26.10.2 does not work here: driver is old"),
]


@pytest.mark.parametrize(("settings", "reason"), NO_CUDF)
def test_rows_are_sorted_and_tables_encoded_on_the_host_without_cudf(machine, settings, reason):
    machine([H200], **settings)
    status = cuda_status()
    assert status.usable
    assert reason in status.no_cudf
    for asked in [*map(DeviceRequest, ("cuda", "auto", "cuda:0")), DeviceRequest("auto", "rotation")]:
        engine = choose_engine(asked)
        assert engine.frames is None
        assert engine.grouping == "rotation"
    for word in ("cuda", "auto", "cuda:0"):
        with pytest.raises(DeviceError) as refused:
            choose_engine(DeviceRequest(word, "cudf"))
        assert reason in str(refused.value)
        assert "gpu_grouping='cudf' cannot be used here" in str(refused.value)
        assert "Use gpupif.config(gpu_grouping='rotation') or gpu_grouping='auto'" in str(refused.value)


def test_the_grouping_of_rows_is_the_one_asked_for(machine):
    machine([H200])
    for word, grouping in {"auto": "cudf", "cudf": "cudf", "rotation": "rotation"}.items():
        for device_word in ("cuda", "auto", "cuda:0"):
            with gpupif.config(device=device_word, gpu_grouping=word):
                asked = requested_device()
            assert asked == DeviceRequest(device_word, word)
            assert choose_engine(asked).grouping == grouping
    assert choose_engine(DeviceRequest("cuda")).grouping == "cudf"


@pytest.mark.parametrize("word", ["cudf", "rotation"])
def test_a_grouping_of_gpus_is_refused_without_a_gpu(machine, word):
    machine()
    with gpupif.config(gpu_grouping=word), gpupif.config(device="cpu"):
        assert choose_engine(requested_device()).device == "cpu"
    refused = rf"gpu_grouping='{word}' needs a GPU, and no GPU can be used here: .* no GPU\. Use gpupif\.config\("
    with pytest.raises(DeviceError, match=refused):
        choose_engine(DeviceRequest("auto", word))
    with pytest.raises(InputError, match=r"gpu_grouping: 'rotation' is a way of GPUs, and device='cpu' was asked for"):
        gpupif.config(device="cpu", gpu_grouping="rotation")


@pytest.mark.parametrize("word", ["hash", "rotatoin", 3, "CUDF", "", ["cudf"]])
def test_unknown_words_for_the_grouping_are_refused(word):
    with pytest.raises(InputError, match=r"gpu_grouping: expected one of auto, cudf, rotation; got") as refused:
        gpupif.config(gpu_grouping=word)
    assert ("Did you mean 'rotation'?" in str(refused.value)) == (word == "rotatoin")


def test_a_worker_of_a_cluster_keeps_the_requested_grouping(machine):
    machine([H200, H200])
    here = worker_device(DeviceRequest("auto", "rotation"))
    assert here == DeviceRequest("cuda", "rotation")
    engine = task_engine(here)
    assert (engine.device, engine.grouping) == ("cuda:0", "rotation")


def test_every_usable_device_is_used(machine):
    tried = machine([H200, H200])
    assert cuda_status() == CudaStatus([Gpu(*H200), Gpu(*H200)], [0, 1])
    names = ("cupy", "numba", "cudf")
    assert sorted(tried) == sorted((package, number) for package in names for number in (0, 1))
    for word in ("cuda", "auto"):
        assert list(choose_engine(DeviceRequest(word)).devices) == [0, 1]
        assert choose_engine(DeviceRequest(word)).device == "cuda"
    assert list(choose_engine(DeviceRequest("cuda:1")).devices) == [1]
    assert choose_engine(DeviceRequest("cuda:1")).device == "cuda:1"
    assert choose_engine(DeviceRequest("cpu")).device == "cpu"
    assert len(tried) == 6
    with pytest.raises(DeviceError, match=r"'cuda:2': expected a number below 2"):
        choose_engine(DeviceRequest("cuda:2"))


def test_an_old_device_beside_another_is_left_out(machine):
    tried = machine([OLD, H200])
    assert list(choose_engine(DeviceRequest("cuda")).devices) == [1]
    assert {number for _, number in tried} == {1}
    with pytest.raises(DeviceError, match=r"'cuda:0' cannot be used: Tesla V100 .*, too old: .*device='cpu'"):
        choose_engine(DeviceRequest("cuda:0"))


@pytest.mark.parametrize("broken", ["cupy", "numba", "cudf"])
def test_a_gpu_that_fails_is_left_out_and_the_others_work(machine, broken):
    machine([H200, H200, H200], broken=broken, on=[1])
    for word in ("cuda", "auto"):
        left_out = r"GPU 1 is not used, and GPU 0, 2 does its work: NVIDIA H200 .* does not work here: driver is old\."
        with pytest.warns(gpupif.errors.DeviceWarning, match=left_out):
            engine = choose_engine(DeviceRequest(word))
        assert list(engine.devices) == [0, 2]
        assert engine.with_frames
        assert engine.grouping == "cudf"
    assert list(choose_engine(DeviceRequest("cuda:2")).devices) == [2]
    if broken == "cudf":
        # Alone it is used as a GPU without cuDF is.
        assert choose_engine(DeviceRequest("cuda:1")).frames is None
    else:
        refused = r"'cuda:1' cannot be used: NVIDIA H200 .* driver is old\. Use another, or"
        with pytest.raises(DeviceError, match=refused):
            choose_engine(DeviceRequest("cuda:1"))


def test_a_gpu_that_failed_is_tried_again(machine):
    """Its memory may only have been full."""
    tried = machine([H200], broken="cupy")
    assert not cuda_status().usable
    machine([H200])
    for _ in range(2):
        assert cuda_status().usable
        assert tried == [("cupy", 0), ("cupy", 0), ("numba", 0), ("cudf", 0)]


def test_the_cpu_takes_over_if_the_only_gpu_fails(machine):
    machine([H200], broken="numba")
    with pytest.warns(
        gpupif.errors.DeviceWarning, match=r"GPU 0 is not used, and the CPU does its work: .* driver is old\."
    ):
        assert choose_engine(DeviceRequest("auto")).device == "cpu"


def test_a_context_is_opened_only_on_devices_in_use(machine):
    tried = machine([H200, H200, H200])
    assert shown_gpus().devices == [0, 1, 2]
    assert tried == []
    choose_engine(DeviceRequest("cuda:2"))
    assert {number for _, number in tried} == {2}
    for word in ("auto", "cuda"):
        assert task_engine(DeviceRequest(word)).devices == [0]
        assert worker_device(DeviceRequest(word)) == DeviceRequest("cuda")
    assert worker_device(DeviceRequest("cuda:2")) == DeviceRequest("cuda:2")
    assert {number for _, number in tried} == {0, 2}


def test_a_worker_whose_gpu_fails_scores_on_the_cpu(machine):
    machine([H200, H200], broken="cupy", on=[0])
    with pytest.raises(DeviceError, match=r"device 'cuda' cannot be used: NVIDIA H200 .* driver is old"):
        task_engine(DeviceRequest("cuda"))
    with pytest.warns(gpupif.errors.DeviceWarning, match="GPU 0 is not used, and the CPU does its work"):
        assert task_engine(DeviceRequest("auto")).device == "cpu"


def test_small_tables_start_no_gpu(machine, monkeypatch, tmp_path):
    tried = machine([H200])
    table = gpupif.datasets.pif_example()
    with gpupif.config(device="auto"):
        assert gpupif.score(table).device == "cpu"
        table.to_parquet(tmp_path / "table.parquet")
        assert gpupif.score(tmp_path / "table.parquet").device == "cpu"
        assert gpupif.risk(table, list(table)[:2]).device == "cpu"
        gpupif.toxic_pairs(table)
        gpupif.suda(table)
        gpupif.information.total_correlation(table)
    assert tried == []
    assert device_for(table) == DeviceRequest("cpu")
    for word in ("cuda", "cuda:0", "cpu"):
        with gpupif.config(device=word):
            assert device_for(table) == DeviceRequest(word)
    with gpupif.config(gpu_grouping="rotation"):
        assert device_for(table) == DeviceRequest("auto", "rotation")


def test_a_table_below_the_least_cells_is_scored_on_the_cpu(machine, monkeypatch, tmp_path):
    machine([H200])
    monkeypatch.setattr("gpupif.engines.choose.LEAST_CELLS", 100)
    monkeypatch.setattr("gpupif.gpu.cudf_frames.CudfFrames", PandasFrames)
    small, large = pd.DataFrame({"a": range(49), "b": 1}), pd.DataFrame({"a": range(50), "b": 1})
    kinds = [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas, lambda frame: open_frame(frame)]
    for kind in kinds:
        assert device_for(kind(small)).device == "cpu"
        assert device_for(kind(large)).device == "auto"
    for name, frame in {"small": small, "large": large}.items():
        frame.to_parquet(tmp_path / f"{name}.parquet")
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
        found = [device_for(tmp_path / f"{name}.{kind}").device for kind in ("parquet", "csv")]
        assert found[0] == ("cpu" if name == "small" else "auto")
    # A table says only when it is read how many rows a stream has; a table on a device stays there.
    assert device_for(pa.RecordBatchReader.from_batches(pa.schema([]), [])).device == "auto"
    assert device_for(DeviceFrame(small)).device == "auto"
    # Each cell is gone over once for each set of columns that the attacker may know.
    assert device_for(small, Arguments.from_user("cig", known=1).known_sets).device == "cpu"
    assert device_for(small.assign(c=1, d=2), Arguments.from_user("cig", known=2).known_sets).device == "auto"


def test_the_page_says_which_tables_are_small():
    assert f"fewer than {LEAST_CELLS:,} cells" in (ROOT / "docs" / "how-to" / "gpu.md").read_text()


def test_the_number_of_known_sets_follows_from_the_attackers():
    def sets(**asked):
        return Arguments.from_user("cig", **asked).known_sets(10)

    assert sets() == sets(known=["a"]) == sets(known=[]) == 1
    assert sets(known=3) == 84
    assert sets(known=gpupif.AnyKnown(2, among=["a", "b", "c"])) == 3
    assert sets(known=gpupif.AnyKnown(3, subsets=20)) == 20
    assert sets(attackers={"one": ["a"], "another": 2}) == 37


@pytest.mark.parametrize("word", ["gpu", "cuda:", "cuda:x", "cpu:0", "auto:1", 3, None, "CUDA"])
def test_unknown_words_for_the_device_are_refused(word):
    with pytest.raises(InputError, match=r"device: expected one of auto, cpu, cuda, or cuda:0"):
        choose_engine(DeviceRequest(word))
