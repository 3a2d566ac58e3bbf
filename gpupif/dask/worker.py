"""What a task knows of the worker that runs it: threads, engine, and how a warning reaches whoever waits."""

from __future__ import annotations

from ..engines.base import Engine
from ..engines.choose import DeviceRequest, choose_engine
from ..engines.cpu.engine import CpuEngine
from ..errors import warn
from ..rows.threads import Workers
from ..utils.config import resources


def task_threads() -> int:
    """Threads of one task: one, for Dask runs as many tasks at once as a worker has threads; or as its process says."""
    return resources().threads or 1


def task_workers(memory: int = 0) -> Workers:
    """The threads of one task, and so many bytes to work in; see `Workers`."""
    return Workers(task_threads(), memory)


def task_memory() -> int | None:
    """Bytes that the worker of this task may take; None where it does not say."""
    try:
        from distributed import get_worker

        return get_worker().memory_manager.memory_limit or None
    except (ImportError, ValueError):
        return None


def task_slots() -> int:
    """Tasks that the worker of this task may run at once; 1 where it does not say."""
    try:
        from distributed import get_worker

        return int(get_worker().state.nthreads)
    except (ImportError, ValueError):
        return 1


def worker_device(asked: DeviceRequest) -> DeviceRequest:
    """Return what the device means on this worker: "cpu", "cuda", or the GPU that it names; the rest as asked.

    Raises DeviceError where the worker has no GPU that was asked for.
    """
    engine = choose_engine(asked, only=0)
    return asked._replace(device=asked.device if ":" in asked.device else engine.device.partition(":")[0])


def task_engine(asked: DeviceRequest) -> Engine:
    """Return the engine of one task.

    On "cuda" a worker uses the first GPU that it sees, each another one (see `client.cluster`), and starts no other.
    "auto" is what it means on this worker, and need not mean the same on all. Raises DeviceError where the worker has
    no GPU that was asked for.
    """
    engine = choose_engine(asked, only=0)
    return CpuEngine(threads=task_threads()) if engine.device == "cpu" else engine


def warn_clients(message: str, category: type[Warning]) -> None:
    """Warn: from a worker of a cluster, its clients."""
    try:
        from distributed import get_worker
        from distributed import warn as warn_all

        get_worker()
    except (ImportError, ValueError):
        warn(message, category)
    else:
        warn_all(message, category)
