"""Columns of numbers that repeat, as those that differ and which of them each row has."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .arrays import read_only

# Values of a column that tell whether it has too many different ones, and by how many standard deviations they must.
SAMPLE, SURE = 1 << 14, 2


@dataclass(frozen=True, eq=False)
class Repeated:
    """A column of numbers of which some come again and again: those that differ, and for each row which it has."""

    distinct: npt.NDArray[Any]
    numbers: npt.NDArray[np.unsignedinteger[Any]]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the numbers."""
        return self.distinct.dtype

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: Any) -> Repeated:
        return Repeated(self.distinct, self.numbers[rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self.values().astype(dtype or self.distinct.dtype, copy=False)

    def values(self) -> npt.NDArray[Any]:
        """The number of each row."""
        return np.take(self.distinct, self.numbers)


def most_distinct(rows: int, size: int) -> int:
    """Return how many different values a column may have so that a dictionary takes less room than its values do.

    rows: values of `size` bytes. A dictionary is the different values, and for each row the number of one of them in as
    few bits as hold it.
    """
    found = 0
    for bits in range(8 * size):
        # Of values whose numbers take so many bits, all that leave less than `rows` values of room.
        room = rows * (8 * size - bits)
        fitting = min(1 << bits, -(-room // (8 * size)) - 1)
        found = max(found, fitting if fitting > 1 << bits >> 1 else 0)
    return found


def find_repeated(values: npt.NDArray[Any], most: int | None = None) -> Repeated | None:
    """Return a column by its different values, in order of first appearance; None where there are too many of them.

    values: numbers of 4 or 8 bytes; they differ where their bits do. most: different values at most; None: as many as
    take less room as a dictionary than all values, see `most_distinct`.
    """
    fitting = most_distinct(len(values), values.itemsize)
    most = fitting if most is None else min(most, fitting)
    bits = values.view(f"u{values.itemsize}")
    if most < 1 or _more_than(most, bits):
        return None
    distinct, numbers = _numbered(bits, most)
    # In no more memory than they need: they may be kept.
    return None if distinct is None else Repeated(distinct.copy().view(values.dtype), numbers)


def _numbered(bits: npt.NDArray[Any], most: int) -> tuple[npt.NDArray[Any] | None, npt.NDArray[np.uint32]]:
    """Return the different ones of whole numbers, None if more than `most`, and which of them each is."""
    from gpupif.kernels.dictionary import number_values

    width = most.bit_length() + 1
    numbers, distinct = np.empty(len(bits), np.uint32), np.empty(most, bits.dtype)
    count = number_values(read_only(bits), 64 - width, np.zeros(1 << width, np.uint32), numbers, distinct)
    return None if count < 0 else distinct[:count], numbers


def _more_than(most: int, values: npt.NDArray[Any]) -> bool:
    """Return whether a sample shows that a column has more than `most` different values; numbering them takes longer.

    Values drawn at random from `most` ones are fewer different ones the less alike the shares of these are. Source:
    the occupancy problem, Feller, An Introduction to Probability Theory and Its Applications, volume 1 (1968), II.5.
    """
    if len(values) <= SAMPLE or most >= len(values):
        return False
    drawn = values[np.random.default_rng(0).integers(len(values), size=SAMPLE)]
    expected = most * -math.expm1(-SAMPLE / most)
    different = _numbered(drawn, min(SAMPLE, int(expected + SURE * SAMPLE / math.sqrt(2 * most))))[0]
    return different is None


def kept_small(values: npt.NDArray[Any], most: int | None = None) -> npt.NDArray[Any] | Repeated:
    """Return a column as it is, or `Repeated` where that takes less room in memory; most: different values at most."""
    half = len(values) // 2
    found = find_repeated(values, half if most is None else min(most, half))
    if found is None:
        return values
    kind = np.uint16 if len(found.distinct) <= 1 << 16 else np.uint32
    return Repeated(found.distinct, found.numbers.astype(kind, copy=False))
