"""Cells suppressed by their scores, until criteria of all kinds hold; those that are not needed are restored.

In rounds: of each row that breaks a criterion one cell is suppressed, that which breaks it, or where it is suppressed
already, or may not be, one of what is known of the row. Where a row has none left, others are suppressed with it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ...errors import UnreachableError
from .keyed_rows import KeyedRows
from .measured_criteria import Breaking, MeasuredCriteria, is_met

Numbers = npt.NDArray[np.int64]


class ByScores:
    """Cells suppressed by their scores. importance: by column, of those that may be suppressed; names: of all."""

    def __init__(
        self, rows: KeyedRows, criteria: MeasuredCriteria, importance: Mapping[int, float], names: Sequence[Hashable]
    ) -> None:
        self._rows, self._criteria, self._importance, self._names = rows, criteria, importance, list(names)
        self._others = 1

    def round(self) -> bool:
        """Suppress a cell of each row that breaks a criterion; return whether there are any.

        Raises UnreachableError if no cell is left.
        """
        found, number = self._criteria.breaking(self._rows)
        if not found:
            return False
        suppressed = stuck = 0
        for one in found:
            breaking = np.flatnonzero((one.risks == one.risks)[number])
            before = suppressed
            suppressed += self._suppress_one(breaking, one)
            stuck += suppressed == before
        if stuck:
            # Rows with nothing left are like no others: more become like them.
            suppressed += self._suppress_others(found, number)
        if not suppressed:
            raise self._unreachable()
        return True

    def _suppress_one(self, rows: Numbers, breaking: Breaking) -> int:
        """Suppress one cell of each row that has any left; how many had."""
        left, total = rows, 0
        if breaking.column is not None:
            left, total = self._suppress_in(left, self._names.index(breaking.column))
        for column in self._in_turn():
            left, number = self._suppress_in(left, column)
            total += number
        return total

    def _suppress_in(self, rows: Numbers, column: int) -> tuple[Numbers, int]:
        """Suppress a column of rows that have it; the others, and how many had."""
        if column not in self._importance or not len(rows):
            return rows, 0
        there = self._rows.codes_of(self._rows.keys[rows], column) != self._rows.sizes[column]
        self._rows.suppress(rows[there], [column])
        return rows[~there], int(np.count_nonzero(there))

    def _suppress_others(self, found: Sequence[Breaking], number: npt.NDArray[np.int64]) -> int:
        """Suppress cells of rows that break nothing, each time of twice as many, the first ones; how many."""
        broken = np.zeros(len(self._rows), bool)
        for one in found:
            broken |= (one.risks == one.risks)[number]
        total = 0
        for column in self._in_turn():
            there = np.flatnonzero(~broken & (self._rows.column(column) != self._rows.sizes[column]))[: self._others]
            self._rows.suppress(there, [column])
            total += len(there)
        self._others *= 2
        return total

    def _in_turn(self) -> list[int]:
        """Columns that may be suppressed: those that matter least, of these those with the most values, first."""
        sizes = self._rows.sizes
        return sorted(self._importance, key=lambda column: (self._importance[column], -sizes[column], column))

    def _unreachable(self) -> UnreachableError:
        values = self._criteria.values(self._rows)
        reading, broken = next(
            (reading, one) for reading, several in values.items() for one in several if not is_met(one, reading)
        )
        where = "" if broken.column is None else f" in column {broken.column!r}"
        value = "not defined" if broken.value is None else f"{broken.value:.6g}"
        how = {"category": "are a value of their own", "wildcard": "match every value"}[reading]
        return UnreachableError(
            f"criteria: {str(broken.criterion)!r} cannot be reached: with all cells of columns= suppressed it is "
            f"{value}{where}, where missing values {how}. Name more columns, or recode before."
        )


class Restoring:
    """Values put back, those of the most important columns first, until no single one can be."""

    def __init__(self, rows: KeyedRows, criteria: MeasuredCriteria, importance: Mapping[int, float]) -> None:
        self._rows, self._criteria = rows, criteria
        self._columns = sorted(importance, key=lambda column: (-importance[column], column))
        # Cells that could not be restored since one was: as cells of equal rows are alike, what they are.
        self._needed: set[tuple[bytes, int, int]] = set()

    def run(self) -> int:
        """Put values back; how many were."""
        total = sum(self._many(self._suppressed(column), column) for column in self._columns)
        while found := sum(self._each(column) for column in self._columns):
            total += found
        return total

    def _suppressed(self, column: int) -> Numbers:
        return np.flatnonzero(self._rows.suppressed(column))

    def _try(self, cells: Numbers, column: int) -> bool:
        """Put these cells of a column back where all criteria hold then; whether they do."""
        kind = self._rows.keys[cells[0]].tobytes(), column, int(self._rows.codes[column][cells[0]])
        if len(cells) == 1 and kind in self._needed:
            return False
        self._rows.put_back(cells, column)
        if self._criteria.hold(self._rows):
            self._needed.clear()
            return True
        self._rows.suppress(cells, [column])
        if len(cells) == 1:
            self._needed.add(kind)
        return False

    def _many(self, cells: Numbers, column: int) -> int:
        """Put back as many of these cells of a column as are found by halves."""
        if not len(cells):
            return 0
        if self._try(cells, column):
            return len(cells)
        half = len(cells) // 2
        return self._many(cells[:half], column) + self._many(cells[half:], column) if half else 0

    def _each(self, column: int) -> int:
        """Put back cells of a column one by one."""
        cells = self._suppressed(column)
        return sum(self._try(cells[place : place + 1], column) for place in range(len(cells)))
