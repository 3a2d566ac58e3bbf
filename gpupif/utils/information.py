"""Entropies of counts, in bits. They are summed in whole numbers, so they do not depend on the order of rows or values.

A logarithm is a whole number of *units*: 1 unit is 2^-LOG_BITS bits, see `kernels/log_units.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels.log_units import COARSE_LOG_BITS, LEAST_FINE, LOG_BITS

# Counts below this have their logarithms in a table.
SMALL_COUNTS = 1024


def log2_counts(counts: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Return log2 of each count, in units."""
    from gpupif.kernels.logarithms import log2_of_counts

    logs = np.empty(len(counts), np.int64)
    log2_of_counts(counts, logs)
    return logs


@cache
def small_logs() -> npt.NDArray[np.int64]:
    """Return log2 of the counts 0 to SMALL_COUNTS - 1, in units."""
    return log2_counts(np.arange(SMALL_COUNTS))


def log2_of_shares(counts: npt.NDArray[np.integer], total: int) -> npt.NDArray[np.int64]:
    """Return log2 of counts / total, in units."""
    return log2_counts(counts) - log2_counts(np.array([total]))


def log2_of_probabilities(probabilities: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.int64], int]:
    """Return log2 of probabilities in units of 2^-b bits, and b.

    probabilities: numbers above 0. b is `LOG_BITS`, or `COARSE_LOG_BITS` if a probability is below `LEAST_FINE`: its
    logarithm would not fit.
    """
    from gpupif.kernels import logarithms as kernels

    bits = LOG_BITS if probabilities.min(initial=1.0) >= LEAST_FINE else COARSE_LOG_BITS
    logs = np.empty(len(probabilities), np.int64)
    kernels.log2_of_probabilities(probabilities, bits, logs)
    return logs, bits


class Sizes(NamedTuple):
    """The numbers of cohorts, or of equivalence classes, by their size.

    Groups of one row are left out, as they add nothing to an entropy: log2(1) = 0.

    sizes: whole numbers, ascending. The sizes that occur, in rows.
    multiplicities: whole numbers. The number of groups of each size.
    """

    sizes: npt.NDArray[np.int64]
    multiplicities: npt.NDArray[np.int64]

    @classmethod
    def from_counts(
        cls, sizes: npt.NDArray[np.integer], multiplicities: npt.NDArray[np.integer] | None = None
    ) -> Sizes:
        """Return the sizes of groups. sizes: the size of each group. multiplicities: default 1."""
        if multiplicities is None:
            distinct, once = np.unique(sizes[sizes > 1], return_counts=True)
            return cls(distinct.astype(np.int64), once)
        keep = (sizes > 1) & (multiplicities > 0)
        distinct, place = np.unique(sizes[keep], return_inverse=True)
        sums = np.zeros(len(distinct), np.int64)
        np.add.at(sums, place, multiplicities[keep])
        return cls(distinct.astype(np.int64), sums)

    @classmethod
    def total(cls, parts: Iterable[Sizes]) -> Sizes:
        """Return the sizes of the groups of all parts of a table."""
        nothing = np.empty(0, np.int64)
        given = [cls(nothing, nothing), *parts]
        return cls.from_counts(
            np.concatenate([part.sizes for part in given]), np.concatenate([part.multiplicities for part in given])
        )

    def log_sum(self) -> LogSum:
        """Return the sum of c log2 c over the sizes c of all groups."""
        from gpupif.kernels.sizes import sum_log_counts

        high, low = sum_log_counts(self.sizes, self.multiplicities)
        return LogSum((int(high) << 64) + int(low))

    def sum_log(self) -> float:
        """Return the sum of c log2 c over the sizes c of all groups, in bits, rounded once."""
        return self.log_sum().sum_log()


class LogSum(NamedTuple):
    """The sum of c log2 c over groups of c rows each, as a whole number of units.

    Only the logarithms are rounded. The sum does not depend on the order or the parts of the groups, and is small for
    any number of sizes.
    """

    units: int

    @classmethod
    def total(cls, parts: Iterable[Sizes | LogSum]) -> LogSum:
        """Return the sum over the groups of all parts of a table."""
        return cls(sum(part.log_sum().units for part in parts))

    def log_sum(self) -> LogSum:
        """Return this sum, so that callers need not tell it from `Sizes`."""
        return self

    def sum_log(self) -> float:
        """Return the sum in bits, rounded once."""
        return float(self.units / (1 << LOG_BITS))


def entropy_of_counts(counts: npt.NDArray[np.integer]) -> float:
    """Return the entropy of the distribution of counts, in bits; 0 for a single value, and for no counts."""
    total = int(counts.sum())
    parts = Sizes(counts.astype(np.int64, copy=False), np.ones(len(counts), np.int64))
    return conditional_entropy(_log_sum_of_whole(total), parts.log_sum(), total)


@lru_cache
def _log_sum_of_whole(rows: int) -> LogSum:
    """Return the sum of c log2 c of a table that is one group of c rows."""
    return Sizes(np.array([rows], np.int64), np.ones(1, np.int64)).log_sum()


def conditional_entropy(cohorts: LogSum, distinct: LogSum, rows: int) -> float:
    """Return H(X|known) in bits, rounded once; 0 for no rows.

    cohorts: the sum over the cohorts. distinct: the sum over groups of rows that agree on X and on the known columns.
    rows: the number of rows.
    """
    return max(0.0, float((cohorts.units - distinct.units) / (max(1, rows) << LOG_BITS)))


def column_weight(conditional: float, entropy: float) -> float:
    """Return the weight of a column, H(X|known) / H(X), within [0, 1] in spite of rounding; 0 if H(X) is 0."""
    return min(1.0, max(0.0, conditional) / entropy) if entropy > 0 else 0.0


def entropy_of_probabilities(probabilities: npt.NDArray[np.float64]) -> float:
    """Return the entropy of a distribution, in bits; zero probabilities add nothing."""
    from gpupif.kernels.logarithms import log2_of_floats

    positive = probabilities[probabilities > 0]
    logs = np.empty(len(positive))
    log2_of_floats(positive, logs)
    return max(0.0, -math.fsum((positive * logs).tolist()))
