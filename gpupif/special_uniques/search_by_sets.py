"""Minimal sample uniques found set by set of columns: the fastest search for many rows and few sets.

A row that is unique on some columns is unique on any larger set too. So a set of k columns is minimal for a row if the
row is unique on the set, and on none of its subsets of k - 1 columns. Sets are searched by size. Equal rows are one
distinct row, which is never unique.
"""

from __future__ import annotations

import contextlib
import math
import os
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from itertools import combinations
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels import msu as kernels

from ..engines.base import Counting
from ..errors import OutputError
from ..io.file_errors import disk_errors
from ..rows.distinct import distinct_rows
from ..rows.keys import KeyLayout
from ..rows.partition import NO_ROWS, Rows, index_type
from ..rows.threads import Workers
from .distinct_rows import DistinctRows
from .minimal_uniques import MsuCounts
from .search_time_and_memory import DENSE, DENSE_ALL, DENSE_PER_ROW, SearchMemory
from .value_combinations import IncompleteRows, MissingValues


class SearchBySets:
    """The search set by set of columns, among the distinct rows of a table.

    shares: the memory of the search; row sets beyond its `room` go to a file in the folder `temp`. counting: finds
    unique rows faster than the host, if it can. missing: missing values that are no values, None without them. Neither
    shares nor counting changes a result.
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
        """Return the rows with a missing value as bits, by column that has missing values."""
        words = {}
        for column, code in enumerate(missing.codes):
            if code >= 0:
                words[column] = np.zeros(-(-self._rows // 64), np.uint64)
                kernels.set_bits(np.flatnonzero(self._codes[column] == code), words[column])
        return words

    def run(self, weights: Sequence[float], with_shares: bool, done: Callable[[], None]) -> MsuCounts:
        """Find all MSUs. Raises OutputError.

        weights: the weight of an MSU of 1, 2, ... columns; their number is the most columns of a set. with_shares:
        whether to find contributions. done: called after each set.
        """
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

            # The row sets of the smaller size are not needed after this size.
            with below:
                try:
                    self._workers.run(look, [(columns,) for columns in sets])
                except BaseException:
                    above.__exit__()
                    raise
            below, spilled = above, spilled + above.spilled
            kernels.add_weighted(level.reshape(-1), float(weight), shares.reshape(-1))
        return MsuCounts(counts, shares, by_column, spilled)

    def _minimal(self, columns: tuple[int, ...], known: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
        """Return the rows for which these columns are a minimal set, ascending.

        known: the rows that are unique on fewer of the columns, as bits. Rows with a missing value in one of the
        columns are added to `known`: a missing value makes no row unique.
        """
        lacking = [self._lacking[column] for column in columns if column in self._lacking]
        for words in lacking:
            known |= words
        rows = self._unlike(columns, known)
        if lacking and len(rows) and self._missing is not None and self._missing.match:
            rows = rows[
                self._unmatched(columns, rows, np.bitwise_or.reduce(lacking), self._missing.of_columns(columns))
            ]
        return rows

    def _unmatched(
        self,
        columns: tuple[int, ...],
        rows: npt.NDArray[np.uint32],
        lacking: npt.NDArray[np.uint64],
        missing: MissingValues,
    ) -> npt.NDArray[np.bool_]:
        """Return which rows no incomplete row matches. lacking: the incomplete rows, as bits."""
        others = np.empty(self._rows, np.uint32)
        others = others[: kernels.list_bits(lacking, others)]
        codes = [self._codes[column] for column in columns]
        lacking_rows = IncompleteRows([own[others] for own in codes], self._radices[list(columns)].tolist(), missing)
        return lacking_rows.unmatched([own[rows] for own in codes])

    def _unlike(self, columns: tuple[int, ...], known: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
        """Return the rows whose values in these columns no other row has, except known rows; ascending."""
        singles = self._singles(columns, known) if self._singles else None
        if singles is not None:
            return singles
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
        """Return the rows whose key in these columns no other row has, except known rows; ascending."""
        rows = np.empty(self._rows, np.uint32)
        rows = rows[: kernels.list_bits(~known, rows)]
        rows = rows[: np.searchsorted(rows, self._rows)]
        if not len(rows):
            return rows
        layout = KeyLayout.from_cardinalities(self._radices[list(columns)].tolist())
        # The caller runs in a thread already.
        with Workers(1) as alone:
            keys = layout.pack([self._codes[column][rows] for column in columns], alone)
            often = NO_ROWS if (self._often == 1).all() else self._often[rows].astype(index_type(2 * len(rows) + 1))
            total = len(rows) if often is NO_ROWS else int(often.sum())
            distinct = distinct_rows(Rows(keys, often), total, alone)
        alone_there: npt.NDArray[np.uint32] = rows[distinct.rows.counts[distinct.number] == 1]
        return alone_there


def _nameless_file(folder: str | os.PathLike[str] | None) -> IO[bytes]:
    return tempfile.TemporaryFile(dir=folder)


class _Kept(NamedTuple):
    """A set of rows that is kept in memory or in a file.

    few: whether it is a list of rows (uint32), else bits (uint64 words). marks: the list or the words; None if they are
    `size` bytes of the file, from `start` on.
    """

    few: bool
    marks: npt.NDArray[Any] | None
    start: int
    size: int


class SpillingRowSets:
    """Sets of rows of a table, in memory and, beyond its room, in a file. A context manager; safe for threads.

    room: bytes in memory; None for any number. temp: the folder of the file, None for the folder of the system. The
    file has no name, so that it vanishes with the process. nbytes: bytes of all sets. spilled: bytes in the file.
    """

    def __init__(self, room: int | None = None, temp: str | os.PathLike[str] | None = None) -> None:
        self._room = room
        self._temp = temp
        self._sets: dict[Hashable, _Kept] = {}
        self._files = contextlib.ExitStack()
        self._file: IO[bytes] | None = None
        self._lock = threading.Lock()
        self.nbytes = self.spilled = 0

    def __enter__(self) -> SpillingRowSets:
        return self

    def __exit__(self, *_: object) -> None:
        self._sets.clear()
        self._files.close()

    @property
    def held(self) -> int:
        """The bytes in memory."""
        return self.nbytes - self.spilled

    def put(self, name: Hashable, words: npt.NDArray[np.uint64]) -> None:
        """Keep the rows whose bits are set in `words`. The caller must not change `words` afterwards."""
        few = np.empty(2 * len(words), np.uint32)
        number = kernels.list_bits(words, few)
        listed = number <= len(few)
        marks: npt.NDArray[Any] = few[:number].copy() if listed else words
        with self._lock:
            self.nbytes += marks.nbytes
            if self._room is None or self.held <= self._room:
                self._sets[name] = _Kept(listed, marks, 0, marks.nbytes)
                return
            start = self.spilled
            self.spilled += marks.nbytes
            if self._file is None:
                self._file = self._files.enter_context(_nameless_file(self._temp))
        self._write(marks, start)
        self._sets[name] = _Kept(listed, None, start, marks.nbytes)

    def add_to(self, name: Hashable, words: npt.NDArray[np.uint64]) -> None:
        """Set the bits of the rows of a set in `words`."""
        kept = self._sets[name]
        marks = self._read(kept) if kept.marks is None else kept.marks
        if kept.few:
            kernels.set_bits(marks, words)
        else:
            words |= marks

    def _write(self, marks: npt.NDArray[Any], start: int) -> None:
        assert self._file is not None
        left = marks.data.cast("B")
        elsewhere = "choose another place with temp (--temp), or raise memory_limit"
        with disk_errors(Path(self._temp or tempfile.gettempdir()), elsewhere):
            while left:
                done = os.pwrite(self._file.fileno(), left, start)
                left, start = left[done:], start + done

    def _read(self, kept: _Kept) -> npt.NDArray[Any]:
        assert self._file is not None
        kind = np.uint32 if kept.few else np.uint64
        marks = np.empty(kept.size // np.dtype(kind).itemsize, kind)
        if os.preadv(self._file.fileno(), [marks.data], kept.start) < kept.size:
            raise OutputError(
                f"{Path(self._temp or tempfile.gettempdir())}: a temporary file became shorter than it was written."
            )
        return marks
