"""Whether CUDA can be used here, on which devices, and where it cannot, exactly why not."""

from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..utils.versions import installed_version

# What CUDA 13 compiles for.
LEAST_CAPABILITY = (7, 5)
# Package to the least version, and what is wrong with older ones. No GPU is used without these.
PACKAGES = {
    "cupy": ((14, 2), "older ones sort wrongly when memory runs out"),
    "numba-cuda": ((0, 30), "older ones fail beside the newest numba"),
}
# As `PACKAGES`; without it a GPU is used, but not for all.
CUDF = {"cudf": ((26, 8), "older ones number categories in another way")}
CAPABILITY_MAJOR, CAPABILITY_MINOR = 75, 76


@dataclass(frozen=True)
class Gpu:
    """A device that the driver shows: its name and compute capability."""

    name: str
    capability: tuple[int, int]

    @property
    def reason(self) -> str:
        """Why it cannot be used; empty where it can."""
        return "" if self.capability >= LEAST_CAPABILITY else "too old: at least compute capability 7.5 is needed"

    def __str__(self) -> str:
        return f"{self.name} (compute capability {self.capability[0]}.{self.capability[1]})"


@dataclass(frozen=True)
class CudaStatus:
    """Whether the CUDA engine can run here.

    gpus: the devices that the driver shows. devices: the numbers of those that can be used. reason: why none can.
    no_cudf: why cuDF is not used on them; empty where it is.
    """

    gpus: Sequence[Gpu] = ()
    devices: Sequence[int] = ()
    reason: str = ""
    no_cudf: str = ""

    @property
    def usable(self) -> bool:
        """Whether there is a device to run on."""
        return bool(self.devices)


def cuda_status() -> CudaStatus:
    """Ask the driver for devices, then look for the packages, then try them: the first thing missing is the reason."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return CudaStatus(reason="no NVIDIA driver: the library libcuda.so.1 is not on this machine")
    code = driver.cuInit(0)
    if code != 0:
        return CudaStatus(reason=f"the NVIDIA driver finds no usable GPU (cuInit returned {code})")
    gpus = _gpus(driver)
    if not gpus:
        return CudaStatus(reason="the NVIDIA driver shows no GPU")
    devices = [number for number, gpu in enumerate(gpus) if not gpu.reason]
    if not devices:
        return CudaStatus(gpus, reason=f"{gpus[0]} is {gpus[0].reason}")
    reason = _packages_reason(PACKAGES) or _devices_reason(tuple(devices), ("cupy", "numba-cuda"))
    if reason:
        return CudaStatus(gpus, reason=reason)
    return CudaStatus(gpus, devices, no_cudf=_packages_reason(CUDF) or _devices_reason(tuple(devices), ("cudf",)))


def _gpus(driver: ctypes.CDLL) -> list[Gpu]:
    count = ctypes.c_int()
    driver.cuDeviceGetCount(ctypes.byref(count))
    gpus = []
    for number in range(count.value):
        name, value, capability = ctypes.create_string_buffer(256), ctypes.c_int(), []
        driver.cuDeviceGetName(name, 256, number)
        for attribute in (CAPABILITY_MAJOR, CAPABILITY_MINOR):
            driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, number)
            capability.append(value.value)
        gpus.append(Gpu(name.value.decode(), (capability[0], capability[1])))
    return gpus


def _packages_reason(packages: Mapping[str, tuple[tuple[int, int], str]]) -> str:
    """Which of some packages is missing or too old; empty where none is."""
    for package, (least, why) in packages.items():
        version = installed_version(package)
        if version is None:
            return f"the package {package} is not installed: pip install 'gpupif[gpu-cu13]' (or gpu-cu12)"
        if _numbers(version) < least:
            return f"{package} {version} is too old: at least {'.'.join(map(str, least))} is needed, {why}"
    return ""


def _numbers(version: str) -> tuple[int, ...]:
    """The first two numbers of a version."""
    digits = ["".join(filter(str.isdecimal, part)) for part in version.split(".")[:2]]
    return tuple(int(part or 0) for part in digits)


@functools.cache
def _devices_reason(devices: tuple[int, ...], packages: tuple[str, ...]) -> str:
    """Why one of these packages does not work on these devices, found by an operation of each; empty where all do."""
    attempts = {"cupy": _try_cupy, "numba-cuda": _try_numba, "cudf": _try_cudf}
    for package in packages:
        try:
            for device in devices:
                attempts[package](device)
        except Exception as error:
            return f"{package} {installed_version(package)} does not work here: {' '.join(str(error).split())}"
    return ""


def _try_cupy(device: int) -> None:
    cupy = importlib.import_module("cupy")
    with cupy.cuda.Device(device):
        cupy.arange(3).sum().item()


def _try_numba(device: int) -> None:
    from gpupif.kernels.cuda.rows import number_rows

    from .cupy_arrays import CupyLibrary

    library = CupyLibrary(device)
    with library.active():
        numbers = library.xp.zeros(1, "int64")
        library.launch(number_rows, 1, library.xp.zeros(1, "int64"), library.xp.ones(1, "int64"), numbers)


def _try_cudf(device: int) -> None:
    from .cudf_frames import CudfFrames
    from .cupy_arrays import CupyLibrary

    frames, library = CudfFrames(device), CupyLibrary(device)
    with frames.active():
        frames.frames.Series(["a", None, "b"]).factorize()
    with library.active():
        library.group_rows({0: library.xp.ones(2, "uint64")}, library.xp.ones(2, "int64"))
