"""The CUDA engine: rows sorted into cohorts on the device, Numba CUDA kernels score them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..information import entropy_of_counts, sum_count_log_count
from ..keys import KeyLayout
from .base import EngineResult, Job, Progress, column_weight
from .cuda_library import Library, current_library
from .cuda_rows import DeviceRows, collapse, pack_keys
from .cuda_scores import score_targets

if TYPE_CHECKING:
    import numpy.typing as npt


class CudaEngine:
    """Scores on a GPU. library: the arrays and the device that it works with."""

    device = "cuda"

    def __init__(self, library: Library | None = None) -> None:
        self.library = library

    def score(self, job: Job, progress: Progress) -> EngineResult:
        """Score all targets of the job (see `Engine`)."""
        return _Run(job, progress, self.library or current_library()).result()


class _Run:
    """One scoring run on one device, with all of the table on it."""

    def __init__(self, job: Job, progress: Progress, library: Library) -> None:
        self.job = job
        self.progress = progress
        self.library = library
        self.layout = KeyLayout.of([len(counts) for counts in job.counts])
        self.entropies = [entropy_of_counts(counts) for counts in job.counts]
        self.weights = [0.0] * len(job.targets)
        self.values: dict[str, npt.NDArray[Any]] = {
            measure.name: np.empty((len(job.targets), job.rows), np.int64 if measure.integer else job.dtype)
            for measure in job.measures
        }

    def result(self) -> EngineResult:
        """Score the targets among the known on one round of sorts, each of the others on one of its own."""
        job, library = self.job, self.library
        inside = [column for column in job.targets if column in job.known]
        first = [*inside, *(column for column in range(len(job.codes)) if column not in inside)]
        keys = pack_keys(library, dict(enumerate(job.codes)), job.rows, self.layout)
        table = DeviceRows(keys, library.xp.ones(job.rows, "int64"))
        distinct, number = collapse(library, table, self.layout, first)
        del keys, table
        for targets in (inside, *([column] for column in job.targets if column not in job.known)):
            if targets:
                self._score_projection(distinct, number, targets, first)
        return EngineResult(self.values, self.weights, distinct.rows)

    def _score_projection(
        self, distinct: DeviceRows, number: Any, targets: Sequence[int], sorted_by: Sequence[int]
    ) -> None:
        """Score targets against the known columns; `distinct` are rows over the columns `sorted_by`, in that order."""
        library, job = self.library, self.job
        columns = [*targets, *(column for column in job.known if column not in targets)]
        if set(columns) != set(sorted_by) or list(targets) != list(sorted_by[: len(targets)]):
            distinct, narrow = collapse(library, distinct, self.layout, columns)
            number = narrow[number]
        joint = self._sum_log(distinct.counts)
        for target, sizes, scores in score_targets(library, job, distinct, self.layout, columns, targets):
            place = job.targets.index(target)
            weight = column_weight(self._sum_log(sizes) - joint, job.rows, self.entropies[target])
            self.weights[place] = weight
            for measure, values in zip(job.measures, scores, strict=True):
                out = self.values[measure.name][place]
                weighted = weight * values if measure.weighted else values
                library.to_host(weighted[number].astype(out.dtype), out)
            self.progress.advance(job.rows)

    def _sum_log(self, counts: Any) -> float:
        """Sum of c log2 c over these counts, by the function and in the order of the CPU engine."""
        sizes, times = self.library.xp.unique(counts, return_counts=True)
        return sum_count_log_count(self.library.to_host(sizes), self.library.to_host(times))
