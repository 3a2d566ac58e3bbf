"""Columns that a table may have, named one by one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..errors import InputError
from ..utils.validation import as_list
from .base import Piece, Step, Tools, Treatment, WorkingTable


@dataclass(frozen=True)
class DeclaredColumns(Treatment):
    """Refuse a table with other columns than these, or without one of them; change nothing.

    A plan that is to leave nothing out begins with it: a column that comes to the table later is not handed on before
    somebody has said what is to be done with it.
    """

    do: ClassVar[str] = "declared_columns"
    reads_values: ClassVar[bool] = False
    columns: Sequence[Hashable]

    def check(self) -> None:
        if not as_list("declared_columns: columns", self.columns):
            raise InputError("declared_columns: columns: expected at least one column, got an empty list.")

    def prepare(self, table: WorkingTable, tools: Tools) -> NoStep:
        declared = set(self.columns)
        others = [name for name in table.names if name not in declared]
        if others:
            listed = ", ".join(repr(name) for name in others[:20]) + (
                f" and {len(others) - 20} more" * (len(others) > 20)
            )
            raise InputError(
                f"expected every column to be declared, got none for {listed}. Declare them (of Safe Harbor, say what "
                "they hold), or drop them first."
            )
        return NoStep()


class NoStep(Step):
    """What leaves the table as it is."""

    def apply(self, piece: Piece) -> None:
        return
