"""How much memory a search for special uniques takes, and how what there is gets shared out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..engines.cpu.count_tables import common_type
from ..errors import InputError
from ..rows.keys import KeyLayout
from ..rows.partition import index_type
from ..rows.threads import default_threads
from ..utils.memory import free_bytes, resident_bytes, shown

# One byte for each possible combination: at most, of all threads together; and for each row.
DENSE, DENSE_PER_ROW, DENSE_ALL = 1 << 27, 256, 1 << 28
# Of a set of columns: its name, what is found of it, and where its rows are kept; measured.
SET_BYTES = 600
# Of what is left beside what must be there, what threads work with; the rest is for rows unique on some columns.
WORK_SHARE = 0.5
LEAST_DENSE = 1 << 16


class SearchMemory(NamedTuple):
    """threads: that search at once. dense: bytes for combinations, of each (None: as many as are of use). room: bytes
    for the rows that are unique on some columns (None: any).
    """

    threads: int
    dense: int | None
    room: int | None


def packing_bytes(rows: int, cardinalities: Sequence[int]) -> int:
    """What equal rows take while they are found: keys, twice, and numbers of rows."""
    return rows * (2 * 8 * KeyLayout.of(cardinalities).words + 5 * np.dtype(index_type(rows)).itemsize)


def kept_bytes(rows: int, cardinalities: Sequence[int], sizes: int, sets: int, contributions: bool) -> int:
    """What is there throughout the search in so many rows, all of which may differ, and of its results."""
    columns = len(cardinalities)
    codes = columns * np.dtype(common_type(cardinalities)).itemsize
    each = 2 * np.dtype(index_type(rows)).itemsize + 1 + codes + 4 * sizes + 8 + 12 * columns * contributions
    return rows * each + SET_BYTES * sets


def thread_bytes(rows: int, cardinalities: Sequence[int], size: int) -> int:
    """What a thread works with: bits, a list of rows, and their keys where they are grouped."""
    widest = sorted(cardinalities)[-size:]
    words = KeyLayout.of(widest).words
    return rows // 8 + rows * (4 + 2 * 8 * words + 6 * np.dtype(index_type(rows)).itemsize)


def search_bytes(rows: int, cardinalities: Sequence[int], size: int, sets: int, contributions: bool) -> int:
    """What a search takes beside the codes of the table, at least."""
    kept = kept_bytes(rows, cardinalities, size, sets, contributions)
    return kept + max(thread_bytes(rows, cardinalities, size) + LEAST_DENSE, packing_bytes(rows, cardinalities))


def share_search_memory(
    memory_limit: int | None, rows: int, cardinalities: Sequence[int], size: int, sets: int, contributions: bool
) -> SearchMemory:
    """What a search in a table of so many rows, whose codes are in memory, may take of what; raises InputError.

    size: of sets at most. sets: how many there are. memory_limit: of the process; None: what is free.
    """
    free = free_bytes() if memory_limit is None else memory_limit - resident_bytes()
    kept = kept_bytes(rows, cardinalities, size, sets, contributions)
    each = thread_bytes(rows, cardinalities, size) + LEAST_DENSE
    needed = search_bytes(rows, cardinalities, size, sets, contributions)
    if needed > free:
        left = "are free" if memory_limit is None else f"are left of {shown(memory_limit)}"
        contributing = ", leave contributions out" if contributions else ""
        raise InputError(
            f"memory_limit: to search {sets:,} sets of up to {size} of {len(cardinalities)} columns in {rows:,} rows "
            f"takes {shown(needed)}, {shown(max(0, free))} {left}. Name fewer columns with columns=, lower "
            f"max_size{contributing}, or raise it."
        )
    if memory_limit is None:
        return SearchMemory(default_threads(), None, int(WORK_SHARE * (free - kept)))
    work = int(WORK_SHARE * (free - kept))
    threads = max(1, min(default_threads(), work // each))
    dense = max(LEAST_DENSE, min(DENSE_ALL, work - threads * each) // threads)
    return SearchMemory(threads, dense, max(0, free - kept - threads * (each + dense)))
