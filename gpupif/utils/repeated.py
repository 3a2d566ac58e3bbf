"""Columns of numbers that repeat, as those that differ and which of them each row has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .arrays import read_only

# Different values at most: finding them takes less time than compressing all, up to so many.
MOST_DISTINCT = 1 << 19
# Values that tell whether those of a column repeat, and the share of different ones above which they do not.
SAMPLE, SAMPLE_DIFFERENT = 1 << 14, 3 / 4


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


def find_repeated(values: npt.NDArray[Any], most: int = MOST_DISTINCT) -> Repeated | None:
    """The values that differ, by their bits, in order of first appearance, and for each row which of them it has.

    values: numbers of 4 or 8 bytes. None where there are so many different ones that this takes time and saves little
    room, or more than `most`.
    """
    from gpupif.kernels.dictionary import number_values

    sample = values[:: -(-len(values) // SAMPLE)] if len(values) else values
    most = min(most, MOST_DISTINCT, len(values) // 2)
    if most < 1 or len(np.unique(sample)) > SAMPLE_DIFFERENT * len(sample):
        return None
    bits, width = read_only(values.view(f"u{values.itemsize}")), most.bit_length() + 1
    numbers, distinct = np.empty(len(bits), np.uint32), np.empty(most, bits.dtype)
    count = number_values(bits, 64 - width, np.zeros(1 << width, np.uint32), numbers, distinct)
    # In no more memory than they need: they may be kept.
    return None if count < 0 else Repeated(distinct[:count].copy().view(values.dtype), numbers)


def kept_small(values: npt.NDArray[Any], most: int = MOST_DISTINCT) -> npt.NDArray[Any] | Repeated:
    """A column as it is, or, where it is `Repeated`, as such, in as few bytes as it needs; most: different values."""
    found = find_repeated(values, most)
    if found is None:
        return values
    kind = np.uint16 if len(found.distinct) <= 1 << 16 else np.uint32
    return Repeated(found.distinct, found.numbers.astype(kind, copy=False))
