"""Which engine runs, by the word for a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..errors import DeviceError, DeviceWarning, warn
from ..gpu import status as gpu_status
from ..gpu.status import CudaStatus
from ..utils.config import AUTO, resources, split_device
from .base import Engine

# With device="auto" the CPU scores tables of fewer cells: two of its cores score ten million cells in 0.1 s
# (benchmarks/results/engines.json), and importing cuDF alone takes longer. Not measured on a GPU.
LEAST_CELLS = 10_000_000


class DeviceRequest(NamedTuple):
    """Where and how to run.

    device: "auto" (all GPUs, or the CPU), "cpu", "cuda" (all GPUs) or "cuda:1" (one of them). grouping: how a GPU is to
    find rows that agree, one of `gpupif.utils.config.GROUPINGS`; "auto" leaves it to what is installed.
    """

    device: str
    grouping: str = AUTO


def requested_device(cells: Callable[[], int | None] | None = None) -> DeviceRequest:
    """Return where and how `gpupif.config` says to run, to be handed on.

    cells: returns about how many cells are to be scored or counted, None for what is to stay on a GPU. Of fewer than
    `LEAST_CELLS` "auto" is "cpu", so that no GPU is started for them, unless a way of GPUs is asked for.
    """
    asked = resources()
    request = DeviceRequest(asked.device, AUTO if asked.device == "cpu" else asked.gpu_grouping)
    if request != DeviceRequest(AUTO) or cells is None or not gpu_status.shown_gpus().usable:
        return request
    number = cells()
    return request if number is None or number >= LEAST_CELLS else DeviceRequest("cpu")


def choose_engine(asked: DeviceRequest, only: int | None = None) -> Engine:
    """Return the engine that is to run.

    only: the one GPU to use, and to start, where the device names none. Raises InputError for a word that is no device,
    and DeviceError where "cuda", or what is asked of a GPU, cannot run. Warns of GPUs that are left out because they
    failed.
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
                f"gpu_grouping={grouping!r} is a way of GPUs, and none can be used here: {status.reason}. Use "
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
    """Warn of each GPU that failed: others, or the CPU, do its work."""
    left = ", ".join(map(str, status.devices))
    for number, gpu in enumerate(status.gpus):
        if gpu.fault:
            instead = f"GPU {left}" if left else "the CPU"
            warn(f"GPU {number} is not used, and {instead} does its work: {gpu.described}.", DeviceWarning)
