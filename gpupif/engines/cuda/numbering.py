"""Rows of the device numbered by what they have in some columns, for one set of columns after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gpupif.kernels.cuda import any_known as kernels

from ...rows.keys import Field, KeyLayout
from .grouping import Grouping
from .rows import DeviceRows

# Slots, one for each possible pair of a number and a code, that there may be: always, and for each row. For more, pairs
# are grouped as rows are.
SLOTS, SLOTS_PER_ROW = 1 << 22, 4
# Counters of combinations, in copies where these are few, and copies at most.
COUNTERS, MOST_COPIES = 1 << 16, 1 << 10
# Of so many rows numbers need more than 32 bits.
WIDE_ROWS = 1 << 32


def numbering_bytes(rows: int, columns: int) -> int:
    """Bytes that numbering so many rows by sets of so many columns takes."""
    return 4 * rows * (columns + 1) + 5 * max(SLOTS, SLOTS_PER_ROW * rows) + 8 * COUNTERS


class RowNumbers(NamedTuple):
    """The number of each row by its codes of some columns; how many there are.

    Where rows are found by sorting, numbers are in the order of the codes, the first column the highest.
    """

    of_row: Any
    combinations: int


class RowNumberer:
    """Numbers of distinct rows, those over the columns that neighbouring sets begin with made once.

    cardinalities: of all columns.
    """

    def __init__(self, rows: DeviceRows, cardinalities: Sequence[int], grouping: Grouping) -> None:
        self._rows, self._cardinalities, self._grouping = rows, cardinalities, grouping
        self._slots = max(SLOTS, SLOTS_PER_ROW * rows.rows)
        self._path: list[tuple[int, RowNumbers]] = []
        self._start = RowNumbers(rows.library.xp.zeros(rows.rows, "uint32" if rows.rows < WIDE_ROWS else "int64"), 1)

    def over(self, columns: Sequence[int]) -> RowNumbers:
        """Rows numbered by these columns."""
        path = self._path
        same = 0
        while same < min(len(path), len(columns)) and path[same][0] == columns[same]:
            same += 1
        del path[same:]
        for column in columns[same:]:
            path.append((column, self._add(path[-1][1] if path else self._start, column)))
        return path[-1][1]

    def combinations(self, numbered: RowNumbers, columns: Sequence[int]) -> DeviceRows:
        """The combinations of these columns, by which rows are numbered, as rows of their own."""
        rows, library, xp = self._rows, self._rows.library, self._rows.library.xp
        first = xp.empty(numbered.combinations, "int64")
        copies = max(1, min(MOST_COPIES, COUNTERS // numbered.combinations))
        counts = xp.zeros((copies, numbered.combinations), "int64")
        library.launch(kernels.count_combinations, rows.rows, numbered.of_row, rows.counts, first, counts)
        layout, words, masks = rows.layout.project(columns)
        keys = [rows.keys[word][first] & mask for word, mask in zip(words, masks.tolist(), strict=True)]
        return DeviceRows(library, layout, xp.stack(keys), counts.sum(axis=0))

    def _add(self, before: RowNumbers, column: int) -> RowNumbers:
        """Rows numbered by one more column."""
        rows, library, xp, radix = self._rows, self._rows.library, self._rows.library.xp, self._cardinalities[column]
        if radix == 1 or before.combinations == rows.rows:
            return before
        word, shift, mask = rows.layout.fields[column]
        pairs = (before.of_row, rows.keys[word], (shift, mask), radix)
        possible = before.combinations * radix
        if possible > self._slots:
            places = xp.empty((1, rows.rows), "uint64")
            library.launch(kernels.place_pairs, rows.rows, *pairs, places[0])
            whole = KeyLayout({0: Field(0, 0, (1 << (possible - 1).bit_length()) - 1)}, 1)
            found, number = self._grouping.collapse(DeviceRows(library, whole, places, rows.counts), [0])
            return RowNumbers(number.astype(before.of_row.dtype), found.rows)
        slots = xp.zeros(possible, "uint8")
        library.launch(kernels.mark_pairs, rows.rows, *pairs, slots)
        marked = xp.cumsum(slots, dtype=before.of_row.dtype)
        number = xp.empty_like(before.of_row)
        library.launch(kernels.number_pairs, rows.rows, *pairs, marked, number)
        return RowNumbers(number, int(marked[-1]))
