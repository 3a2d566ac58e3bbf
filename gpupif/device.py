"""Which engine runs where, and where CUDA does not, exactly why not."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .errors import DeviceError, InputError
from .versions import installed_version

if TYPE_CHECKING:
    from .engines.base import Engine

DEVICES = ("auto", "cpu", "cuda")
# What CUDA 13 compiles for.
LEAST_CAPABILITY = (7, 5)
PACKAGES = ("cupy", "numba-cuda")
LEAST_CUPY = (14, 2)
CAPABILITY_MAJOR, CAPABILITY_MINOR = 75, 76


@dataclass(frozen=True)
class Gpu:
    """A device that the driver shows: its name and compute capability."""

    name: str
    capability: tuple[int, int]

    def __str__(self) -> str:
        return f"{self.name} (compute capability {self.capability[0]}.{self.capability[1]})"


@dataclass(frozen=True)
class CudaStatus:
    """Whether the CUDA engine can run here; gpus: the devices that the driver shows; reason: why not."""

    usable: bool
    gpus: Sequence[Gpu]
    reason: str


def cuda_status() -> CudaStatus:
    """Ask the driver for devices, then look for the packages, then try them: the first thing missing is the reason."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return CudaStatus(False, (), "no NVIDIA driver: the library libcuda.so.1 is not on this machine")
    code = driver.cuInit(0)
    if code != 0:
        return CudaStatus(False, (), f"the NVIDIA driver finds no usable GPU (cuInit returned {code})")
    gpus = _gpus(driver)
    if not gpus:
        return CudaStatus(False, (), "the NVIDIA driver shows no GPU")
    old = [gpu for gpu in gpus if gpu.capability < LEAST_CAPABILITY]
    if old:
        return CudaStatus(False, gpus, f"{old[0]} is too old: at least compute capability 7.5 is needed")
    return CudaStatus(False, gpus, reason) if (reason := _packages_reason()) else CudaStatus(True, gpus, "")


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


def _packages_reason() -> str:
    """Why the packages that the engine needs do not work; empty where they do."""
    for package in PACKAGES:
        if installed_version(package) is None:
            return f"the package {package} is not installed: pip install 'gpupif[gpu-cu13]' (or gpu-cu12)"
    version = installed_version("cupy") or ""
    if tuple(map(int, version.split(".")[:2])) < LEAST_CUPY:
        return f"CuPy {version} is too old: at least 14.2 is needed, older ones sort wrongly when memory runs out"
    try:
        cupy = importlib.import_module("cupy")
        cupy.arange(3).sum().item()
    except Exception as error:
        return f"CuPy {version} does not work here: {' '.join(str(error).split())}"
    return ""


def choose_engine(device: str) -> Engine:
    """The engine for device "auto", "cpu", "cuda" (all GPUs) or "cuda:1" (one of them).

    Raises InputError for any other word and DeviceError where "cuda" cannot run.
    """
    kind, colon, number = device.partition(":") if isinstance(device, str) else ("", "", "")
    if kind not in DEVICES or (colon and (kind != "cuda" or not number.isdecimal())):
        raise InputError(f"device: expected one of {', '.join(DEVICES)}, or cuda:0 and so on; got {device!r}.")
    if kind == "cuda":
        status = cuda_status()
        if not status.usable:
            raise DeviceError(f"device 'cuda' cannot be used here: {status.reason}. Use device='cpu' or device='auto'.")
        if colon and int(number) >= len(status.gpus):
            raise DeviceError(f"device {device!r}: expected a number below {len(status.gpus)}, as many GPUs are here.")
        from .engines.cuda import CudaEngine

        return CudaEngine([int(number)] if colon else range(len(status.gpus)))
    from .engines.cpu import CpuEngine

    return CpuEngine()
