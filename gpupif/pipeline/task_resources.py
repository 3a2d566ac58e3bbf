"""The resources of the current task: threads, memory, engine; and the way to warn the user.

`LocalGraph` sets them for its tasks (`within`). On Dask the worker knows them. Dask is not imported here: on a worker
it is loaded already.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, NamedTuple

from ..engines.base import Engine, Job
from ..engines.choose import DeviceRequest, choose_engine
from ..engines.cpu.engine import CpuEngine
from ..errors import warn
from ..rows.threads import Workers
from ..utils.config import resources


class TaskResources(NamedTuple):
    """The resources that a task of a `LocalGraph` may use.

    threads: int. Threads of one task.
    memory: int. Bytes of one task.
    rows_at_once: function of a job. The number of distinct rows of a partition that fit into that memory.
    engine: Engine. The engine of the whole run, which all tasks use on GPUs; None: each task chooses one.
    """

    threads: int
    memory: int
    rows_at_once: Callable[[Job], int]
    engine: Engine | None = None


_here: ContextVar[TaskResources | None] = ContextVar("_here", default=None)


@contextlib.contextmanager
def within(given: TaskResources) -> Iterator[None]:
    """Run a task within these resources."""
    token = _here.set(given)
    try:
        yield
    finally:
        _here.reset(token)


def runs_here() -> bool:
    """Return whether this task is one of a `LocalGraph`, within the memory limit of this process."""
    return _here.get() is not None


def task_threads() -> int:
    """Return the threads of one task; on Dask the configured number, by default 1.

    A Dask worker runs one task on each of its threads.
    """
    given = _here.get()
    return (resources().threads or 1) if given is None else given.threads


def task_workers(memory: int = 0) -> Workers:
    """Return the threads of one task, with `memory` bytes of working memory; see `Workers`."""
    return Workers(task_threads(), memory)


def task_memory() -> int | None:
    """Return the bytes that this task, or on Dask its worker, may take; None if the worker has no limit."""
    given = _here.get()
    if given is not None:
        return given.memory
    worker = _dask_worker()
    return None if worker is None else worker.memory_manager.memory_limit or None


def task_rows(job: Job) -> float:
    """Return the number of distinct rows of a partition that a task may hold; on Dask there is no limit."""
    given = _here.get()
    return math.inf if given is None else given.rows_at_once(job)


def task_slots() -> int:
    """Return the number of tasks that the Dask worker may run at once; 1 outside of Dask."""
    worker = _dask_worker()
    return 1 if worker is None else int(worker.state.nthreads)


def _dask_worker() -> Any:
    """Return the Dask worker that runs this task; None outside of Dask."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.get_worker()
    except (AttributeError, ValueError):
        return None


def worker_device(asked: DeviceRequest) -> DeviceRequest:
    """Return the request with the device that it means on this worker: "cpu", "cuda", or the GPU that it names.

    Raises DeviceError if the worker lacks a requested GPU.
    """
    engine = _chosen_engine(asked)
    return asked._replace(device=asked.device if ":" in asked.device else engine.device.partition(":")[0])


def task_engine(asked: DeviceRequest) -> Engine:
    """Return the engine of one task, on GPUs that of the whole run where a `LocalGraph` has it.

    On "cuda" a worker of Dask uses the first GPU that it sees; `cluster_client.cluster` shows each worker a different
    GPU first. "auto" is resolved on this worker, and may differ between workers. Raises DeviceError if the worker lacks
    a requested GPU.
    """
    engine = _chosen_engine(asked)
    return CpuEngine(threads=task_threads()) if engine.device == "cpu" else engine


def _chosen_engine(asked: DeviceRequest) -> Engine:
    """Return the engine of the whole run; where no run in this process chose one, the engine on the first GPU."""
    given = _here.get()
    return choose_engine(asked, only=0) if given is None or given.engine is None else given.engine


def warn_clients(message: str, category: type[Warning]) -> None:
    """Warn the user: on a Dask worker the warning is sent to the clients of the cluster."""
    if _dask_worker() is None:
        warn(message, category)
    else:
        from distributed import warn as warn_all

        warn_all(message, category)
