"""Minimal sample uniques found row by row, from the columns on which it agrees with each other row: for many sets of
columns, and not too many rows.

How long it takes grows with the pairs of rows, and hardly with the sets of columns; see `gpupif.kernels.agreements`.
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
from .minimal_uniques import Found
from .search_time_and_memory import BLOCK_BYTES, FIRST_BLOCKS
from .value_combinations import MissingValues

# Rows that a thread searches at a time; rows whose time says how long the others will take.
ROWS_AT_ONCE, SAMPLE = 32, 16
# Columns beyond those of a block from which on a row takes long.
LONG_ROWS = 12


def _nothing(_: float) -> None:
    """Nobody hears."""


class SearchByPairs:
    """The search among distinct rows, of up to `kernels.MOST_COLUMNS` columns.

    weights: of a minimal set by its size, less 1; sets of more columns are not looked for. memory: bytes that all
    threads together may take for blocks (None: any). missing: values that are none, if any.
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
        self._table = kernels.Table(rows.codes, np.concatenate(support), first, codes, match)
        self._weights, self._memory = np.array(weights, np.float64), memory
        self._room: Spares[kernels.Room] = Spares(self._first_room)
        self._lock = threading.Lock()

    def search(
        self,
        rows: npt.NDArray[np.intp],
        places: npt.NDArray[np.intp],
        found: Found,
        workers: Workers,
        done: Callable[[int], None] = _nothing,
        said: Callable[[float], None] = _nothing,
    ) -> None:
        """Find the minimal unique sets of these rows, which occur once; places: of each in what is found.

        done: hears of rows. said: hears how many seconds it will take, when the first rows are done.
        """

        def some(which: npt.NDArray[np.intp]) -> None:
            self._search(rows[which], places[which], found, workers.threads)
            done(len(which))

        # What is compiled first is no part of the time.
        some(np.empty(0, np.intp))
        every = np.arange(len(rows))
        sample = every[:: max(1, len(rows) // SAMPLE)]
        started = time.perf_counter()
        workers.run(some, [(sample[place : place + 1],) for place in range(len(sample))])
        said((time.perf_counter() - started) / max(1, len(sample)) * len(rows))
        others = np.delete(every, sample)
        # Few where each takes long, for nothing ends a search within a piece.
        piece = max(1, ROWS_AT_ONCE >> max(0, self._upper() - LONG_ROWS))
        edges = [*range(0, len(others), piece), len(others)]
        workers.run(some, [(others[start:stop],) for start, stop in pairwise(edges)])

    def _search(self, rows: npt.NDArray[np.intp], places: npt.NDArray[np.intp], found: Found, threads: int) -> None:
        room = self._room.take()
        part = kernels.Found(found.counts, found.shares, np.zeros_like(found.by_column))
        start = kernels.search_rows(self._table, rows, places, self._weights, room, part)
        while start < len(rows):
            room = self._more(room, threads)
            start += kernels.search_rows(self._table, rows[start:], places[start:], self._weights, room, part)
        self._room.give_back(room)
        with self._lock:
            found.by_column[:] += part.by_column

    def _upper(self) -> int:
        upper: int = max(0, len(self._table.first) - kernels.LOW)
        return upper

    def _first_room(self) -> kernels.Room:
        columns, sizes = len(self._table.first), len(self._weights)
        words = 1 << max(0, min(columns, kernels.LOW) - kernels.WORD)
        blocks = min(1 << self._upper(), FIRST_BLOCKS)
        return kernels.Room(
            columns=np.empty(columns, np.int64),
            agreements=np.empty(kernels.ROWS, np.uint32),
            blocks=np.full(1 << self._upper(), -1, np.int32),
            numbers=np.zeros(blocks + 1, np.int32),
            words=np.empty((blocks, words), np.uint64),
            minimal=np.empty(words, np.uint64),
            level=np.zeros((sizes, columns + 1), np.int64),
        )

    def _more(self, room: kernels.Room, threads: int) -> kernels.Room:
        """Room for twice the blocks; raises InputError where there is no memory for them."""
        blocks = min(2 * len(room.words), 1 << self._upper())
        # The words that there are stay until there are more.
        needed = threads * (blocks * BLOCK_BYTES * 3 // 2 + 4 * blocks)
        if self._memory is not None and needed > self._memory:
            raise InputError(
                f"memory_limit: to search sets of {len(self._table.first)} columns with so many rows alike takes "
                f"{shown(needed)} beside the rows, {shown(self._memory)} are there for it. Name fewer columns with "
                "columns=, use fewer threads (gpupif.config), or raise it."
            )
        words: npt.NDArray[Any] = np.empty((blocks, room.words.shape[1]), np.uint64)
        return room._replace(numbers=np.zeros(blocks + 1, np.int32), words=words)
