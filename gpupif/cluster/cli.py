"""`gpupif score` on a cluster: Parquet in, a folder of Parquet files out, read, scored and written by the workers."""

from __future__ import annotations

import contextlib
import logging
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from ..errors import DeviceError, GpupifError, InputError, OutputError
from ..folds import folded_names
from ..inputs import find_input
from ..job import needed_columns
from ..known_subsets import any_known_of
from ..measures import POPULATION_SIZE, resolve_measures
from ..progress import Reporter
from ..reading import every_column
from ..spill.outputs import check_folder, is_file
from ..writing import attacker_names
from .files import read_files
from .folder import check_written, marked, replacing
from .watch import await_result

CONNECT_SECONDS = 30
# A cluster started here waits for a worker that died to be started again, however long a busy machine takes. Dask's
# default, 15 seconds, strikes it off for good; the run then waits for ever once that was the last one.
PATIENT = {"distributed.deploy.lost-worker-timeout": "1 day"}


def score_on_cluster(
    table: Path,
    output: Path,
    place: tuple[str | None, int | None],
    overwrite: bool,
    measures: Sequence[str],
    device: str,
    question: Mapping[str, Any],
    elsewhere: Mapping[str, Any],
    visible: bool | None = None,
) -> dict[str, Any]:
    """Score a Parquet file or folder on the cluster at an address, or on one of so many workers started here.

    place: the address or the number. question: the other arguments of `gpupif.score`, a population as a path.
    elsewhere: options that only make sense without a cluster, refused where they are set. visible: show progress; None
    for only where standard error is a terminal, and the command line was not asked to be quiet.

    Writes a folder of Parquet files, columns named as by `DaskScores.frame`, rows in order by the files' names, that
    appears whole or not at all. All workers have to see both places under the same paths. Returns facts to be shown.

    Raises what `gpupif.score` does; InputError for what a cluster cannot do; OutputError; DeviceError where the cluster
    cannot be reached or lost its workers.
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
            raise InputError(
                f"--{option}: is not for a cluster, which reads Parquet and writes a folder of it. Leave it out."
            )
    wanted = [measure.name for measure in resolve_measures(measures)]
    columns, weights, attackers = (question.get(name) for name in ("columns", "weights", "attackers"))
    any_known = any_known_of(question)
    known = question.get("known") if any_known is None else any_known.among
    needed = needed_columns(columns, known, weights=weights, attackers=attackers)
    if any_known is not None:
        needed = any_known.picking(needed)
    given = find_input(table)
    if is_file(output):
        raise OutputError(f"{output}: a cluster writes a folder of Parquet files. Name one, without an ending.")
    check_folder(output, overwrite, given)
    files = read_files("table", given, every_column if columns is None else needed)
    targets = (
        list(columns)
        if columns is not None
        else [name for name in files.names if name not in (*files.index_names, weights)]
    )
    population = question.get("population")
    if population is not None:
        check_folder(output, overwrite, find_input(Path(population)))
    scored = wanted if any_known is None else folded_names(wanted)
    made = [*scored, *([] if population is None else [POPULATION_SIZE.name])]
    attacker_names(None if attackers is None else list(attackers), made, targets, [])
    started = time.perf_counter()
    with contextlib.ExitStack() as closing:
        report = closing.enter_context(Reporter(visible))
        report.stage("start", workers, "workers")
        cluster = closing.enter_context(_cluster(scheduler, workers))
        folder = closing.enter_context(replacing(output, overwrite))
        from ..scoring import score

        scores: Any = score(files.frame, wanted, device=device, **{**question, "columns": targets})
        options = marked({"write_index": False, "compression": "zstd", "compute": False})
        written = scores.frame().to_parquet(str(folder), **options)
        several = len(cluster.nthreads())
        await_result(cluster, cluster.compute(written), report)
        check_written(folder, files.partitions)
    return {
        "input": str(table),
        "output": str(output),
        "rows": files.rows,
        "columns": targets,
        "measures": made,
        "workers": several,
        "partitions": files.partitions,
        "seconds": time.perf_counter() - started,
    }


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


@contextlib.contextmanager
def _cluster(scheduler: str | None, workers: int | None) -> Iterator[Any]:
    """A client of the cluster; what goes wrong with the cluster itself is one DeviceError."""
    import dask
    from distributed import Client, KilledWorker, LocalCluster

    with contextlib.ExitStack() as closing:
        closing.enter_context(dask.config.set(PATIENT))
        try:
            if workers is not None:
                # What goes wrong comes back as one error, which Dask's log would only say before it, at length.
                silent = {"dashboard_address": ":0", "silence_logs": logging.CRITICAL}
                scheduler = closing.enter_context(
                    LocalCluster(n_workers=workers, threads_per_worker=1, loop=_deaf_loop(closing), **silent)
                )
            client = closing.enter_context(Client(scheduler, timeout=CONNECT_SECONDS))
        except (OSError, TimeoutError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split()).rstrip(".")
            if workers is not None:
                raise DeviceError(f"--workers {workers}: they could not be started ({reason}); try again.") from error
            raise DeviceError(f"--scheduler {scheduler}: no cluster can be reached there ({reason}).") from error
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
            reason = " ".join(str(error).split()).rstrip(".")
            raise DeviceError(f"the cluster failed ({reason}). Nothing was written; try again.") from error
