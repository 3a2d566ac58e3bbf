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

if TYPE_CHECKING:
    from gpupif.kernels.blocks import Out

PAGE_BYTES = 4096


class Targets(Protocol):
    """Target columns as a scorer knows them.

    values: how many scores of values by themselves `Out` may have for a target.
    """

    columns: Sequence[int]
    values: int

    def only(self, places: list[int]) -> Targets:
        """Some of them, by their places here."""

    def put_values(self, out: Out) -> None:
        """Put the scores of values by themselves behind those of rows."""


class Scorer(Protocol):
    """Scores blocks of distinct rows: on the CPU or a GPU."""

    def targets_at_once(self, rows: int, measures: int) -> int:
        """How many targets to score at once on so many distinct rows."""

    def describe(self, run: BlockRun, columns: Sequence[int], layout: KeyLayout) -> Any:
        """The `Targets` that these columns are, in keys of this layout."""

    def score(self, run: BlockRun, blocks: CohortBlocks, targets: Any, out: Out) -> Sequence[CohortSizes]:
        """Fill `out` for the rows in partition order, but those of children; scores in the order of `run.wanted`.

        Returns how many cohorts of each size there are, in parts.
        """


class Results:
    """What a run has found so far: weights per target, and scores (targets, rows) of each measure or their extremes.

    empty: makes the arrays that the scores are to be, of the host or a device, from shape and type.
    """

    def __init__(self, job: Job, empty: Callable[[tuple[int, int], str], Any] = np.empty) -> None:
        self.job = job
        self.layout = job.layout
        self.entropies = [entropy_of_counts(counts) for counts in job.counts]
        self.weights = [0.0] * len(job.targets)
        nothing: Sizes | LogSum = Sizes.total([])
        self.cohorts, self.distinct = [nothing] * len(job.targets), [nothing] * len(job.targets)
        # Counted once: with `times` it is a sum.
        self.total = job.total
        measures = () if job.extremes_only else job.measures
        self.values = [empty((len(job.targets), job.rows), measure.type_in(job.dtype)) for measure in measures]
        self.extremes = np.zeros((len(job.measures), len(job.targets), 2))

    def weigh(self, column: int, cohorts: Sizes, distinct: Sizes) -> None:
        """Set the weight of a target, from the sizes of its cohorts and of groups of equal rows."""
        target = self.job.targets.index(column)
        # Of weighted rows hardly any two groups are of the same size.
        weighted = self.job.unit is not None
        self.cohorts[target] = cohorts.log_sum() if weighted else cohorts
        self.distinct[target] = distinct.log_sum() if weighted else distinct
        conditional = conditional_entropy(cohorts.log_sum(), distinct.log_sum(), self.total)
        self.weights[target] = column_weight(conditional, self.entropies[column])

    def factors(self, column: int) -> list[float]:
        """By what to multiply the scores of a target: its weight or 1, for each measure."""
        weight = self.weights[self.job.targets.index(column)]
        return [weight if measure.weighted else 1.0 for measure in self.job.measures]

    def add_extremes(self, column: int, low: npt.NDArray[np.float64], high: npt.NDArray[np.float64]) -> None:
        """Set the lowest and highest scores of a target, by measure, weighted ones before weighting."""
        found = np.stack([low, high], axis=1) * np.array(self.factors(column))[:, None]
        self.extremes[:, self.job.targets.index(column)] = found

    def finished(self, distinct_rows: int) -> EngineResult:
        """What the engine gives back when all targets are scored."""
        names = [measure.name for measure in self.job.measures]
        if self.job.extremes_only:
            values, extremes = {}, dict(zip(names, self.extremes, strict=True))
        else:
            values, extremes = dict(zip(names, self.values, strict=True)), {}
        return EngineResult(values, self.weights, distinct_rows, self.cohorts, self.distinct, extremes)


class BlockRun:
    """The state of a run: the job, its scorer and workers, and its results so far.

    wanted: what is scored; slots: for each measure which of that it is. logs: log2 of small counts.
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
        self.results = Results(job)
        for values in self.results.values:
            self._touch(values)

    def _touch(self, values: npt.NDArray[Any]) -> None:
        """Have the memory of results made ready: getting it later would push the scores out of the caches."""
        flat = values.reshape(-1)
        step = PAGE_BYTES // values.itemsize

        def touch(start: int, stop: int) -> None:
            flat[start:stop:step] = 0

        self.workers.run(touch, self.workers.ranges(flat.size))
