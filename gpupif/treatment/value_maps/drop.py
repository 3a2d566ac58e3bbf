"""Columns taken away."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...errors import InputError
from ...utils.validation import as_list
from ..base import Piece, Step, Tools, Treatment, WorkingTable


@dataclass(frozen=True)
class Drop(Treatment):
    """Take columns away, or an index. columns: their names; a single one may stand alone.

    Raises InputError where no column would be left.
    """

    do: ClassVar[str] = "drop"
    reads_values: ClassVar[bool] = False
    columns: Sequence[Hashable]

    def check(self) -> None:
        if not as_list("drop: columns", self.columns):
            raise InputError("drop: columns: expected at least one column, got an empty list.")

    def prepare(self, table: WorkingTable, tools: Tools) -> DropStep:
        names = as_list("drop: columns", self.columns)
        if len(names) == len(table.names):
            raise InputError("drop: expected to leave a column, got the names of all. Leave one out of columns.")
        return DropStep(names)


@dataclass(frozen=True)
class DropStep(Step):
    """Columns to be taken away."""

    columns: Sequence[Hashable]

    def apply(self, piece: Piece) -> None:
        for name in self.columns:
            piece.drop(name)
