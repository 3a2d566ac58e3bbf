"""Rows that are written together. Columns are kept in the form that is fastest to encode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from ..utils.repeated import Repeated

ArrowColumn: TypeAlias = pa.Array | pa.ChunkedArray


class Multiple(NamedTuple):
    """A column of 64-bit numbers that are the numbers of another column of the row group times a factor.

    place: the index of the other column, which is no `Multiple`.
    """

    place: int
    factor: float


@dataclass(frozen=True, eq=False)
class RowGroup:
    """Rows that are written together.

    schema: the schema of the table that the rows make.
    columns: a column of Arrow, a column of repeating numbers, or a multiple of another column, for each field.
    """

    schema: pa.Schema
    columns: Sequence[ArrowColumn | Repeated | Multiple]

    @classmethod
    def from_table(cls, table: pa.Table) -> RowGroup:
        """Return all rows of a table as a row group."""
        return cls(table.schema, table.columns)

    def preceded_by(self, table: pa.Table | None) -> RowGroup:
        """Return a row group with the columns of a table, and after them the columns of this row group.

        None adds no columns.
        """
        if table is None:
            return self
        shift = table.num_columns
        moved = [own._replace(place=own.place + shift) if isinstance(own, Multiple) else own for own in self.columns]
        names, types = [*table.column_names, *self.schema.names], [*table.schema.types, *self.schema.types]
        return RowGroup(pa.schema(zip(names, types, strict=True), self.schema.metadata), [*table.columns, *moved])

    def __len__(self) -> int:
        return next((len(column) for column in self.columns if not isinstance(column, Multiple)), 0)

    def resolved(self) -> list[ArrowColumn | Repeated]:
        """Return all columns, with the numbers of multiples computed."""
        return [
            times(self.columns[column.place], column.factor) if isinstance(column, Multiple) else column
            for column in self.columns
        ]

    def table(self) -> pa.Table:
        """Return the rows as a table of Arrow."""
        arrays = [pa.array(column.values()) if isinstance(column, Repeated) else column for column in self.resolved()]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def cut(self, rows: int) -> list[RowGroup]:
        """Return the rows in row groups of at most `rows` rows.

        Smaller row groups have no `Repeated` columns: writers search each row group anew for repeating numbers.
        """
        if len(self) <= rows:
            return [self]
        table = self.table()
        parts = [table.slice(start, rows).columns for start in range(0, len(self), rows)]
        pairs = [zip(self.columns, part, strict=True) for part in parts]
        return [
            RowGroup(self.schema, [own if isinstance(own, Multiple) else cut for own, cut in pair]) for pair in pairs
        ]


def times(column: ArrowColumn | Repeated, factor: float) -> ArrowColumn | Repeated:
    """Return a column whose numbers are multiplied by a factor."""
    if isinstance(column, Repeated):
        return Repeated(factor * column.distinct, column.numbers)
    return pa.array(factor * column.to_numpy())
