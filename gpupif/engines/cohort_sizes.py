"""How many cohorts there are of each size: what the weights of columns are computed from, exactly in any order."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpupif.kernels import sizes as kernels

from ..rows.threads import Workers
from ..utils.information import LogSum, Sizes, log2_counts

if TYPE_CHECKING:
    import numpy.typing as npt

SMALL_COHORTS = 4096
# c log2 c of small sizes c has up to 72 bits: sums of such digits over very many cohorts fit into 64.
DIGITS, DIGIT_BITS = 3, 25


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
        small = np.arange(SMALL_COHORTS)
        return Sizes.of(np.concatenate([small, large]), np.concatenate([self.small[target], times]))

    def log_sum(self, target: int) -> LogSum:
        """`sizes(target).log_sum()`, but faster; of up to 2^38 rows in small cohorts."""
        digits = (self.small[target] @ _small_terms()).tolist()
        units = sum(digit << (DIGIT_BITS * place) for place, digit in enumerate(digits))
        if self.listed[target]:
            large = self.large[target, : self.listed[target]]
            units += Sizes(large, np.ones(len(large), np.int64)).log_sum().units
        return LogSum(units)


@cache
def _small_terms() -> npt.NDArray[np.int64]:
    """Of each small size c, c log2 c in units: DIGITS digits of DIGIT_BITS bits each, the lowest first."""
    logs = log2_counts(np.arange(SMALL_COHORTS)).tolist()
    terms = [size * log if size else 0 for size, log in enumerate(logs)]
    lowest = (1 << DIGIT_BITS) - 1
    return np.array([[term >> (DIGIT_BITS * place) & lowest for place in range(DIGITS)] for term in terms])


def sizes_of_counts(counts: npt.NDArray[Any], total: int, workers: Workers) -> Sizes:
    """These counts, of a table of so many rows, by size."""

    def count(start: int, stop: int) -> CohortSizes:
        cohort_sizes = CohortSizes.of(1, total, stop - start)
        part = counts[start:stop]
        cohort_sizes.listed[0] = kernels.count_sizes(part, len(part), cohort_sizes.small[0], cohort_sizes.large[0], 0)
        return cohort_sizes

    return CohortSizes.sum(workers.run(count, workers.ranges(len(counts))), 1, total, len(counts)).sizes(0)
