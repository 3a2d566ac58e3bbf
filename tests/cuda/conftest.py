"""These tests need a GPU or what stands in for one (see `without_gpu`): GPUPIF_DEVICE_ON_HOST=1 pytest tests/cuda."""

from __future__ import annotations

import importlib.util

import pytest
from without_gpu import ON_HOST, SIMULATED, WITHOUT_GPU

from gpupif.gpu.base import frame_library
from gpupif.gpu.status import cuda_status

collect_ignore = []
if not ON_HOST:
    collect_ignore += ["test_host.py", "test_large.py"]
if not SIMULATED:
    collect_ignore.append("test_bounds.py")
if not WITHOUT_GPU:
    collect_ignore += ["test_any_known_device.py", "test_counting.py", "test_engine.py", "test_matching.py"]
    collect_ignore += ["test_benchmark.py", "test_grouping.py", "test_memory.py", "test_strict.py"]
    if not cuda_status().usable or cuda_status().no_cudf:
        collect_ignore += ["test_device_dask.py", "test_device_files.py", "test_device_frames.py"]
# Without cuDF, which brings CuPy, and without numba-cuda, or with something in their places, there is nothing to hold
# calls against.
if importlib.util.find_spec("cudf") is None or WITHOUT_GPU:
    collect_ignore.append("test_signatures.py")
if importlib.util.find_spec("numba_cuda") is None or WITHOUT_GPU:
    collect_ignore.append("test_launch.py")


@pytest.fixture
def library():
    """The frames of the device."""
    return frame_library()
