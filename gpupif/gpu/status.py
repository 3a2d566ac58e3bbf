"""The status of CUDA: whether it can be used here, on which devices, and if not, the exact reason."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..utils.versions import installed_version

# Least compute capability that CUDA 13 compiles for.
LEAST_CAPABILITY = (7, 5)
# Package to the least version, and what is wrong with older ones. No GPU is used without these.
PACKAGES = {
    "cupy": ((14, 2), "older ones sort wrongly when memory runs out"),
    "numba-cuda": ((0, 30), "older ones fail beside the newest numba"),
}
# The package without which a GPU is used, but not for all steps; otherwise as `PACKAGES`.
CUDF = {"cudf": ((26, 8), "older ones number categories in another way")}
CAPABILITY_MAJOR, CAPABILITY_MINOR = 75, 76


@dataclass(frozen=True)
class Gpu:
    """A device that the driver shows: its name and compute capability; fault: how it failed when it was tried."""

    name: str
    capability: tuple[int, int]
    fault: str = ""

    @property
    def reason(self) -> str:
        """The reason why the device cannot be used; empty if it can, or was not tried."""
        if self.capability < LEAST_CAPABILITY:
            return "too old: at least compute capability 7.5 is needed"
        return self.fault

    @property
    def described(self) -> str:
        """Return which GPU this is, and why it cannot be used."""
        return f"{self}{self.reason and ', ' + self.reason}"

    def __str__(self) -> str:
        return f"{self.name} (compute capability {self.capability[0]}.{self.capability[1]})"


@dataclass(frozen=True)
class CudaStatus:
    """The status of the CUDA engine: whether it can run here.

    gpus: the devices that the driver shows. devices: the numbers of the usable devices. reason: the reason if no device
    is usable. no_cudf: the reason if cuDF is not used; else empty.
    """

    gpus: Sequence[Gpu] = ()
    devices: Sequence[int] = ()
    reason: str = ""
    no_cudf: str = ""

    @property
    def usable(self) -> bool:
        """True if any device is usable."""
        return bool(self.devices)


def shown_gpus() -> CudaStatus:
    """Return the devices and packages as the driver and the metadata list them, without starting any device.

    The first thing missing is the reason that no device can be used.
    """
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
        return CudaStatus(gpus, reason=gpus[0].described)
    reason = _packages_reason(PACKAGES)
    return CudaStatus(gpus, reason=reason) if reason else CudaStatus(gpus, devices, no_cudf=_packages_reason(CUDF))


def cuda_status(device: int | None = None) -> CudaStatus:
    """Return which devices work, each found by an operation of each package on it, which opens a context there.

    A device that fails is left out, with the reason as its fault. cuDF is not used if it fails on all devices on
    which the other packages work.

    device: the number of the only device to try; None: all.
    """
    shown = shown_gpus()
    wanted = [number for number in shown.devices if device in (None, number)]
    if not wanted:
        return replace(shown, devices=())
    faults = {number: _fault(number, ("cupy", "numba-cuda")) for number in wanted}
    no_cudf = shown.no_cudf
    if not no_cudf:
        of_cudf = {number: _fault(number, ("cudf",)) for number, fault in faults.items() if not fault}
        if any(not fault for fault in of_cudf.values()):
            faults |= of_cudf
        else:
            no_cudf = next(iter(of_cudf.values()), "")
    gpus = [replace(gpu, fault=faults.get(number, "")) for number, gpu in enumerate(shown.gpus)]
    devices = [number for number, fault in faults.items() if not fault]
    return CudaStatus(gpus, devices, reason="" if devices else faults[wanted[0]], no_cudf=no_cudf if devices else "")


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
    """Return the reason why some packages are missing or too old; an empty text if none is."""
    for package, (least, why) in packages.items():
        version = installed_version(package)
        if version is None:
            return f"the package {package} is not installed: pip install 'gpupif[gpu-cu13]' (or gpu-cu12)"
        if _numbers(version) < least:
            return f"{package} {version} is too old: at least {'.'.join(map(str, least))} is needed, {why}"
    return ""


def _numbers(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version."""
    digits = ["".join(filter(str.isdecimal, part)) for part in version.split(".")[:2]]
    return tuple(int(part or 0) for part in digits)


# Devices and packages that worked once. What failed is tried again: its memory may only have been full.
_worked: set[tuple[int, str]] = set()


def _fault(device: int, packages: Sequence[str]) -> str:
    """Return how one of these packages fails on a device; empty where all work."""
    attempts = {"cupy": _try_cupy, "numba-cuda": _try_numba, "cudf": _try_cudf}
    for package in packages:
        if (device, package) not in _worked:
            try:
                attempts[package](device)
            except Exception as error:
                return f"{package} {installed_version(package)} does not work here: {' '.join(str(error).split())}"
            _worked.add((device, package))
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
