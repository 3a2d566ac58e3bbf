"""The number of cohorts of each size, in whole numbers: the weights of columns follow from it, in any order of rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels import sizes as kernels

from ..rows.threads import Workers
from ..utils.information import LogSum, Sizes

SMALL_COHORTS = 4096
SMALL_SIZES = np.arange(SMALL_COHORTS)


class CohortSizes(NamedTuple):
    """The cohorts of scored columns by size, in arrays that kernels fill.

    small: (scored columns, SMALL_COHORTS) int64. The number of cohorts of each small size.
    large: (scored columns, room) int64. The sizes of the larger cohorts, of which there are few.
    listed: (scored columns,) int64. The number of sizes in `large`.
    """

    small: npt.NDArray[np.int64]
    large: npt.NDArray[np.int64]
    listed: npt.NDArray[np.int64]

    @classmethod
    def empty(cls, scored_columns: int, total: int, rows: int) -> CohortSizes:
        """Return arrays without cohorts, with room for `rows` distinct rows of a table of `total` rows."""
        large = np.empty((scored_columns, min(total // SMALL_COHORTS, rows) + 1), np.int64)
        return cls(np.zeros((scored_columns, SMALL_COHORTS), np.int64), large, np.zeros(scored_columns, np.int64))

    @classmethod
    def from_counts(cls, counts: npt.NDArray[Any], total: int) -> CohortSizes:
        """Return the sizes of one scored column. counts: the size of each cohort. total: rows of the table."""
        small, large, listed = sizes = cls.empty(1, total, len(counts))
        listed[0] = kernels.count_sizes(counts, len(counts), small[0], large[0], 0)
        return sizes

    @classmethod
    def sum(cls, tallies: Iterable[CohortSizes], scored_columns: int, total: int, rows: int) -> CohortSizes:
        """Return the sum of the tallies of several parts of one table. Other arguments: see `empty`."""
        cohort_sizes, parts = cls.empty(scored_columns, total, rows), list(tallies)
        if len(parts) == 1 and parts[0].large.shape == cohort_sizes.large.shape:
            return parts[0]
        for part in parts:
            for scored_column in range(scored_columns):
                cohort_sizes.add(scored_column, part, scored_column)
        return cohort_sizes

    def add(self, scored_column: int, other: CohortSizes, place: int) -> None:
        """Add the cohorts of scored column `place` in `other` to `scored_column`."""
        self.small[scored_column] += other.small[place]
        start, more = self.listed[scored_column], other.listed[place]
        self.large[scored_column, start : start + more] = other.large[place, :more]
        self.listed[scored_column] = start + more

    def add_sizes(self, scored_column: int, sizes: npt.NDArray[np.int64]) -> None:
        """Add cohorts of these sizes to `scored_column`."""
        large = sizes[sizes >= SMALL_COHORTS]
        start = self.listed[scored_column]
        self.large[scored_column, start : start + len(large)] = large
        self.listed[scored_column] += len(large)
        self.small[scored_column] += np.bincount(sizes[sizes < SMALL_COHORTS], minlength=SMALL_COHORTS)

    def sizes(self, scored_column: int) -> Sizes:
        """Return the cohorts of a scored column by size."""
        large, multiplicities = np.unique(self.large[scored_column, : self.listed[scored_column]], return_counts=True)
        return Sizes.from_counts(
            np.concatenate([SMALL_SIZES, large]),
            np.concatenate([self.small[scored_column], multiplicities]),
        )

    def log_sum(self, scored_column: int) -> LogSum:
        """Return `sizes(scored_column).log_sum()`, faster: the large sizes need no sorting."""
        large = self.large[scored_column, : self.listed[scored_column]]
        return LogSum.total(
            [Sizes(SMALL_SIZES, self.small[scored_column]), Sizes(large, np.ones(len(large), np.int64))]
        )


def sizes_of_counts(counts: npt.NDArray[Any], total: int, workers: Workers) -> Sizes:
    """Return counts by size. counts: sizes of cohorts or distinct rows. total: rows of the table."""
    parts = workers.run(lambda a, b: CohortSizes.from_counts(counts[a:b], total), workers.ranges(len(counts)))
    return CohortSizes.sum(parts, 1, total, len(counts)).sizes(0)
