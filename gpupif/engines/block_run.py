"""What all steps of one run by blocks share, on the CPU or a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from ..measures import deduplicate, wanted_of
from ..rows.keys import KeyLayout
from ..rows.partition import CohortBlocks
from ..rows.threads import Workers
from ..utils.information import LogSum, Sizes, column_weight, conditional_entropy, entropy_of_counts, small_logs
from .base import EngineResult, Job, Progress
from .cohort_sizes import CohortSizes
from .shared_scores import ScoredColumnScores, SharedScores, Taken, put_rows

if TYPE_CHECKING:
    from gpupif.kernels.blocks import Out

PAGE_BYTES = 4096


class ScoredColumns(Protocol):
    """Scored column columns as a scorer knows them.

    values: how many scores of values by themselves `Out` may have for a scored column.
    """

    columns: Sequence[int]
    values: int

    def only(self, places: list[int]) -> ScoredColumns:
        """Some of them, by their places here."""

    def put_values(self, out: Out) -> None:
        """Put the scores of values by themselves behind those of rows."""


class Scorer(Protocol):
    """Scores blocks of distinct rows: on the CPU or a GPU."""

    def scored_columns_at_once(self, rows: int, measures: int) -> int:
        """How many scored columns to score at once on so many distinct rows."""

    def describe(self, run: BlockRun, columns: Sequence[int], layout: KeyLayout) -> Any:
        """The `ScoredColumns` that these columns are, in keys of this layout."""

    def score(self, run: BlockRun, blocks: CohortBlocks, scored_columns: Any, out: Out) -> Sequence[CohortSizes]:
        """Fill `out` for the rows in partition order, but those of children; scores in the order of `run.wanted`.

        Returns how many cohorts of each size there are, in parts.
        """


class Results:
    """What a run has found so far: weights per scored column, and scores (scored columns, rows) of each measure or
    their extremes.

    empty: makes the arrays that the scores are to be, of the host or a device, from shape and type; None where scores
    are to be `SharedScores`.
    """

    def __init__(self, job: Job, empty: Callable[[tuple[int, int], str], Any] | None = np.empty) -> None:
        self.job = job
        self.layout = job.layout
        self.entropies = [entropy_of_counts(counts) for counts in job.counts]
        self.weights = [0.0] * len(job.scored_columns)
        nothing: Sizes | LogSum = Sizes.total([])
        self.cohorts, self.distinct = [nothing] * len(job.scored_columns), [nothing] * len(job.scored_columns)
        # Counted once: with `times` it is a sum.
        self.total = job.total
        self.types = [measure.type_in(job.dtype) for measure in job.measures]
        shape = (len(job.scored_columns), job.rows)
        self.values = [] if empty is None or job.extremes_only else [empty(shape, kind) for kind in self.types]
        self._kept: dict[int, tuple[ScoredColumnScores, list[Taken]]] = {}
        self.extremes = np.zeros((len(job.measures), len(job.scored_columns), 2))

    def weigh(self, column: int, cohorts: Sizes, distinct: Sizes) -> None:
        """Set the weight of a scored column, from the sizes of its cohorts and of groups of equal rows."""
        scored_column = self.job.scored_columns.index(column)
        # Of weighted rows hardly any two groups are of the same size.
        weighted = self.job.unit is not None
        self.cohorts[scored_column] = cohorts.log_sum() if weighted else cohorts
        self.distinct[scored_column] = distinct.log_sum() if weighted else distinct
        conditional = conditional_entropy(cohorts.log_sum(), distinct.log_sum(), self.total)
        self.weights[scored_column] = column_weight(conditional, self.entropies[column])

    def keep(self, column: int, found: ScoredColumnScores, taken: list[Taken]) -> None:
        """Have these be the scores of a scored column; taken: what of them, by measure."""
        self._kept[self.job.scored_columns.index(column)] = found, taken

    def factors(self, column: int) -> list[float]:
        """By what to multiply the scores of a scored column: its weight or 1, for each measure."""
        weight = self.weights[self.job.scored_columns.index(column)]
        return [weight if measure.weighted else 1.0 for measure in self.job.measures]

    def add_extremes(self, column: int, low: npt.NDArray[np.float64], high: npt.NDArray[np.float64]) -> None:
        """Set the lowest and highest scores of a scored column, by measure, weighted ones before weighting."""
        found = np.stack([low, high], axis=1) * np.array(self.factors(column))[:, None]
        self.extremes[:, self.job.scored_columns.index(column)] = found

    def finished(self, distinct_rows: int) -> EngineResult:
        """What the engine gives back when all scored columns are scored."""
        names = [measure.name for measure in self.job.measures]
        values: dict[str, Any] = {}
        extremes: dict[str, Any] = {}
        if self.job.extremes_only:
            extremes = dict(zip(names, self.extremes, strict=True))
        elif self._kept:
            kept = [self._kept[scored_column] for scored_column in range(len(self.job.scored_columns))]
            found = [one for one, _ in kept]
            for measure, (name, kind) in enumerate(zip(names, self.types, strict=True)):
                values[name] = SharedScores(found, [taken[measure] for _, taken in kept], np.dtype(kind))
        else:
            values = dict(zip(names, self.values, strict=True))
        return EngineResult(values, self.weights, distinct_rows, self.cohorts, self.distinct, extremes)


class BlockRun:
    """The state of a run: the job, its scorer and workers, and its results so far.

    wanted: what is scored; slots: for each measure which of that it is. logs: log2 of small counts. shares: whether
    scores are left as `SharedScores`, where the job takes them wherever they are made.
    """

    def __init__(self, job: Job, progress: Progress, workers: Workers, block_rows: int, scorer: Scorer) -> None:
        self.job = job
        self.progress = progress
        self.workers = workers
        self.block_rows = block_rows
        self.scorer = scorer
        different, self.slots = deduplicate(job.measures)
        self.wanted = wanted_of(different, job.unit)
        self.logs = small_logs()
        self.shares = job.scores_on == "either" and not job.extremes_only
        self.results = Results(job, None if self.shares else np.empty)
        for values in self.results.values:
            self._touch(values)

    def lasting(self, shape: int | tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:
        """An array for what `put` is given: of the working memory, unless scores stay there."""
        if self.shares:
            return np.empty(shape, dtype)
        return self.workers.empty(shape, dtype)

    def put(self, column: int, found: ScoredColumnScores) -> None:
        """Bring the scores of a scored column to all rows, or keep them as they are."""
        results = self.results
        taken = [
            Taken(slot, factor, np.dtype(kind))
            for slot, factor, kind in zip(self.slots, results.factors(column), results.types, strict=True)
        ]
        if self.shares:
            results.keep(column, found, taken)
            return
        outs = [values[self.job.scored_columns.index(column)] for values in results.values]

        def put(start: int, stop: int) -> None:
            put_rows(found, taken, start, [out[start:stop] for out in outs])

        self.workers.run(put, self.workers.ranges(self.job.rows))

    def _touch(self, values: npt.NDArray[Any]) -> None:
        """Have the memory of results made ready: getting it later would push the scores out of the caches."""
        flat = values.reshape(-1)
        step = PAGE_BYTES // values.itemsize

        def touch(start: int, stop: int) -> None:
            flat[start:stop:step] = 0

        self.workers.run(touch, self.workers.ranges(flat.size))
