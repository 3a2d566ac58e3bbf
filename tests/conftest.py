"""Stops where the tests would not test this repository; the engines and fixtures that all tests share."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Generator
from pathlib import Path

import hypothesis
import pytest

import gpupif
import gpupif.kernels
from gpupif.engines.base import Engine
from gpupif.engines.cpu.engine import CpuEngine
from gpupif.engines.cuda.engine import CudaEngine
from gpupif.gpu.cupy_arrays import CupyLibrary
from gpupif.gpu.open import STREAMS
from gpupif.gpu.status import CudaStatus, Gpu, cuda_status, shown_gpus
from gpupif.kernels.cache import CACHE_FOLDER
from gpupif.utils.versions import installed_version

pytest.register_assert_rewrite("tests.helpers")
# How long an example takes says nothing of whether it is right; the machine may have other work. Each run draws others.
hypothesis.settings.register_profile("untimed", deadline=None, max_examples=40)
hypothesis.settings.load_profile("untimed")

from tests.helpers.checkout import ROOT  # noqa: E402
from tests.helpers.compiled_kernels import compile_if_cold  # noqa: E402
from tests.helpers.gpu.without_gpu import ON_HOST, SIMULATED, WITHOUT_GPU, DeviceLibrary, install, on_gpu  # noqa: E402
from tests.helpers.slow_tests import QUICK  # noqa: E402
from tests.helpers.ways import OTHERS  # noqa: E402

# For tests of the benchmarks; at the end, so that gpupif is the one that is installed.
sys.path.append(str(ROOT))
# Each process that uses a GPU holds a context there, and compiles all kernels for itself.
MOST_ON_GPU = 4
REPORTED = ("numpy", "pandas", "pyarrow", "polars", "numba", "dask", "distributed")
pytest_plugins = ["pytester", "tests.helpers.command_line", "tests.helpers.postgres", "tests.helpers.slow_tests"]


def _sources(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.py"))}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--every-kernel",
        action="store_true",
        help="with GPUPIF_DEVICE_ON_HOST=1: fail unless what was launched is what tests/cuda/compile_check.py compiles",
    )


def pytest_configure(config: pytest.Config) -> None:
    # The width of printed tables: a process of pytest-xdist has a terminal's, and a user may have set another.
    os.environ.pop("COLUMNS", None)
    if config.getoption("--every-kernel"):
        if not ON_HOST:
            raise pytest.UsageError("--every-kernel: nothing is launched here; set GPUPIF_DEVICE_ON_HOST=1")
        from tests.helpers.gpu.host.launched import EveryKernel

        config.pluginmanager.register(EveryKernel())
    for module, name in ((gpupif.kernels, "kernels"), (gpupif, "gpupif")):
        found = Path(module.__file__).parent
        installed = {path: text for path, text in _sources(found).items() if not path.startswith("kernels/")}
        if installed != _sources(ROOT / name):
            pytest.exit(f"{module.__name__} comes from {found}, which differs from {ROOT / name}: run pip install .", 3)
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        # In the simulator few kernels for the CPU are needed.
        if not SIMULATED:
            compile_if_cold(CACHE_FOLDER)
        # The workers use every core, so threads of theirs would wait for each other. Slow tests have threads.
        if config.option.markexpr == QUICK:
            os.environ.setdefault("GPUPIF_NUM_THREADS", "1")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests without the garbage collector, and have it run seldom later: it takes more time than tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000)
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> Generator[None, int, int]:
    """Where there is a GPU, have `-n auto` start no more processes than may share it."""
    number = yield
    return min(number, MOST_ON_GPU) if shown_gpus().usable else number


def pytest_report_header() -> str:
    versions = (f"{name} {installed_version(name) or 'is missing'}" for name in REPORTED)
    return "gpupif's tests with " + ", ".join(versions)


if ON_HOST and SIMULATED:
    pytest.exit("GPUPIF_DEVICE_ON_HOST=1 and NUMBA_ENABLE_CUDASIM=1: set one of them", 3)
if WITHOUT_GPU:
    # NumPy in place of CuPy, pandas of cuDF: all else is what a GPU runs.
    install()
if ON_HOST:
    from tests.helpers.gpu.host.library import Shuffled, backward

    def _libraries(order: object) -> list[CupyLibrary]:
        """Two streams of each of two devices, whose threads run in an order."""
        return [DeviceLibrary(device, order=order) for _ in range(STREAMS) for device in (0, 1)]

    ENGINES: dict[str, Engine] = {
        "cuda-on-host": CudaEngine(grouping="cudf"),
        "cuda-on-host-2-devices-backward": CudaEngine([0, 1], _libraries(backward), grouping="rotation"),
        "cuda-on-host-tiny-blocks-shuffled": CudaEngine([0, 1], _libraries(Shuffled()), share=0, grouping="cudf"),
    }
elif SIMULATED:
    ENGINES = {
        "cuda-simulated": CudaEngine(grouping="cudf"),
        "cuda-simulated-2-devices": CudaEngine([0, 1], grouping="rotation"),
        "cuda-simulated-tiny-blocks": CudaEngine([0, 1], share=0, grouping="cudf"),
    }
else:
    ENGINES = {
        "cpu": CpuEngine(),
        "cpu-1-thread": CpuEngine(threads=1),
        "cpu-3-threads-tiny-blocks": CpuEngine(threads=3, block_rows=2),
    }


if not WITHOUT_GPU and cuda_status().usable:
    devices, with_cudf = cuda_status().devices, not cuda_status().no_cudf
    for grouping in ["rotation", "cudf"] if with_cudf else ["rotation"]:
        settings = {"grouping": grouping, "with_frames": with_cudf}
        ENGINES[f"cuda-{grouping}"] = CudaEngine(devices, **settings)
        ENGINES[f"cuda-{grouping}-tiny-blocks"] = CudaEngine(devices, share=0, **settings)


# Of engines with tiny blocks: few sets of columns and keys at a time, and pairs sorted for want of slots for them.
LITTLE_AT_ONCE = {
    "cpu": {
        "any_known.RESULT_BYTES": 1,
        "cpu.any_known.RESULT_BYTES": 1,
        "cpu.any_known.SETS_PER_THREAD": 1,
        "cpu.any_known.SETS_PER_TASK": 2,
        "cpu.any_known.SLOTS": 3,
        "cpu.any_known.SLOTS_PER_ROW": 1,
        "cpu.wildcards.MOST_LINKS": 0,
        "cpu.wildcards.LEAST_KEYS": 3,
        "cpu.wildcards.BATCH_CELLS": 2,
    },
    "cuda": {
        "any_known.RESULT_BYTES": 1,
        "cuda.grouping.SLOTS": 3,
        "cuda.grouping.SLOTS_PER_ROW": 1,
        "cuda.grouping.COUNTERS": 6,
    },
}


@pytest.fixture(params=OTHERS)
def way(request):
    """Every way to run beside the one in memory: files beyond memory, Dask, a device."""
    return request.param


@pytest.fixture
def dask_in_one_thread(request):
    """Dask computes in the thread that asks it to, on the CPU in tests that are not marked for a GPU."""
    import dask

    where = contextlib.nullcontext() if on_gpu(request.node) else gpupif.config(device="cpu")
    with dask.config.set(scheduler="sync"), where:
        yield


@pytest.fixture
def on_cpu():
    """The CPU engine, whether there is a GPU or not."""
    with gpupif.config(device="cpu"):
        yield


@pytest.fixture(autouse=True)
def _gpus(request, monkeypatch):
    """Have device="auto" take a GPU for any table in tests marked so; fail other quick tests that would start one.

    So the tests marked so are all of `pytest -m "not slow"` that runs otherwise on a machine with a GPU, and `.ci/run`
    runs them with what stands in for one.
    """
    if on_gpu(request.node):
        monkeypatch.setattr("gpupif.engines.choose.LEAST_CELLS", 0)
        return
    if request.node.get_closest_marker("slow"):
        return

    def started(device=None):
        pytest.fail("would start a GPU: mark it gpu or every_engine, or have it use the fixture on_cpu")

    monkeypatch.setattr("gpupif.gpu.status.shown_gpus", lambda: CudaStatus([Gpu("a GPU", (9, 0))], [0]))
    monkeypatch.setattr("gpupif.gpu.status.cuda_status", started)


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.gpu if name.startswith("cuda") else ()) for name in ENGINES]
)
def engine(request, monkeypatch):
    """Every engine, in the settings that must not matter, behind `gpupif.score` and `gpupif.risk`."""
    for chosen in ("gpupif.scoring.score.choose_engine", "gpupif.disclosure.assess.choose_engine"):
        monkeypatch.setattr(chosen, lambda device: ENGINES[request.param])
    if "tiny-blocks" in request.param:
        for place, value in LITTLE_AT_ONCE[request.param.partition("-")[0]].items():
            monkeypatch.setattr(f"gpupif.engines.{place}", value)
    return ENGINES[request.param]


# What does not matter to counting is left out.
COUNTING = [name for name in ENGINES if name == "cpu" or (name.startswith("cuda") and "2-devices" not in name)]


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.gpu if name != "cpu" else ()) for name in COUNTING])
def counting_engine(request, monkeypatch):
    """Every engine that counts in its own way, behind entropies, `gpupif.toxic_pairs` and `gpupif.suda`."""
    for chosen in (
        "gpupif.marginals.open_counts.choose_engine",
        "gpupif.special_uniques.suda.choose_engine",
        "gpupif.pipeline.task_resources.choose_engine",
    ):
        monkeypatch.setattr(chosen, lambda device, only=None: ENGINES[request.param])
    return ENGINES[request.param]
