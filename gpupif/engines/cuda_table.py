"""A table scored on one device that holds all of it.

Codes that are on the host give scores there; codes that are on the device already give scores on the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..information import sum_count_log_count
from .base import EngineResult, Job, Progress
from .cuda_library import Library
from .cuda_rows import DeviceRows, collapse, pack_keys
from .cuda_scores import score_targets
from .run import Results


def score_table(job: Job, progress: Progress, library: Library, grouping: str) -> EngineResult:
    """Score all targets of the job; grouping: one of `GROUPINGS`. Raises MemoryError where it is too small."""
    with library.active():
        return _TableRun(job, progress, library, grouping).result()


class _TableRun:
    """What the steps of one run share."""

    def __init__(self, job: Job, progress: Progress, library: Library, grouping: str) -> None:
        self.job = job
        self.progress = progress
        self.library = library
        self.grouping = grouping
        self.on_device = library.is_there(job.codes[0])
        self.results = Results(job, library.xp if self.on_device else np)

    def result(self) -> EngineResult:
        """Score the targets among the known on one round of sorts, each of the others on one of its own."""
        job, library, layout = self.job, self.library, self.results.layout
        inside = [column for column in job.targets if column in job.known]
        first = [*inside, *(column for column in range(len(job.codes)) if column not in inside)]
        keys = pack_keys(library, dict(enumerate(job.codes)), job.rows, layout)
        table = DeviceRows(keys, library.xp.ones(job.rows, "int64"))
        distinct, number = collapse(library, table, layout, first)
        del keys, table
        for targets in (inside, *([column] for column in job.targets if column not in job.known)):
            if targets:
                self._score_projection(distinct, number, targets, first)
        return self.results.finished(distinct.rows)

    def _score_projection(
        self, distinct: DeviceRows, number: Any, targets: Sequence[int], sorted_by: Sequence[int]
    ) -> None:
        """Score targets against the known columns; `distinct` are rows over the columns `sorted_by`, in that order."""
        library, job, results = self.library, self.job, self.results
        columns = [*targets, *(column for column in job.known if column not in targets)]
        if set(columns) != set(sorted_by) or list(targets) != list(sorted_by[: len(targets)]):
            distinct, narrow = collapse(library, distinct, results.layout, columns)
            number = narrow[number]
        joint = self._sum_log(distinct.counts)
        layout = results.layout
        for target, sizes, scores in score_targets(library, job, distinct, layout, columns, targets, self.grouping):
            results.weigh(target, self._sum_log(sizes), joint)
            place = job.targets.index(target)
            for factor, values, out in zip(results.factors(target), scores, results.values, strict=True):
                of_rows = (factor * values)[number].astype(out.dtype)
                if self.on_device:
                    out[place] = of_rows
                else:
                    library.to_host(of_rows, out[place])
                del values, of_rows
            # Before the next ones are made.
            del scores
            self.progress.advance(job.rows)

    def _sum_log(self, counts: Any) -> float:
        """Sum of c log2 c over these counts, by the function and in the order of the CPU engine."""
        sizes, times = self.library.xp.unique(counts, return_counts=True)
        return sum_count_log_count(self.library.to_host(sizes), self.library.to_host(times))
