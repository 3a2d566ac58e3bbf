"""Treatments of whole columns: drop columns, or refuse a table with undeclared columns."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from ..errors import InputError
from .field_checks import not_empty
from .steps import Chunk, Step
from .treatment import Tools, TreatedTable, Treatment


@dataclass(frozen=True)
class Drop(Treatment):
    """Drop columns, or levels of an index.

    columns: names, a list or a single name. Raises InputError if no column would be left.
    """

    do: ClassVar[str] = "drop"
    reads_values: ClassVar[bool] = False
    columns: Annotated[Sequence[Hashable], not_empty]

    def prepare(self, table: TreatedTable, tools: Tools) -> DropStep:
        if len(self.columns) == len(table.names):
            raise InputError("drop: expected to leave a column, got the names of all. Leave one out of columns.")
        return DropStep(drops=self.columns)


class DropStep(Step):
    """The prepared `Drop`."""

    def apply(self, chunk: Chunk) -> None:
        for name in self.drops:
            chunk.drop(name)


@dataclass(frozen=True)
class DeclaredColumns(Treatment):
    """Refuse a table whose columns are not exactly the declared columns; change nothing.

    columns: names of all columns of the table. Put this treatment first in a plan that must cover every column: a
    column that is added to the table later is refused until somebody declares it.

    Raises InputError for an undeclared column, for a declared column that the table lacks, and for an index that may
    identify rows: an index with a name, or with values that are no whole numbers. A RangeIndex identifies no row.
    """

    do: ClassVar[str] = "declared_columns"
    reads_values: ClassVar[bool] = False
    columns: Annotated[Sequence[Hashable], not_empty]

    def prepare(self, table: TreatedTable, tools: Tools) -> NoStep:
        declared = set(self.columns)
        undeclared = [name for name in table.names if name not in declared]
        if undeclared:
            listed = ", ".join(repr(name) for name in undeclared[:20]) + (
                f" and {len(undeclared) - 20} more" * (len(undeclared) > 20)
            )
            raise InputError(
                f"expected every column to be declared, got none for {listed}. Declare them (with Safe Harbor, by "
                "their content), or drop them first."
            )
        if _labels_rows(table.index):
            named = [name for name in table.index.names if name is not None]
            levels = f" ({', '.join(map(repr, named))})" if named else ""
            raise InputError(
                f"expected every column to be declared, got an index{levels}, which would stay unchanged. Turn the "
                "index into columns by reset_index(), and declare them, or drop the index by reset_index(drop=True)."
            )
        return NoStep()


def _labels_rows(index: Any) -> bool:
    """Return whether an index may tell whose row a row is."""
    if index is None or type(index).__name__ == "RangeIndex":
        return False
    return any(name is not None for name in index.names) or getattr(index.dtype, "kind", "O") not in "iu"


class NoStep(Step):
    """A step that changes nothing."""

    def apply(self, chunk: Chunk) -> None:
        return
