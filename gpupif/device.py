"""Which engine runs where, and where CUDA does not, exactly why not."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .errors import DeviceError, InputError

if TYPE_CHECKING:
    from .engines.base import Engine

DEVICES = ("auto", "cpu", "cuda")


@dataclass(frozen=True)
class CudaStatus:
    """Whether the CUDA engine can run here; gpus: names of the devices the driver shows; reason: why not."""

    usable: bool
    gpus: Sequence[str]
    reason: str


def cuda_status() -> CudaStatus:
    """Ask the CUDA driver, without any Python package for it, what is there."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return CudaStatus(False, (), "no NVIDIA driver: the library libcuda.so.1 is not on this machine")
    code = driver.cuInit(0)
    if code != 0:
        return CudaStatus(False, (), f"the NVIDIA driver finds no usable GPU (cuInit returned {code})")
    count = ctypes.c_int()
    driver.cuDeviceGetCount(ctypes.byref(count))
    names = []
    for number in range(count.value):
        name = ctypes.create_string_buffer(256)
        driver.cuDeviceGetName(name, 256, number)
        names.append(name.value.decode())
    if not names:
        return CudaStatus(False, (), "the NVIDIA driver shows no GPU")
    return CudaStatus(False, names, "this version of gpupif has no CUDA engine yet")


def choose_engine(device: str) -> Engine:
    """The engine for device "auto", "cpu" or "cuda".

    Raises InputError for any other word and DeviceError where "cuda" cannot run.
    """
    if not isinstance(device, str) or device not in DEVICES:
        raise InputError(f"device: expected one of {', '.join(DEVICES)}; got {device!r}.")
    if device == "cuda":
        raise DeviceError(
            f"device 'cuda' cannot be used here: {cuda_status().reason}. Use device='cpu' or device='auto'."
        )
    from .engines.cpu import CpuEngine

    return CpuEngine()
