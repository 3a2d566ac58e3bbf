"""Rows that are written together, as what they are written from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from ..utils.repeated import Repeated

ArrowColumn: TypeAlias = pa.Array | pa.ChunkedArray


@dataclass(frozen=True, eq=False)
class RowGroup:
    """Some rows: columns of Arrow, or numbers of which it is known how they repeat. schema: of the table they make."""

    schema: pa.Schema
    columns: Sequence[ArrowColumn | Repeated]

    @classmethod
    def of(cls, table: pa.Table) -> RowGroup:
        """The rows of a table."""
        return cls(table.schema, table.columns)

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def table(self) -> pa.Table:
        """The rows."""
        arrays = [pa.array(column.values()) if isinstance(column, Repeated) else column for column in self.columns]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def cut(self, rows: int) -> list[RowGroup]:
        """The same rows in groups of at most so many."""
        if len(self) <= rows:
            return [self]
        starts = range(0, len(self), rows)
        return [RowGroup(self.schema, [column[start : start + rows] for column in self.columns]) for start in starts]
