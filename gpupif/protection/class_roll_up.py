"""The equivalence classes of a table at the nodes of a lattice, each rolled up from the classes of a finer node.

Rows are packed into keys. To roll rows up from one node to another, the bits of the keys are looked up in tables. A
table replaces the codes of several neighbouring columns at once; their bits are a *digit* of the key.
"""

from __future__ import annotations

from bisect import insort
from collections import OrderedDict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels.lattice import coarsen, find_row, roll_up

from ..criteria.counted_table import CountedTable
from ..rows.distinct import distinct_rows
from ..rows.keys import KeyLayout
from ..rows.partition import Rows, index_type
from ..rows.threads import Workers
from .column_levels import ColumnLevels
from .lattice import Levels, Reason

# At most DIGIT_BITS bits of a key are looked up together: the table then stays in the first-level cache.
DIGIT_BITS = 11
# At least this number of rows is worth a thread.
THREAD_ROWS = 1 << 18
# At most one class for FEW rows, on average, is found row by row; more classes are found after partitioning the rows.
# If a search may end at one class for LIMITED rows, it goes row by row too, because it ends early.
FEW, LIMITED = 16, 4
# Levels are compared all at once, as fields of one number: LEVEL_FIELD is one more than the largest number of a field.
LEVEL_FIELD = 1 << 16
# The classes that are kept have together at most KEPT times as many rows as the table has distinct rows.
KEPT = 4
# The level at which values agree that are in no common group: above the highest level.
NEVER = (LEVEL_FIELD >> 1) - 1
# The points of a reason that are looked for first: so few are found faster.
FEW_POINTS = 1 << 12


class ClassRows(NamedTuple):
    """Equivalence classes. keys: uint64 array (classes, words); counts: int64 array, how many rows each class has."""

    keys: npt.NDArray[np.uint64]
    counts: npt.NDArray[np.int64]


class _Digit(NamedTuple):
    """Bits of a key that are looked up together: `bits` bits of a word, from bit `shift`. columns: their numbers."""

    word: int
    shift: int
    bits: int
    columns: tuple[int, ...]


class ClassRollUp:
    """The equivalence classes of a counted table over some columns, at any levels of these columns.

    columns: places in the table. levels: of the columns that have levels, in the order of a node's levels; columns
    without levels stay as they are.
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
        # The axes of a node that change these rows.
        self._own = sorted(self._axis.values())
        self.layout = KeyLayout.from_cardinalities(self._cardinalities)
        self._digits = _digits_of(self.layout)
        # The digits for kernels: word, shift, mask, and the place at which the digit's table begins.
        starts = np.cumsum([0, *(1 << digit.bits for digit in self._digits)])
        places = [(own.word, own.shift, (1 << own.bits) - 1, starts[at]) for at, own in enumerate(self._digits)]
        self._places = np.array(places, np.int64).reshape(-1, 4)
        self._kept: OrderedDict[Levels, ClassRows] = OrderedDict()
        self._kept_rows = 0
        # The nodes that are kept, the fewest classes first: the number of classes, the node, and its levels in fields.
        self._sizes: list[tuple[int, Levels, int]] = []
        self._bottom = (0,) * len(self._own)
        self._tables: dict[tuple[int, Levels, Levels], npt.NDArray[np.uint64]] = {}
        keys = self.layout.pack([table.columns[place].codes for place in columns], workers)
        rows = ClassRows(keys, table.multiplicities)
        if len(columns) < len(table.columns):
            rows = self._count(rows, self._bottom, self._bottom, len(keys)) or rows
        self._base = rows

    def classes(self, node: Sequence[int], most: int | None = None) -> ClassRows | None:
        """Return the classes at a node; None for more than `most`."""
        own = tuple(node[axis] for axis in self._own)
        if own in self._kept:
            self._kept.move_to_end(own)
        finer, rows = (own, self._kept[own]) if own in self._kept else self._finer(own)
        if finer == own:
            return None if most is not None and len(rows.counts) > most else rows
        classes = self._count(rows, finer, own, len(rows.counts) if most is None else most)
        if classes is not None:
            self._keep(own, classes)
        return classes

    def codes(self, classes: ClassRows) -> list[npt.NDArray[Any]]:
        """Return the codes of each column of classes, at their levels."""
        return self.layout.unpack(classes.keys)

    def why_small(self, node: Levels, classes: ClassRows, least: int) -> Reason:
        """Return the reason why the class of one row has fewer than `least` rows at some nodes.

        The row is one of the smallest class of `classes`, which are the classes at `node`. Each other row has a point:
        the lowest level of each axis at which both rows agree.
        """
        own = tuple(node[axis] for axis in self._own)
        smallest = classes.keys[int(classes.counts.argmin())]
        row = find_row(self._base.keys, *self._lookups(self._bottom, own), smallest)
        codes = [int(column[0]) for column in self.layout.unpack(self._base.keys[row : row + 1])]
        firsts = [self._agreeing(at, code) for at, code in enumerate(codes)]
        # A level is written to the key as one of the codes that first agree there, so that it fits into its field.
        shifted = []
        for at, first in enumerate(firsts):
            one_of = np.zeros(int(first.max()) + 1, np.uint64)
            one_of[first] = np.arange(len(first))
            shifted.append(one_of[first] << np.uint64(self.layout.fields[at].shift))
        lookup = np.concatenate([*(self._joined(one, shifted) for one in self._digits), np.zeros(1, np.uint64)])
        found = self._count_few(self._base, self._places, lookup, FEW_POINTS)
        found = found or self._count_few(self._base, self._places, lookup)
        assert found is not None
        agreeing = np.ones(len(found.counts), bool)
        points = np.zeros((len(found.counts), len(node)), np.uint16)
        for at, codes_there in enumerate(self.codes(found)):
            level = firsts[at][codes_there]
            agreeing &= level != NEVER
            if at in self._axis:
                points[:, self._axis[at]] = level
        return Reason(points[agreeing], found.counts[agreeing], least)

    def _agreeing(self, at: int, code: int) -> npt.NDArray[np.uint16]:
        """Return for each code of a column the first level at which it is in one group with a given code, or `NEVER`.

        at: the number of the column. code: the given code.
        """
        first = np.full(self._cardinalities[at], NEVER, np.uint16)
        if at in self._axis:
            for level, coarser in reversed(list(enumerate(self._levels[self._axis[at]].levels))):
                first[coarser.codes == coarser.codes[code]] = level
        first[code] = 0
        return first

    def _finer(self, own: Levels) -> tuple[Levels, ClassRows]:
        """Return the node with the fewest known classes among all nodes that are nowhere coarser, and its classes."""
        # A field of `above` keeps its highest bit if the node's level is not above the own level.
        highest = _in_fields([LEVEL_FIELD >> 1] * len(own))
        above = _in_fields(own) | highest
        for size, node, levels in self._sizes:
            if size >= len(self._base.counts):
                break
            if (above - levels) & highest == highest:
                return node, self._kept[node]
        return self._bottom, self._base

    def _keep(self, own: Levels, classes: ClassRows) -> None:
        self._kept[own] = classes
        insort(self._sizes, (len(classes.counts), own, _in_fields(own)))
        self._kept_rows += len(classes.counts)
        while self._kept_rows > KEPT * len(self._base.counts) + 1:
            node, dropped = self._kept.popitem(last=False)
            self._sizes.remove((len(dropped.counts), node, _in_fields(node)))
            self._kept_rows -= len(dropped.counts)

    def _count(self, rows: ClassRows, finer: Levels, own: Levels, most: int) -> ClassRows | None:
        """Return the classes at levels `own`, rolled up from classes at levels `finer`; None for more than `most`."""
        size = len(rows.counts)
        few = most if size < THREAD_ROWS or most <= size // LIMITED else size // FEW
        classes = self._count_few(rows, *self._lookups(finer, own), min(most, few))
        if classes is not None or most <= few:
            return classes
        digits, tables = self._lookups(finer, own)
        keys = np.empty_like(rows.keys)
        self._workers.run(lambda a, b: coarsen(rows.keys[a:b], digits, tables, keys[a:b]), self._workers.ranges(size))
        counts = rows.counts.astype(index_type(self._table.rows + 1))
        merged = distinct_rows(Rows(keys, counts), self._table.rows, self._workers).rows
        classes = ClassRows(np.array(merged.keys), merged.counts.astype(np.int64))
        return classes if len(classes.counts) <= most else None

    def _count_few(
        self,
        rows: ClassRows,
        digits: npt.NDArray[np.int64],
        tables: npt.NDArray[np.uint64],
        most: int | None = None,
    ) -> ClassRows | None:
        """Return the classes of the rows whose keys are looked up in tables, row by row: fast for few classes.

        None for more than `most` classes.
        """
        most = len(rows.counts) if most is None else most
        size = len(rows.counts)
        threads = max(1, min(self._workers.threads, size // THREAD_ROWS))
        edges = [size * place // threads for place in range(threads + 1)]
        chunks = self._workers.run(
            lambda a, b: _roll_up(ClassRows(rows.keys[a:b], rows.counts[a:b]), digits, tables, most),
            list(pairwise(edges)),
        )
        if any(chunk is None for chunk in chunks):
            return None
        if threads == 1:
            return chunks[0]  # type: ignore[no-any-return]
        merged = ClassRows(*(np.concatenate(each) for each in zip(*chunks, strict=True)))
        return _roll_up(merged, *self._lookups(self._bottom, self._bottom), most)

    def _lookups(self, finer: Levels, own: Levels) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
        """Return the digits, and the tables from codes at levels `finer` to codes at levels `own`, for kernels."""
        tables = [self._table_of(number, digit, finer, own) for number, digit in enumerate(self._digits)]
        return self._places, np.concatenate([*tables, np.zeros(1, np.uint64)])

    def _table_of(self, number: int, digit: _Digit, finer: Levels, own: Levels) -> npt.NDArray[np.uint64]:
        axes = [self._own.index(self._axis[at]) for at in digit.columns if at in self._axis]
        key = (number, tuple(finer[axis] for axis in axes), tuple(own[axis] for axis in axes))
        if key not in self._tables:
            steps = {
                at: self._step(at, finer, own).astype(np.uint64) << np.uint64(self.layout.fields[at].shift)
                for at in digit.columns
            }
            self._tables[key] = self._joined(digit, steps)
        return self._tables[key]

    def _joined(self, digit: _Digit, steps: Any) -> npt.NDArray[np.uint64]:
        """Return the lookup table of a digit: for its bits the sum of the steps of its columns.

        steps: by column, for each code its step.
        """
        table = np.zeros(1, np.uint64)
        for at in digit.columns:
            codes = np.zeros(self.layout.fields[at].mask + 1, np.uint64)
            codes[: len(steps[at])] = steps[at]
            table = (codes[:, None] + table[None, :]).ravel()
        return table

    def _step(self, at: int, finer: Levels, own: Levels) -> npt.NDArray[Any]:
        """Return for each code of a column at levels `finer` its code at levels `own`. at: the number of the column."""
        if at not in self._axis:
            return np.arange(self._cardinalities[at])
        place = self._own.index(self._axis[at])
        return self._levels[self._axis[at]].upwards(finer[place], own[place])


def _roll_up(
    rows: ClassRows, digits: npt.NDArray[np.int64], tables: npt.NDArray[np.uint64], most: int
) -> ClassRows | None:
    """Return the classes of the rows whose keys are looked up in tables; None for more than `most`."""
    size = min(most, len(rows.counts))
    keys = np.empty((size + 1, rows.keys.shape[1]), np.uint64)
    counts = np.empty(size + 1, np.int64)
    slots = np.zeros(1 << max(4, (2 * size).bit_length()), np.uint32)
    number = roll_up(rows.keys, rows.counts, digits, tables, slots, size, keys, counts)
    # Copies take no more memory than the classes need: they may be kept.
    return None if number < 0 else ClassRows(keys[:number].copy(), counts[:number].copy())


def _in_fields(levels: Sequence[int]) -> int:
    """Return levels as one number."""
    number = 0
    for level in levels:
        number = number * LEVEL_FIELD + level
    return number


def _digits_of(layout: KeyLayout) -> list[_Digit]:
    """Return the digits of a layout: neighbouring fields of a word, of at most `DIGIT_BITS` bits together."""
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
