"""Exact sums of floats, and sums of rows: the same in any order and from any parts, on host and device."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels.float_sums import EXPONENTS, LOW_BITS, NOT_FINITE, add_up
from gpupif.kernels.row_sums import add_column

from .arrays import is_on_device, read_only
from .percentiles import ONCE

# All floats are whole multiples of 2^-LEAST_BITS.
LEAST_BITS = 1074
# Types that are added up as they are; others are made float64 before.
ADDED = (np.float64, np.float32, np.int64)
# On a device so many bits of all numbers are summed at a time: of at most 2^31 numbers the sums fit into 64 bits.
DIGIT_BITS = 32


class ExactSum(NamedTuple):
    """A sum of numbers but NaN: that of the finite ones as a whole multiple of 2^-1074.

    terms: how many numbers there are. infinite: the sum of the infinite ones; NaN where there are both.
    """

    units: int = 0
    terms: int = 0
    infinite: float = 0.0

    @classmethod
    def of(cls, numbers: Any, times: npt.NDArray[np.int64] = ONCE) -> ExactSum:
        """Of floats, or whole numbers below 2^53, of the host or a device.

        times: how often each occurs, 2^36 times all together at most; empty, as of a device always: once.
        """
        return _sum_on_device(numbers) if is_on_device(numbers) else _sum_on_host(numbers, times)

    @classmethod
    def total(cls, parts: Iterable[ExactSum]) -> ExactSum:
        """Of several together."""
        units, terms, infinite = zip(cls(), *parts, strict=True)
        return cls(sum(units), sum(terms), sum(infinite))

    @property
    def mean(self) -> float:
        """Of the numbers, rounded once; NaN of none."""
        return self.over(self.terms) if self.terms else math.nan

    def over(self, number: int) -> float:
        """Return the sum divided by a whole number, rounded once; infinite beyond the largest float."""
        if self.infinite != 0:
            return self.infinite
        try:
            return self.units / (number << LEAST_BITS)
        except OverflowError:
            return math.inf if self.units > 0 else -math.inf


def _sum_on_host(numbers: npt.NDArray[Any], times: npt.NDArray[np.int64]) -> ExactSum:
    ready = np.ascontiguousarray(numbers, None if numbers.dtype in ADDED else np.float64)
    sums = np.zeros((2, EXPONENTS, 2), np.int64)
    add_up(read_only(ready), read_only(times), sums.reshape(-1, 2))
    terms, infinite = int(times.sum()) if len(times) else len(ready), 0.0
    if sums[:, NOT_FINITE].any():
        known = ready == ready
        terms, infinite = int((times[known] if len(times) else known).sum()), _infinite(ready)
    high, low = (sums[0] - sums[1])[:NOT_FINITE].T
    units = 0
    for exponent in np.flatnonzero(high | low).tolist():
        # The exponent of the least numbers, 0, stands for the same power as 1.
        units += ((int(high[exponent]) << LOW_BITS) + int(low[exponent])) << max(0, exponent - 1)
    return ExactSum(units, terms, infinite)


def _sum_on_device(numbers: Any) -> ExactSum:
    numbers = numbers.astype(np.float64, copy=False)
    # Digits of all numbers at once, the highest first, until nothing is left of any: what a digit leaves is exact.
    rest, units = numbers[np.isfinite(numbers)], 0
    while len(rest) and (highest := float(abs(rest).max())):
        place = max(math.frexp(highest)[1] - DIGIT_BITS, -LEAST_BITS)
        digits = np.trunc(np.ldexp(rest, -place))
        units += int(digits.astype(np.int64).sum()) << (place + LEAST_BITS)
        rest = rest - np.ldexp(digits, place)
    return ExactSum(units, int((numbers == numbers).sum()), _infinite(numbers))


def _infinite(numbers: Any) -> float:
    """The sum of the numbers that are infinite."""
    return float(sum(sign for sign in (math.inf, -math.inf) if (numbers == sign).any()))


class RowSums(NamedTuple):
    """Sums of rows to twice the precision of a float, high + low: exact, but for numbers more than 2^50 apart."""

    high: Any
    low: Any

    @classmethod
    def zeros(cls, rows: int) -> RowSums:
        """Of so many rows without columns, on the host."""
        return cls(np.zeros(rows), np.zeros(rows))

    @classmethod
    def of(cls, columns: Iterable[Any]) -> RowSums | None:
        """Of columns of host or device; None without any."""
        sums: RowSums | None = None
        for column in columns:
            if sums is None:
                first = column.astype(np.float64)
                sums = cls(first, np.zeros_like(first))
            else:
                sums = sums.plus(column)
        return sums

    def plus(self, column: Any) -> RowSums:
        """With another column; on the host these sums become it."""
        if not is_on_device(column):
            add_column(np.asarray(column), self.high, self.low)
            return self
        number = column.astype(np.float64)
        high = self.high + number
        added = high - self.high
        lost = (self.high - (high - added)) + (number - added)
        lost[lost != lost] = 0
        return RowSums(high, self.low + lost)

    def add_at(self, rows: Any, others: RowSums) -> None:
        """Add sums of some rows, each once; on the host."""
        some = RowSums(self.high[rows], self.low[rows]).plus(others.high).plus(others.low)
        self.high[rows], self.low[rows] = some

    def rounded(self) -> Any:
        """As floats, rounded once."""
        return self.high + self.low


def sum_rows(columns: Iterable[Any]) -> Any:
    """The sum of each row in float64, rounded once; of columns of host or device, None without any."""
    sums = RowSums.of(columns)
    return None if sums is None else sums.rounded()
