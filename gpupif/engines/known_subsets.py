"""Attackers who know any few of the columns: what is asked of an engine, what it gives back, and how any does it.

Where cohorts are found in a way that engines have no short cut for, each set of columns is a table of its own: its
distinct rows are scored as any are, and each row of the table takes its combination's scores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..measures import Measure
from ..rows.distinct import Distinct, distinct_rows, look_up_rows, sum_times
from ..rows.keys import KeyLayout
from ..rows.partition import Rows
from ..rows.threads import Workers
from .base import (
    SILENT,
    AnyKnownResult,
    AnyKnownShares,
    Engine,
    EngineResult,
    Job,
    KnownSubset,
    Progress,
    select_columns,
)
from .block_scoring import collapse_job
from .fold import Fold
from .individual_risk import needs_rows
from .zero_weights import has_zero_weights

# Of results that are folded at once, where memory is not limited otherwise.
FOLDED_BYTES = 1 << 31


def score_attacker(
    engine: Engine,
    job: Job,
    sets: Sequence[KnownSubset] | None,
    progress: Progress,
    shares: AnyKnownShares | None = None,
) -> EngineResult | AnyKnownResult:
    """Score a job against one attacker: who knows the job's known columns, or any of several sets of columns."""
    if sets is None:
        result = engine.score(job, progress)
        return result if job.least is None else replace(result, values=_raised(result.values, job.least))
    return score_sets(engine, job, sets, progress, shares)


def _raised(values: Mapping[str, npt.NDArray[Any]], least: float) -> dict[str, npt.NDArray[Any]]:
    """Sizes by measure, those that are less than `Job.least` raised to it."""
    return {name: scores.clip(min=least) for name, scores in values.items()}


def score_sets(
    engine: Engine, job: Job, sets: Sequence[KnownSubset], progress: Progress, shares: AnyKnownShares | None = None
) -> AnyKnownResult:
    """Worst and mean scores of each cell over the attackers that the sets stand for, at least one for each scored
    column.

    sets: in an order of their own, the faster the more columns of neighbours are the same; what serves none of the
    job's scored columns is passed over. What comes out depends on nothing else: sums run in the order of the sets.
    Scores lie where the job wants them; they may be on a device. shares: of the host's memory, where it is limited.
    """
    # Of the others any few are known, never the scored one.
    job = replace(job, known=[])
    mine = [
        KnownSubset(
            one.columns,
            tuple(scored_column for scored_column in one.scored_columns if scored_column in job.scored_columns),
        )
        for one in sets
    ]
    return engine.score_sets(job, [one for one in mine if one.scored_columns], progress, shares)


def needs_whole_engine(job: Job) -> bool:
    """Whether the sets of a job are scored one by one, each as a table of its own, by `score_each_set`.

    Else every score is known and every size above 0, so that the highest, or the lowest, of a cell is its worst.
    """
    return bool(job.wildcards) or has_zero_weights(job) or needs_rows(job)


def score_each_set(
    score: Callable[[Job, Progress], EngineResult],
    job: Job,
    sets: Sequence[KnownSubset],
    progress: Progress,
    threads: int | None = None,
    shares: AnyKnownShares | None = None,
) -> AnyKnownResult:
    """See `Engine.score_sets`; score: what scores a job whose attacker knows all of its columns.

    A score that is unknown (NaN) against some attackers, since their cohorts know no value, counts in neither the worst
    nor the mean; against all of them, both are NaN. The scores lie on the host.
    """
    with Workers(threads) as workers:
        return _EachSet(score, job.on_host(), progress, workers).score(sets, shares)


class FoldedScores:
    """Worst and mean scores (scored columns, rows) by measure, and by scored column the weight of each of its sets.

    empty: makes arrays of the host or a device.
    """

    def __init__(self, job: Job, empty: Callable[[tuple[int, int], str], Any] = np.empty) -> None:
        shape = (len(job.scored_columns), job.rows)
        self._scored_columns = job.scored_columns
        self._worst = {one.name: empty(shape, one.type_in(job.dtype)) for one in job.measures}
        self._mean = {one.name: empty(shape, job.dtype) for one in job.measures}
        self.weights: dict[int, list[float]] = {column: [] for column in job.scored_columns}

    def places(self, column: int, measure: Measure) -> tuple[Any, Any]:
        """Where the worst and mean scores of a scored column go."""
        scored_column = self._scored_columns.index(column)
        return self._worst[measure.name][scored_column], self._mean[measure.name][scored_column]

    def finished(self, distinct_rows: int, through_host: str = "") -> AnyKnownResult:
        """What the engine gives back when all scored columns are scored."""
        weights = [np.array(each) for each in self.weights.values()]
        return AnyKnownResult(self._worst, self._mean, weights, distinct_rows, through_host)


class DistinctRun:
    """A run on the distinct rows of a job on the host, and what is found.

    codes: by column. times: how often each row occurs; row_counts: how many rows each is, where a measure needs that
    beside the people that they stand for. rows: how many they are.
    """

    def __init__(self, job: Job, progress: Progress, workers: Workers) -> None:
        self.job, self.progress, self.workers = job, progress, workers
        # Counted once: with `times` it is a sum.
        self.total = job.total
        self.cardinalities = job.cardinalities
        found = collapse_job(job, self.total, workers)
        self.codes = list(job.codes) if job.distinct else job.layout.unpack(found.rows.keys)
        self.times, self._of_row = found.rows.counts, found.number
        given = np.ones(job.rows, np.int64) if job.row_counts is None else job.row_counts
        self.row_counts = sum_times(found.number, given, len(self.times)) if needs_rows(job) else None
        self.rows = len(self.times)
        self.results = FoldedScores(job)

    def put(self, column: int, measure: Measure, *scores: npt.NDArray[np.float64]) -> None:
        """Put the worst and mean scores of a scored column, of distinct rows, into the results, of all rows."""
        for values, out in zip(scores, self.results.places(column, measure), strict=True):
            look_up_rows(values.astype(out.dtype), self._of_row, out, self.workers)


class _EachSet(DistinctRun):
    """Scores sets one by one; score_table: what scores a job whose attacker knows all of its columns."""

    def __init__(
        self, score_table: Callable[[Job, Progress], EngineResult], job: Job, progress: Progress, workers: Workers
    ) -> None:
        super().__init__(job, progress, workers)
        self._score_table = score_table

    def score(self, sets: Sequence[KnownSubset], shares: AnyKnownShares | None) -> AnyKnownResult:
        """Worst and mean scores over the sets that each scored column is in."""
        job, rows, weights = self.job, self.rows, self.results.weights
        fit = max(1, FOLDED_BYTES // (16 * rows * len(job.measures)))
        at_once = fit if shares is None else min(fit, shares.scored_columns)
        why = ""
        for first in range(0, len(job.scored_columns), at_once):
            group = job.scored_columns[first : first + at_once]
            folds = {column: [Fold(one, rows) for one in job.measures] for column in group}
            for one in sets:
                scored_columns = [column for column in one.scored_columns if column in folds]
                if scored_columns:
                    why = self._fold_set(one.columns, scored_columns, folds) or why
                    self.progress.advance(job.rows * len(scored_columns))
            for column, several in folds.items():
                for measure, fold in zip(job.measures, several, strict=True):
                    self.put(column, measure, fold.worst(), fold.mean(len(weights[column])))
        return self.results.finished(rows, why)

    def _fold_set(self, columns: Sequence[int], scored_columns: Sequence[int], folds: dict[int, list[Fold]]) -> str:
        """Score some scored columns against the attacker who knows the other columns of a set; see
        `EngineResult.through_host`.
        """
        table, layout = self._combinations(columns)
        asked = replace(
            self.job,
            scored_columns=list(scored_columns),
            known=list(columns),
            times=None,
            class_without_scored_column=True,
        )
        job = select_columns(asked, columns)
        codes, times = layout.unpack(table.rows.keys), table.rows.counts.astype(np.int64)
        rows = None if self.row_counts is None else sum_times(table.number, self.row_counts, len(times))
        job = replace(job, codes=codes, times=times, row_counts=rows, dtype="float64", scores_on="host")
        result = self._score_table(job, SILENT)
        values = result.values if job.least is None else _raised(result.values, job.least)
        for place, column in enumerate(scored_columns):
            self.results.weights[column].append(result.weights[place])
            for measure, fold in zip(job.measures, folds[column], strict=True):
                scores = values[measure.name][place].astype(np.float64, copy=False)
                self.workers.run(
                    lambda a, b, fold=fold, scores=scores: fold.add(scores[table.number[a:b]], slice(a, b)),
                    self.workers.ranges(self.rows),
                )
        return result.through_host

    def _combinations(self, columns: Sequence[int]) -> tuple[Distinct, KeyLayout]:
        """The distinct rows over some columns."""
        layout = KeyLayout.of([self.cardinalities[column] for column in columns])
        keys = layout.pack([self.codes[column] for column in columns], self.workers)
        return distinct_rows(Rows(keys, self.times), self.total, self.workers), layout
