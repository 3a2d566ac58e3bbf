"""Sums over the counts of combinations of values, in whole numbers: the same in any order, and in any parts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels import rarity

from ..utils.information import LogSum, small_logs


class CountSums(NamedTuple):
    """Over counts c, of which `logs` is the sum of c log2 c, `together` of c (c - 1), `low` of those that are at most a
    given number; lowest: of them, 0 if there are none.
    """

    logs: LogSum
    together: int
    low: int
    lowest: int

    @classmethod
    def of(cls, counts: npt.NDArray[np.integer], most: int = 0) -> CountSums:
        """Of counts of 0 or more."""
        high, low, pairs_high, pairs_low, sum_low, lowest = rarity.sum_counts(counts, small_logs(), most)
        return cls(LogSum(_wide(high, low)), _wide(pairs_high, pairs_low), sum_low, lowest)


def _wide(high: int, low: int) -> int:
    """The whole number that a kernel returns as two (see `kernels/whole_sums.py`)."""
    return (int(high) << 64) + int(low)
