"""Columns of repeating numbers, stored as the distinct numbers and the place of each row's number among them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from .arrays import read_only

# Values of a sample that shows whether a column has too many distinct values, and the standard deviations that count as
# sure.
SAMPLE, SURE = 1 << 14, 2


@dataclass(frozen=True, eq=False)
class Repeated:
    """A column of repeating numbers.

    distinct: the distinct numbers. numbers: for each row the place of its number in `distinct`.
    """

    distinct: npt.NDArray[Any]
    numbers: npt.NDArray[np.unsignedinteger[Any]]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the numbers."""
        return self.distinct.dtype

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: Any) -> Repeated:
        return Repeated(self.distinct, self.numbers[rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self.values().astype(dtype or self.distinct.dtype, copy=False)

    def values(self) -> npt.NDArray[Any]:
        """Return the column as an array: the number of each row."""
        return np.take(self.distinct, self.numbers)


@cache
def most_distinct(rows: int, size: int) -> int:
    """Return the most distinct values of a column whose dictionary takes less room than the column.

    rows: the number of values. size: the bytes of a value. A dictionary is the distinct values, and for each row the
    place of its value in as few bits as possible.
    """
    most = 0
    for bits in range(8 * size):
        # If places take this many bits, `room` bits are left for distinct values.
        room = rows * (8 * size - bits)
        fitting = min(1 << bits, -(-room // (8 * size)) - 1)
        most = max(most, fitting if fitting > 1 << bits >> 1 else 0)
    return most


def find_repeated(values: npt.NDArray[Any], most: int | None = None) -> Repeated | None:
    """Return a column with its distinct values in order of first appearance; None if it has too many distinct values.

    values: numbers of 4 or 8 bytes. Values are distinct if their bits differ. most: the most distinct values. Default:
    as many as save room, see `most_distinct`.
    """
    fitting = most_distinct(len(values), values.itemsize)
    most = fitting if most is None else min(most, fitting)
    bits = values.view(f"u{values.itemsize}")
    if most < 1 or _more_than(most, bits):
        return None
    distinct, numbers = _numbered(bits, most)
    # Copy the distinct values: the array that they are a part of is larger, and the result may be kept for long.
    return None if distinct is None else Repeated(distinct.copy().view(values.dtype), numbers)


def _numbered(bits: npt.NDArray[Any], most: int) -> tuple[npt.NDArray[Any] | None, npt.NDArray[np.uint32]]:
    """Return the distinct values of whole numbers (None if more than `most`), and each number's place among them."""
    from gpupif.kernels.codes import number_values

    width = most.bit_length() + 1
    numbers, distinct = np.empty(len(bits), np.uint32), np.empty(most, bits.dtype)
    count = number_values(read_only(bits), 64 - width, np.zeros(1 << width, np.uint32), numbers, distinct)
    return None if count < 0 else distinct[:count], numbers


def _more_than(most: int, values: npt.NDArray[Any]) -> bool:
    """Return whether a sample shows that a column has more than `most` distinct values.

    The sample saves the time to number all values. A sample from `most` distinct values has the most distinct values if
    all are equally frequent. So more distinct values than expected then prove that the column has more than `most`.
    Source: the occupancy problem, Feller, An Introduction to Probability Theory and Its Applications, volume 1 (1968),
    II.5.
    """
    if len(values) <= SAMPLE or most >= len(values):
        return False
    drawn = values[np.random.default_rng(0).integers(len(values), size=SAMPLE)]
    expected = most * -math.expm1(-SAMPLE / most)
    distinct = _numbered(drawn, min(SAMPLE, int(expected + SURE * SAMPLE / math.sqrt(2 * most))))[0]
    return distinct is None


def kept_small(values: npt.NDArray[Any], most: int | None = None) -> npt.NDArray[Any] | Repeated:
    """Return a column as `Repeated` if that takes less room in memory, else as it is.

    most: the most distinct values of a `Repeated` column. Default: half of the number of rows.
    """
    half = len(values) // 2
    repeated = find_repeated(values, half if most is None else min(most, half))
    if repeated is None:
        return values
    kind = np.uint16 if len(repeated.distinct) <= 1 << 16 else np.uint32
    return Repeated(repeated.distinct, repeated.numbers.astype(kind, copy=False))
