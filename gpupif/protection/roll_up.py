"""The classes of a table at the levels of a lattice, each from those of a finer node that were found before."""

from __future__ import annotations

from bisect import insort
from collections import OrderedDict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels.roll_up import coarsen, count_agreeing, find_row, roll_up

from ..criteria.counted import CountedTable
from ..rows.distinct import distinct_rows
from ..rows.keys import KeyLayout
from ..rows.partition import Rows, index_type
from ..rows.threads import Workers
from .lattice import Window
from .levels import ColumnLevels

Levels = tuple[int, ...]
# Bits of keys that are looked up together: their table stays in the first-level cache.
DIGIT_BITS = 11
# Rows that are worth a thread of their own.
THREAD_ROWS = 1 << 18
# Of so many rows one class at most, on average: then they are found one by one, else rows are parted before; where
# there may be no more classes than of so many rows one, looking for them ends early, too.
FEW, LIMITED = 16, 4
# What the classes that are kept may take, for so many times what those of the table do.
KEPT = 4


class Classes(NamedTuple):
    """Classes of rows: keys (classes, words), and how many rows each has."""

    keys: npt.NDArray[np.uint64]
    counts: npt.NDArray[np.int64]


class _Digit(NamedTuple):
    """Columns whose fields are looked up together; bits: from where to where in which word."""

    word: int
    shift: int
    bits: int
    columns: tuple[int, ...]


class RollUp:
    """Rows over some columns of a counted table counted at any levels of those that have some.

    columns: places in the table. levels: of those that have some, in the order of a node's levels. Columns without are
    as they are.
    """

    def __init__(
        self, table: CountedTable, columns: Sequence[int], levels: Sequence[ColumnLevels], workers: Workers
    ) -> None:
        self._table = table
        self._workers = workers
        self._levels = levels
        self.columns = list(columns)
        self._cardinalities = [table.columns[place].cardinality for place in columns]
        names = [level.name for level in levels]
        self._axis = {
            at: names.index(table.columns[place].name)
            for at, place in enumerate(columns)
            if table.columns[place].name in names
        }
        # Of a node's levels, those that change these rows.
        self._own = sorted(self._axis.values())
        self.layout = KeyLayout.of(self._cardinalities)
        self._digits = _digits_of(self.layout)
        self._kept: OrderedDict[Levels, Classes] = OrderedDict()
        self._kept_rows = 0
        # Of what is kept, the fewest classes first.
        self._sizes: list[tuple[int, Levels]] = []
        self._bottom = (0,) * len(self._own)
        self._tables: dict[tuple[int, Levels, Levels], npt.NDArray[np.uint64]] = {}
        keys = self.layout.pack([table.columns[place].codes for place in columns], workers)
        rows = Classes(keys, table.times)
        if len(columns) < len(table.columns):
            rows = self._count(rows, self._bottom, self._bottom, len(keys)) or rows
        self._base = rows

    def classes(self, node: Sequence[int], most: int | None = None) -> Classes | None:
        """The classes at a node; None for more than `most`."""
        own = tuple(node[axis] for axis in self._own)
        if own in self._kept:
            self._kept.move_to_end(own)
            found = self._kept[own]
            return None if most is not None and len(found.counts) > most else found
        finer, rows = self._finer(own)
        if finer == own:
            return None if most is not None and len(rows.counts) > most else rows
        made = self._count(rows, finer, own, len(rows.counts) if most is None else most)
        if made is not None:
            self._keep(own, made)
        return made

    def codes(self, classes: Classes) -> list[npt.NDArray[Any]]:
        """The codes of each column of classes, at their levels."""
        return self.layout.unpack(classes.keys)

    def sizes_of_smallest(self, node: Sequence[int], classes: Classes, window: Window) -> npt.NDArray[np.int64]:
        """How large the class of a row is at each node of a window: a row of the smallest of the classes at a node."""
        own = tuple(node[axis] for axis in self._own)
        smallest = classes.keys[int(classes.counts.argmin())]
        row = find_row(self._base.keys, *self._lookups(self._bottom, own), smallest)
        codes = [int(one[0]) for one in self.layout.unpack(self._base.keys[row : row + 1])]
        size = len(window.losses)
        steps = [self._agreeing(at, code, window, size) for at, code in enumerate(codes)]
        tables = [self._joined(digit, steps, np.int64) for digit in self._digits]
        digits = self._places(tables)
        joined = np.concatenate([*tables, np.zeros(1, np.int64)])
        workers, rows = self._workers, len(self._base.counts)
        threads = max(1, min(workers.threads, rows // max(THREAD_ROWS, size)))

        def count(first: int, last: int) -> npt.NDArray[np.int64]:
            found = np.zeros(size, np.int64)
            count_agreeing(self._base.keys[first:last], self._base.counts[first:last], digits, joined, found)
            return found

        edges = [rows * place // threads for place in range(threads + 1)]
        return window.sums_below(sum(workers.run(count, list(pairwise(edges)))))[window.place]

    def _agreeing(self, at: int, code: int, window: Window, never: int) -> npt.NDArray[np.int64]:
        """Of a column, by code how far on in a window the level is from which on it is the same as another."""
        if at not in self._axis:
            return np.where(np.arange(self._cardinalities[at]) == code, 0, never)
        axis = self._axis[at]
        found = np.full(self._cardinalities[at], never)
        for step, level in reversed(list(enumerate(window.chosen[axis]))):
            coarser = self._levels[axis].coded.levels[level].codes
            found[coarser == coarser[code]] = step * window.strides[axis]
        return found

    def _finer(self, own: Levels) -> tuple[Levels, Classes]:
        """The fewest classes that are known of a node that is nowhere coarser."""
        for size, node in self._sizes:
            if size >= len(self._base.counts):
                break
            if all(map(int.__le__, node, own)):
                return node, self._kept[node]
        return self._bottom, self._base

    def _keep(self, own: Levels, classes: Classes) -> None:
        self._kept[own] = classes
        insort(self._sizes, (len(classes.counts), own))
        self._kept_rows += len(classes.counts)
        while self._kept_rows > KEPT * len(self._base.counts) + 1:
            node, dropped = self._kept.popitem(last=False)
            self._sizes.remove((len(dropped.counts), node))
            self._kept_rows -= len(dropped.counts)

    def _count(self, rows: Classes, finer: Levels, own: Levels, most: int) -> Classes | None:
        """The classes of classes, or None for more than so many."""
        size = len(rows.counts)
        few = most if size < THREAD_ROWS or most <= size // LIMITED else size // FEW
        made = self._count_few(rows, finer, own, min(most, few))
        if made is not None or most <= few:
            return made
        digits, tables = self._lookups(finer, own)
        keys = np.empty_like(rows.keys)
        self._workers.run(lambda a, b: coarsen(rows.keys[a:b], digits, tables, keys[a:b]), self._workers.ranges(size))
        counts = rows.counts.astype(index_type(self._table.rows + 1))
        found = distinct_rows(Rows(keys, counts), self._table.rows, self._workers).rows
        classes = Classes(np.array(found.keys), found.counts.astype(np.int64))
        return classes if len(classes.counts) <= most else None

    def _count_few(self, rows: Classes, finer: Levels, own: Levels, most: int) -> Classes | None:
        """The same, of so few that they are found in the caches."""
        digits, tables = self._lookups(finer, own)
        size = len(rows.counts)
        threads = max(1, min(self._workers.threads, size // THREAD_ROWS))
        edges = [size * place // threads for place in range(threads + 1)]
        parts = self._workers.run(
            lambda a, b: _roll_up(Classes(rows.keys[a:b], rows.counts[a:b]), digits, tables, most),
            list(pairwise(edges)),
        )
        if any(part is None for part in parts):
            return None
        if threads == 1:
            return parts[0]  # type: ignore[no-any-return]
        merged = Classes(*(np.concatenate(each) for each in zip(*parts, strict=True)))
        return _roll_up(merged, *self._lookups(own, own), most)

    def _lookups(self, finer: Levels, own: Levels) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
        """The digits and their tables from the codes at some levels to those at others."""
        tables = [self._table_of(number, digit, finer, own) for number, digit in enumerate(self._digits)]
        return self._places(tables), np.concatenate([*tables, np.zeros(1, np.uint64)])

    def _places(self, tables: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.int64]:
        """The digits as kernels have them, where their tables follow each other."""
        starts = np.cumsum([0, *(len(table) for table in tables)])
        digits = [
            (digit.word, digit.shift, (1 << digit.bits) - 1, start)
            for digit, start in zip(self._digits, starts[:-1], strict=True)
        ]
        return np.array(digits, np.int64).reshape(-1, 4)

    def _table_of(self, number: int, digit: _Digit, finer: Levels, own: Levels) -> npt.NDArray[np.uint64]:
        axes = [self._own.index(self._axis[at]) for at in digit.columns if at in self._axis]
        key = (number, tuple(finer[axis] for axis in axes), tuple(own[axis] for axis in axes))
        if key not in self._tables:
            steps = {
                at: self._step(at, finer, own).astype(np.uint64) << np.uint64(self.layout.fields[at].shift)
                for at in digit.columns
            }
            self._tables[key] = self._joined(digit, steps, np.uint64)
        return self._tables[key]

    def _joined(self, digit: _Digit, steps: Any, kind: type[np.generic]) -> npt.NDArray[Any]:
        """By the bits of a digit the sum of what stands for the codes of its columns."""
        table = np.zeros(1, kind)
        for at in digit.columns:
            codes = np.zeros(self.layout.fields[at].mask + 1, kind)
            codes[: len(steps[at])] = steps[at]
            table = (codes[:, None] + table[None, :]).ravel()
        return table

    def _step(self, at: int, finer: Levels, own: Levels) -> npt.NDArray[Any]:
        """Of a column, by code at a level the code at another."""
        if at not in self._axis:
            return np.arange(self._cardinalities[at])
        place = self._own.index(self._axis[at])
        return self._levels[self._axis[at]].coded.upwards(finer[place], own[place])


def _roll_up(rows: Classes, digits: npt.NDArray[np.int64], tables: npt.NDArray[np.uint64], most: int) -> Classes | None:
    size = min(most, len(rows.counts))
    keys = np.empty((size + 1, rows.keys.shape[1]), np.uint64)
    counts = np.empty(size + 1, np.int64)
    slots = np.zeros(1 << max(4, (2 * size).bit_length()), np.uint32)
    found = roll_up(rows.keys, rows.counts, digits, tables, slots, size, keys, counts)
    # In no more memory than they need: they may be kept.
    return None if found < 0 else Classes(keys[:found].copy(), counts[:found].copy())


def _digits_of(layout: KeyLayout) -> list[_Digit]:
    """Fields that follow each other in a word, as many together as are looked up at once."""
    fields = sorted((field.word, field.shift, field.mask.bit_length(), at) for at, field in layout.fields.items())
    digits: list[_Digit] = []
    for word, shift, bits, at in fields:
        if not bits:
            continue
        last = digits[-1] if digits else None
        if last is not None and last.word == word and last.bits + bits <= DIGIT_BITS:
            digits[-1] = last._replace(bits=last.bits + bits, columns=(*last.columns, at))
        else:
            digits.append(_Digit(word, shift, bits, (at,)))
    return digits
