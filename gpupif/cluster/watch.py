"""Waiting for a cluster, not longer than it gets anywhere."""

from __future__ import annotations

import contextlib
import time
from concurrent.futures import CancelledError
from typing import Any

from ..errors import DeviceError
from ..progress import Reporter

# Longer than Dask takes to give up a worker that says nothing, 5 minutes: what mends itself has mended itself by then.
STILL_SECONDS = 600.0
LOOK_SECONDS = 5.0
# A worker that takes more of a core than this, in percent, works on something.
IDLE_CPU = 10


def compute(value: Any, report: Reporter) -> Any:
    """Compute what is lazy; progress counts tasks, where Dask runs them in this process."""
    from dask.callbacks import Callback

    class Tasks(Callback):  # type: ignore[misc]
        def _start_state(self, _: Any, state: Any) -> None:
            report.stage("compute", len(state["ready"]) + len(state["waiting"]), "tasks")

        def _posttask(self, *_: Any) -> None:
            report.advance()

    report.stage("compute", None, "tasks")
    with Tasks():
        return value.compute()


def await_result(client: Any, future: Any) -> Any:
    """The result of a future, or what its tasks raised.

    Raises DeviceError where for STILL_SECONDS no task began or ended and no worker worked on one, as on a cluster
    without workers; and where the scheduler is lost.
    """
    from distributed import wait
    from distributed.comm import CommClosedError

    before, since = None, time.monotonic()
    while True:
        try:
            with contextlib.suppress(TimeoutError):
                wait(future, timeout=min(LOOK_SECONDS, STILL_SECONDS))
            if future.done():
                return future.result()
            now, busy, workers = _state(client)
        except (CancelledError, CommClosedError) as error:
            raise DeviceError("the scheduler of the cluster was lost. Nothing was written; try again.") from error
        if busy or now != before:
            before, since = now, time.monotonic()
        elif time.monotonic() - since >= STILL_SECONDS:
            having = f"has {workers} worker{'s' * (workers > 1)} and gets nowhere" if workers else "has no workers left"
            raise DeviceError(
                f"the cluster {having}: for {STILL_SECONDS:g} s no task began or ended. Nothing was written. Restart "
                "its workers, or all of it, and try again."
            )


def _state(client: Any) -> tuple[Any, bool, int]:
    """What changes when tasks begin or end; whether a worker works on something; how many workers there are."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    tasks = client.processing()
    metrics = {address: worker.get("metrics", {}) for address, worker in workers.items()}
    busy = any(tasks.get(address) and one.get("cpu", 0) > IDLE_CPU for address, one in metrics.items())
    return ({address: one.get("task_counts") for address, one in metrics.items()}, tasks), busy, len(workers)
