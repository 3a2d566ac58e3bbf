"""What stands in for a device in this run of the tests, as its environment has it.

GPUPIF_DEVICE_ON_HOST=1: kernels compiled for this machine's CPU (`host`). NUMBA_ENABLE_CUDASIM=1: Numba's simulator,
which is slow and checks the bounds of every array. Neither: nothing; tests of the CUDA engine need a GPU.
"""

from __future__ import annotations

import os

import pytest

from gpupif.gpu.status import CudaStatus, Gpu, cuda_status
from tests.helpers.gpu import numpy_device

ON_HOST = os.environ.get("GPUPIF_DEVICE_ON_HOST") == "1"
SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
WITHOUT_GPU = ON_HOST or SIMULATED
# Tests of these marks may start a GPU.
ON_GPU = ("gpu", "every_engine", "simulator")
# Whether tables can lie on a device, or on what stands in for one.
HAS_FRAMES = WITHOUT_GPU or (cuda_status().usable and not cuda_status().no_cudf)


def on_gpu(test: pytest.Item) -> bool:
    """Whether a test is marked as one that may start a GPU."""
    return any(map(test.get_closest_marker, ON_GPU))


def need(there: bool, what: str) -> None:
    """Leave the tests of a module out where what they need is not there."""
    if not there:
        pytest.skip(f"needs {what}", allow_module_level=True)


def need_host() -> None:
    """Kernels that run on this machine's CPU."""
    need(ON_HOST, "GPUPIF_DEVICE_ON_HOST=1")


def need_simulator() -> None:
    """Kernels that run in Numba's simulator."""
    need(SIMULATED, "NUMBA_ENABLE_CUDASIM=1")


def need_stand_in() -> None:
    """Kernels that run without a GPU, either way."""
    need(WITHOUT_GPU, "what stands in for a GPU: GPUPIF_DEVICE_ON_HOST=1 or NUMBA_ENABLE_CUDASIM=1")


def need_frames() -> None:
    """Tables that lie on a device, or on what stands in for one."""
    need(HAS_FRAMES, "a GPU with cuDF, or GPUPIF_DEVICE_ON_HOST=1")


def need_real_libraries() -> None:
    """CuPy, cuDF and numba-cuda themselves, and nothing in their places."""
    need(not WITHOUT_GPU, "CuPy, cuDF and numba-cuda themselves, not what stands in for them")


if ON_HOST:
    from tests.helpers.gpu.host.library import HostLibrary as DeviceLibrary
else:
    from tests.helpers.gpu.numpy_device import SimulatedLibrary as DeviceLibrary


def install() -> None:
    """Have the package see a GPU, and open these libraries wherever it would open CuPy and cuDF."""
    from gpupif.gpu import cudf_frames as cuda_frames
    from gpupif.gpu import cupy_arrays as cuda_cupy
    from gpupif.gpu import status

    seen = CudaStatus([Gpu(DeviceLibrary.name, (9, 0))], [0])
    status.shown_gpus = lambda: seen
    status.cuda_status = lambda device=None: seen
    cuda_cupy.CupyLibrary = DeviceLibrary
    cuda_frames.CudfFrames = numpy_device.PandasFrames
