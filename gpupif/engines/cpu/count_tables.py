"""Tables that count the combinations of sets of columns: a counter for each possible combination, or distinct keys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels import subsets as kernels
from gpupif.kernels.equal_rows import EqualRowsMemory
from gpupif.kernels.spread import look_up

from ...rows.distinct import distinct_rows
from ...rows.keys import WORD_BITS, Field, KeyLayout, code_type
from ...rows.partition import NO_ROWS, Rows, index_type
from ...rows.threads import SMALLEST_TASK, Spares, Workers

# Most counters of a set, and most for each row of the table. If a set needs more, counting distinct keys is faster.
DENSE, DENSE_PER_ROW = 1 << 22, 2
# Rows of a block: their codes fit the second-level cache, with the counters of many pairs of columns.
BLOCK_ROWS = 8192
# Most bytes of counters, of all sets, for each thread to have a copy.
OWN_BYTES = 1 << 25

# Most rows for `ListedRows`. More rows do not fit the cache and are partitioned first.
MOST_ROWS = 1 << 17
# Keys of one word need no hashes.
NO_HASHES: npt.NDArray[np.uint64] = np.empty(0, np.uint64)


@dataclass(frozen=True)
class Combinations:
    """The combinations of some columns that occur, in ascending order of their codes unless the maker says otherwise.

    codes: by column, (combinations,). The code in each combination.
    counts: (combinations,). The number of rows with each combination.
    """

    codes: list[npt.NDArray[Any]]
    counts: npt.NDArray[np.int64]


def is_dense(cardinalities: Sequence[int], rows: int, most: int = DENSE) -> bool:
    """Return whether each possible combination gets a counter. rows: of the table. most: counters of a set."""
    return math.prod(cardinalities) <= min(most, max(BLOCK_ROWS, DENSE_PER_ROW * rows))


def combination_bytes(cardinalities: Sequence[int], rows: int, total: int | None = None) -> int:
    """Return about the bytes that counting the combinations of columns takes.

    rows: rows of the table. total: the sum of their multiplicities; None: 1 each.
    """
    possible, each = math.prod(cardinalities), np.dtype(index_type((total or rows) + 1)).itemsize
    if is_dense(cardinalities, rows):
        return each * possible
    return min(possible, rows) * 3 * (8 * key_layout(cardinalities).words + each)


def key_layout(cardinalities: Sequence[int]) -> KeyLayout:
    """Return a layout whose row keys have the order of the codes, with the first column as the highest."""
    fields, word, used = {}, 0, 0
    for column, cardinality in enumerate(cardinalities):
        width = (cardinality - 1).bit_length()
        if used + width > WORD_BITS:
            word, used = word + 1, 0
        used += width
        fields[column] = Field(word, WORD_BITS - used, (1 << width) - 1) if width else Field(0, 0, 0)
    return KeyLayout(fields, word + 1)


def key_order(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return the order that sorts row keys. keys: (rows, words)."""
    if keys.shape[1] == 1:
        return np.argsort(keys[:, 0], kind="stable")
    return np.lexsort(keys.T[::-1])


def common_type(cardinalities: Sequence[int]) -> type[np.unsignedinteger[Any]]:
    """Return a common type for the codes of all columns. There are only two, to compile kernels for few types."""
    return np.uint16 if max(cardinalities, default=0) <= 1 << 16 else np.uint32


class DenseSets:
    """Counters for all possible combinations of some sets of columns."""

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
        self, codes: Sequence[npt.NDArray[Any]], multiplicities: npt.NDArray[Any] | None, total: int, workers: Workers
    ) -> None:
        """Count further rows. total: the sum of all multiplicities, including these rows."""
        if not len(self.widths):
            return
        self.tables = self.tables.astype(index_type(total + 1), copy=False)
        rows = len(codes[0])
        own = max(1, min(workers.threads, rows // SMALLEST_TASK))
        if own * self.tables.nbytes <= OWN_BYTES:
            edges = [rows * number // own for number in range(own + 1)]
            parts = [self.tables, *(np.zeros_like(self.tables) for _ in range(own - 1))]
            tasks = [(0, len(self.widths), edges[number], edges[number + 1], parts[number]) for number in range(own)]
            workers.run(lambda *task: self._count(codes, multiplicities, *task), tasks)
            for part in parts[1:]:
                self.tables += part
        else:
            # The counters are too large for copies: each thread counts other sets.
            places = [(place, place + 1, 0, rows, self.tables) for place in range(len(self.widths))]
            workers.run(lambda *task: self._count(codes, multiplicities, *task), places)

    def _count(
        self,
        codes: Sequence[npt.NDArray[Any]],
        multiplicities: npt.NDArray[Any] | None,
        first: int,
        last: int,
        start: int,
        stop: int,
        tables: npt.NDArray[Any],
    ) -> None:
        """Count the rows from start to stop for the sets from first to last - 1."""
        used = self._used if last - first > 1 else sorted(self.columns[first, : self.widths[first]].tolist())
        block = np.empty((self._all, BLOCK_ROWS), self._type)
        index = np.empty(BLOCK_ROWS, np.uint32)
        none = np.empty(0, tables.dtype)
        sets = (self.columns[first:last], self.widths[first:last], self.radices[first:last])
        for begin in range(start, stop, BLOCK_ROWS):
            size = min(BLOCK_ROWS, stop - begin)
            for column in used:
                block[column, :size] = codes[column][begin : begin + size]
            repeats = none if multiplicities is None else multiplicities[begin : begin + size].astype(tables.dtype)
            kernels.count_subsets(block, repeats, *sets, self.offsets[first : last + 1], index[:size], tables)

    def table(self, place: int) -> npt.NDArray[Any]:
        """Return the counters of one set."""
        return self.tables[self.offsets[place] : self.offsets[place + 1]]

    def combinations(self, place: int) -> Combinations:
        """Return the combinations of the set at this place that occur, in the order of their codes."""
        table = self.table(place)
        places = np.empty(np.count_nonzero(table) + 1, np.uint32)
        counts = np.empty(len(places), np.int64)
        number = kernels.collect_counters(table, places, counts)
        codes = []
        for radix in self.radices[place, : self.widths[place]][::-1].tolist():
            codes.append(np.empty(number, code_type(radix)))
            kernels.take_digits(places[:number], radix, codes[-1])
        return Combinations(codes[::-1], counts[:number])


class GroupedSet:
    """A counter of the combinations of one set, as distinct row keys with counts."""

    def __init__(self, subset: Sequence[int], cardinalities: Sequence[int]) -> None:
        self.subset = list(subset)
        self.layout = key_layout([cardinalities[column] for column in subset])
        self._seen: list[Rows] = []
        self._ordered = False
        # The combinations of `ListedRows`, instead of `_seen`.
        self._listed: Combinations | None = None

    def add_listed(self, combinations: Combinations) -> None:
        """Take over combinations that `ListedRows` counted. combinations: all combinations, in any order."""
        self._listed = combinations

    def add(
        self, codes: Sequence[npt.NDArray[Any]], multiplicities: npt.NDArray[Any] | None, total: int, workers: Workers
    ) -> None:
        """Count further rows. total: the sum of all multiplicities, including these rows."""
        keys = self.layout.pack([codes[column] for column in self.subset], workers)
        counts = NO_ROWS if multiplicities is None else multiplicities.astype(index_type(total + 1))
        rows = distinct_rows(Rows(keys, counts), total, workers).rows
        self._seen.append(rows if multiplicities is None else _occurring(rows))
        self._ordered = False
        # Merge when the new keys outnumber the merged keys: then each key is merged a few times only.
        if sum(len(rows.keys) for rows in self._seen[1:]) >= len(self._seen[0].keys):
            self._merge(total, workers)

    def _merge(self, total: int, workers: Workers) -> None:
        if len(self._seen) > 1:
            keys = np.concatenate([rows.keys for rows in self._seen])
            counts = np.concatenate([rows.counts.astype(index_type(total + 1)) for rows in self._seen])
            self._seen = [distinct_rows(Rows(keys, counts), total, workers).rows]

    def nbytes(self) -> int:
        """Return the bytes of the keys and counts so far."""
        if self._listed is not None:
            return sum(values.nbytes for values in (*self._listed.codes, self._listed.counts))
        return sum(rows.keys.nbytes + rows.counts.nbytes for rows in self._seen)

    def counts(self, total: int, workers: Workers) -> npt.NDArray[Any]:
        """Return the number of rows with each combination, in no particular order."""
        if self._listed is not None:
            return self._listed.counts
        self._merge(total, workers)
        return self._seen[0].counts if self._seen else NO_ROWS

    def combinations(self, total: int, workers: Workers, ordered: bool) -> Combinations:
        """Return the combinations that occur. ordered: by their codes, or in any order."""
        if self._listed is not None:
            if ordered and not self._ordered:
                order = key_order(self.layout.pack(self._listed.codes, workers))
                codes = [values[order] for values in self._listed.codes]
                self._listed, self._ordered = Combinations(codes, self._listed.counts[order]), True
            return self._listed
        self._merge(total, workers)
        if not self._seen:
            return Combinations([np.empty(0, np.uint8) for _ in self.subset], np.empty(0, np.int64))
        if ordered and not self._ordered:
            rows = self._seen[0]
            order = key_order(rows.keys)
            self._seen, self._ordered = [Rows(rows.keys[order], rows.counts[order])], True
        rows = self._seen[0]
        return Combinations(self.layout.unpack(rows.keys), rows.counts.astype(np.int64))


def _occurring(rows: Rows) -> Rows:
    """Return the rows whose count is above 0."""
    there = rows.counts > 0
    return rows if there.all() else Rows(rows.keys[there], rows.counts[there])


class ListedRows:
    """A counter for few rows and many sets of columns, which any number of threads use at once.

    For each set, a row gets the number of its combination among all possible combinations. Equal numbers are then
    counted in the second-level cache. This is for sets with too many possible combinations for a counter each.

    codes, multiplicities, cardinalities: see `SubsetCounter`.
    total: the sum of all multiplicities.
    subsets: the sets that will be counted.
    """

    def __init__(
        self,
        codes: Sequence[npt.NDArray[Any]],
        multiplicities: npt.NDArray[Any] | None,
        total: int,
        subsets: Sequence[Sequence[int]],
        cardinalities: Sequence[int],
    ) -> None:
        self._cardinalities = cardinalities
        self._rows = len(codes[0])
        used = sorted({column for subset in subsets for column in subset})
        self._codes = np.empty((len(cardinalities), self._rows), common_type([cardinalities[one] for one in used]))
        for column in used:
            self._codes[column] = codes[column]
        counter = index_type(total + 1)
        self._multiplicities = np.empty(0, counter) if multiplicities is None else multiplicities.astype(counter)
        self._memories = Spares(lambda: (EqualRowsMemory.for_rows(self._rows), np.empty(self._rows, counter)))

    @staticmethod
    def serves(rows: int, cardinalities: Sequence[int]) -> bool:
        """Return whether to use this class for a set of columns. rows: number of rows. cardinalities: of the set."""
        return rows <= MOST_ROWS and math.prod(cardinalities) <= 1 << WORD_BITS

    def count(self, subset: Sequence[int]) -> Combinations:
        """Return the combinations of a set, in order of first appearance."""
        radices = [self._cardinalities[column] for column in subset]
        numbers = np.empty((self._rows, 1), np.uint64)
        kernels.combine(self._codes, 0, np.array(subset, np.int64), np.array(radices, np.int64), numbers[:, 0])
        first, counts = np.empty(self._rows + 1, np.uint32), np.empty(self._rows + 1, np.int64)
        memory = self._memories.take()
        number = kernels.count_equal_keys(numbers, self._multiplicities, NO_HASHES, *memory, first, counts)
        self._memories.give_back(memory)
        codes = [np.empty(number, code_type(radix)) for radix in radices]
        for column, own in zip(subset, codes, strict=True):
            look_up(self._codes[column], first[:number], own)
        return Combinations(codes, counts[:number].copy())
