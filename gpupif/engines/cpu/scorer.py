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

# Scored columns are scored and spread to all rows a few at a time, so that a cache holds their scores.
CACHED_BYTES = 1 << 24
# Rows that are a whole cohort share the scores of their value and the cohort's size, up to this size.
LARGEST_SHARED_SIZE = 16


@dataclass(frozen=True)
class CpuScoredColumns:
    """Scored columns as the CPU's kernels know them (see `ScoredColumns`).

    columns: their places in the job. kernel_columns: their indices in `kernel`. kernel: of all scored columns that are
    described together. values: how many scores of one-value cohorts `Out` may have for a scored column. wanted: what
    the kernels compute.
    """

    columns: Sequence[int]
    kernel_columns: npt.NDArray[np.int64]
    kernel: kernels.ScoredColumns
    values: int
    wanted: Wanted

    def only(self, slots: list[int]) -> CpuScoredColumns:
        """Return some of them, by their places here."""
        columns = [self.columns[slot] for slot in slots]
        return replace(self, columns=columns, kernel_columns=self.kernel_columns[slots])

    def put_values(self, out: kernels.Out) -> None:
        """Put the scores of one-value cohorts after those of rows."""
        rows, first = out.places.shape[1], self.kernel.values.first
        for scores, column in zip(out.scores, self.kernel_columns.tolist(), strict=True):
            one_value_scores = self.kernel.one_value_scores[first[column] : first[column + 1]]
            kernels.put_values(one_value_scores, self.wanted, self.kernel.largest_shared_size[column], scores[rows:])


class CpuScorer:
    """Scores blocks with the CPU's kernels (see `Scorer`)."""

    def scored_columns_at_once(self, rows: int, measures: int) -> int:
        """Return how many scored columns to score at once on so many distinct rows."""
        return max(1, CACHED_BYTES // (8 * rows * measures))

    def describe(self, run: BlockRun, columns: Sequence[int], layout: KeyLayout) -> CpuScoredColumns:
        """Return these columns as kernels know them, in keys of this layout, with the scores of one-value cohorts."""
        job = run.job
        values, axes, wanted = kernels.only_needed(kernel_values(job, columns), run.wanted)
        fields = np.array([layout.fields[column] for column in columns], np.uint64)
        numbers = np.diff(values.first)
        # Except for its size, a cohort of one value has the same scores however many rows it is.
        most = LARGEST_SHARED_SIZE if any(measure.is_size for measure in job.measures) else 1
        largest_shared_size = np.clip(SHARED_SCORES // np.maximum(1, numbers), 1, most)
        one_value_scores = np.empty((values.first[-1], len(wanted.measures)))
        kernel = kernels.ScoredColumns(fields, values, axes, one_value_scores, largest_shared_size, run.logs)

        def score_values(index: int, start: int, stop: int) -> None:
            kernels.score_values(index, start, stop, kernel, wanted, index_type(run.results.total + 1))

        tasks = [
            (index, *edges)
            for index, column in enumerate(columns)
            for edges in run.workers.ranges(len(job.priors[column]))
        ]
        run.workers.run(score_values, tasks)
        shared = int((largest_shared_size * numbers).max())
        return CpuScoredColumns(columns, np.arange(len(columns)), kernel, shared, wanted)

    def score(
        self, run: BlockRun, blocks: CohortBlocks, scored_columns: CpuScoredColumns, out: kernels.Out
    ) -> list[CohortSizes]:
        """Fill `out` for the rows in partition order; see `Scorer`."""
        rows, offsets = blocks.blocks.rows, blocks.blocks.offsets
        keys = (rows.keys, rows.counts, blocks.hashes)

        def score(first: int, last: int) -> CohortSizes:
            largest = int(np.diff(offsets[first : last + 1]).max())
            memory = kernels.memory_for(largest, rows.counts.dtype, scored_columns.wanted.kinds)
            sizes = CohortSizes.of(len(scored_columns.columns), run.results.total, int(offsets[last] - offsets[first]))
            ends = np.full(len(scored_columns.columns), offsets[first])
            place = (keys, offsets, (first, last), scored_columns.kernel_columns)
            asked = (scored_columns.kernel, scored_columns.wanted)
            kernels.score_blocks(kernels.NO_VALUES, *place, *asked, memory, tuple(sizes), ends, out)
            return sizes

        return run.workers.run(score, blocks.tasks)
