"""Restore suppressed cells that need not be suppressed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from gpupif.kernels import class_counts as kernels

from ...errors import InputError
from ...utils.memory import free_bytes, shown
from .grouping import ClassCriterion, KeyedRows

Numbers = npt.NDArray[np.int64]


class Restoring:
    """The restoring of suppressed cells, the most important columns first. All criteria hold before, and afterwards.

    criteria: criteria on equivalence classes. If a cell is restored, only the classes that its row leaves and joins are
        counted again: other classes, and so the whole table, need not be looked at.
    importance: number above 0 by position of a column that may be suppressed.
    holds: returns whether all other criteria hold for the rows as they are. Default None: there are none.
    """

    def __init__(
        self,
        rows: KeyedRows,
        criteria: Sequence[ClassCriterion],
        importance: Mapping[int, float],
        holds: Callable[[], bool] | None = None,
    ) -> None:
        self._rows, self._holds = rows, holds
        self._columns = sorted(importance, key=lambda column: (-importance[column], column))
        # Cells that could not be restored, by their column and the key that their row would have: equal rows give equal
        # answers. Restoring a cell may allow others, and clears the set.
        self._needed: set[tuple[bytes, int]] = set()
        self._cells = self._suppressed(self._columns)
        if not len(self._cells[0]):
            return
        sets = [(own, columns) for own in criteria for columns in own.counted_sets]
        masks = np.array([rows.masks(columns) for _, columns in sets], np.uint64).reshape(-1, rows.layout.words)
        # A class of rows is checked by its values where they are counted.
        self._limits = np.array([own.k if columns == own.columns else 1 for own, columns in sets], np.int64)
        parts = [-1 if columns == own.counted_sets[0] else place - 1 for place, (own, columns) in enumerate(sets)]
        self._layout = (
            np.array([rows.layout.fields[column] for column in range(len(rows.codes))], np.uint64),
            np.array([[column in own.counted_sets[0] for own, _ in sets] for column in range(len(rows.codes))], bool),
        )
        self._tables = self._allocate(masks, np.array(parts, np.int64))
        self._entries = kernels.count_rows(rows.keys, self._tables)

    def restore_by_halves(self) -> int:
        """Restore the cells of each column, all at once or by halves; return how many were restored."""
        return sum(
            self._restore(cells, np.array([[0, len(cells[0])]]))
            for cells in ([own[self._cells[1] == column] for own in self._cells] for column in self._columns)
        )

    def restore_each(self) -> int:
        """Restore cells one by one until no single cell can be restored; return how many were restored."""
        total = 0
        while True:
            cells = self._suppressed(self._columns)
            order = np.arange(len(cells[0]))[::-1]
            more = self._restore(cells, np.stack([order, order + 1], axis=1))
            total += more
            if not more:
                return total

    def _restore(self, cells: Sequence[Numbers], spans: Numbers) -> int:
        """Restore spans of cells, or by halves, and return how many cells were restored.

        cells: see `_suppressed`. spans: int64 (spans, 2). First and last cell + 1; the next span comes last.
        """
        number = len(cells[0])
        if not number:
            return 0
        # Halving adds a span to the stack for each time that the cells can be halved.
        stack = np.concatenate([spans, np.zeros((64, 2), np.int64)])
        state = np.array([len(spans), self._entries, 0, 0, 0])
        refused, changed = np.zeros(number + 1, np.int64), np.empty((1, self._rows.layout.words), np.uint64)
        codes, holes = (own.astype(np.uint64) for own in cells[2:])
        given = (*cells[:2], codes, holes), self._layout, self._rows.keys, self._limits, self._tables
        total, asks = 0, self._holds is not None
        while True:
            total += int(kernels.restore_cells(*given, stack, refused, state, asks, changed))
            self._entries, start, stop = state[1:4].tolist()
            if start == stop:
                return total
            if self._may_restore(*(own[start:stop] for own in cells[:2])):
                total += stop - start
                state[2] = stop

    def _may_restore(self, rows: Numbers, columns: Numbers) -> bool:
        """Return whether the other criteria hold with some cells that are restored. rows, columns: of the cells."""
        assert self._holds is not None
        kind = self._rows.keys[rows[0]].tobytes(), int(columns[0])
        if len(rows) == 1 and kind in self._needed:
            return False
        if self._holds():
            self._needed.clear()
            return True
        if len(rows) == 1:
            self._needed.add(kind)
        return False

    def _suppressed(self, columns: Sequence[int]) -> list[Numbers]:
        """Return rows, columns, codes and codes of missing values of suppressed cells: int64 (cells,)."""
        rows, sizes = self._rows, np.array(self._rows.sizes, np.int64)
        places = [np.flatnonzero(rows.suppressed(column)) for column in columns]
        codes = [rows.codes[column][place].astype(np.int64) for column, place in zip(columns, places, strict=True)]
        of_cells = np.repeat(np.array(columns, np.int64), [len(place) for place in places])
        nothing = np.empty(0, np.int64)
        return [np.concatenate([nothing, *places]), of_cells, np.concatenate([nothing, *codes]), sizes[of_cells]]

    def _allocate(self, masks: npt.NDArray[np.uint64], parts: Numbers) -> tuple[npt.NDArray[np.generic], ...]:
        """Allocate the tables of `kernels.class_counts`, for all classes and for those that restored cells may make."""
        by_column = np.bincount(self._cells[1], minlength=len(self._rows.codes))
        numbers = [
            len(self._rows.distinct(self._rows.keys & mask).rows.keys) + int(by_column[touched].sum())
            for mask, touched in zip(masks, self._layout[1].T, strict=True)
        ]
        slots = [1 << (2 * number).bit_length() for number in numbers]
        needed, free = 8 * (sum(slots) + sum(numbers) * (masks.shape[1] + 2)), free_bytes()
        if needed > free:
            raise InputError(
                f"require: counting the classes of {len(masks):,} sets of columns takes {shown(needed)}, and "
                f"{shown(free)} are free. Let fewer columns be known, or treat fewer rows."
            )
        return (
            masks,
            np.cumsum([0, *slots]),
            np.zeros(sum(slots), np.int64),
            np.empty((sum(numbers), masks.shape[1]), np.uint64),
            np.zeros(sum(numbers), np.int64),
            parts,
            np.empty(sum(numbers), np.int64),
        )
