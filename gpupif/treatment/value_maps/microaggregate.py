"""Univariate microaggregation: numbers replaced by the mean or median of a group of at least k rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpupif.kernels.microaggregation import best_groups

from ...encoding.plain_values import texts
from ...errors import InputError
from ...utils.arrays import read_only
from ...utils.validation import brief, check_word, whole_number
from ..treatment import Mapper, Tools, TreatedTable, ValueMap
from .new_values import Numbers, all_numbers, as_decimals, is_text, looked_up, unchanged

REPLACED = ("mean", "median")
# Whole numbers up to it are floats exactly.
EXACT = 2**53


@dataclass(frozen=True)
class Microaggregate(ValueMap):
    """Replace numbers by the mean or the median of groups of at least k rows whose numbers are near to each other.

    k: rows of a group, at least. replaced: by the ``"mean"``, which makes floats of whole numbers, and of decimal
    numbers is rounded to their places; or by the ``"median"``, the lower of two, with which the column keeps its type.

    The groups are those with the least sum of squared differences from their means (Hansen and Mukherjee 2003), of all
    groups in which equal numbers are together: so it is a function of the number. Missing values stay missing, and
    count for nothing. Time grows with the different numbers times k.

    Of one column at a time: over several, MDAV compares all rows with all others, and no treatment here takes time that
    grows with the square of the rows.

    Raises InputError where fewer than k rows have a number, for infinite numbers, and for a text that is no number;
    ColumnTypeError for values that are no numbers.
    """

    do: ClassVar[str] = "microaggregate"
    column: Any
    k: int
    replaced: Literal["mean", "median"] = "mean"

    def check(self) -> None:
        if isinstance(self.column, list):
            raise InputError(
                f"microaggregate: column: expected the name of one column, got {brief(self.column)}. Over several "
                "columns (MDAV) every row is compared with every other, which large tables have no time for: give each "
                "a treatment of its own, or recode them."
            )
        whole_number(f"microaggregate: column {self.column!r}: k", self.k, "rows")
        check_word(f"microaggregate: column {self.column!r}: replaced", self.replaced, REPLACED)

    def mapper(self, table: TreatedTable, tools: Tools) -> Mapper:
        values = table.values(self.column)
        if not len(values.labels):
            return unchanged
        new = self._replacements(values.labels, values.counts)
        return looked_up(values.labels, new)

    def _replacements(self, labels: pa.Array, counts: npt.NDArray[np.int64]) -> pa.Array:
        """What stands for each of the values of the table."""
        found = all_numbers(self.column, labels, "Recode what is none first, or take a part of dates (date_part).")
        if found.places is None and not np.isfinite(found.amounts).all():
            raise InputError(
                f"column {self.column!r}: expected finite numbers, got infinite ones. Top code them first."
            )
        rows = int(counts.sum())
        if rows < self.k:
            raise InputError(
                f"microaggregate: column {self.column!r}: expected at least k={self.k} rows with a number, got "
                f"{rows:,}. Drop the column, or take a smaller k."
            )
        amounts, first, number = np.unique(found.amounts, return_index=True, return_inverse=True)
        times = np.bincount(number, weights=counts).astype(np.int64)
        different = Numbers(amounts, found.places, np.ones(len(amounts), np.bool_))
        groups = group_starts(different.floats(), times, int(self.k))
        group_of = np.repeat(np.arange(len(groups)), np.diff(np.append(groups, len(amounts))))
        if self.replaced == "median":
            return labels.take(pa.array(first[_middles(times, groups)][group_of[number]]))
        means = _means(different, times, groups, labels.type)
        return means.take(pa.array(group_of[number]))


def group_starts(numbers: npt.NDArray[np.float64], counts: npt.NDArray[np.int64], k: int) -> npt.NDArray[np.int64]:
    """Where the best groups of ascending, different numbers begin."""
    # By a power of two, so that no square is infinite.
    scaled = np.ldexp(numbers, -int(np.frexp(np.abs(numbers).max())[1]))
    costs, firsts = np.full(len(numbers) + 1, np.inf), np.zeros(len(numbers) + 1, np.int64)
    costs[0] = 0.0
    best_groups(read_only(scaled), read_only(counts), np.int64(k), costs, firsts)
    starts, stop = [], len(numbers)
    while stop:
        stop = int(firsts[stop])
        starts.append(stop)
    return np.array(starts[::-1], np.int64)


def _middles(counts: npt.NDArray[np.int64], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Of each group the number with its middle row, the first of two."""
    until = np.cumsum(counts)
    before = until[starts] - counts[starts]
    rows = np.diff(np.append(before, until[-1]))
    middles: npt.NDArray[np.int64] = np.searchsorted(until, before + (rows + 1) // 2)
    return middles


def _means(found: Numbers, counts: npt.NDArray[np.int64], starts: npt.NDArray[np.int64], kind: pa.DataType) -> pa.Array:
    """The mean of each group, in the type that the column has then."""
    rows = np.add.reduceat(counts, starts)
    if found.places is None:
        # Differences from the first: their sum has a rounding error of these.
        group_of = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(counts))))
        lowest, highest = found.amounts[starts], found.amounts[np.append(starts[1:], len(counts)) - 1]
        off = np.bincount(group_of, weights=(found.amounts - lowest[group_of]) * counts) / rows
        return pa.array(np.clip(lowest + off, lowest, highest)).cast(kind)
    largest = max(abs(int(found.amounts[0])), abs(int(found.amounts[-1])))
    amounts = found.amounts.astype(object if largest * int(counts.sum()) >= EXACT else np.int64)
    sums = np.add.reduceat(amounts * counts, starts)
    if pa.types.is_decimal(kind):
        quotient = sums // rows
        twice = 2 * (sums - quotient * rows)
        up = (twice > rows) | ((twice == rows) & (quotient % 2 == 1))
        return as_decimals(quotient + up.astype(np.int64), pa.decimal128(kind.precision, kind.scale))
    # Of whole numbers both exact, so that each quotient is rounded once, as Python's is whatever their size.
    means = pa.array([int(one) / int(of) for one, of in zip(sums, rows * 10**found.places, strict=True)], pa.float64())
    return texts(means).cast(kind) if is_text(kind) else means
