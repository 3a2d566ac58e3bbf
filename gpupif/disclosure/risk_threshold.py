"""The threshold of the individual risk that brings the global risk of a table down to a limit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..utils.display import Record
from ..utils.exact_sums import LEAST_BITS, ExactSum

# The most pairs of arrays that `KeyedSums` keeps apart.
MOST_ARRAYS = 64


@dataclass(frozen=True)
class RiskThreshold(Record):
    """The rows that have to be protected so that the global risk of a table is at most a limit.

    max_global_risk: float, in (0, 1]. The highest acceptable global risk.
    global_risk: float. The mean risk of the rows of the table as it is: expected re-identifications per row.
    threshold: float. The highest r at which the mean of min(risk, r) over the rows is at most the limit.
    rows_above: int. Rows with a risk above the threshold.
    share_above: float, in [0, 1]. These rows as a share of all rows.

    If all rows above the threshold are protected so that their risk is at most the threshold, the limit holds. If the
    table meets the limit as it is, the threshold is the highest risk of all.

    Definition: Polettini & Seri 2003, Guidelines for the protection of social micro-data using individual risk
        methodology, as the mu-Argus 4.1 manual has it in section 2.3.4.1. sdcMicro (max_global_risk) takes the next
        lower risk that occurs in the table as the threshold, with the same rows above.
    """

    max_global_risk: float
    global_risk: float
    threshold: float
    rows_above: int
    share_above: float


class KeyedSums(NamedTuple):
    """Sums of whole numbers by key, added up over the partitions of a table in any order.

    arrays: pairs of keys (ascending) and their sums (sums of a key, keys). Pairs are added up only when together they
        have more than twice the keys of the largest pair. Then the time for each key grows with the logarithm of the
        number of pairs.
    """

    arrays: tuple[tuple[npt.NDArray[Any], npt.NDArray[np.int64]], ...] = ()

    @classmethod
    def from_amounts(cls, keys: npt.NDArray[Any], *amounts: npt.NDArray[np.int64]) -> KeyedSums:
        """Return the sums of each of the amounts over equal keys."""
        return cls((_add_up(keys, np.stack(amounts)),))

    @classmethod
    def total(cls, parts: Iterable[KeyedSums]) -> KeyedSums:
        """Return the sums of several partitions together."""
        arrays = [pair for part in parts for pair in part.arrays]
        sizes = [len(keys) for keys, _ in arrays]
        if len(arrays) > 1 and (len(arrays) > MOST_ARRAYS or sum(sizes) > 2 * max(sizes)):
            arrays = [_join(arrays)]
        return cls(tuple(arrays))

    def whole(self) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Return all keys, ascending, and their sums."""
        return self.arrays[0] if len(self.arrays) == 1 else _join(self.arrays)


def find_threshold(rows_of_risk: KeyedSums, max_global_risk: float) -> RiskThreshold:
    """Return the threshold for a limit of the global risk. The result is exact, except for its last rounding.

    rows_of_risk: the number of rows by their risk.
    """
    risks, (rows,) = rows_of_risk.whole()
    total = int(rows.sum())
    allowed = Fraction(max_global_risk) * total
    above = total - np.cumsum(rows)

    def sum_lowest(levels: int) -> Fraction:
        """Return the exact sum of the risks of the rows with the lowest risks. levels: how many different risks."""
        return Fraction(ExactSum.from_numbers(risks[:levels], rows[:levels]).units, 1 << LEAST_BITS)

    # Find the most levels whose rows may keep their risk, if all rows above are capped at the highest of these levels.
    low, high = 0, len(risks)
    while low < high:
        middle = (low + high + 1) // 2
        capped = sum_lowest(middle) + Fraction(float(risks[middle - 1])) * int(above[middle - 1])
        low, high = (middle, high) if capped <= allowed else (low, middle - 1)
    left = int(above[low - 1]) if low else total
    threshold = float((allowed - sum_lowest(low)) / left) if left else float(risks[-1])
    return RiskThreshold(max_global_risk, float(sum_lowest(len(risks)) / total), threshold, left, left / total)


def _join(
    arrays: Iterable[tuple[npt.NDArray[Any], npt.NDArray[np.int64]]],
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    keys, sums = zip(*arrays, strict=True)
    return _add_up(np.concatenate(keys), np.concatenate(sums, axis=1))


def _add_up(keys: npt.NDArray[Any], amounts: npt.NDArray[np.int64]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    if not len(keys):
        return keys, amounts
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return keys[first], np.add.reduceat(amounts[:, order], first, axis=1)
