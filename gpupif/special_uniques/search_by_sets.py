"""Minimal sample uniques found set by set of columns: for many rows, and few sets.

Level by level: a row that is unique on some columns is unique on any more, so a set of k columns is minimal for a row
that is unique on it and on none of its subsets of k - 1 columns. Equal rows stand as one, which is never unique.
"""

from __future__ import annotations

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from gpupif.kernels import msu as kernels

from ..engines.base import Counting
from ..rows.distinct import distinct_rows
from ..rows.keys import KeyLayout
from ..rows.partition import NO_ROWS, Rows, index_type
from ..rows.threads import Workers
from .distinct import DistinctRows
from .memory import DENSE, DENSE_ALL, DENSE_PER_ROW, SearchMemory
from .missing import IncompleteRows, MissingValues
from .row_sets import SpillingRowSets
from .uniques import Found


class SearchBySets:
    """The search among the distinct rows of a table.

    shares: what it may take; what it keeps beyond `room` goes to a file in the folder `temp`. counting: may find unique
    rows faster than the host. None of them changes a result. missing: values that are none, if any.
    """

    def __init__(
        self,
        rows: DistinctRows,
        workers: Workers,
        shares: SearchMemory,
        temp: str | os.PathLike[str] | None = None,
        counting: Counting | None = None,
        missing: MissingValues | None = None,
    ) -> None:
        self._room, self._temp = shares.room, temp
        self._rows, self._codes, self._often = len(rows), rows.codes, rows.often
        self._radices = np.array(rows.cardinalities, np.int64)
        self._workers = workers
        self._missing = missing
        self._lacking = {} if missing is None else self._lacking_words(missing)
        self._singles = counting.singles(list(self._codes), rows.cardinalities, self._often) if counting else None
        most = max(1 << 22, min(DENSE, DENSE_ALL // workers.threads))
        useful = min(most, max(1 << 16, DENSE_PER_ROW * self._rows))
        self._dense = useful if shares.dense is None else min(useful, shares.dense)
        self._tables: deque[npt.NDArray[np.uint8]] = deque()
        self._lock = threading.Lock()

    def _lacking_words(self, missing: MissingValues) -> dict[int, npt.NDArray[np.uint64]]:
        """By column that has missing values the rows that lack one, as bits."""
        words = {}
        for column, code in enumerate(missing.codes):
            if code >= 0:
                words[column] = np.zeros(-(-self._rows // 64), np.uint64)
                kernels.set_bits(np.flatnonzero(self._codes[column] == code), words[column])
        return words

    def run(self, weights: Sequence[float], with_shares: bool, done: Callable[[], None]) -> Found:
        """Find all minimal sets of up to len(weights) columns; weights: of a set by its size, less 1."""
        columns = len(self._codes)
        counts = np.zeros((len(weights), self._rows), np.uint32)
        shares = np.zeros((self._rows, columns) if with_shares else (0, 0))
        by_column = np.zeros((len(weights), columns), np.int64)
        below, spilled = SpillingRowSets(), 0
        for size, weight in enumerate(weights, 1):
            sets = list(combinations(range(columns), size))
            level = np.zeros(shares.shape, np.uint32)
            last = size == len(weights)
            above = SpillingRowSets(None if self._room is None else max(0, self._room - below.held), self._temp)

            def look(
                columns: tuple[int, ...],
                level: npt.NDArray[np.uint32] = level,
                below: SpillingRowSets = below,
                above: SpillingRowSets = above,
                size: int = size,
                last: bool = last,
            ) -> None:
                known = np.zeros(-(-self._rows // 64), np.uint64)
                for subset in combinations(columns, len(columns) - 1) if len(columns) > 1 else ():
                    below.add_to(subset, known)
                rows = self._minimal(columns, known)
                with self._lock:
                    kernels.count_found(rows, np.array(columns), counts[size - 1], level)
                    by_column[size - 1, list(columns)] += len(rows)
                if not last:
                    kernels.set_bits(rows, known)
                    above.put(columns, known)
                done()

            # Of the level below no more is needed then.
            with below:
                try:
                    self._workers.run(look, [(columns,) for columns in sets])
                except BaseException:
                    above.__exit__()
                    raise
            below, spilled = above, spilled + above.spilled
            kernels.add_weighted(level.reshape(-1), float(weight), shares.reshape(-1))
        return Found(counts, shares, by_column, spilled)

    def _minimal(self, columns: tuple[int, ...], known: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
        """Rows that are unique on these columns and, as `known` has them, on no fewer of them; ascending.

        Those that lack one of the columns, which is nothing that could make them unique, get known too.
        """
        lacking = [self._lacking[column] for column in columns if column in self._lacking]
        for words in lacking:
            known |= words
        rows = self._unlike(columns, known)
        if lacking and len(rows) and self._missing is not None and self._missing.match:
            rows = rows[self._unmatched(columns, rows, np.bitwise_or.reduce(lacking), self._missing.of(columns))]
        return rows

    def _unmatched(
        self,
        columns: tuple[int, ...],
        rows: npt.NDArray[np.uint32],
        lacking: npt.NDArray[np.uint64],
        missing: MissingValues,
    ) -> npt.NDArray[np.bool_]:
        """Which of the rows no row matches that lacks some of the columns."""
        others = np.empty(self._rows, np.uint32)
        others = others[: kernels.list_bits(lacking, others)]
        codes = [self._codes[column] for column in columns]
        lacking_rows = IncompleteRows([own[others] for own in codes], self._radices[list(columns)].tolist(), missing)
        return lacking_rows.unmatched([own[rows] for own in codes])

    def _unlike(self, columns: tuple[int, ...], known: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
        """Rows whose values in these columns no other row has, without those that are known; ascending."""
        there = self._singles.find(columns, known) if self._singles else None
        if there is not None:
            return there
        possible = math.prod(self._radices[list(columns)].tolist())
        if possible <= self._dense:
            words = self._unique_words(columns, possible)
            words &= ~known
            rows = np.empty(self._rows, np.uint32)
            return rows[: kernels.list_bits(words, rows)].copy()
        return self._grouped(columns, known)

    def _unique_words(self, columns: tuple[int, ...], possible: int) -> npt.NDArray[np.uint64]:
        try:
            table = self._tables.pop()
        except IndexError:
            table = np.empty(0, np.uint8)
        if len(table) < possible:
            table = np.empty(possible, np.uint8)
        used = table[:possible]
        used[:] = 0
        words = np.empty(-(-self._rows // 64), np.uint64)
        index, radices = np.empty(kernels.BLOCK, np.uint32), self._radices[list(columns)]
        kernels.mark_unique(self._codes, np.array(columns), radices, self._often, used, index, words)
        self._tables.append(table)
        return words

    def _grouped(self, columns: tuple[int, ...], known: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
        """Those alone in their group; rows unique on fewer columns, which no other row can equal, are left out."""
        rows = np.empty(self._rows, np.uint32)
        rows = rows[: kernels.list_bits(~known, rows)]
        rows = rows[: np.searchsorted(rows, self._rows)]
        if not len(rows):
            return rows
        layout = KeyLayout.of(self._radices[list(columns)].tolist())
        # A thread of its own already.
        with Workers(1) as alone:
            keys = layout.pack([self._codes[column][rows] for column in columns], alone)
            often = NO_ROWS if (self._often == 1).all() else self._often[rows].astype(index_type(2 * len(rows) + 1))
            total = len(rows) if often is NO_ROWS else int(often.sum())
            found = distinct_rows(Rows(keys, often), total, alone)
        alone_there: npt.NDArray[np.uint32] = rows[found.rows.counts[found.number] == 1]
        return alone_there
