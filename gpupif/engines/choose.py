"""Which engine runs, by the word for a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import DeviceError, InputError, did_you_mean
from ..gpu import status as gpu_status

if TYPE_CHECKING:
    from .counting import CountingEngine

DEVICES = ("auto", "cpu", "cuda")
# How a GPU finds rows that agree.
GROUPINGS = ("auto", "cudf", "rotation")


class AskedDevice(str):
    """A word for a device, with all else that is asked about how to run there.

    grouping: how a GPU is to find rows that agree, one of `GROUPINGS`.
    """

    grouping: str

    def __new__(cls, device: str, grouping: str = "auto") -> AskedDevice:
        """The word, and what is asked beside it."""
        asked = super().__new__(cls, device)
        asked.grouping = grouping
        return asked


def grouping_of(device: str) -> str:
    """How a GPU is to find rows that agree, as far as that was asked with a device."""
    return device.grouping if isinstance(device, AskedDevice) else "auto"


def ask_device(device: Any, gpu_grouping: Any) -> AskedDevice:
    """The two arguments that say where and how to run, checked, as one to hand on; what already is one stays.

    Raises InputError.
    """
    kind, _, _ = check_device(device)
    if not isinstance(gpu_grouping, str) or gpu_grouping not in GROUPINGS:
        hint = did_you_mean(gpu_grouping, GROUPINGS) if isinstance(gpu_grouping, str) else ""
        raise InputError(f"gpu_grouping: expected one of {', '.join(GROUPINGS)}; got {gpu_grouping!r}.{hint}")
    if kind == "cpu" and gpu_grouping != "auto":
        raise InputError(
            f"gpu_grouping: {gpu_grouping!r} is a way of GPUs, and device='cpu' was asked for. Leave one of them out."
        )
    return AskedDevice(device, grouping_of(device) if gpu_grouping == "auto" else gpu_grouping)


def check_device(device: str) -> tuple[str, str, str]:
    """A word for a device, taken apart at its colon; raises InputError where it is none."""
    kind, colon, number = device.partition(":") if isinstance(device, str) else ("", "", "")
    if kind not in DEVICES or (colon and (kind != "cuda" or not number.isdecimal())):
        raise InputError(f"device: expected one of {', '.join(DEVICES)}, or cuda:0 and so on; got {device!r}.")
    return kind, colon, number


def choose_engine(device: str) -> CountingEngine:
    """The engine for device "auto" (all GPUs, or the CPU), "cpu", "cuda" (all GPUs) or "cuda:1" (one of them).

    An `AskedDevice` says how rows are grouped there, too; a bare word leaves it to what is installed. Raises InputError
    for any other word, and DeviceError where "cuda", or what is asked of a GPU, cannot run.
    """
    from .cpu.engine import CpuEngine

    kind, colon, number = check_device(device)
    if kind == "cpu":
        return CpuEngine()
    status, grouping = gpu_status.cuda_status(), grouping_of(device)
    if kind == "auto" and not status.usable:
        if grouping != "auto":
            raise DeviceError(
                f"gpu_grouping={grouping!r} is a way of GPUs, and none can be used here: {status.reason}. Use "
                "gpu_grouping='auto', or leave it out."
            )
        return CpuEngine()
    if colon and status.gpus and int(number) >= len(status.gpus):
        raise DeviceError(f"device {device!r}: expected a number below {len(status.gpus)}, as many GPUs are here.")
    if colon and status.usable and int(number) not in status.devices:
        gpu = status.gpus[int(number)]
        raise DeviceError(f"device {device!r} cannot be used: {gpu} is {gpu.reason}. Use another, or device='cpu'.")
    if not status.usable:
        raise DeviceError(f"device {device!r} cannot be used here: {status.reason}. Use device='cpu' or device='auto'.")
    from .cuda.engine import CudaEngine

    if grouping == "cudf" and status.no_cudf:
        raise DeviceError(
            f"gpu_grouping='cudf' cannot be used here: {status.no_cudf}. Use gpu_grouping='rotation' or "
            "gpu_grouping='auto'."
        )
    if grouping == "auto":
        grouping = "rotation" if status.no_cudf else "cudf"
    return CudaEngine(
        [int(number)] if colon else status.devices,
        grouping=grouping,
        name=str(device) if colon else "cuda",
        with_frames=not status.no_cudf,
    )
