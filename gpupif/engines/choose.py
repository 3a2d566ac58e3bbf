"""Which engine runs, by the word for a device."""

from __future__ import annotations

from typing import NamedTuple

from ..errors import DeviceError
from ..gpu import status as gpu_status
from ..utils.config import AUTO, resources, split_device
from .counting import CountingEngine


class DeviceRequest(NamedTuple):
    """Where and how to run.

    device: "auto" (all GPUs, or the CPU), "cpu", "cuda" (all GPUs) or "cuda:1" (one of them). grouping: how a GPU is to
    find rows that agree, one of `gpupif.utils.config.GROUPINGS`; "auto" leaves it to what is installed.
    """

    device: str
    grouping: str = AUTO


def requested_device() -> DeviceRequest:
    """Where and how `gpupif.config` says to run, as one to hand on."""
    asked = resources()
    return DeviceRequest(asked.device, AUTO if asked.device == "cpu" else asked.gpu_grouping)


def choose_engine(asked: DeviceRequest) -> CountingEngine:
    """The engine that is to run.

    Raises InputError for a word that is no device, and DeviceError where "cuda", or what is asked of a GPU, cannot run.
    """
    from .cpu.engine import CpuEngine

    device, grouping = asked
    kind, colon, number = split_device(device)
    if kind == "cpu":
        return CpuEngine()
    status = gpu_status.cuda_status()
    if kind == "auto" and not status.usable:
        if grouping != AUTO:
            raise DeviceError(
                f"gpu_grouping={grouping!r} is a way of GPUs, and none can be used here: {status.reason}. Use "
                "gpupif.config(gpu_grouping='auto'), or leave it out."
            )
        return CpuEngine()
    if colon and status.gpus and int(number) >= len(status.gpus):
        raise DeviceError(f"device {device!r}: expected a number below {len(status.gpus)}, as many GPUs are here.")
    if colon and status.usable and int(number) not in status.devices:
        gpu = status.gpus[int(number)]
        raise DeviceError(
            f"device {device!r} cannot be used: {gpu} is {gpu.reason}. Use another, or gpupif.config(device='cpu')."
        )
    if not status.usable:
        raise DeviceError(
            f"device {device!r} cannot be used here: {status.reason}. Use gpupif.config(device='cpu') or device='auto'."
        )
    from .cuda.engine import CudaEngine

    if grouping == "cudf" and status.no_cudf:
        raise DeviceError(
            f"gpu_grouping='cudf' cannot be used here: {status.no_cudf}. Use "
            "gpupif.config(gpu_grouping='rotation') or gpu_grouping='auto'."
        )
    if grouping == AUTO:
        grouping = "rotation" if status.no_cudf else "cudf"
    return CudaEngine(
        [int(number)] if colon else status.devices,
        grouping=grouping,
        device=device if colon else "cuda",
        with_frames=not status.no_cudf,
    )
