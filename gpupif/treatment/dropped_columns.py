"""Whole columns: dropped, or a table refused that has columns that nobody declared."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ..errors import InputError
from ..utils.validation import as_list
from .steps import Chunk, Step
from .treatment import Tools, TreatedTable, Treatment


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

    def prepare(self, table: TreatedTable, tools: Tools) -> DropStep:
        names = as_list("drop: columns", self.columns)
        if len(names) == len(table.names):
            raise InputError("drop: expected to leave a column, got the names of all. Leave one out of columns.")
        return DropStep(names)


@dataclass(frozen=True)
class DropStep(Step):
    """Columns to be taken away."""

    columns: Sequence[Hashable]

    @property
    def drops(self) -> Sequence[Hashable]:
        return self.columns

    def apply(self, chunk: Chunk) -> None:
        for name in self.columns:
            chunk.drop(name)


@dataclass(frozen=True)
class DeclaredColumns(Treatment):
    """Refuse a table with other columns than these, or without one of them; change nothing.

    So is one whose index says more than the place of a row: one with a name, or of anything but whole numbers.

    A plan that is to leave nothing out begins with it: a column that comes to the table later is not handed on before
    somebody has said what is to be done with it.
    """

    do: ClassVar[str] = "declared_columns"
    reads_values: ClassVar[bool] = False
    columns: Sequence[Hashable]

    def check(self) -> None:
        if not as_list("declared_columns: columns", self.columns):
            raise InputError("declared_columns: columns: expected at least one column, got an empty list.")

    def prepare(self, table: TreatedTable, tools: Tools) -> NoStep:
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
        if _labels_rows(table.index):
            named = [name for name in table.index.names if name is not None]
            of = f" ({', '.join(map(repr, named))})" if named else ""
            raise InputError(
                f"expected every column to be declared, got an index{of} that goes with the rows as it is. Make "
                "columns of it, to be declared, by reset_index(), or take it away by reset_index(drop=True)."
            )
        return NoStep()


def _labels_rows(index: Any) -> bool:
    """Whether an index may say whose row it is."""
    if index is None or type(index).__name__ == "RangeIndex":
        return False
    return any(name is not None for name in index.names) or getattr(index.dtype, "kind", "O") not in "iu"


class NoStep(Step):
    """What leaves the table as it is."""

    def apply(self, chunk: Chunk) -> None:
        return
