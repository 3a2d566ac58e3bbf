"""Univariate microaggregation: numbers are replaced by the mean or median of a group of at least k rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpupif.kernels.microaggregation import best_groups

from ...encoding.plain_values import texts
from ...errors import InputError
from ...utils.arrays import read_only
from ...utils.validation import brief
from ..field_checks import whole
from ..treatment import Mapper, Tools, TreatedTable, ValueMap
from .new_values import Numbers, all_numbers, as_decimals, check_finite, is_text, looked_up, unchanged

# All whole numbers up to this limit are exact as floats.
EXACT = 2**53


@dataclass(frozen=True)
class Microaggregate(ValueMap):
    """Replace numbers by the mean or the median of groups of at least k rows with similar numbers.

    column: name of the column.
    k: the fewest rows of a group.
    replaced: ``"mean"`` or ``"median"``. The mean turns whole numbers into floats, and is rounded to the places of
        decimal numbers. The median, the lower of two, keeps the type of the column. Default ``"mean"``.

    The groups minimise the sum of squared differences from their means (Hansen and Mukherjee 2003), among all groups
    that keep equal numbers together. Missing values stay missing, and belong to no group. The time grows with k times
    the number of distinct numbers.

    A treatment is for a single column. `MicroaggregateTogether` groups rows by several columns.

    Raises InputError if fewer than k rows have a number, for infinite numbers, and for a text that is no number. Raises
    ColumnTypeError for values that are no numbers.
    """

    do: ClassVar[str] = "microaggregate"
    column: Any
    k: Annotated[int, whole("rows")]
    replaced: Literal["mean", "median"] = "mean"

    def check(self) -> None:
        if isinstance(self.column, list):
            raise InputError(
                f"microaggregate: column: expected the name of one column, got {brief(self.column)}. For several "
                "columns together (MDAV) take microaggregate_together."
            )
        super().check()

    def mapper(self, table: TreatedTable, tools: Tools) -> Mapper:
        values = table.values(self.column)
        if not len(values.labels):
            return unchanged
        new = self._replacements(values.labels, values.counts)
        return looked_up(values.labels, new)

    def _replacements(self, labels: pa.Array, counts: npt.NDArray[np.int64]) -> pa.Array:
        """Return the replacement of each value of the table. labels: distinct values. counts: rows with each value."""
        exact = all_numbers(self.column, labels, "Recode other values first, or take a part of dates (date_part).")
        check_finite(self.column, exact.amounts)
        rows = int(counts.sum())
        if rows < self.k:
            raise InputError(
                f"microaggregate: column {self.column!r}: expected at least k={self.k} rows with a number, got "
                f"{rows:,}. Drop the column, or take a smaller k."
            )
        amounts, first, number = np.unique(exact.amounts, return_index=True, return_inverse=True)
        number_counts = np.bincount(number, weights=counts).astype(np.int64)
        distinct = Numbers(amounts, exact.places, np.ones(len(amounts), np.bool_))
        groups = group_starts(distinct.floats(), number_counts, int(self.k))
        group_of = np.repeat(np.arange(len(groups)), np.diff(np.append(groups, len(amounts))))
        if self.replaced == "median":
            return labels.take(pa.array(first[_middles(number_counts, groups)][group_of[number]]))
        means = group_means(distinct, number_counts, groups, labels.type)
        return means.take(pa.array(group_of[number]))


def group_starts(numbers: npt.NDArray[np.float64], counts: npt.NDArray[np.int64], k: int) -> npt.NDArray[np.int64]:
    """Return the position of each best group's first number. numbers: distinct, ascending. counts: rows by number."""
    # Division by a power of two is exact, and keeps squares finite.
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
    """Return the position of each group's median number, of two the lower. starts: see `group_starts`."""
    until = np.cumsum(counts)
    before = until[starts] - counts[starts]
    rows = np.diff(np.append(before, until[-1]))
    middles: npt.NDArray[np.int64] = np.searchsorted(until, before + (rows + 1) // 2)
    return middles


def group_means(
    exact: Numbers, counts: npt.NDArray[np.int64], starts: npt.NDArray[np.int64], kind: pa.DataType
) -> pa.Array:
    """Return the mean of each group, in the new type of the column. kind: the type of the column before."""
    rows = np.add.reduceat(counts, starts)
    if exact.places is None:
        # Differences from the lowest number are summed: the rounding error is relative to them, not to the exact.
        group_of = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(counts))))
        lowest, highest = exact.amounts[starts], exact.amounts[np.append(starts[1:], len(counts)) - 1]
        off = np.bincount(group_of, weights=(exact.amounts - lowest[group_of]) * counts) / rows
        return pa.array(np.clip(lowest + off, lowest, highest)).cast(kind)
    # The numbers of several columns ascend in none of them.
    largest = max(abs(int(exact.amounts.min())), abs(int(exact.amounts.max())))
    amounts = exact.amounts.astype(object if largest * int(counts.sum()) >= EXACT else np.int64)
    sums = np.add.reduceat(amounts * counts, starts)
    if pa.types.is_decimal(kind):
        quotient = sums // rows
        twice = 2 * (sums - quotient * rows)
        up = (twice > rows) | ((twice == rows) & (quotient % 2 == 1))
        return as_decimals(quotient + up.astype(np.int64), pa.decimal128(kind.precision, kind.scale))
    # Python divides whole numbers of any size with a single rounding.
    means = pa.array([int(a) / int(b) for a, b in zip(sums, rows * 10**exact.places, strict=True)], pa.float64())
    return texts(means).cast(kind) if is_text(kind) else means
