"""Sums of floats that are exact, so that they are the same in any order and from any parts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

# All floats are whole multiples of 2^-LEAST_BITS.
LEAST_BITS = 1074
MANTISSA_BITS = 53
# A mantissa is added up in two halves: of at most 2^36 terms the sums of these fit into 64 bits.
HALF_BITS = 27


class ExactSum(NamedTuple):
    """A sum of floats, as a whole multiple of 2^-1074."""

    units: int = 0

    @classmethod
    def of(cls, values: npt.NDArray[np.float64], times: npt.NDArray[np.int64]) -> ExactSum:
        """Of finite numbers, each so many times, 2^36 times all together at most."""
        fractions, exponents = np.frexp(values)
        mantissas = np.ldexp(fractions, MANTISSA_BITS).astype(np.int64)
        high, low = mantissas >> HALF_BITS, mantissas & ((1 << HALF_BITS) - 1)
        units = 0
        for exponent in np.unique(exponents).tolist():
            some = exponents == exponent
            found = (int((high[some] * times[some]).sum()) << HALF_BITS) + int((low[some] * times[some]).sum())
            shift = exponent - MANTISSA_BITS + LEAST_BITS
            units += found << shift if shift >= 0 else found >> -shift
        return cls(units)

    @classmethod
    def total(cls, parts: Iterable[ExactSum]) -> ExactSum:
        """Of several together."""
        return cls(sum(part.units for part in parts))

    def over(self, count: int) -> float:
        """The sum divided by a whole number, rounded once."""
        return self.units / (count << LEAST_BITS)
