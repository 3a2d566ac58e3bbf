"""What all steps of one run of the CPU engine share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..information import column_weight, entropy_of_counts, log2_counts
from .base import EngineResult, Job, Progress
from .workers import Workers

if TYPE_CHECKING:
    import numpy.typing as npt

LOG_TABLE = 1024
PAGE_BYTES = 4096


class Run:
    """The job, who works on it, and its results so far.

    numbers: of the measures. logs: log2 of small counts. weights: per target. values: scores (targets, rows) of each
    measure.
    """

    def __init__(self, job: Job, progress: Progress, workers: Workers, block_rows: int) -> None:
        self.job = job
        self.progress = progress
        self.workers = workers
        self.block_rows = block_rows
        self.numbers = np.array([measure.number for measure in job.measures])
        self.entropies = [entropy_of_counts(counts) for counts in job.counts]
        self.logs = log2_counts(np.arange(LOG_TABLE))
        self.weights = [0.0] * len(job.targets)
        self.values = [
            self._touched((len(job.targets), job.rows), "int64" if measure.integer else job.dtype)
            for measure in job.measures
        ]

    def _touched(self, shape: tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:
        """An array whose memory is there already: getting it later would push the scores out of the caches."""
        array = np.empty(shape, dtype)
        flat = array.reshape(-1)
        step = PAGE_BYTES // array.itemsize

        def touch(start: int, stop: int) -> None:
            flat[start:stop:step] = 0

        self.workers.run(touch, self.workers.ranges(flat.size))
        return array

    def weigh(self, column: int, cohorts: float, distinct: float) -> None:
        """Set the weight of one target: H(X|known) / H(X).

        H(X|known) n = sum of C log2 C over cohorts (`cohorts`) - sum of c log2 c over distinct rows (`distinct`).
        """
        weight = column_weight(cohorts - distinct, self.job.rows, self.entropies[column])
        self.weights[self.job.targets.index(column)] = weight

    def result(self, distinct_rows: int) -> EngineResult:
        """What the engine gives back when all targets are scored."""
        values = {measure.name: scores for measure, scores in zip(self.job.measures, self.values, strict=True)}
        return EngineResult(values, self.weights, distinct_rows)
