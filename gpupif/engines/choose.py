"""The choice of the engine, from the name of a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..errors import DeviceError, DeviceWarning, warn
from ..gpu import status as gpu_status
from ..gpu.status import CudaStatus
from ..utils.config import AUTO, resources, split_device
from .base import Engine

# If device="auto", the CPU scores tables with fewer cells than this. Two cores score ten million cells in 0.1 s
# (benchmarks/results/engines.json), and the import of cuDF alone takes longer. Not measured on a GPU.
LEAST_CELLS = 10_000_000


class DeviceRequest(NamedTuple):
    """The requested device, and how a GPU is to find equal rows.

    device: "auto" (all GPUs, or the CPU), "cpu", "cuda" (all GPUs) or "cuda:1" (the GPU of this number).
    grouping: the method that finds equal rows on a GPU, from `gpupif.utils.config.GROUPINGS`; "auto" depends on the
        installed packages.
    """

    device: str
    grouping: str = AUTO


def requested_device(cells: Callable[[], int | None] | None = None) -> DeviceRequest:
    """Return the device and grouping that `gpupif.config` requests.

    If there are fewer than `LEAST_CELLS` cells, "auto" becomes "cpu" and no GPU is started, except if the configuration
    requests a grouping.

    cells: returns about how many cells are to be scored or counted; None if the result is to stay on a GPU.
    """
    asked = resources()
    request = DeviceRequest(asked.device, AUTO if asked.device == "cpu" else asked.gpu_grouping)
    if request != DeviceRequest(AUTO) or cells is None or not gpu_status.shown_gpus().usable:
        return request
    number = cells()
    return request if number is None or number >= LEAST_CELLS else DeviceRequest("cpu")


def choose_engine(asked: DeviceRequest, only: int | None = None) -> Engine:
    """Return the engine for a request, and warn of each GPU that is left out because it failed.

    Raise InputError for an unknown device. Raise DeviceError if "cuda" or the requested grouping cannot be used here.

    only: the number of the only GPU to start and use, if the device has no number.
    """
    from .cpu.engine import CpuEngine

    device, grouping = asked
    kind, colon, number = split_device(device)
    if kind == "cpu":
        return CpuEngine()
    if colon:
        only = int(number)
    status = gpu_status.cuda_status() if only is None else gpu_status.cuda_status(only)
    if kind == "auto" and not status.usable:
        if grouping != AUTO:
            raise DeviceError(
                f"gpu_grouping={grouping!r} needs a GPU, and no GPU can be used here: {status.reason}. Use "
                "gpupif.config(gpu_grouping='auto'), or leave it out."
            )
        _warn_of_faults(status)
        return CpuEngine()
    if only is not None and status.gpus and only >= len(status.gpus):
        raise DeviceError(f"device {device!r}: expected a number below {len(status.gpus)}, as many GPUs are here.")
    if only is not None and status.gpus and status.gpus[only].reason:
        raise DeviceError(
            f"device {device!r} cannot be used: {status.gpus[only].described}. Use another, or "
            "gpupif.config(device='cpu')."
        )
    if not status.usable:
        raise DeviceError(
            f"device {device!r} cannot be used here: {status.reason}. Use gpupif.config(device='cpu') or device='auto'."
        )
    _warn_of_faults(status)
    from .cuda.engine import CudaEngine

    if grouping == "cudf" and status.no_cudf:
        raise DeviceError(
            f"gpu_grouping='cudf' cannot be used here: {status.no_cudf}. Use "
            "gpupif.config(gpu_grouping='rotation') or gpu_grouping='auto'."
        )
    if grouping == AUTO:
        grouping = "rotation" if status.no_cudf else "cudf"
    return CudaEngine(
        status.devices,
        grouping=grouping,
        device="cuda" if only is None else f"cuda:{only}",
        with_frames=not status.no_cudf,
    )


def _warn_of_faults(status: CudaStatus) -> None:
    """Warn of each GPU that failed, and name the devices that do its work."""
    left = ", ".join(map(str, status.devices))
    for number, gpu in enumerate(status.gpus):
        if gpu.fault:
            instead = f"GPU {left}" if left else "the CPU"
            warn(f"GPU {number} is not used, and {instead} does its work: {gpu.described}.", DeviceWarning)
