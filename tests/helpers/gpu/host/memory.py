"""Memory between pages that nobody may touch: what reads or writes beyond either end faults."""

from __future__ import annotations

import ctypes
import mmap
from collections import defaultdict
from typing import NamedTuple

# On both sides; larger than what an index that is wrong by a row of a small matrix skips.
GUARD_BYTES = 1 << 20
NO_ACCESS = 0  # PROT_NONE

_c = ctypes.CDLL(None)
_c.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Memory(NamedTuple):
    """size: bytes; start, end: their addresses, with guards before and from there on."""

    size: int
    start: int
    end: int
    mapped: mmap.mmap


# What was given back, by size.
_free: defaultdict[int, list[Memory]] = defaultdict(list)


def take(size: int) -> Memory:
    """At least so many bytes, with what they held before; not for several threads at once."""
    rounded = max(mmap.PAGESIZE, 1 << (size - 1).bit_length())
    if _free[rounded]:
        return _free[rounded].pop()
    mapped = mmap.mmap(-1, rounded + 2 * GUARD_BYTES)
    start = ctypes.addressof(ctypes.c_char.from_buffer(mapped)) + GUARD_BYTES
    for guard in (start - GUARD_BYTES, start + rounded):
        if _c.mprotect(guard, GUARD_BYTES, NO_ACCESS) != 0:
            raise OSError(f"mprotect refused to guard {rounded} bytes")
    return Memory(rounded, start, start + rounded, mapped)


def give(memory: Memory) -> None:
    """Give memory back, for others to take."""
    _free[memory.size].append(memory)
