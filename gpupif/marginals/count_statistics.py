"""Statistics of the counts of combinations of values, in whole numbers: the same in any order and any partitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels import subsets

from ..utils.information import LogSum, small_logs

# Information of fewer bits may be 0 with rounding errors: whole numbers decide, see `as_often_as_parts`.
NEARLY_NONE = 1e-6


class CountSums(NamedTuple):
    """Sums over the counts c of combinations.

    logs: of c log2 c. together: of c (c - 1), the ordered pairs of rows that agree. low: of the counts up to a limit.
    lowest: the lowest count, 0 without counts.
    """

    logs: LogSum
    together: int
    low: int
    lowest: int

    @classmethod
    def from_counts(cls, counts: npt.NDArray[np.integer], most: int = 0) -> CountSums:
        """Return the sums over counts of 0 or more. most: the limit of `low`."""
        high, low, pairs_high, pairs_low, sum_low, lowest = subsets.sum_counts(counts, small_logs(), most)
        return cls(LogSum(_wide(high, low)), _wide(pairs_high, pairs_low), sum_low, lowest)


def _wide(high: int, low: int) -> int:
    """Return the whole number that a kernel returns as two (see `kernels/whole_sums.py`)."""
    return (int(high) << 64) + int(low)


class Separation(NamedTuple):
    """The separation of the rows of a table by a set of columns (Motwani and Xu 2008).

    rows: rows of the table, at least 1. classes: classes of rows that agree on the set. together: the number of ordered
    pairs of rows that agree; each pair of rows counts twice.
    """

    rows: int
    classes: int
    together: int

    @classmethod
    def from_counts(cls, counts: npt.NDArray[np.integer], rows: int) -> Separation:
        """Return the separation by the rows of each class. A count of 0 is no class."""
        return cls(rows, int(np.count_nonzero(counts)), CountSums.from_counts(counts).together)

    @classmethod
    def total(cls, parts: Iterable[Separation]) -> Separation:
        """Return the separation of a table from its partitions, at least one. No class is in two partitions."""
        every = list(parts)
        return cls(every[0].rows, sum(part.classes for part in every), sum(part.together for part in every))

    @property
    def pairs(self) -> int:
        """The ordered pairs of different rows of the table."""
        return self.rows * (self.rows - 1)

    @property
    def distinction(self) -> float:
        """The share of the rows that can be kept so that no two of them agree: classes / rows."""
        return self.classes / self.rows

    @property
    def separation(self) -> float:
        """The share of the pairs of rows that differ on the set; 1.0 for a single row, which is in no pair."""
        return (self.pairs - self.together) / self.pairs if self.pairs else 1.0


def as_often_as_parts(joint: npt.NDArray[np.int64], parts: Sequence[npt.NDArray[np.int64]], total: int) -> bool:
    """Return whether each combination occurs exactly as often as if its parts were independent.

    joint: counts of combinations. parts: for each part, its count in each combination. total: count of all rows.
    """
    exact: Any = np.int64 if total ** len(parts) < 2**63 else object
    expected = np.ones(len(joint), exact)
    for part in parts:
        expected = expected * part.astype(exact)
    scaled = joint.astype(exact) * total ** (len(parts) - 1)
    return bool((scaled == expected).all())
