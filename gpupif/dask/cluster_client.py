"""A cluster that the command line computes on: one that runs, or one of some workers started here."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from multiprocessing import resource_tracker
from typing import Any, NamedTuple

from ..errors import DeviceError, GpupifError, InputError, reason_of
from ..gpu import status as gpu_status
from ..utils.config import resources, split_device
from ..utils.progress import Reporter

CONNECT_SECONDS = 30
# A cluster started here waits for a worker that died to be started again, however long a busy machine takes. Dask's
# default, 15 seconds, strikes it off for good; the run then waits for ever once that was the last one.
PATIENT = {"distributed.deploy.lost-worker-timeout": "1 day"}


class Place(NamedTuple):
    """A Dask cluster to compute on: the address of its scheduler, or so many workers here; neither: no cluster."""

    scheduler: str | None
    workers: int | None

    @property
    def named(self) -> bool:
        """Return whether there is a cluster."""
        return self.scheduler is not None or self.workers is not None


def check_place(place: Place, elsewhere: Mapping[str, Any], does: str) -> None:
    """Raise DeviceError without Dask, and InputError for what is no cluster, or for options that are not for one.

    elsewhere: such options, refused where they are set; does: what a cluster does instead.
    """
    if find_spec("distributed") is None or find_spec("dask") is None:
        raise DeviceError("a cluster needs Dask, which is not installed here: pip install 'gpupif[dask]'.")
    scheduler, workers = place
    if scheduler is not None and workers is not None:
        raise InputError("--workers: expected it or --scheduler, which names a cluster that runs; got both.")
    if workers is not None and workers < 1:
        raise InputError(f"--workers: expected at least 1, got {workers}.")
    for name, value in elsewhere.items():
        if value not in (None, False):
            option = name.replace("_", "-")
            raise InputError(f"--{option}: is not for a cluster, which {does}. Leave it out.")


@contextlib.contextmanager
def connected(place: Place) -> Iterator[tuple[Any, Reporter]]:
    """A client of the cluster, and what is shown of its progress.

    What goes wrong with the cluster itself is one DeviceError.
    """
    with Reporter() as report:
        report.stage("start", place.workers, "workers")
        with cluster(*place) as client:
            yield client, report


def _deaf_loop(closing: contextlib.ExitStack) -> Any:
    """An event loop none of whose threads and processes hears Ctrl-C, which a terminal sends to all of them.

    This process ends its workers itself; each would say how it was interrupted. A signal mask is inherited: by the
    loop's thread, those that it starts, and the workers, now or when they are started again.
    """
    from distributed.utils import LoopRunner

    # Which would unblock the signal in the thread that starts it.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        runner = LoopRunner()
        runner.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    closing.callback(runner.stop)
    return runner.loop


def gpus_of_workers(workers: int) -> list[str]:
    """Return a GPU for each of some workers that are started here, as CUDA_VISIBLE_DEVICES names it.

    Each worker plans with nearly all memory of its GPU, so no two share one. With device "auto" the workers that are
    left get none, and use the CPU; with "cuda" they raise InputError. The list is empty where no worker uses a GPU, or
    where there is one worker, which uses the GPU that the device names.
    """
    kind, named, _ = split_device(resources().device)
    shown = gpu_status.shown_gpus()
    if kind == "cpu" or not shown.usable:
        return []
    most = 1 if named else len(shown.devices)
    if kind == "cuda" and workers > most:
        raise InputError(
            f"--workers: expected at most {most} with device {resources().device!r}, for each worker uses a GPU of its "
            f"own; got {workers}. Start fewer, or use --device cpu."
        )
    if named:
        return []
    set_before = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = list(map(str, range(len(shown.gpus)))) if set_before is None else set_before.split(",")
    return [names[number] for number in shown.devices[:workers]]


def _one_gpu_each(gpus: Sequence[str]) -> Any:
    """Return a plugin of Dask by which each worker sees one of these GPUs, or none, also when it is started again."""
    from distributed import WorkerPlugin

    class OneGpu(WorkerPlugin):  # type: ignore[misc]
        """Sets what a worker sees before its first task, and so before it asks the driver."""

        def setup(self, worker: Any) -> None:
            os.environ["CUDA_VISIBLE_DEVICES"] = dict(enumerate(gpus)).get(worker.name, "")

    return OneGpu()


@contextlib.contextmanager
def cluster(scheduler: str | None, workers: int | None) -> Iterator[Any]:
    """Yield a client of a cluster: of one that runs, or of one of so many workers started here, each with its own GPU.

    Where dask-cuda is installed it starts workers that all have a GPU. What goes wrong with the cluster itself is one
    DeviceError; too many workers are an InputError.
    """
    import dask
    from distributed import Client, KilledWorker, LocalCluster

    gpus = [] if workers is None else gpus_of_workers(workers)
    with contextlib.ExitStack() as closing:
        closing.enter_context(dask.config.set(PATIENT))
        try:
            if workers is not None:
                options = {
                    "n_workers": workers,
                    "threads_per_worker": 1,
                    "loop": _deaf_loop(closing),
                    "dashboard_address": ":0",
                    # What goes wrong comes back as one error, which Dask's log would only say before it, at length.
                    "silence_logs": logging.CRITICAL,
                }
                if len(gpus) == workers and find_spec("dask_cuda") is not None:
                    from dask_cuda import LocalCUDACluster

                    scheduler, gpus = closing.enter_context(LocalCUDACluster(gpus, **options)), []
                else:
                    scheduler = closing.enter_context(LocalCluster(**options))
            client = closing.enter_context(Client(scheduler, timeout=CONNECT_SECONDS))
            if gpus:
                client.register_plugin(_one_gpu_each(gpus))
        except (OSError, TimeoutError, ValueError, RuntimeError) as error:
            reason = reason_of(error)
            if workers is not None:
                raise DeviceError(f"--workers {workers}: they could not be started ({reason}); try again.") from error
            raise DeviceError(
                f"--scheduler {scheduler}: no cluster can be reached there ({reason}). Start one (dask scheduler), "
                "check its address, or use --workers N for one here."
            ) from error
        try:
            yield client
        except KilledWorker as error:
            raise DeviceError(
                "the cluster lost too many of its workers, perhaps for want of memory. Nothing was written. Give each "
                "more memory, or write the table in smaller row groups."
            ) from error
        except RuntimeError as error:
            if isinstance(error, GpupifError):
                raise
            reason = reason_of(error)
            raise DeviceError(f"the cluster failed ({reason}). Nothing was written; try again.") from error
