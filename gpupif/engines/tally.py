"""How many cohorts there are of each size: what the weights of columns are computed from, exactly in any order."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpupif.kernels import sizes as kernels

from ..information import MANTISSA_BITS, Sizes
from .workers import Workers

if TYPE_CHECKING:
    import numpy.typing as npt

SMALL_COHORTS = 4096
# Bits of the lower part of a term of a sum: sums of both parts over up to 2^33 rows fit into 64.
LOW_BITS = 30


class Tally(NamedTuple):
    """Where kernels count, per target: small cohorts by their size, the others, being few, in a list."""

    small: npt.NDArray[np.int64]
    large: npt.NDArray[np.int64]
    listed: npt.NDArray[np.int64]

    @classmethod
    def of(cls, targets: int, total: int, rows: int) -> Tally:
        """For so many targets and `rows` distinct rows, of a table of `total`."""
        large = np.empty((targets, min(total // SMALL_COHORTS, rows) + 1), np.int64)
        return cls(np.zeros((targets, SMALL_COHORTS), np.int64), large, np.zeros(targets, np.int64))

    @classmethod
    def sum(cls, tallies: Iterable[Tally], targets: int, total: int, rows: int) -> Tally:
        """The sum of tallies of parts of the same table; see `of`."""
        tally = cls.of(targets, total, rows)
        for part in tallies:
            for target in range(targets):
                tally.add(target, part, target)
        return tally

    def add(self, target: int, other: Tally, place: int) -> None:
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

    def sum_log(self, target: int) -> float:
        """`sizes(target).sum_log()`, to the last bit, but faster; of up to 2^33 rows in small cohorts."""
        times, (high, low) = self.small[target], _small_terms()
        digits = (int(times @ high) << LOW_BITS) + int(times @ low)
        if self.listed[target]:
            large = self.large[target, : self.listed[target]]
            terms = Sizes(large, np.ones(len(large), np.int64)).log_sum().digits
            digits += sum(more << exponent for exponent, more in terms.items())
        return digits / (1 << MANTISSA_BITS)


@cache
def _small_terms() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """C log2 c for each small size c, in units of 2^-MANTISSA_BITS: all but the lower bits, and these."""
    sizes = np.arange(2.0, SMALL_COHORTS)
    fractions, exponents = np.frexp(sizes * np.log2(sizes))
    digits = np.ldexp(fractions, MANTISSA_BITS).astype(np.int64)
    high, low = np.zeros((2, SMALL_COHORTS), np.int64)
    high[2:] = digits >> (LOW_BITS - exponents)
    low[2:] = (digits << exponents) & ((1 << LOW_BITS) - 1)
    return high, low


def sizes_of_counts(counts: npt.NDArray[Any], total: int, workers: Workers) -> Sizes:
    """These counts, of a table of so many rows, by size."""

    def count(start: int, stop: int) -> Tally:
        tally = Tally.of(1, total, stop - start)
        part = counts[start:stop]
        tally.listed[0] = kernels.count_sizes(part, len(part), tally.small[0], tally.large[0], 0)
        return tally

    return Tally.sum(workers.run(count, workers.ranges(len(counts))), 1, total, len(counts)).sizes(0)
