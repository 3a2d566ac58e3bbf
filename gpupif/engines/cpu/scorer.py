"""Blocks of distinct rows scored by the CPU's kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gpupif.kernels import blocks as kernels

from ...rows.keys import KeyLayout
from ...rows.partition import CohortBlocks, index_type
from ..block_scoring import SHARED_SCORES, BlockRun
from ..cohort_sizes import CohortSizes
from ..kernel_inputs import kernel_values

if TYPE_CHECKING:
    from gpupif.kernels.cohorts import Wanted

# So many scored columns are scored and spread to all rows before the next ones that a cache holds their scores.
CACHED_BYTES = 1 << 24
# Rows that are all of their cohort share scores by value and number, of up to so many.
FEW = 16


@dataclass(frozen=True)
class CpuScoredColumns:
    """Scored column columns, which they are of those that the kernels know, and what these are.

    values: see `ScoredColumns`.
    """

    columns: Sequence[int]
    which: npt.NDArray[np.int64]
    kernel: kernels.ScoredColumns
    values: int
    wanted: Wanted

    def only(self, places: list[int]) -> CpuScoredColumns:
        """See `ScoredColumns`."""
        return replace(self, columns=[self.columns[place] for place in places], which=self.which[places])

    def put_values(self, out: kernels.Out) -> None:
        """See `ScoredColumns`."""
        rows, first = out.places.shape[1], self.kernel.values.first
        for scores, scored_column in zip(out.scores, self.which.tolist(), strict=True):
            alone = self.kernel.alone[first[scored_column] : first[scored_column + 1]]
            kernels.put_values(alone, self.wanted, self.kernel.few[scored_column], scores[rows:])


class CpuScorer:
    """Scores blocks with the CPU's kernels (see `Scorer`)."""

    def scored_columns_at_once(self, rows: int, measures: int) -> int:
        """See `Scorer`."""
        return max(1, CACHED_BYTES // (8 * rows * measures))

    def describe(self, run: BlockRun, columns: Sequence[int], layout: KeyLayout) -> CpuScoredColumns:
        """See `Scorer`."""
        job = run.job
        values, axes, wanted = kernels.only_needed(kernel_values(job, columns), run.wanted)
        fields = np.array([layout.fields[column] for column in columns], np.uint64)
        numbers = np.diff(values.first)
        # But for its size, a cohort of one value has the same scores however many rows it is.
        most = FEW if any(measure.is_size for measure in job.measures) else 1
        few = np.clip(SHARED_SCORES // np.maximum(1, numbers), 1, most)
        alone = np.empty((values.first[-1], len(wanted.measures)))
        kernel = kernels.ScoredColumns(fields, values, axes, alone, few, run.logs)

        def score_values(scored_column: int, start: int, stop: int) -> None:
            kernels.score_values(scored_column, start, stop, kernel, wanted, index_type(run.results.total + 1))

        tasks = [
            (scored_column, *edges)
            for scored_column, column in enumerate(columns)
            for edges in run.workers.ranges(len(job.priors[column]))
        ]
        run.workers.run(score_values, tasks)
        return CpuScoredColumns(columns, np.arange(len(columns)), kernel, int((few * numbers).max()), wanted)

    def score(
        self, run: BlockRun, blocks: CohortBlocks, scored_columns: CpuScoredColumns, out: kernels.Out
    ) -> list[CohortSizes]:
        """See `Scorer`."""
        part = blocks.blocks
        rows = (part.rows.keys, part.rows.counts, blocks.hashes)

        def score(first: int, last: int) -> CohortSizes:
            largest = int(np.diff(part.offsets[first : last + 1]).max())
            memory = kernels.memory_for(largest, part.rows.counts.dtype, scored_columns.wanted.kinds)
            rows_here = int(part.offsets[last] - part.offsets[first])
            cohort_sizes = CohortSizes.of(len(scored_columns.columns), run.results.total, rows_here)
            place = (rows, part.offsets, (first, last), scored_columns.which)
            ends = np.full(len(scored_columns.columns), part.offsets[first])
            asked = (scored_columns.kernel, scored_columns.wanted)
            kernels.score_blocks(kernels.NONE_ALONE, *place, *asked, memory, tuple(cohort_sizes), ends, out)
            return cohort_sizes

        return run.workers.run(score, blocks.tasks)
