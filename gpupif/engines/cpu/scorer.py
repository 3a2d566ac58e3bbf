"""The scorer of blocks of distinct rows on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gpupif.kernels import blocks as kernels

from ...rows.keys import KeyLayout
from ...rows.partition import CohortBlocks, index_type
from ...rows.threads import SMALLEST_TASK
from ..block_scoring import SHARED_SCORES, BlockRun
from ..cohort_sizes import CohortSizes
from ..kernel_inputs import kernel_values

if TYPE_CHECKING:
    from gpupif.kernels.cohorts import WantedMeasures

# Most bytes of scores at once. A few columns are scored, and copied to all rows while the cache still has their scores.
CACHED_BYTES = 1 << 24
# Largest one-value cohort whose rows share scores by value and size.
LARGEST_SHARED_SIZE = 16


@dataclass(frozen=True)
class CpuScoredColumns:
    """Scored columns, described to the CPU's kernels (see `ScoredColumns`).

    columns: their places in the job.
    kernel_columns: their places in `kernel`.
    kernel: the arrays of all scored columns that were described together.
    values: the most scores of one-value cohorts that `BlockScores` has for a scored column.
    wanted: the measures and statistics that the kernels compute.
    """

    columns: Sequence[int]
    kernel_columns: npt.NDArray[np.int64]
    kernel: kernels.ScoredColumns
    values: int
    wanted: WantedMeasures

    def only(self, slots: list[int]) -> CpuScoredColumns:
        """Return the scored columns in some slots. slots: places in `columns`."""
        columns = [self.columns[slot] for slot in slots]
        return replace(self, columns=columns, kernel_columns=self.kernel_columns[slots])

    def put_values(self, out: kernels.BlockScores) -> None:
        """Append the scores of one-value cohorts to the scores of rows in `out`."""
        rows, first = out.places.shape[1], self.kernel.values.first
        for scores, column in zip(out.scores, self.kernel_columns.tolist(), strict=True):
            one_value_scores = self.kernel.one_value_scores[first[column] : first[column + 1]]
            kernels.put_values(one_value_scores, self.wanted, self.kernel.largest_shared_size[column], scores[rows:])


class CpuScorer:
    """The scorer with the CPU's kernels (see `Scorer`)."""

    def scored_columns_at_once(self, rows: int, measures: int) -> int:
        """Return the number of scored columns to score at once. rows: distinct rows. measures: their number."""
        return max(1, CACHED_BYTES // (8 * rows * measures))

    def describe(self, run: BlockRun, columns: Sequence[int], layout: KeyLayout) -> CpuScoredColumns:
        """Describe columns to the kernels, and compute the scores of one-value cohorts. layout: of the row keys."""
        job = run.job
        values, axes, wanted = kernels.only_needed(kernel_values(job, columns), run.wanted)
        fields = np.array([layout.fields[column] for column in columns], np.uint64)
        numbers, firsts = np.diff(values.first), values.first // SMALLEST_TASK
        # Only measures of size depend on the size of a one-value cohort: without them one size serves all.
        most = LARGEST_SHARED_SIZE if any(measure.is_size for measure in job.measures) else 1
        largest_shared_size = np.clip(SHARED_SCORES // np.maximum(1, numbers), 1, most)
        one_value_scores = np.empty((values.first[-1], len(wanted.measures)))
        kernel = kernels.ScoredColumns(fields, values, axes, one_value_scores, largest_shared_size, run.logs)

        def score_values(some: tuple[int, int], start: int, stop: int) -> None:
            kernels.score_values(some, start, stop, kernel, wanted, index_type(run.results.total + 1))

        # A call for each column with few values would take longer than its values.
        tasks: list[tuple[tuple[int, int], int, int]] = []
        for _, group in groupby(range(len(columns)), lambda index: (numbers[index] < SMALLEST_TASK, firsts[index])):
            first, *others = group
            last = first + len(others) + 1
            tasks += [((first, last), *edges) for edges in run.workers.ranges(int(numbers[first:last].max()))]
        run.workers.run(score_values, tasks)
        shared = int((largest_shared_size * numbers).max())
        return CpuScoredColumns(columns, np.arange(len(columns)), kernel, shared, wanted)

    def score(
        self, run: BlockRun, blocks: CohortBlocks, scored_columns: CpuScoredColumns, out: kernels.BlockScores
    ) -> list[CohortSizes]:
        """Fill `out` for the rows in partition order; see `Scorer`."""
        rows, offsets = blocks.blocks.rows, blocks.blocks.offsets
        keys = (rows.keys, rows.counts, blocks.hashes)

        def score(first: int, last: int) -> CohortSizes:
            largest = int(np.diff(offsets[first : last + 1]).max())
            memory = kernels.memory_for(largest, rows.counts.dtype, scored_columns.wanted.kinds)
            size = int(offsets[last] - offsets[first])
            sizes = CohortSizes.empty(len(scored_columns.columns), run.results.total, size)
            ends = np.full(len(scored_columns.columns), offsets[first])
            place = (keys, offsets, (first, last), scored_columns.kernel_columns)
            asked = (scored_columns.kernel, scored_columns.wanted)
            kernels.score_blocks(kernels.NO_VALUES, *place, *asked, memory, tuple(sizes), ends, out)
            return sizes

        return run.workers.run(score, blocks.tasks)
