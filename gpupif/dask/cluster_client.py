"""The cluster that the command line computes on: an existing one, or workers that are started here."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from multiprocessing import resource_tracker
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from ..errors import DeviceError, GpupifError, InputError, reason_of
from ..gpu import status as gpu_status
from ..utils.config import resources, split_device
from ..utils.progress import Reporter

CONNECT_SECONDS = 30
# A cluster started here waits for a dead worker to be started again, however slow the machine is. Dask's default of 15
# seconds would remove the worker for good. A run that lost its last worker would then wait for ever.
PATIENT = {"distributed.deploy.lost-worker-timeout": "1 day"}


class Place(NamedTuple):
    """The cluster to compute on: neither field is set without a cluster.

    scheduler: str. The address of the scheduler of an existing cluster.
    workers: int. The number of workers to start here.
    """

    scheduler: str | None
    workers: int | None

    @property
    def named(self) -> bool:
        """True if a cluster was requested."""
        return self.scheduler is not None or self.workers is not None


def check_place(place: Place, elsewhere: Mapping[str, Any], does: str) -> None:
    """Raise DeviceError without Dask, and InputError for a wrong place, or for options that a cluster does not take.

    elsewhere: the options that a cluster does not take.
    does: str. What a cluster does instead, for the message.
    """
    if find_spec("distributed") is None or find_spec("dask") is None:
        raise DeviceError("a cluster needs Dask, which is not installed here: pip install 'gpupif[dask]'.")
    scheduler, workers = place
    if scheduler is not None and workers is not None:
        raise InputError("--workers: expected --workers or --scheduler, not both. Leave out one of them.")
    if workers is not None and workers < 1:
        raise InputError(f"--workers: expected at least 1, got {workers}.")
    for name, value in elsewhere.items():
        if value not in (None, False):
            option = name.replace("_", "-")
            raise InputError(f"--{option}: is not for a cluster, which {does}. Leave it out.")


@contextlib.contextmanager
def connected(place: Place) -> Iterator[tuple[Any, Reporter]]:
    """Yield a client of the cluster, and the reporter of its progress.

    Errors of the cluster itself are raised as one DeviceError.
    """
    with Reporter() as report:
        report.stage("start", place.workers, "workers")
        with cluster(*place) as client:
            yield client, report


def _deaf_loop(closing: contextlib.ExitStack) -> Any:
    """Return an event loop whose threads and processes ignore Ctrl-C, which a terminal sends to all processes.

    This process ends its workers itself; else each would report how it was interrupted. A signal mask is inherited: by
    the thread of the loop, by its threads, and by workers, even by workers that are started again.
    """
    from distributed.utils import LoopRunner

    # A reset mask would unblock the signal in the thread that starts workers.
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
    """Return a GPU for each worker that is started here, as CUDA_VISIBLE_DEVICES names it.

    Each worker plans with nearly all memory of its GPU, so no two workers share a GPU. If there are more workers than
    GPUs, "auto" gives the other workers the CPU, and "cuda" raises InputError. The list is empty if no worker uses a
    GPU. It is also empty for a single worker, which uses the GPU that the device names.
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
    """Return a plugin of Dask that shows each worker one of these GPUs, or none, also when it is started again."""
    from distributed import WorkerPlugin

    class OneGpu(WorkerPlugin):  # type: ignore[misc]
        """The plugin that sets the GPU of a worker before its first task, hence before the worker asks the driver."""

        def setup(self, worker: Any) -> None:
            os.environ["CUDA_VISIBLE_DEVICES"] = dict(enumerate(gpus)).get(worker.name, "")

    return OneGpu()


@contextlib.contextmanager
def cluster(scheduler: str | None, workers: int | None) -> Iterator[Any]:
    """Yield a client of an existing cluster, or of a number of workers that are started here, each with its own GPU.

    If dask-cuda is installed and each worker has a GPU, dask-cuda starts them. Errors of the cluster itself are raised
    as one DeviceError. Raises InputError for too many workers.
    """
    import dask
    from distributed import Client, KilledWorker, LocalCluster

    gpus = [] if workers is None else gpus_of_workers(workers)
    with contextlib.ExitStack() as closing:
        closing.enter_context(dask.config.set(PATIENT))
        try:
            if workers is not None:
                # Dask leaves an empty folder where its scheduler and workers keep their files.
                scratch = closing.enter_context(TemporaryDirectory(dir=resources().temp, ignore_cleanup_errors=True))
                closing.enter_context(dask.config.set({"temporary-directory": scratch}))
                options = {
                    "n_workers": workers,
                    "threads_per_worker": 1,
                    "loop": _deaf_loop(closing),
                    "dashboard_address": ":0",
                    # Errors come back as one error; Dask's log would print them before, at length.
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
