"""Scores of rows that count 0: rows with sampling weight 0, and rows of a sample if only the population is counted.

A row that counts 0 is in no cohort, but its cells are scored by the same definitions. An attacker who searches for the
row's known values finds the cohort of the counted rows with these values. The row's cells take the cohort's information
gain and size. A value absent from the cohort has a share of 0 there. If the cohort is empty, the attacker learns
nothing: the posterior is the prior, gain and surprise are 0, and entropy and recursion are unknown (NaN).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels import zero_weights as kernels

from ..measures import Measure, wanted_of
from ..rows.distinct import distinct_rows
from ..rows.keys import KeyLayout
from ..rows.partition import Rows
from ..rows.threads import Workers
from ..utils.arrays import on_host
from .base import EngineResult, Job

# Statistics, see `measures.Statistic`, that are unknown (NaN) in an empty cohort.
UNKNOWN_OF_NOTHING = ("ENTROPY", "RECURSIVE")


def has_zero_weights(job: Job) -> bool:
    """Return whether rows of the job count 0."""
    return job.multiplicities is not None and not job.multiplicities.all()


def counted_rows(job: Job) -> Job:
    """Return the job of the rows with a positive multiplicity: the job itself if all have, else a job on the host."""
    multiplicities = job.multiplicities
    if multiplicities is None or multiplicities.all():
        return job
    nonzero: npt.NDArray[np.bool_] = multiplicities > 0
    codes = [on_host(column)[nonzero] for column in job.codes]
    return replace(job, codes=codes, multiplicities=multiplicities[nonzero], scores_on="host")


def with_zero_weights(job: Job, counted: EngineResult) -> EngineResult:
    """Return the result for all rows of a job without wildcards, on the host.

    counted: the result of `counted_rows`.
    """
    with Workers() as workers:
        return _Filler(job.on_host(), counted, workers).filled()


class _Filler:
    """The derivation of the scores of rows that count 0 from the scores of rows that count."""

    def __init__(self, job: Job, counted: EngineResult, workers: Workers) -> None:
        self.job = job
        self.counted = counted
        self.workers = workers
        nonzero: npt.NDArray[np.bool_] = np.asarray(job.multiplicities) > 0
        self._rows = np.flatnonzero(nonzero)
        self._zero = np.flatnonzero(~nonzero)
        order = np.concatenate([self._rows, self._zero])
        self._codes = [codes[order] for codes in job.codes]

    def filled(self) -> EngineResult:
        """Return the result with the scores of all rows."""
        job = self.job
        shape = (len(job.scored_columns), job.rows)
        values = {measure.name: np.empty(shape, measure.type_in(job.dtype)) for measure in job.measures}
        for name, scores in values.items():
            scores[:, self._rows] = self.counted.values[name]
        # Cached: scored columns that are not known share their cohorts; known scored columns share their equal rows.
        find, known = lru_cache(2)(self._find_first), frozenset(job.known)
        for place, scored_column in enumerate(job.scored_columns):
            cohort, equal = find(known - {scored_column}), find(known | {scored_column})
            for measure in job.measures:
                scores = self.counted.values[measure.name][place]
                values[measure.name][place, self._zero] = self._scores(measure, scored_column, scores, cohort, equal)
        return replace(self.counted, values=values, distinct_rows=int(self._numbers(range(len(job.codes))).max()) + 1)

    def _numbers(self, columns: Collection[int]) -> npt.NDArray[Any]:
        """Return the number of each row's distinct row over these columns. Rows that count come first."""
        if not columns:
            return np.zeros(self.job.rows, np.uint32)
        layout = KeyLayout.from_cardinalities([len(self.job.counts[column]) for column in columns])
        keys = layout.pack([self._codes[column] for column in columns], self.workers)
        return distinct_rows(Rows(keys), len(keys), self.workers).number

    def _find_first(self, columns: frozenset[int]) -> npt.NDArray[np.int64]:
        """Return, for each row that counts 0, the first counted row that agrees with it on these columns, or -1."""
        numbers, counted = self._numbers(sorted(columns)), len(self._rows)
        first = np.full(int(numbers.max()) + 1, -1)
        first[numbers[:counted][::-1]] = np.arange(counted)[::-1]
        return np.asarray(first[numbers[counted:]])

    def _scores(
        self,
        measure: Measure,
        scored_column: int,
        scores: npt.NDArray[Any],
        cohort: npt.NDArray[np.int64],
        equal: npt.NDArray[np.int64],
    ) -> npt.NDArray[Any]:
        """Return the scores of one measure in the rows that count 0.

        scores: (counted rows,). The scores of the rows that count.
        cohort: (rows that count 0,). A counted row in the row's cohort, or -1.
        equal: (rows that count 0,). A counted row that has the row's value as well, or -1.
        """
        found = np.zeros(len(cohort), scores.dtype)
        if measure.of_cohort or measure.is_row_measure:
            # All cells of a cohort, or all rows of an equivalence class, share this score.
            inside = scored_column in self.job.known and not self.job.class_without_scored_column
            first = equal if measure.is_row_measure and inside else cohort
            found[first >= 0] = scores[first[first >= 0]]
            if measure.statistic is not None and measure.statistic.kind in UNKNOWN_OF_NOTHING:
                found[cohort < 0] = np.nan
            return found
        found[equal >= 0] = scores[equal[equal >= 0]]
        absent = equal < 0
        cells = np.empty(int(absent.sum()))
        values = self._codes[scored_column][len(self._rows) :][absent]
        prior = (self.job.priors[scored_column], self.job.log2_priors[scored_column], self.job.unit_bits[scored_column])
        accuracy = float(self.job.accuracies[scored_column])
        number = wanted_of([measure]).measures[0]
        kernels.score_absent(values, cohort[absent] >= 0, prior, accuracy, number, cells)
        found[absent] = cells
        return found
