"""Combinations of values of small sets of columns, counted exactly: many sets at once, chunk by chunk if need be.

Where the cardinalities of a set multiply to little, each combination has a counter; where they do not, rows are
grouped by packed keys. What comes out is the same: the combinations that occur, in the order of their codes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpupif.kernels import subsets as kernels
from gpupif.kernels.spread import invert, look_up

from ..information import Sizes
from ..keys import WORD_BITS, Field, KeyLayout
from ..labels import code_type
from .distinct import distinct_rows
from .host_run import pack_keys, unpack_keys
from .partition import NO_ROWS, Rows, index_type
from .tally import sizes_of_counts
from .workers import SMALLEST_TASK, Workers

if TYPE_CHECKING:
    import numpy.typing as npt

# Counters of a set at most, and for each row of the table.
DENSE, DENSE_PER_ROW = 1 << 22, 16
# Rows whose codes stay in the second-level cache, with the counters of many pairs.
BLOCK_ROWS = 8192
# Counters, of all sets together, that each thread may have of its own.
OWN_BYTES = 1 << 25
# What the sets that are counted at once may take, where they need not be at once.
BATCH_BYTES = 1 << 28


@dataclass(frozen=True)
class Combinations:
    """Combinations of some columns that occur, in ascending order of their codes.

    codes: per column the code in each combination. counts: rows with each combination.
    """

    codes: list[npt.NDArray[Any]]
    counts: npt.NDArray[np.int64]


def is_dense(cardinalities: Sequence[int], rows: int, most: int = DENSE) -> bool:
    """Whether each possible combination of such columns is to have a counter, for a table of so many rows."""
    return math.prod(cardinalities) <= min(most, max(BLOCK_ROWS, DENSE_PER_ROW * rows))


def needed_bytes(cardinalities: Sequence[int], rows: int, most: int = DENSE) -> int:
    """About how much memory the combinations of such columns take in a table of so many rows."""
    possible = math.prod(cardinalities)
    if is_dense(cardinalities, rows, most):
        return 4 * possible
    return min(possible, rows) * 3 * (8 * key_layout(cardinalities).words + 4)


def in_batches(
    subsets: Sequence[Sequence[int]], cardinalities: Sequence[int], rows: int, memory: int = BATCH_BYTES
) -> Iterator[list[Sequence[int]]]:
    """The sets in turn, so many at once as fit into so many bytes, at least one."""
    batch: list[Sequence[int]] = []
    taken = 0
    for subset in subsets:
        needed = needed_bytes([cardinalities[column] for column in subset], rows)
        if batch and taken + needed > memory:
            yield batch
            batch, taken = [], 0
        batch.append(subset)
        taken += needed
    if batch:
        yield batch


def key_layout(cardinalities: Sequence[int]) -> KeyLayout:
    """Row keys of these columns that are in the order of their codes, the first column's first."""
    fields, word, used = {}, 0, 0
    for column, cardinality in enumerate(cardinalities):
        width = (cardinality - 1).bit_length()
        if used + width > WORD_BITS:
            word, used = word + 1, 0
        used += width
        fields[column] = Field(word, WORD_BITS - used, (1 << width) - 1) if width else Field(0, 0, 0)
    return KeyLayout(fields, word + 1)


def key_order(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """The order that sorts row keys (rows, words)."""
    if keys.shape[1] == 1:
        return np.argsort(keys[:, 0], kind="stable")
    return np.lexsort(keys.T[::-1])


def common_type(cardinalities: Sequence[int]) -> type[np.unsignedinteger[Any]]:
    """One type for the codes of all columns, of few, so that kernels are compiled for few."""
    return np.uint16 if max(cardinalities, default=0) <= 1 << 16 else np.uint32


class _Dense:
    """Counters of some sets, all possible combinations of each."""

    def __init__(self, subsets: Sequence[Sequence[int]], cardinalities: Sequence[int]) -> None:
        widest = max(map(len, subsets), default=0)
        shape = (len(subsets), widest)
        self.columns, self.radices = np.zeros(shape, np.int64), np.ones(shape, np.int64)
        self.widths = np.array([len(subset) for subset in subsets], np.int64)
        for place, subset in enumerate(subsets):
            self.columns[place, : len(subset)] = subset
            self.radices[place, : len(subset)] = [cardinalities[column] for column in subset]
        self.offsets = np.concatenate([[0], np.cumsum(self.radices.prod(axis=1))]).astype(np.int64)
        self.tables: npt.NDArray[Any] = np.zeros(self.offsets[-1], np.uint32)
        self._type = common_type([cardinalities[column] for subset in subsets for column in subset])
        self._used = sorted({column for subset in subsets for column in subset})
        self._all = len(cardinalities)

    def add(
        self, codes: Sequence[npt.NDArray[Any]], times: npt.NDArray[Any] | None, total: int, workers: Workers
    ) -> None:
        """Count these rows too, which makes `total` in all."""
        if not len(self.widths):
            return
        self.tables = self.tables.astype(index_type(total + 1), copy=False)
        rows = len(codes[0])
        own = max(1, min(workers.threads, rows // SMALLEST_TASK))
        if own * self.tables.nbytes <= OWN_BYTES:
            edges = [rows * piece // own for piece in range(own + 1)]
            parts = [self.tables, *(np.zeros_like(self.tables) for _ in range(own - 1))]
            tasks = [(0, len(self.widths), edges[piece], edges[piece + 1], parts[piece]) for piece in range(own)]
            workers.run(lambda *task: self._count(codes, times, *task), tasks)
            for part in parts[1:]:
                self.tables += part
        else:
            # Each thread counts sets of its own, so that there is one table of each.
            places = [(place, place + 1, 0, rows, self.tables) for place in range(len(self.widths))]
            workers.run(lambda *task: self._count(codes, times, *task), places)

    def _count(
        self,
        codes: Sequence[npt.NDArray[Any]],
        times: npt.NDArray[Any] | None,
        first: int,
        last: int,
        start: int,
        stop: int,
        tables: npt.NDArray[Any],
    ) -> None:
        """Count rows start to stop, the sets first to last - 1."""
        used = self._used if last - first > 1 else sorted(self.columns[first, : self.widths[first]].tolist())
        block = np.empty((self._all, BLOCK_ROWS), self._type)
        index = np.empty(BLOCK_ROWS, np.uint32)
        none = np.empty(0, tables.dtype)
        sets = (self.columns[first:last], self.widths[first:last], self.radices[first:last])
        for begin in range(start, stop, BLOCK_ROWS):
            size = min(BLOCK_ROWS, stop - begin)
            for column in used:
                block[column, :size] = codes[column][begin : begin + size]
            repeats = none if times is None else times[begin : begin + size].astype(tables.dtype)
            kernels.count_subsets(block, repeats, *sets, self.offsets[first : last + 1], index[:size], tables)

    def table(self, place: int) -> npt.NDArray[Any]:
        """The counters of one set."""
        return self.tables[self.offsets[place] : self.offsets[place + 1]]

    def combinations(self, place: int) -> Combinations:
        """See `SubsetCounter`."""
        table = self.table(place)
        found = np.flatnonzero(table)
        radices = self.radices[place, : self.widths[place]].tolist()
        digits = np.unravel_index(found, radices) if radices else ()
        codes = [values.astype(code_type(radix)) for values, radix in zip(digits, radices, strict=True)]
        return Combinations(codes, table[found].astype(np.int64))


class _Grouped:
    """The combinations of one set that were seen, as distinct row keys with counts."""

    def __init__(self, subset: Sequence[int], cardinalities: Sequence[int]) -> None:
        self.subset = list(subset)
        self.layout = key_layout([cardinalities[column] for column in subset])
        self._seen: list[Rows] = []
        self._ordered = False

    def add(
        self, codes: Sequence[npt.NDArray[Any]], times: npt.NDArray[Any] | None, total: int, workers: Workers
    ) -> None:
        """See `_Dense`."""
        keys = pack_keys([codes[column] for column in self.subset], self.layout, workers)
        counts = NO_ROWS if times is None else times.astype(index_type(total + 1))
        self._seen.append(distinct_rows(Rows(keys, counts), total, workers).rows)
        self._ordered = False
        # Merged when as many wait as are merged, so that each is merged a few times at most.
        if sum(len(rows.keys) for rows in self._seen[1:]) >= len(self._seen[0].keys):
            self._merge(total, workers)

    def _merge(self, total: int, workers: Workers) -> None:
        if len(self._seen) > 1:
            keys = np.concatenate([rows.keys for rows in self._seen])
            counts = np.concatenate([rows.counts.astype(index_type(total + 1)) for rows in self._seen])
            self._seen = [distinct_rows(Rows(keys, counts), total, workers).rows]

    def nbytes(self) -> int:
        """See `SubsetCounter`."""
        return sum(rows.keys.nbytes + rows.counts.nbytes for rows in self._seen)

    def counts(self, total: int, workers: Workers) -> npt.NDArray[Any]:
        """Rows with each combination, in no particular order."""
        self._merge(total, workers)
        return self._seen[0].counts if self._seen else NO_ROWS

    def combinations(self, total: int, workers: Workers) -> Combinations:
        """See `SubsetCounter`."""
        self._merge(total, workers)
        if not self._seen:
            return Combinations([np.empty(0, np.uint8) for _ in self.subset], np.empty(0, np.int64))
        if not self._ordered:
            rows = self._seen[0]
            order = key_order(rows.keys)
            self._seen, self._ordered = [Rows(rows.keys[order], rows.counts[order])], True
        rows = self._seen[0]
        return Combinations(unpack_keys(rows.keys, self.layout), rows.counts.astype(np.int64))


class SubsetCounter:
    """Counts the combinations of sets of columns over all rows that are added, in one chunk or many.

    subsets: each a list of places of columns. cardinalities: of all columns. rows: about how many there will be.
    dense: counters that a set may have at most, from 1; nothing that comes out depends on it.
    """

    def __init__(
        self,
        subsets: Sequence[Sequence[int]],
        cardinalities: Sequence[int],
        rows: int,
        workers: Workers,
        dense: int = DENSE,
    ) -> None:
        self.subsets = [list(subset) for subset in subsets]
        self.total = 0
        self._workers = workers
        of = [is_dense([cardinalities[column] for column in subset], rows, dense) for subset in self.subsets]
        self._dense = _Dense([s for s, small in zip(self.subsets, of, strict=True) if small], cardinalities)
        self._grouped = [_Grouped(s, cardinalities) for s, small in zip(self.subsets, of, strict=True) if not small]
        # Where to look for each set: whether among the dense ones, and the place there.
        self._where = [(small, of[:place].count(small)) for place, small in enumerate(of)]

    def add(self, codes: Sequence[npt.NDArray[Any]], times: npt.NDArray[Any] | None = None) -> None:
        """Count further rows: the codes of all columns, each below its cardinality.

        times: how often each row occurs (None: once).
        """
        self.total += len(codes[0]) if times is None else int(times.sum())
        self._dense.add(codes, times, self.total, self._workers)
        for grouped in self._grouped:
            grouped.add(codes, times, self.total, self._workers)

    def nbytes(self) -> int:
        """What is kept of all rows so far."""
        return self._dense.tables.nbytes + sum(grouped.nbytes() for grouped in self._grouped)

    def combinations(self, place: int) -> Combinations:
        """The combinations of the set at this place that occur."""
        dense, where = self._where[place]
        return (
            self._dense.combinations(where) if dense else self._grouped[where].combinations(self.total, self._workers)
        )

    def counts(self, place: int) -> npt.NDArray[Any]:
        """Rows with each combination of the set at this place that occurs, in no particular order."""
        dense, where = self._where[place]
        if dense:
            table = self._dense.table(where)
            return table[table > 0]
        return self._grouped[where].counts(self.total, self._workers)

    def sizes(self, place: int) -> Sizes:
        """How many combinations of the set at this place there are of each count."""
        return sizes_of_counts(self.counts(place), self.total, self._workers)


def sizes_of_sets(
    codes: Sequence[npt.NDArray[Any]],
    cardinalities: Sequence[int],
    sets: Sequence[Sequence[int]],
    workers: Workers,
) -> list[Sizes]:
    """How many combinations of each set of columns there are of each count, sets of any size."""
    rows, times = len(codes[0]), None
    wide = [set_ for set_ in sets if not is_dense([cardinalities[column] for column in set_], rows)]
    if len(wide) > 1:
        # Rows that are equal on all that is asked for go on as one.
        used = sorted({column for set_ in sets for column in set_})
        layout = KeyLayout.of([cardinalities[column] for column in used])
        found = distinct_rows(Rows(pack_keys([codes[column] for column in used], layout, workers)), rows, workers).rows
        at = dict(zip(used, unpack_keys(found.keys, layout), strict=True))
        # Columns that no set has stay without codes of their own.
        codes, times = [at.get(column, found.counts) for column in range(len(cardinalities))], found.counts
    sizes: list[Sizes] = []
    for batch in in_batches(sets, cardinalities, rows):
        counter = SubsetCounter(batch, cardinalities, rows, workers)
        counter.add(codes, times)
        sizes += [counter.sizes(place) for place in range(len(batch))]
    return sizes


@dataclass(frozen=True)
class Numbered:
    """combinations: of some columns that occur. number[i]: which of them row i has."""

    combinations: Combinations
    number: npt.NDArray[Any]


def number_rows(
    codes: Sequence[npt.NDArray[Any]],
    cardinalities: Sequence[int],
    workers: Workers,
    times: npt.NDArray[Any] | None = None,
    dense: int = DENSE,
) -> Numbered:
    """The combinations of all these columns, one at least, and for each row the number of its own."""
    rows, every = len(codes[0]), list(range(len(codes)))
    if is_dense(cardinalities, rows, dense):
        return _number_dense(codes, cardinalities, workers, times)
    total = rows if times is None else int(times.sum())
    layout = key_layout(cardinalities)
    counts = NO_ROWS if times is None else times.astype(index_type(total + 1))
    keys = pack_keys([codes[column] for column in every], layout, workers)
    found = distinct_rows(Rows(keys, counts), total, workers)
    order = key_order(found.rows.keys)
    rank = np.empty(len(order), found.number.dtype)
    invert(order, 0, rank)
    number = found.number
    workers.run(lambda a, b: look_up(rank, number[a:b], number[a:b]), workers.ranges(rows))
    codes = unpack_keys(found.rows.keys[order], layout)
    return Numbered(Combinations(codes, found.rows.counts[order].astype(np.int64)), number)


def _number_dense(
    codes: Sequence[npt.NDArray[Any]],
    cardinalities: Sequence[int],
    workers: Workers,
    times: npt.NDArray[Any] | None,
) -> Numbered:
    counter = SubsetCounter([range(len(codes))], cardinalities, len(codes[0]), workers)
    counter.add(codes, times)
    combinations = counter.combinations(0)
    present = counter._dense.table(0) > 0
    rank = (np.cumsum(present) - 1).astype(index_type(len(present)))
    number = np.empty(len(codes[0]), index_type(len(codes[0])))
    every, radices = np.arange(len(codes)), np.array(cardinalities, np.int64)

    def look(start: int, stop: int) -> None:
        block = np.empty((len(codes), BLOCK_ROWS), common_type(cardinalities))
        index = np.empty(BLOCK_ROWS, np.uint32)
        for begin in range(start, stop, BLOCK_ROWS):
            size = min(BLOCK_ROWS, stop - begin)
            for place, values in enumerate(codes):
                block[place, :size] = values[begin : begin + size]
            kernels.combine(block, 0, every, radices, index[:size])
            look_up(rank, index[:size], number[begin : begin + size])

    workers.run(look, workers.ranges(len(codes[0])))
    return Numbered(combinations, number)
