"""Rows that are written together, as what they are written from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from ..utils.repeated import Repeated

ArrowColumn: TypeAlias = pa.Array | pa.ChunkedArray


class Multiple(NamedTuple):
    """A column of numbers of 64 bits: those of the column at this place, which is none such, times a factor."""

    place: int
    factor: float


@dataclass(frozen=True, eq=False)
class RowGroup:
    """Some rows. schema: of the table they make.

    columns: of Arrow, numbers of which it is known how they repeat, or multiples of other columns.
    """

    schema: pa.Schema
    columns: Sequence[ArrowColumn | Repeated | Multiple]

    @classmethod
    def of(cls, table: pa.Table) -> RowGroup:
        """The rows of a table."""
        return cls(table.schema, table.columns)

    def behind(self, table: pa.Table | None) -> RowGroup:
        """These columns behind those of a table, if there is one."""
        if table is None:
            return self
        shift = table.num_columns
        moved = [one._replace(place=one.place + shift) if isinstance(one, Multiple) else one for one in self.columns]
        names, types = [*table.column_names, *self.schema.names], [*table.schema.types, *self.schema.types]
        return RowGroup(pa.schema(zip(names, types, strict=True), self.schema.metadata), [*table.columns, *moved])

    def __len__(self) -> int:
        return next((len(column) for column in self.columns if not isinstance(column, Multiple)), 0)

    def resolved(self) -> list[ArrowColumn | Repeated]:
        """The columns, each by itself."""
        return [
            times(self.columns[column.place], column.factor) if isinstance(column, Multiple) else column
            for column in self.columns
        ]

    def table(self) -> pa.Table:
        """The rows."""
        arrays = [pa.array(column.values()) if isinstance(column, Repeated) else column for column in self.resolved()]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def cut(self, rows: int) -> list[RowGroup]:
        """The same rows in groups of at most so many, of each of which it is still to be found how numbers repeat."""
        if len(self) <= rows:
            return [self]
        table, starts = self.table(), range(0, len(self), rows)
        several = [
            [
                one if isinstance(one, Multiple) else column
                for one, column in zip(self.columns, part.columns, strict=True)
            ]
            for part in (table.slice(start, rows) for start in starts)
        ]
        return [RowGroup(self.schema, columns) for columns in several]


def times(column: ArrowColumn | Repeated, factor: float) -> ArrowColumn | Repeated:
    """The numbers of a column, each multiplied."""
    if isinstance(column, Repeated):
        return Repeated(factor * column.distinct, column.numbers)
    return pa.array(factor * column.to_numpy())
