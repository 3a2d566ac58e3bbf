"""Exact sums of floats, and sums of rows. They do not depend on the order and parts of the numbers, nor the device."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels.number_sums import EXPONENTS, LOW_BITS, NOT_FINITE, add_column, add_up

from .arrays import is_on_device, read_only
from .percentiles import ONCE

# Every finite float is a whole multiple of 2^-LEAST_BITS.
LEAST_BITS = 1074
# Types that are added up as they are; numbers of other types are made float64 before.
ADDED = (np.float64, np.float32, np.int64)
# So few numbers are added up one by one.
FEW = 16
# Bits of all numbers that a device sums at a time. The sum of up to 2^31 such numbers fits into 64 bits.
DIGIT_BITS = 32


class ExactSum(NamedTuple):
    """The exact sum of some numbers without NaN.

    units: whole number. The sum of the finite numbers, as a multiple of 2^-1074.
    terms: whole number. How many numbers there are, finite and infinite.
    infinite: float. The sum of the infinite numbers: 0 if there are none, NaN if there are inf and -inf.
    """

    units: int = 0
    terms: int = 0
    infinite: float = 0.0

    @classmethod
    def from_numbers(cls, numbers: Any, multiplicities: npt.NDArray[np.int64] = ONCE) -> ExactSum:
        """Return the sum of numbers.

        numbers: floats, or whole numbers below 2^53, on the host or a device. multiplicities: how often each number
        occurs, in total at most 2^36 times; empty: each occurs once. Numbers on a device occur once. Default: once.
        """
        return _sum_on_device(numbers) if is_on_device(numbers) else _sum_on_host(numbers, multiplicities)

    @classmethod
    def total(cls, parts: Iterable[ExactSum]) -> ExactSum:
        """Return the sum of the sums of all parts."""
        units, terms, infinite = zip(cls(), *parts, strict=True)
        return cls(sum(units), sum(terms), sum(infinite))

    @property
    def mean(self) -> float:
        """The mean of the numbers, rounded once; NaN if there are no numbers."""
        return self.over(self.terms) if self.terms else math.nan

    def over(self, number: int) -> float:
        """Return the sum divided by a whole number, rounded once; infinite beyond the largest float."""
        if self.infinite != 0:
            return self.infinite
        try:
            return self.units / (number << LEAST_BITS)
        except OverflowError:
            return math.inf if self.units > 0 else -math.inf


def _sum_on_host(numbers: npt.NDArray[Any], multiplicities: npt.NDArray[np.int64]) -> ExactSum:
    if len(numbers) <= FEW and numbers.dtype == np.float64 and np.isfinite(numbers).all():
        times = multiplicities.tolist() or [1] * len(numbers)
        ratios = map(float.as_integer_ratio, numbers.tolist())
        # Denominators are powers of 2.
        parts = (
            many * above << LEAST_BITS + 1 - below.bit_length()
            for (above, below), many in zip(ratios, times, strict=True)
        )
        return ExactSum(sum(parts), sum(times))
    ready = np.ascontiguousarray(numbers, None if numbers.dtype in ADDED else np.float64)
    sums = np.zeros((2, EXPONENTS, 2), np.int64)
    add_up(read_only(ready), read_only(multiplicities), sums.reshape(-1, 2))
    terms, infinite = int(multiplicities.sum()) if len(multiplicities) else len(ready), 0.0
    if sums[:, NOT_FINITE].any():
        known = ready == ready
        terms, infinite = int((multiplicities[known] if len(multiplicities) else known).sum()), _infinite(ready)
    high, low = (sums[0] - sums[1])[:NOT_FINITE].T
    units = 0
    for exponent in np.flatnonzero(high | low).tolist():
        # Floats with the exponent 0 (subnormal numbers) have the unit of floats with the exponent 1.
        units += ((int(high[exponent]) << LOW_BITS) + int(low[exponent])) << max(0, exponent - 1)
    return ExactSum(units, terms, infinite)


def _sum_on_device(numbers: Any) -> ExactSum:
    numbers = numbers.astype(np.float64, copy=False)
    # Take the highest DIGIT_BITS bits off all numbers until nothing is left. Each step is exact: no bit is rounded.
    rest, units = numbers[np.isfinite(numbers)], 0
    while len(rest) and (highest := float(abs(rest).max())):
        place = max(math.frexp(highest)[1] - DIGIT_BITS, -LEAST_BITS)
        digits = np.trunc(np.ldexp(rest, -place))
        units += int(digits.astype(np.int64).sum()) << (place + LEAST_BITS)
        rest = rest - np.ldexp(digits, place)
    return ExactSum(units, int((numbers == numbers).sum()), _infinite(numbers))


def _infinite(numbers: Any) -> float:
    """Return the sum of the numbers that are infinite: 0.0 if there are none, NaN for both signs."""
    return float(sum(sign for sign in (math.inf, -math.inf) if (numbers == sign).any()))


def sum_rows(columns: Iterable[Any]) -> Any:
    """Return the sum of each row in float64, rounded once; None if there is no column.

    columns: arrays on the host or a device. Sums are kept to twice the precision of a float: they are exact unless
    numbers are more than 2^50 apart.
    """
    # The sums, rounded, and the rest that rounding left.
    high = low = None
    for column in columns:
        if high is None:
            high = column.astype(np.float64)
            low = np.zeros_like(high)
        elif not is_on_device(column):
            add_column(np.asarray(column), high, low)
        else:
            number = column.astype(np.float64)
            total = high + number
            added = total - high
            lost = (high - (total - added)) + (number - added)
            lost[lost != lost] = 0
            high, low = total, low + lost
    return None if high is None else high + low
