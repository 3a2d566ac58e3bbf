"""A table treated by one treatment, in pieces cut anywhere, as simply as the contract of treatments allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from gpupif.treatment.base import ColumnValues, Piece, PieceColumn, RowFacts, Step, Tools, Treatment, WorkingTable


class ListedFacts(RowFacts):
    """Facts in memory."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays, self.names = arrays, list(arrays)


class ListedTable(WorkingTable):
    """A table of Arrow, its values sorted by Python."""

    def __init__(self, table: pa.Table) -> None:
        self.table, self.names, self.rows = table, table.column_names, table.num_rows

    def values(self, name: str) -> ColumnValues:
        found = Counter(self.table[name].to_pylist())
        missing = found.pop(None, 0)
        there = sorted(found)
        labels = pa.array(there, self.table.schema.field(name).type)
        return ColumnValues(labels, np.array([found[value] for value in there], np.int64), missing)

    def codes(self, names: Sequence[str], row_bytes: int = 0) -> list[PieceColumn]:
        return [coded(self.table[name].to_pylist(), self.values(name).labels) for name in names]

    def facts_of(self, arrays: dict[str, np.ndarray]) -> RowFacts:
        return ListedFacts(arrays)

    def scores(self, arguments: Any, make: Any) -> RowFacts:
        raise NotImplementedError


class ListedPiece(Piece):
    """Some rows, whose labels are in the order in which they occur there."""

    def __init__(self, table: pa.Table, start: int, stop: int) -> None:
        self.start, self.rows = start, stop - start
        self.columns = {}
        for name in table.column_names:
            values = table[name].slice(start, stop - start).to_pylist()
            labels = [value for value in dict.fromkeys(values) if value is not None]
            self.columns[name] = coded(values, pa.array(labels, table.schema.field(name).type))

    @property
    def names(self) -> list[str]:
        return list(self.columns)

    def __getitem__(self, name: str) -> PieceColumn:
        return self.columns[name]

    def __setitem__(self, name: str, column: PieceColumn) -> None:
        assert name in self.columns
        assert column.codes.dtype.kind in "iu"
        assert column.labels.null_count == 0
        assert len(column.labels.unique()) == len(column.labels)
        self.columns[name] = column

    def drop(self, name: str) -> None:
        del self.columns[name]

    def keep_rows(self, kept: np.ndarray) -> None:
        raise NotImplementedError

    def facts(self, facts: RowFacts) -> dict[str, np.ndarray]:
        return {name: array[self.start : self.start + self.rows] for name, array in facts.arrays.items()}

    def arrow(self) -> pa.Table:
        return pa.table(
            {
                name: one.labels.take(pa.array(one.codes, mask=one.codes == len(one.labels)))
                for name, one in self.columns.items()
            }
        )


def coded(values: list[Any], labels: pa.Array) -> PieceColumn:
    place = {value: number for number, value in enumerate(labels.to_pylist())} | {None: len(labels)}
    return PieceColumn(np.array([place[value] for value in values], np.uint32), labels)


def prepared(table: pa.Table, treatment: Treatment, key: Any, number: int = 0) -> Step:
    """The step that a treatment makes of a table."""
    treatment.check()
    return treatment.prepare(ListedTable(table), Tools(key=key, number=number))


def treated(table: pa.Table, treatment: Treatment, key: Any, cuts: Sequence[int] = (), number: int = 0) -> pa.Table:
    """The table after a treatment, cut into pieces before these rows."""
    step = prepared(table, treatment, key, number)
    edges = [0, *sorted(min(cut, table.num_rows) for cut in cuts), table.num_rows]
    pieces = [ListedPiece(table, start, stop) for start, stop in pairwise(edges)]
    # In any order.
    for piece in reversed(pieces):
        step.apply(piece)
    return pa.concat_tables([piece.arrow() for piece in pieces])


def values_after(table: pa.Table, name: str) -> ColumnValues:
    """What a treated table has in a column."""
    return ListedTable(table).values(name)
