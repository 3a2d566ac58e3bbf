"""How many cohorts there are of each size: what the weights of columns are computed from, exactly in any order."""

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
    """Where kernels count, per target: small cohorts by their size, the others, being few, in a list."""

    small: npt.NDArray[np.int64]
    large: npt.NDArray[np.int64]
    listed: npt.NDArray[np.int64]

    @classmethod
    def of(cls, targets: int, total: int, rows: int) -> CohortSizes:
        """For so many targets and `rows` distinct rows, of a table of `total`."""
        large = np.empty((targets, min(total // SMALL_COHORTS, rows) + 1), np.int64)
        return cls(np.zeros((targets, SMALL_COHORTS), np.int64), large, np.zeros(targets, np.int64))

    @classmethod
    def of_counts(cls, counts: npt.NDArray[Any], total: int) -> CohortSizes:
        """Those of one target: these, of a table of `total` rows."""
        found = cls.of(1, total, len(counts))
        found.listed[0] = kernels.count_sizes(counts, len(counts), found.small[0], found.large[0], 0)
        return found

    @classmethod
    def sum(cls, tallies: Iterable[CohortSizes], targets: int, total: int, rows: int) -> CohortSizes:
        """The sum of tallies of parts of the same table; see `of`."""
        cohort_sizes = cls.of(targets, total, rows)
        for part in tallies:
            for target in range(targets):
                cohort_sizes.add(target, part, target)
        return cohort_sizes

    def add(self, target: int, other: CohortSizes, place: int) -> None:
        """Add what `other` has of its target `place` to `target`."""
        self.small[target] += other.small[place]
        start, more = self.listed[target], other.listed[place]
        self.large[target, start : start + more] = other.large[place, :more]
        self.listed[target] = start + more

    def add_sizes(self, target: int, sizes: npt.NDArray[np.int64]) -> None:
        """Add cohorts of these sizes to `target`."""
        large = sizes[sizes >= SMALL_COHORTS]
        start = self.listed[target]
        self.large[target, start : start + len(large)] = large
        self.listed[target] += len(large)
        self.small[target] += np.bincount(sizes[sizes < SMALL_COHORTS], minlength=SMALL_COHORTS)

    def sizes(self, target: int) -> Sizes:
        """The cohorts of a target by size."""
        large, times = np.unique(self.large[target, : self.listed[target]], return_counts=True)
        return Sizes.of(np.concatenate([SMALL_SIZES, large]), np.concatenate([self.small[target], times]))

    def log_sum(self, target: int) -> LogSum:
        """`sizes(target).log_sum()`, but faster."""
        large = self.large[target, : self.listed[target]]
        return LogSum.total([Sizes(SMALL_SIZES, self.small[target]), Sizes(large, np.ones(len(large), np.int64))])


def sizes_of_counts(counts: npt.NDArray[Any], total: int, workers: Workers) -> Sizes:
    """These counts, of a table of so many rows, by size."""
    parts = workers.run(lambda a, b: CohortSizes.of_counts(counts[a:b], total), workers.ranges(len(counts)))
    return CohortSizes.sum(parts, 1, total, len(counts)).sizes(0)
