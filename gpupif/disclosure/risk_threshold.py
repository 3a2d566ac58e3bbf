"""The threshold of the individual risk that brings the global risk of a table down to a limit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..utils.display import Record
from ..utils.exact_sums import LEAST_BITS, ExactSum
from .keyed_sums import KeyedSums


@dataclass(frozen=True)
class RiskThreshold(Record):
    """What is to be protected so that the global risk of a table is at most a limit.

    The global risk is the mean risk of the rows: expected re-identifications per row. max_global_risk: the highest
    acceptable.
    global_risk: as the table is. threshold: the highest r at which the mean of min(risk, r) is at most the limit: once
    all rows above it are protected so far that their risk is at most r, the limit holds. The highest risk of all where
    it holds as it is. rows_above, share_above: rows with a risk above the threshold.

    Definition: Polettini & Seri 2003, Guidelines for the protection of social micro-data using individual risk
    methodology, as the mu-Argus 4.1 manual has it in section 2.3.4.1. sdcMicro (max_global_risk) has the next lower
    risk that occurs in the table for it, with the same rows above.
    """

    max_global_risk: float
    global_risk: float
    threshold: float
    rows_above: int
    share_above: float


class RiskLevels(NamedTuple):
    """Which risks occur in some rows, and in how many."""

    sums: KeyedSums = KeyedSums()

    @classmethod
    def of(cls, risks: npt.NDArray[np.float64], rows: npt.NDArray[np.int64]) -> RiskLevels:
        """Of classes with these risks and so many rows."""
        return cls(KeyedSums.of(risks, rows))

    @classmethod
    def total(cls, parts: Iterable[RiskLevels]) -> RiskLevels:
        """Of several parts together."""
        return cls(KeyedSums.total(part.sums for part in parts))

    def threshold(self, max_global_risk: float) -> RiskThreshold:
        """The threshold that the max_global_risk takes; exact, but for the last rounding."""
        risks, (rows,) = self.sums.whole()
        total = int(rows.sum())
        allowed = Fraction(max_global_risk) * total
        above = total - np.cumsum(rows)

        def safe(levels: int) -> Fraction:
            """The sum of the risks of the rows at the lowest levels, exactly."""
            return Fraction(ExactSum.of(risks[:levels], rows[:levels]).units, 1 << LEAST_BITS)

        # The levels below are left as they are; the next one is not, or there is none.
        low, high = 0, len(risks)
        while low < high:
            middle = (low + high + 1) // 2
            capped = safe(middle) + Fraction(float(risks[middle - 1])) * int(above[middle - 1])
            low, high = (middle, high) if capped <= allowed else (low, middle - 1)
        left = int(above[low - 1]) if low else total
        threshold = float((allowed - safe(low)) / left) if left else float(risks[-1])
        return RiskThreshold(max_global_risk, float(safe(len(risks)) / total), threshold, left, left / total)
