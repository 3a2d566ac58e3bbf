"""Columns of numbers that repeat, as those that differ and which of them each row has."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels.dictionary import number_values

# Different values at most: finding them takes less time than compressing all, up to so many.
MOST_DISTINCT = 1 << 19
# Values that tell whether those of a column repeat, and the share of different ones above which they do not.
SAMPLE, SAMPLE_DIFFERENT = 1 << 14, 3 / 4


def find_repeated(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint32]] | None:
    """The values that differ, by their bits, in order of first appearance, and for each row which of them it has.

    values: numbers of 4 or 8 bytes. None where there are so many different ones that this takes time and saves little
    room.
    """
    sample = values[:: -(-len(values) // SAMPLE)] if len(values) else values
    most = min(MOST_DISTINCT, len(values) // 2)
    if not most or len(np.unique(sample)) > SAMPLE_DIFFERENT * len(sample):
        return None
    bits, width = values.view(f"u{values.itemsize}"), most.bit_length() + 1
    numbers, distinct = np.empty(len(bits), np.uint32), np.empty(most, bits.dtype)
    count = number_values(bits, 64 - width, np.zeros(1 << width, np.uint32), numbers, distinct)
    return None if count < 0 else (distinct[:count].view(values.dtype), numbers)
