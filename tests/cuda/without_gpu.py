"""What stands in for a device in this run of the tests, as its environment has it.

GPUPIF_DEVICE_ON_HOST=1: kernels compiled for this machine's CPU (`host`). NUMBA_ENABLE_CUDASIM=1: Numba's simulator,
which is slow and checks the bounds of every array. Neither: nothing; tests of the CUDA engine need a GPU.
"""

from __future__ import annotations

import os

import numpy_device

from gpupif.gpu.status import CudaStatus, Gpu

ON_HOST = os.environ.get("GPUPIF_DEVICE_ON_HOST") == "1"
SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
WITHOUT_GPU = ON_HOST or SIMULATED

if ON_HOST:
    from host.library import HostLibrary as DeviceLibrary
else:
    from numpy_device import SimulatedLibrary as DeviceLibrary


def status() -> CudaStatus:
    """What is said of devices where something stands in for one."""
    return CudaStatus([Gpu(DeviceLibrary.name, (9, 0))], [0])


def install() -> None:
    """Have the package open these libraries wherever it would open CuPy and cuDF."""
    from gpupif.gpu import cudf_frames as cuda_frames
    from gpupif.gpu import cupy_arrays as cuda_cupy

    cuda_cupy.CupyLibrary = DeviceLibrary
    cuda_frames.CudfFrames = numpy_device.PandasFrames
