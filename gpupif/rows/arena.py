"""Working memory of one scoring run: memory touched for the first time is slow, so what has been used comes again."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

# Whole lines of memory, so that no two arrays share one.
ALIGNMENT = 128


class _Lease:
    """One array's piece of the arena, given back when the last view of it is gone."""

    def __init__(self, memory: npt.NDArray[np.uint8], span: tuple[int, int], returned: deque[tuple[int, int]]) -> None:
        self._memory = memory
        self._span = span
        self._returned = returned
        self.__array_interface__ = memory[span[0] : span[1]].__array_interface__

    def __del__(self) -> None:
        self._returned.append(self._span)


class Arena:
    """Arrays from one piece of memory of which only what is in use together is ever touched; for one thread.

    size: bytes to take arrays from; where they are used up, arrays come from elsewhere.
    """

    def __init__(self, size: int = 0) -> None:
        try:
            self._memory = np.empty(size + ALIGNMENT, np.uint8)
        except MemoryError:
            # So much in one piece may be refused where what is really touched is not.
            size = 0
            self._memory = np.empty(ALIGNMENT, np.uint8)
        start = -self._memory.ctypes.data % ALIGNMENT
        self._free = [(start, start + size)]
        self._returned: deque[tuple[int, int]] = deque()

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:
        """An array with arbitrary contents, as low in the arena as it fits."""
        sizes = (shape,) if isinstance(shape, int) else shape
        wanted = math.prod(sizes) * np.dtype(dtype).itemsize
        room = -(-wanted // ALIGNMENT) * ALIGNMENT
        self._merge_returned()
        for place, (start, stop) in enumerate(self._free):
            if wanted and stop - start >= room:
                self._free[place] = (start + room, stop)
                lease = _Lease(self._memory, (start, start + room), self._returned)
                array: npt.NDArray[Any] = np.asarray(lease)[:wanted].view(dtype).reshape(sizes)
                return array
        return np.empty(sizes, dtype)

    def _merge_returned(self) -> None:
        while self._returned:
            self._free.append(self._returned.popleft())
        self._free.sort()
        merged: list[tuple[int, int]] = []
        for start, stop in self._free:
            if merged and merged[-1][1] == start:
                merged[-1] = (merged[-1][0], stop)
            elif start < stop:
                merged.append((start, stop))
        self._free = merged
