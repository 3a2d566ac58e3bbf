"""Scores of a table that each device holds as a whole: each device scores a share of the scored columns."""

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
    """Score some columns of the job. All scores are on the host or on the first device, as the job requires.

    Raise DeviceMemoryError.

    streams: the libraries of each device. score: scores the scored columns of one device, and returns the number of
        distinct rows.
    """
    home = streams[0][0]
    with home.active():
        results = Results(job, home.empty if job.scores_on == "device" else np.empty)

    def score_share(library: CupyLibrary, share: Sequence[int], outbox: Outbox) -> int:
        return score(TableRun(job, share, results, progress, library, outbox))

    return results.finished(on_each_device(streams, scored_columns, score_share))


def on_each_device(
    streams: Sequence[Sequence[CupyLibrary]],
    scored_columns: Sequence[int],
    score: Callable[[CupyLibrary, Sequence[int], Outbox], int],
) -> int:
    """Score a share of the scored columns on each device, all at once, and return the number of distinct rows.

    streams: see `score_table`. score: gets the first library of a device, the columns that this device scores, and the
        outbox for their scores. It returns the number of distinct rows.
    """

    def score_on(device: Sequence[CupyLibrary], share: Sequence[int]) -> int:
        with device[0].active(), Outbox(device, streams[0][0]) as outbox:
            distinct = score(device[0], share, outbox)
            outbox.empty()
            return distinct

    tasks = [(device, scored_columns[first :: len(streams)]) for first, device in enumerate(streams)]
    with Workers(len(streams)) as workers:
        return int(workers.run(score_on, [task for task in tasks if task[1]])[0])


@dataclass(frozen=True)
class TableRun:
    """The state of a run on one device. scored_columns: the columns that this device scores."""

    job: Job
    scored_columns: Sequence[int]
    results: Results
    progress: Progress
    library: CupyLibrary
    outbox: Outbox

    def put(self, scored_column: int, scores: Any, number: Any) -> None:
        """Put the scores of a scored column into the results, weighted if the measure is.

        scores: (measures, distinct rows), before weighting. number: (rows,) the number of each row's distinct row.
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
    """Score columns on distinct rows, and return the number of distinct rows of the table.

    The known scored columns share one projection. Every other scored column has its own.
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
    """Score columns against the known columns. distinct: rows over the columns `collapsed`, in that order."""
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
            low, high = (library.to_host(of_rows) for of_rows in (scores.min(axis=1), scores.max(axis=1)))
            results.add_extremes(scored_column, low, high)
            run.progress.advance(job.rows)
        else:
            run.put(scored_column, scores, number)
        # The next scores need this memory.
        del scores


class Outbox:
    """A sender of scores to the results. If there are two streams, it copies to the host while the next scores are
    computed.
    """

    def __init__(self, streams: Sequence[CupyLibrary], home: CupyLibrary) -> None:
        self._library, self._copier, self._home = streams[0], streams[-1], home
        self._pool = ThreadPoolExecutor(1)
        self._under_way: Future[None] | None = None

    def __enter__(self) -> Outbox:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def put(self, arrays: Sequence[Any], places: Sequence[Any]) -> None:
        """Start to copy arrays to their places. Earlier arrays are complete then."""
        self.empty()
        self._library.finish()
        if self._home.on_device(places[0]):
            with self._home.active():
                for array, place in zip(arrays, places, strict=True):
                    place[...] = self._home.bring(array)
        else:
            self._under_way = self._pool.submit(self._copy, arrays, places)

    def empty(self) -> None:
        """Wait until all arrays are in their places."""
        if self._under_way is not None:
            self._under_way.result()
            self._under_way = None

    def _copy(self, arrays: Sequence[Any], places: Sequence[Any]) -> None:
        with self._copier.active():
            for array, place in zip(arrays, places, strict=True):
                self._copier.to_host(array, place)
