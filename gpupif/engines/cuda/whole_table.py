"""A table scored on devices that hold all of it: each scores its share of the scored columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...gpu.cupy_arrays import CupyLibrary
from ...rows.threads import Workers
from ..base import EngineResult, Job, Progress
from ..block_scoring import Results
from .grouping import Grouping, collapse_table
from .rows import DeviceRows, sizes_of
from .scores import ScoredColumnUploader, score_scored_columns


def score_table(
    job: Job,
    scored_columns: Sequence[int],
    progress: Progress,
    streams: Sequence[Sequence[CupyLibrary]],
    score: Callable[[TableRun], int],
) -> EngineResult:
    """Score these scored columns of the job; all scores lie on the host, or on the first device, as the job wants.

    streams: the libraries of each device. score: scores the scored columns of one device; returns how many distinct
    rows there are. Raises DeviceMemoryError.
    """
    home = streams[0][0]
    with home.active():
        results = Results(job, home.empty if job.scores_on == "device" else np.empty)

    def score_on(device: Sequence[CupyLibrary], scored_columns: Sequence[int]) -> int:
        with device[0].active(), Outbox(device, home) as outbox:
            distinct = score(TableRun(job, scored_columns, results, progress, device[0], outbox))
            outbox.empty()
            return distinct

    tasks = [(device, scored_columns[first :: len(streams)]) for first, device in enumerate(streams)]
    with Workers(len(streams)) as workers:
        distinct = workers.run(score_on, [task for task in tasks if task[1]])
    return results.finished(distinct[0])


@dataclass(frozen=True)
class TableRun:
    """What the steps of one run on one device share. scored columns: that this device scores."""

    job: Job
    scored_columns: Sequence[int]
    results: Results
    progress: Progress
    library: CupyLibrary
    outbox: Outbox

    def put(self, scored_column: int, scores: Any, number: Any) -> None:
        """Put the scores (measures, distinct rows) of a scored column into the results, before weighting its weighted
        ones.

        number: which distinct row each row of the table is.
        """
        library, results = self.library, self.results
        place = self.job.scored_columns.index(scored_column)
        outs = [values[place] for values in results.values]
        with library.stage("spread"):
            of_rows = [
                (values if factor == 1.0 else factor * values)[number].astype(out.dtype, copy=False)
                for factor, values, out in zip(results.factors(scored_column), scores, outs, strict=True)
            ]
            self.outbox.put(of_rows, outs)
        self.progress.advance(self.job.rows)


def score_cohorts(run: TableRun, grouping: Grouping) -> int:
    """Score the scored columns among the known on the same distinct rows, each of the others on its own; returns how
    many distinct rows the table has.
    """
    job, describe = run.job, ScoredColumnUploader(run.library, run.job)
    inside = [column for column in run.scored_columns if column in job.known]
    first = [*inside, *(column for column in range(len(job.codes)) if column not in inside)]
    distinct, number = collapse_table(run.library, grouping, job, first)
    for scored_columns in (inside, *([column] for column in run.scored_columns if column not in job.known)):
        if scored_columns:
            _score_projection(run, describe, distinct, number, scored_columns, first, grouping)
    return distinct.rows


def _score_projection(
    run: TableRun,
    describe: ScoredColumnUploader,
    distinct: DeviceRows,
    number: Any,
    scored_columns: Sequence[int],
    collapsed: Sequence[int],
    grouping: Grouping,
) -> None:
    """Score scored columns against the known columns; `distinct` are rows over the columns `collapsed`, in that
    order.
    """
    library, job, results = run.library, run.job, run.results
    columns = [*scored_columns, *(column for column in job.known if column not in scored_columns)]
    if not grouping.serves(distinct, collapsed, columns, scored_columns):
        with library.stage("collapse"):
            distinct, narrow = grouping.collapse(distinct, columns)
            number = narrow[number]
            del narrow
    with library.stage("weigh"):
        joint = sizes_of(library, distinct.counts, results.total)
    for scored_column, sizes, scores in score_scored_columns(describe, distinct, columns, scored_columns, grouping):
        with library.stage("weigh"):
            results.weigh(scored_column, sizes_of(library, sizes, results.total), joint)
        del sizes
        if job.extremes_only:
            low, high = (library.to_host(found) for found in (scores.min(axis=1), scores.max(axis=1)))
            results.add_extremes(scored_column, low, high)
            run.progress.advance(job.rows)
        else:
            run.put(scored_column, scores, number)
        # Before the next ones are made.
        del scores


class Outbox:
    """Brings scores to where they are kept; to the host while the next ones are made, where there are two streams."""

    def __init__(self, streams: Sequence[CupyLibrary], home: CupyLibrary) -> None:
        self._library, self._copier, self._home = streams[0], streams[-1], home
        self._pool = ThreadPoolExecutor(1)
        self._under_way: Future[None] | None = None

    def __enter__(self) -> Outbox:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def put(self, arrays: Sequence[Any], places: Sequence[Any]) -> None:
        """Have arrays copied to their places; those given before are there already."""
        self.empty()
        self._library.finish()
        if self._home.on_device(places[0]):
            with self._home.active():
                for array, place in zip(arrays, places, strict=True):
                    place[...] = self._home.bring(array)
        else:
            self._under_way = self._pool.submit(self._copy, arrays, places)

    def empty(self) -> None:
        """Wait until all is where it is kept."""
        if self._under_way is not None:
            self._under_way.result()
            self._under_way = None

    def _copy(self, arrays: Sequence[Any], places: Sequence[Any]) -> None:
        with self._copier.active():
            for array, place in zip(arrays, places, strict=True):
                self._copier.to_host(array, place)
