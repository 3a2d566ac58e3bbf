"""A piece that holds its columns, and what a step did to it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ColumnNotFoundError
from .base import Piece, PieceColumn, RowFacts
from .columns import Changes, changes, some_rows


class PlainPiece(Piece):
    """Some rows, to be treated by one step, and then settled.

    column: gives a column of the whole that the piece is of; or, with `whole` False, of the piece. changed: after
    `settle`, what changed by column, those dropped left out. kept: the mask of rows that stay, None for all;
    rows_before: how many there were.
    """

    def __init__(
        self,
        start: int,
        rows: int,
        names: Sequence[Hashable],
        column: Callable[[Hashable], PieceColumn],
        whole: bool = True,
    ) -> None:
        self.start, self.rows, self.rows_before = start, rows, rows
        self.kept: npt.NDArray[np.bool_] | None = None
        self.changed: dict[Hashable, Changes] = {}
        self._names = list(names)
        self._find = column
        self._whole = whole
        self._before: dict[Hashable, PieceColumn] = {}
        self._now: dict[Hashable, PieceColumn] = {}

    @property
    def looked_at(self) -> Sequence[Hashable]:
        """The columns that the step asked for."""
        return list(self._before)

    @property
    def replaced(self) -> Mapping[Hashable, PieceColumn]:
        """The columns that the step put in the place of others."""
        return self._now

    @property
    def names(self) -> Sequence[Hashable]:
        return self._names

    def __getitem__(self, name: Hashable) -> PieceColumn:
        if name in self._now:
            return self._now[name]
        if name not in self._before:
            if name not in self._names:
                raise ColumnNotFoundError("plan", [name], self._names)
            column = self._find(name)
            rows = slice(self.start, self.start + self.rows_before)
            self._before[name] = some_rows(column, rows) if self._whole else column
        return self._before[name]

    def __setitem__(self, name: Hashable, column: PieceColumn) -> None:
        before = self._before[name] if name in self._before else self[name]
        if len(column.codes) != len(before.codes):
            raise AssertionError(f"column {name!r}: {len(column.codes)} rows in place of {len(before.codes)}")
        self._now[name] = column

    def drop(self, name: Hashable) -> None:
        self._names.remove(name)
        self._now.pop(name, None)

    def keep_rows(self, kept: npt.NDArray[np.bool_]) -> None:
        if not kept.all():
            self.kept = kept
            self.rows = int(kept.sum())

    def settle(self) -> None:
        """Find what changed."""
        self.changed = {name: changes(self._before[name], column) for name, column in self._now.items()}

    def settled(self, name: Hashable) -> PieceColumn:
        """A column as it is now, with all rows that there were."""
        return self[name]

    def kept_rows(self) -> npt.NDArray[np.bool_]:
        """Of all rows that there were, which stay."""
        return np.ones(self.rows_before, np.bool_) if self.kept is None else self.kept


class ValuesPiece(PlainPiece):
    """The values of a column, each in a row of its own."""

    def __init__(self, name: Hashable, column: PieceColumn) -> None:
        super().__init__(0, len(column.codes), [name], lambda _: column)

    def facts(self, facts: RowFacts) -> Mapping[str, npt.NDArray[Any]]:
        raise AssertionError("a map of values has no facts of rows")
