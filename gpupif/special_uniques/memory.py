"""How much memory a search for special uniques takes, and how what there is gets shared out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpupif.kernels import agreements

from ..engines.cpu.count_tables import common_type
from ..errors import InputError
from ..rows.keys import KeyLayout
from ..rows.partition import index_type
from ..rows.threads import default_threads
from ..utils.memory import free_bytes, resident_bytes, shown
from .work import count_sets

# One byte for each possible combination: at most, of all threads together; and for each row.
DENSE, DENSE_PER_ROW, DENSE_ALL = 1 << 27, 256, 1 << 28
# Of a set of columns: its name, what is found of it, and where its rows are kept; measured.
SET_BYTES = 600
# Blocks of `kernels.agreements` that there is room for at first, in each thread, and bytes of one.
FIRST_BLOCKS, BLOCK_BYTES = 1 << 10, (1 << agreements.LOW) // 8
# Of what is left beside what must be there, what threads work with; the rest is for rows unique on some columns.
WORK_SHARE = 0.5
LEAST_DENSE = 1 << 16


class SearchMemory(NamedTuple):
    """threads: that search at once. dense: bytes for combinations, of each (None: as many as are of use). room: bytes
    for the rows that are unique on some columns, or for what pairs of rows need (None: any).
    """

    threads: int
    dense: int | None
    room: int | None


class FreeMemory(NamedTuple):
    """free: bytes. limit: of the process; None: they are what is free."""

    free: int
    limit: int | None

    @classmethod
    def now(cls, limit: int | None) -> FreeMemory:
        """What there is within a limit of the process; None: what is free."""
        return cls(free_bytes() if limit is None else limit - resident_bytes(), limit)

    def check(self, needed: int, rows: str, columns: int, size: int, contributions: bool) -> None:
        """Raise InputError where a search needs more; rows: how many there are, in words."""
        if needed > self.free:
            left = "are free" if self.limit is None else f"are left of {shown(self.limit)}"
            contributing = ", leave contributions out" if contributions else ""
            raise InputError(
                f"memory_limit: to search sets of up to {size} of {columns} columns in {rows} takes "
                f"{shown(needed)}, {shown(max(0, self.free))} {left}. Name fewer columns with columns=, lower "
                f"max_size{contributing}, or raise it."
            )


def packing_bytes(rows: int, cardinalities: Sequence[int]) -> int:
    """What equal rows take while they are found: keys, twice, and numbers of rows; and then their codes."""
    codes = len(cardinalities) * np.dtype(common_type(cardinalities)).itemsize
    return rows * (2 * 8 * KeyLayout.of(cardinalities).words + 5 * np.dtype(index_type(rows)).itemsize + codes)


def found_bytes(rows: int, columns: int, size: int, contributions: bool) -> int:
    """What is found of so many distinct rows, beside these."""
    return rows * (1 + 4 * size + 8 + 12 * columns * contributions)


def thread_bytes(rows: int, cardinalities: Sequence[int], size: int) -> int:
    """What a thread works with that searches set by set: bits, a list of rows, and keys where these are grouped."""
    widest = sorted(cardinalities)[-size:]
    words = KeyLayout.of(widest).words
    return rows // 8 + rows * (4 + 2 * 8 * words + 6 * np.dtype(index_type(rows)).itemsize)


def bytes_by_sets(rows: int, cardinalities: Sequence[int], size: int, contributions: bool) -> int:
    """What a search set by set takes at least, beside the rows."""
    sets = count_sets(len(cardinalities), size)
    found = found_bytes(rows, len(cardinalities), size, contributions) + SET_BYTES * sets
    return found + thread_bytes(rows, cardinalities, size) + LEAST_DENSE


def bytes_by_pairs(rows: int, cardinalities: Sequence[int], size: int, contributions: bool) -> int:
    """What a search by pairs of rows takes at least, beside the rows."""
    blocks: int = 1 << max(0, len(cardinalities) - agreements.LOW)
    found = found_bytes(rows, len(cardinalities), size, contributions)
    first: int = min(blocks, FIRST_BLOCKS) * (BLOCK_BYTES + 4)
    return found + 12 * sum(cardinalities) + default_threads() * (4 * blocks + first + LEAST_DENSE)


def share_by_sets(
    memory: FreeMemory, rows: int, cardinalities: Sequence[int], size: int, contributions: bool
) -> SearchMemory:
    """How a search set by set shares out what there is."""
    sets = count_sets(len(cardinalities), size)
    kept = found_bytes(rows, len(cardinalities), size, contributions) + SET_BYTES * sets
    each = thread_bytes(rows, cardinalities, size) + LEAST_DENSE
    if memory.limit is None:
        return SearchMemory(default_threads(), None, int(WORK_SHARE * (memory.free - kept)))
    work = int(WORK_SHARE * (memory.free - kept))
    threads = max(1, min(default_threads(), work // each))
    dense = max(LEAST_DENSE, min(DENSE_ALL, work - threads * each) // threads)
    return SearchMemory(threads, dense, max(0, memory.free - kept - threads * (each + dense)))
