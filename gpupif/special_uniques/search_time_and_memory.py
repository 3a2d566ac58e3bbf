"""Predictions of the time and the memory that each way to search for special uniques takes, and which is the fastest.

Times are of one core of a server of 2023; other machines may take three times as long. They only choose between ways
that give the same result, refuse a search that takes days, and announce a long search.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gpupif.kernels import agreements

from ..engines.cpu.count_tables import DENSE as DENSE_COUNTERS
from ..engines.cpu.count_tables import common_type
from ..errors import InputError
from ..rows.keys import KeyLayout
from ..rows.partition import index_type
from ..rows.threads import default_threads
from ..utils.display import duration
from ..utils.memory import free_bytes, resident_bytes, shown

# Nanoseconds for a pair of rows, for each column of a pair, and for a block (a set of the upper columns) of a row.
PAIR, PAIR_COLUMN, BLOCK = 2.0, 0.06, 450.0
# Nanoseconds for a set of columns, and for each row of it: if each combination of values has a counter, if rows are
# grouped, and if the table is on disk.
SET, COUNTED, GROUPED, ON_DISK = 1e5, 4.0, 30.0, 60.0
# How many times as fast a GPU counts: an estimate, not measured.
GPU = 10
# At most MOST_SETS sets are searched one by one. A search may take LONGEST hours; an error proposes a max_size with
# which the search takes at most SHORT hours.
MOST_SETS, LONGEST, SHORT = 10**7, 48, 1
# Limits in bytes of a table with one byte for each possible combination: of a table, for each row, of all threads.
DENSE, DENSE_PER_ROW, DENSE_ALL = 1 << 27, 256, 1 << 28
# Bytes of a set of columns, measured: its name, its result, and the place of its rows.
SET_BYTES = 600
# The number of blocks of `kernels.agreements` for which each thread has room at first, and the bytes of a block.
FIRST_BLOCKS, BLOCK_BYTES = 1 << 10, (1 << agreements.LOW) // 8
# The share of the spare memory for the work of threads; the rest keeps the rows that are unique on some columns.
WORK_SHARE = 0.5
LEAST_DENSE = 1 << 16


def count_sets(columns: int, size: int) -> int:
    """Return how many sets of 1 to `size` columns there are among a number of columns."""
    return sum(math.comb(columns, k) for k in range(1, size + 1))


def seconds_by_pairs(rows: int, single: int, columns: int) -> float:
    """Return the seconds to compare each single row with all distinct rows. rows, single: how many of each."""
    blocks: float = 2.0 ** max(0, columns - agreements.LOW)
    return single * (rows * (PAIR + PAIR_COLUMN * columns) + blocks * BLOCK) * 1e-9


def seconds_by_sets(rows: int, cardinalities: Sequence[int], size: int) -> float:
    """Return the seconds to search distinct rows set by set of columns, as if each column had the usual cardinality."""
    usual = math.exp(sum(map(math.log, cardinalities)) / len(cardinalities))
    sizes = range(1, size + 1)
    row = {k: COUNTED if k * math.log(usual) <= math.log(DENSE_COUNTERS) else GROUPED for k in sizes}
    return sum(math.comb(len(cardinalities), k) * (SET + rows * row[k]) for k in sizes) * 1e-9


def seconds_by_way(rows: int, single: int, cardinalities: Sequence[int], size: int, gpu: bool) -> dict[str, float]:
    """Return the seconds that each way to search takes ("pairs", "sets"), the fastest first."""
    columns, seconds = len(cardinalities), {}
    if columns <= agreements.MOST_COLUMNS:
        seconds["pairs"] = seconds_by_pairs(rows, single, columns)
    if count_sets(columns, size) <= MOST_SETS:
        seconds["sets"] = seconds_by_sets(rows, cardinalities, size) / (GPU if gpu else 1)
    return dict(sorted(seconds.items(), key=lambda way: way[1]))


def check_sets(columns: int, size: int) -> None:
    """Raise InputError if neither way can search: too many columns for pairs of rows, too many sets for set by set."""
    if columns > agreements.MOST_COLUMNS and count_sets(columns, size) > MOST_SETS:
        most = max(k for k in range(1, size) if count_sets(columns, k) <= MOST_SETS)
        raise InputError(
            f"max_size: {columns} columns have {count_sets(columns, size):,} sets of up to {size}, too many to search "
            f"in a table of more than {agreements.MOST_COLUMNS} columns. Give max_size={most} "
            f"({count_sets(columns, most):,} sets), or fewer columns."
        )


def check_counting(columns: int, size: int) -> None:
    """Raise InputError if there are more sets than can be counted one by one."""
    if count_sets(columns, size) > MOST_SETS:
        most = max((k for k in range(1, size) if count_sets(columns, k) <= MOST_SETS), default=0)
        mend = (
            f"Give max_size={most} ({count_sets(columns, most):,} sets), or fewer columns"
            if most
            else "Name fewer columns"
        )
        raise InputError(
            f"max_size: {columns} columns have {count_sets(columns, size):,} sets of up to {size}, too many to count "
            f"if distinct rows do not fit into memory. {mend}, or give more memory."
        )


def seconds_on_disk(rows: int, columns: int, size: int) -> float:
    """Return the seconds to count all sets of up to `size` columns on disk."""
    return rows * count_sets(columns, size) * ON_DISK * 1e-9


def check_time(rows: int, columns: int, seconds: Mapping[int, float]) -> None:
    """Raise InputError if a search takes too long. seconds: of one core, by the largest size of sets."""
    size = max(seconds)
    hours = {largest: taken / 3600 / default_threads() for largest, taken in seconds.items()}
    if hours[size] <= LONGEST:
        return
    short = max((largest for largest in hours if hours[largest] <= SHORT), default=0)
    mend = f"Give max_size={short} (about {duration(hours[short] * 3600)})" if short else "Name fewer columns"
    raise InputError(
        f"max_size: to search {rows:,} distinct rows for sets of up to {size} of {columns} columns takes about "
        f"{duration(hours[size] * 3600)}, too long. {mend}{', or fewer columns' if short else ''}."
    )


class SearchMemory(NamedTuple):
    """The memory of a search set by set.

    threads: the threads that search at once. dense: bytes of each thread for counters of combinations; None for as many
    as are useful. room: bytes for the rows that are unique on some columns; None for any number.
    """

    threads: int
    dense: int | None
    room: int | None


class FreeMemory(NamedTuple):
    """The memory that is free. free: bytes. limit: bytes of the process, None if nothing limits it."""

    free: int
    limit: int | None

    @classmethod
    def now(cls, limit: int | None) -> FreeMemory:
        """Return the memory that is left within a limit of the process; None for no limit."""
        return cls(free_bytes() if limit is None else limit - resident_bytes(), limit)

    def check(self, needed: int, rows: str, columns: int, size: int, contributions: bool) -> None:
        """Raise InputError if a search needs more bytes. rows: how many rows there are, in words."""
        if needed > self.free:
            left = "are free" if self.limit is None else f"are left of {shown(self.limit)}"
            contributing = ", leave contributions out" if contributions else ""
            raise InputError(
                f"memory_limit: to search sets of up to {size} of {columns} columns in {rows} takes "
                f"{shown(needed)}, {shown(max(0, self.free))} {left}. Name fewer columns with columns=, lower "
                f"max_size{contributing}, or raise it."
            )


def packing_bytes(rows: int, cardinalities: Sequence[int]) -> int:
    """Return the bytes to find the distinct rows of a table: keys twice, numbers of rows, and codes."""
    codes = len(cardinalities) * np.dtype(common_type(cardinalities)).itemsize
    return rows * (
        2 * 8 * KeyLayout.from_cardinalities(cardinalities).words + 5 * np.dtype(index_type(rows)).itemsize + codes
    )


def found_bytes(rows: int, columns: int, size: int, contributions: bool) -> int:
    """Return the bytes of the result for a number of distinct rows, without the bytes of the rows."""
    return rows * (1 + 4 * size + 8 + 12 * columns * contributions)


def thread_bytes(rows: int, cardinalities: Sequence[int], size: int) -> int:
    """Return the bytes of a thread that searches set by set: bits, a list of rows, and keys if rows are grouped."""
    widest = sorted(cardinalities)[-size:]
    words = KeyLayout.from_cardinalities(widest).words
    return rows // 8 + rows * (4 + 2 * 8 * words + 6 * np.dtype(index_type(rows)).itemsize)


def bytes_by_sets(rows: int, cardinalities: Sequence[int], size: int, contributions: bool) -> int:
    """Return the least bytes of a search set by set, without the bytes of the rows."""
    sets = count_sets(len(cardinalities), size)
    kept = found_bytes(rows, len(cardinalities), size, contributions) + SET_BYTES * sets
    return kept + thread_bytes(rows, cardinalities, size) + LEAST_DENSE


def bytes_by_pairs(rows: int, cardinalities: Sequence[int], size: int, contributions: bool) -> int:
    """Return the least bytes of a search by pairs of rows, without the bytes of the rows."""
    blocks: int = 1 << max(0, len(cardinalities) - agreements.LOW)
    kept = found_bytes(rows, len(cardinalities), size, contributions)
    first: int = min(blocks, FIRST_BLOCKS) * (BLOCK_BYTES + 4)
    return kept + 12 * sum(cardinalities) + default_threads() * (4 * blocks + first + LEAST_DENSE)


def share_by_sets(
    memory: FreeMemory, rows: int, cardinalities: Sequence[int], size: int, contributions: bool
) -> SearchMemory:
    """Return how a search set by set divides the free memory."""
    sets = count_sets(len(cardinalities), size)
    kept = found_bytes(rows, len(cardinalities), size, contributions) + SET_BYTES * sets
    each = thread_bytes(rows, cardinalities, size) + LEAST_DENSE
    if memory.limit is None:
        return SearchMemory(default_threads(), None, int(WORK_SHARE * (memory.free - kept)))
    work = int(WORK_SHARE * (memory.free - kept))
    threads = max(1, min(default_threads(), work // each))
    dense = max(LEAST_DENSE, min(DENSE_ALL, work - threads * each) // threads)
    return SearchMemory(threads, dense, max(0, memory.free - kept - threads * (each + dense)))
