"""The wait for a cluster, with its progress; it ends if the cluster stops making progress."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextvars import ContextVar
from typing import Any

from ..errors import DeviceError
from ..utils.progress import Reporter

# Seconds without progress before a wait ends. Dask gives up a silent worker after 5 minutes; whatever can recover has
# recovered by then.
STILL_SECONDS = 600.0
LOOK_SECONDS = 5.0
SHOW_SECONDS = 0.5
# A worker above this percentage of a core is busy.
IDLE_CPU = 10
# The words to show for tasks that Dask names; tasks of gpupif are shown by their stage.
SHOWN = {
    "from_map": "read",
    "read_partition": "read",
    "shuffle": "shuffle",
    "p2pshuffle": "shuffle",
    "side_by_side": "write",
    "reset_index": "write",
    "operation": "write",
    "toparquetdata": "write",
    "toparquetbarrier": "write",
}


# The client of the watched cluster, and the reporter of its progress.
_watched: ContextVar[tuple[Any, Reporter] | None] = ContextVar("_watched", default=None)


@contextlib.contextmanager
def watching(client: Any, report: Reporter) -> Iterator[None]:
    """Make `compute` wait for this cluster as `await_result` does."""
    token = _watched.set((client, report))
    try:
        yield
    finally:
        _watched.reset(token)


def compute(value: Any, report: Reporter) -> Any:
    """Compute a lazy value. Progress counts the tasks in this process, or on the watched cluster."""
    watched = _watched.get()
    if watched is not None:
        client, shown = watched
        return await_result(client, client.compute(value), shown)
    from dask.callbacks import Callback

    class Tasks(Callback):  # type: ignore[misc]
        def _start_state(self, _: Any, state: Any) -> None:
            report.stage("compute", len(state["ready"]) + len(state["waiting"]), "tasks")

        def _posttask(self, *_: Any) -> None:
            report.advance()

    report.stage("compute", None, "tasks")
    with Tasks():
        return value.compute()


class Tasks:
    """The progress of a cluster's tasks for a reporter: number done, number of all, and the kind at work.

    Counts include the tasks of other clients of a shared cluster.
    """

    def __init__(self, client: Any, report: Reporter) -> None:
        self._client = client
        self._report = report
        self._done = self._total = 0
        # Tasks that had finished at the first look; they are not counted.
        self._before: int | None = None
        report.stage("compute", None, "tasks")

    def look(self) -> None:
        """Report the progress since the last look."""
        if not self._report.visible:
            return
        kinds: dict[str, dict[str, int]] = self._client.sync(self._client.scheduler.get_task_prefix_states)
        if self._before is None:
            self._before = sum(map(_finished, kinds.values()))
        total = sum(sum(states.values()) for states in kinds.values()) - self._before
        done = sum(map(_finished, kinds.values())) - self._before
        if total > self._total:
            self._total = total
            self._report.expect(total)
        if done > self._done:
            self._report.advance(done - self._done)
            self._done = done
        busy = {kind: states["processing"] for kind, states in kinds.items() if states["processing"]}
        if busy:
            self._report.rename(_shown(max(busy, key=busy.__getitem__)))


def _finished(states: dict[str, int]) -> int:
    return states["memory"] + states["released"] + states["erred"]


def _shown(kind: str) -> str:
    """Return the word to show for a kind of tasks."""
    return SHOWN.get(kind) or ("shuffle" if kind.startswith("shuffle") else kind.removeprefix("gpupif-"))


def await_result(client: Any, future: Any, report: Reporter | None = None) -> Any:
    """Return the result of a future, or raise the error of its tasks.

    report: Reporter. It shows the progress. Default: none.

    Raises DeviceError if no task began or ended, and no worker was busy, for STILL_SECONDS: for instance on a cluster
    without workers. Raises DeviceError if the scheduler is lost.
    """
    from distributed import wait
    from distributed.comm import CommClosedError

    report = report or Reporter(False)
    before, since, looked = None, time.monotonic(), time.monotonic()
    every = SHOW_SECONDS if report.visible else LOOK_SECONDS
    tasks = Tasks(client, report)
    while True:
        try:
            with contextlib.suppress(TimeoutError):
                wait(future, timeout=min(every, LOOK_SECONDS, STILL_SECONDS))
            if future.done():
                return future.result()
            tasks.look()
            if time.monotonic() - looked < LOOK_SECONDS:
                continue
            looked = time.monotonic()
            now, busy, workers = _state(client)
        except (CancelledError, CommClosedError) as error:
            raise DeviceError("the scheduler of the cluster was lost. Nothing was written; try again.") from error
        if busy or now != before:
            before, since = now, time.monotonic()
        elif time.monotonic() - since >= STILL_SECONDS:
            having = f"has {workers} worker{'s' * (workers > 1)} and no progress" if workers else "has no workers left"
            raise DeviceError(
                f"the cluster {having}: for {STILL_SECONDS:g} s no task began or ended. Nothing was written. Restart "
                "its workers, or all of it, and try again."
            )


def _state(client: Any) -> tuple[Any, bool, int]:
    """Return a value that changes when tasks begin or end, whether a worker is busy, and the number of workers."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    tasks = client.processing()
    metrics = {address: worker.get("metrics", {}) for address, worker in workers.items()}
    busy = any(tasks.get(address) and one.get("cpu", 0) > IDLE_CPU for address, one in metrics.items())
    return ({address: one.get("task_counts") for address, one in metrics.items()}, tasks), busy, len(workers)
