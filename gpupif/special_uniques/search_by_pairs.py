"""Minimal sample uniques found by pairs of rows: the fastest search for many sets of columns and not too many rows.

For each single row, the columns on which it agrees with each other row say which sets make it unique. The time grows
with the number of pairs of rows, and hardly with the number of sets; see `gpupif.kernels.agreements`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels import agreements as kernels

from ..errors import InputError
from ..rows.threads import Spares, Workers
from ..utils.memory import shown
from .distinct_rows import DistinctRows
from .minimal_uniques import MsuCounts
from .search_time_and_memory import BLOCK_BYTES, FIRST_BLOCKS
from .value_combinations import MissingValues

# Rows that a thread searches at a time. Rows that are searched first, to estimate the time of the search.
ROWS_AT_ONCE, SAMPLE = 32, 16
# A row takes long if it has more than this number of columns beyond the columns of a block.
LONG_ROWS = 12


def _ignore(_: float) -> None:
    """Ignore a report of progress."""


class SearchByPairs:
    """The search by pairs of rows, among distinct rows of up to `kernels.MOST_COLUMNS` columns.

    weights: the weight of an MSU of 1, 2, ... columns; their number is the most columns of a set. memory: bytes of all
    threads together for blocks; None for any number. missing: missing values that are no values, None without them.
    """

    def __init__(
        self, rows: DistinctRows, weights: Sequence[float], memory: int | None, missing: MissingValues | None = None
    ) -> None:
        columns, often = len(rows.codes), rows.often
        support = [
            np.bincount(codes, often, cardinality).astype(np.uint32)
            for codes, cardinality in zip(rows.codes, rows.cardinalities, strict=True)
        ]
        first = np.cumsum([0, *rows.cardinalities[:-1]], dtype=np.int64)
        codes = np.array([-1] * columns if missing is None else missing.codes, np.int64)
        match = missing is not None and missing.match
        self._table = kernels.ComparedRows(rows.codes, np.concatenate(support), first, codes, match)
        self._weights, self._memory = np.array(weights, np.float64), memory
        self._room: Spares[kernels.SearchMemory] = Spares(self._first_room)
        self._lock = threading.Lock()

    def search(
        self,
        rows: npt.NDArray[np.intp],
        places: npt.NDArray[np.intp],
        msus: MsuCounts,
        workers: Workers,
        done: Callable[[int], None] = _ignore,
        announce: Callable[[float], None] = _ignore,
    ) -> None:
        """Find the MSUs of single rows, and write them into `msus`. Raises InputError for too little memory.

        rows: places of single rows among the distinct rows. places: their records in `msus`. done: called with the
        number of rows that were searched. announce: called once, with the estimated seconds of the whole search.
        """

        def search(which: npt.NDArray[np.intp]) -> None:
            self._search(rows[which], places[which], msus, workers.threads)
            done(len(which))

        # The first call compiles: it is not timed.
        search(np.empty(0, np.intp))
        every = np.arange(len(rows))
        sample = every[:: max(1, len(rows) // SAMPLE)]
        started = time.perf_counter()
        workers.run(search, [(sample[place : place + 1],) for place in range(len(sample))])
        announce((time.perf_counter() - started) / max(1, len(sample)) * len(rows))
        others = np.delete(every, sample)
        # A search cannot be interrupted within a call of the kernel: a call gets few rows if each takes long.
        at_once = max(1, ROWS_AT_ONCE >> max(0, self._upper() - LONG_ROWS))
        edges = [*range(0, len(others), at_once), len(others)]
        workers.run(search, [(others[start:stop],) for start, stop in pairwise(edges)])

    def _search(self, rows: npt.NDArray[np.intp], places: npt.NDArray[np.intp], msus: MsuCounts, threads: int) -> None:
        room = self._room.take()
        # Rows have records of their own, but `by_column` is shared: each thread counts into its own array.
        own = kernels.MinimalSets(msus.counts, msus.shares, np.zeros_like(msus.by_column))
        start = kernels.search_rows(self._table, rows, places, self._weights, room, own)
        while start < len(rows):
            room = self._more(room, threads)
            start += kernels.search_rows(self._table, rows[start:], places[start:], self._weights, room, own)
        self._room.give_back(room)
        with self._lock:
            msus.by_column[:] += own.by_column

    def _upper(self) -> int:
        upper: int = max(0, len(self._table.first) - kernels.LOW)
        return upper

    def _first_room(self) -> kernels.SearchMemory:
        columns, sizes = len(self._table.first), len(self._weights)
        words = 1 << max(0, min(columns, kernels.LOW) - kernels.WORD)
        blocks = min(1 << self._upper(), FIRST_BLOCKS)
        return kernels.SearchMemory(
            columns=np.empty(columns, np.int64),
            agreements=np.empty(kernels.ROWS, np.uint32),
            blocks=np.full(1 << self._upper(), -1, np.int32),
            numbers=np.zeros(blocks + 1, np.int32),
            words=np.empty((blocks, words), np.uint64),
            minimal=np.empty(words, np.uint64),
            level=np.zeros((sizes, columns + 1), np.int64),
        )

    def _more(self, room: kernels.SearchMemory, threads: int) -> kernels.SearchMemory:
        """Return room for twice the blocks. Raises InputError if there is no memory for them."""
        blocks = min(2 * len(room.words), 1 << self._upper())
        # The old words are freed after the new words are allocated: both count.
        needed = threads * (blocks * BLOCK_BYTES * 3 // 2 + 4 * blocks)
        if self._memory is not None and needed > self._memory:
            raise InputError(
                f"memory_limit: to search sets of {len(self._table.first)} columns with so many rows alike takes "
                f"{shown(needed)} beside the rows, {shown(self._memory)} are left. Name fewer columns with "
                "columns=, use fewer threads (gpupif.config), or raise it."
            )
        words: npt.NDArray[Any] = np.empty((blocks, room.words.shape[1]), np.uint64)
        return room._replace(numbers=np.zeros(blocks + 1, np.int32), words=words)
