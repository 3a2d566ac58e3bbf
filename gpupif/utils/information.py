"""Entropies of counts, in bits: from whole numbers, so that they do not depend on the order of rows or values."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels.log_units import COARSE_LOG_BITS, LEAST_FINE, LOG_BITS

# Counts whose logarithms are kept in a table.
SMALL_COUNTS = 1024


def log2_counts(counts: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """log2 of each count, in units."""
    from gpupif.kernels.logarithms import log2_of_counts

    logs = np.empty(len(counts), np.int64)
    log2_of_counts(counts, logs)
    return logs


@cache
def small_logs() -> npt.NDArray[np.int64]:
    """log2 of the counts 0 to SMALL_COUNTS - 1, in units."""
    return log2_counts(np.arange(SMALL_COUNTS))


def log2_of_shares(counts: npt.NDArray[np.integer], total: int) -> npt.NDArray[np.int64]:
    """log2 of counts / total, in units."""
    return log2_counts(counts) - log2_counts(np.array([total]))


def log2_of_probabilities(probabilities: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.int64], int]:
    """log2 of probabilities above 0 in units of 2^-b bits, and b: less where the least has too long a logarithm."""
    from gpupif.kernels import logarithms as kernels

    bits = LOG_BITS if probabilities.min(initial=1.0) >= LEAST_FINE else COARSE_LOG_BITS
    logs = np.empty(len(probabilities), np.int64)
    kernels.log2_of_probabilities(probabilities, bits, logs)
    return logs, bits


class Sizes(NamedTuple):
    """How many groups of rows there are of each size, ascending; those of one row, which weigh nothing, left out."""

    sizes: npt.NDArray[np.int64]
    times: npt.NDArray[np.int64]

    @classmethod
    def of(cls, sizes: npt.NDArray[np.integer], times: npt.NDArray[np.integer] | None = None) -> Sizes:
        """Groups of these sizes, which may repeat, each taken `times` times (default once)."""
        if times is None:
            different, found = np.unique(sizes[sizes > 1], return_counts=True)
            return cls(different.astype(np.int64), found)
        keep = (sizes > 1) & (times > 0)
        different, place = np.unique(sizes[keep], return_inverse=True)
        found = np.zeros(len(different), np.int64)
        np.add.at(found, place, times[keep])
        return cls(different.astype(np.int64), found)

    @classmethod
    def total(cls, parts: Iterable[Sizes]) -> Sizes:
        """Groups of several parts of a table together."""
        nothing = np.empty(0, np.int64)
        several = [cls(nothing, nothing), *parts]
        return cls.of(
            np.concatenate([part.sizes for part in several]), np.concatenate([part.times for part in several])
        )

    def log_sum(self) -> LogSum:
        """The sum of c log2 c over the groups' sizes c."""
        from gpupif.kernels.sizes import sum_log_counts

        high, low = sum_log_counts(self.sizes, self.times)
        return LogSum((int(high) << 64) + int(low))

    def sum_log(self) -> float:
        """Sum of c log2 c over the groups' sizes c, rounded once."""
        return self.log_sum().sum_log()


class LogSum(NamedTuple):
    """The sum of c log2 c over groups of c rows each, as a whole number of units: only the logarithms are rounded.

    So it is the same whatever the order and the parts that groups come in, and small, however many sizes there are.
    """

    units: int

    @classmethod
    def total(cls, parts: Iterable[Sizes | LogSum]) -> LogSum:
        """Groups of several parts of a table together."""
        return cls(sum(part.log_sum().units for part in parts))

    def log_sum(self) -> LogSum:
        """Itself; see `Sizes`."""
        return self

    def sum_log(self) -> float:
        """The sum in bits, rounded."""
        return float(self.units / (1 << LOG_BITS))


def entropy_of_counts(counts: npt.NDArray[np.integer]) -> float:
    """Entropy of the distribution that these counts have, in bits; 0 for a single value, and for nothing."""
    total = int(counts.sum())
    whole = Sizes.of(np.array([total], np.int64)).log_sum()
    return conditional_entropy(whole, Sizes.of(counts).log_sum(), total)


def conditional_entropy(cohorts: LogSum, distinct: LogSum, rows: int) -> float:
    """H(X|known) in bits, rounded once, from sums over cohorts and over groups that agree on X too; 0 for no rows."""
    return max(0.0, float((cohorts.units - distinct.units) / (max(1, rows) << LOG_BITS)))


def column_weight(conditional: float, entropy: float) -> float:
    """Weight of a column, H(X|known) / H(X), in [0, 1] whatever rounding does; 0 where H(X) is 0."""
    return min(1.0, max(0.0, conditional) / entropy) if entropy > 0 else 0.0


def entropy_of_probabilities(probabilities: npt.NDArray[np.float64]) -> float:
    """Entropy of a distribution, in bits; zero probabilities add nothing."""
    from gpupif.kernels.logarithms import log2_of_floats

    positive = probabilities[probabilities > 0]
    logs = np.empty(len(positive))
    log2_of_floats(positive, logs)
    return max(0.0, -math.fsum((positive * logs).tolist()))
