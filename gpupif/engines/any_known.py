"""Scores against an attacker who knows any of several sets of columns: the code that all engines share.

`score_each_set` serves jobs for which engines have no short cut. It makes a table of each set of columns and scores its
distinct rows. Each row of the whole table then takes the scores of its combination of values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..measures import Measure
from ..rows.distinct import distinct_rows, look_up_rows, sum_multiplicities
from ..rows.keys import KeyLayout
from ..rows.partition import Rows
from ..rows.threads import Workers
from .base import (
    SILENT,
    AnyKnownResult,
    AnyKnownShares,
    EngineResult,
    Job,
    KnownSubset,
    Progress,
    select_columns,
    served,
)
from .block_scoring import collapse_job
from .individual_risk import needs_rows
from .worst_and_mean import WorstAndMean
from .zero_weights import has_zero_weights

# Most bytes of worst and mean scores that are computed at once, if memory is not limited otherwise.
RESULT_BYTES = 1 << 31


def needs_whole_engine(job: Job) -> bool:
    """Return whether the sets of a job are scored one by one, each as a table of its own, by `score_each_set`.

    If not, every score is known and every size is above 0: the worst score of a cell is its highest, or its lowest.
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
    """Score a job as `Engine.score_sets` does, set by set, and return scores on the host.

    A score is unknown (NaN) against an attacker whose cohort has no value that is known. It counts in neither the worst
    nor the mean. If it is unknown against all attackers, the worst and the mean are NaN.

    score: scores a job whose attacker knows all its columns.
    """
    with Workers(threads) as workers:
        return _EachSet(score, job.on_host(), progress, workers).score(sets, shares)


class AnyKnownScores:
    """The results over sets of columns: worst and mean scores, and the weight of each set of each scored column.

    Scores are arrays (scored columns, rows), by measure. empty: makes arrays on the host or a device.
    """

    def __init__(self, job: Job, empty: Callable[[tuple[int, int], str], Any] = np.empty) -> None:
        shape = (len(job.scored_columns), job.rows)
        self._worst = {one.name: empty(shape, one.type_in(job.dtype)) for one in job.measures}
        self._mean = {one.name: empty(shape, job.dtype) for one in job.measures}
        self.weights: dict[int, list[float]] = {column: [] for column in job.scored_columns}

    def places(self, column: int, measure: Measure) -> tuple[Any, Any]:
        """Return the arrays (rows,) that receive the worst and the mean scores of a scored column."""
        slot = list(self.weights).index(column)
        return self._worst[measure.name][slot], self._mean[measure.name][slot]

    def finished(self, distinct_rows: int, through_host: str = "") -> AnyKnownResult:
        """Return the result of the engine, after all scored columns are scored."""
        weights = [np.array(each) for each in self.weights.values()]
        return AnyKnownResult(self._worst, self._mean, weights, distinct_rows, through_host)


class DistinctRun:
    """A run on the distinct rows of a job on the host, and its results so far.

    codes: by column, (distinct rows,). The codes of the distinct rows.
    multiplicities: (distinct rows,). The multiplicity of each distinct row.
    row_counts: (distinct rows,). Rows of the table with each distinct row; None unless a measure needs rows and people.
    rows: the number of distinct rows.
    """

    def __init__(self, job: Job, progress: Progress, workers: Workers) -> None:
        self.job, self.progress, self.workers = job, progress, workers
        # Kept, because `job.total` adds up all multiplicities each time.
        self.total = job.total
        self.cardinalities = job.cardinalities
        distinct = collapse_job(job, self.total, workers)
        self.codes = list(job.codes) if job.distinct else job.layout.unpack(distinct.rows.keys)
        self.multiplicities, self._number_of_row = distinct.rows.counts, distinct.number
        given = np.ones(job.rows, np.int64) if job.row_counts is None else job.row_counts
        self.row_counts = (
            sum_multiplicities(distinct.number, given, len(self.multiplicities)) if needs_rows(job) else None
        )
        self.rows = len(self.multiplicities)
        self.results = AnyKnownScores(job)

    def put(self, column: int, measure: Measure, *scores: npt.NDArray[np.float64]) -> None:
        """Copy the worst and mean scores of a scored column from distinct rows to all rows, into the results."""
        for values, out in zip(scores, self.results.places(column, measure), strict=True):
            look_up_rows(values.astype(out.dtype), self._number_of_row, out, self.workers)


class _EachSet(DistinctRun):
    """A run that scores sets one by one. score_table: scores a job whose attacker knows all its columns."""

    def __init__(
        self, score_table: Callable[[Job, Progress], EngineResult], job: Job, progress: Progress, workers: Workers
    ) -> None:
        super().__init__(job, progress, workers)
        self._score_table = score_table

    def score(self, sets: Sequence[KnownSubset], shares: AnyKnownShares | None) -> AnyKnownResult:
        """Return the worst and mean scores of each scored column, over the sets that contain it."""
        job, rows, weights = self.job, self.rows, self.results.weights
        fit = max(1, RESULT_BYTES // (16 * rows * len(job.measures)))
        at_once = fit if shares is None else min(fit, shares.scored_columns)
        why = ""
        for first in range(0, len(job.scored_columns), at_once):
            columns = job.scored_columns[first : first + at_once]
            scores = {column: [WorstAndMean(one, rows) for one in job.measures] for column in columns}
            for one in served(sets, columns):
                why = self._add_set(one, scores) or why
                self.progress.advance(job.rows * len(one.scored_columns))
            for column, of_measures in scores.items():
                for measure, of_cells in zip(job.measures, of_measures, strict=True):
                    self.put(column, measure, of_cells.worst(), of_cells.mean(len(weights[column])))
        return self.results.finished(rows, why)

    def _add_set(self, one: KnownSubset, scores: dict[int, list[WorstAndMean]]) -> str:
        """Score the scored columns of a set, each against the attacker who knows the set's other columns.

        Return `EngineResult.through_host` of the set.
        """
        layout = KeyLayout.from_cardinalities([self.cardinalities[column] for column in one.columns])
        keys = layout.pack([self.codes[column] for column in one.columns], self.workers)
        table = distinct_rows(Rows(keys, self.multiplicities), self.total, self.workers)
        multiplicities = table.rows.counts.astype(np.int64)
        asked = replace(self.job, scored_columns=list(one.scored_columns), known=list(one.columns), multiplicities=None)
        job = replace(
            select_columns(asked, one.columns),
            codes=layout.unpack(table.rows.keys),
            multiplicities=multiplicities,
            row_counts=None
            if self.row_counts is None
            else sum_multiplicities(table.number, self.row_counts, len(multiplicities)),
            class_without_scored_column=True,
            dtype="float64",
            scores_on="host",
        )
        result = self._score_table(job, SILENT)
        for slot, column in enumerate(one.scored_columns):
            self.results.weights[column].append(result.weights[slot])
            for measure, of_cells in zip(job.measures, scores[column], strict=True):
                values = result.values[measure.name][slot].astype(np.float64, copy=False)
                self.workers.run(
                    lambda a, b, of_cells=of_cells, values=values: of_cells.add(values[table.number[a:b]], slice(a, b)),
                    self.workers.ranges(self.rows),
                )
        return result.through_host
