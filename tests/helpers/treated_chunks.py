"""A table treated by one treatment, in chunks cut anywhere, as simply as the contract of treatments allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from gpupif.treatment.coded_columns import CodedColumn, ColumnValues
from gpupif.treatment.plan_fields import with_types
from gpupif.treatment.steps import Chunk, RowFacts, Step
from gpupif.treatment.treatment import Tools, TreatedTable, Treatment


class ListedFacts(RowFacts):
    """Facts in memory."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = arrays

    def read(self, chunk: Chunk) -> dict[str, np.ndarray]:
        return {name: array[chunk.start : chunk.start + chunk.rows] for name, array in self.arrays.items()}


class ListedTable(TreatedTable):
    """A table of Arrow, its values sorted by Python."""

    def __init__(self, table: pa.Table) -> None:
        self.table, self.names, self.rows = table, table.column_names, table.num_rows

    def values(self, name: str) -> ColumnValues:
        found = Counter(self.table[name].to_pylist())
        missing = found.pop(None, 0)
        there = sorted(found)
        labels = pa.array(there, self.table.schema.field(name).type)
        return ColumnValues(labels, np.array([found[value] for value in there], np.int64), missing)

    def type_of(self, name: str) -> pa.DataType:
        return self.values(name).labels.type

    def codes(self, names: Sequence[str], row_bytes: int = 0) -> list[CodedColumn]:
        return [coded(self.table[name].to_pylist(), self.values(name).labels) for name in names]

    def facts_of(self, arrays: dict[str, np.ndarray]) -> RowFacts:
        return ListedFacts(arrays)

    def scores(self, arguments: Any, make: Any) -> RowFacts:
        raise NotImplementedError

    def apply(self, step: Step, said: str = "") -> None:
        raise NotImplementedError

    def kept_rows(self) -> np.ndarray:
        raise NotImplementedError


def listed_chunk(table: pa.Table, start: int, stop: int) -> Chunk:
    """Some rows, whose labels are in the order in which they occur there."""

    def column(name: str) -> CodedColumn:
        values = table[name].slice(start, stop - start).to_pylist()
        labels = [value for value in dict.fromkeys(values) if value is not None]
        return coded(values, pa.array(labels, table.schema.field(name).type))

    return Chunk(table.column_names, stop - start, column)


def rows_of(chunk: Chunk) -> pa.Table:
    """The rows of a chunk, whose columns are as they have to be."""
    columns = {name: chunk[name] for name in chunk.names}
    for column in columns.values():
        assert column.codes.dtype.kind in "iu"
        assert column.labels.null_count == 0
        assert len(column.labels.unique()) == len(column.labels)
    return pa.table(
        {name: one.labels.take(pa.array(one.codes, mask=one.codes == len(one.labels))) for name, one in columns.items()}
    )


def coded(values: list[Any], labels: pa.Array) -> CodedColumn:
    place = {value: number for number, value in enumerate(labels.to_pylist())} | {None: len(labels)}
    return CodedColumn(np.array([place[value] for value in values], np.uint32), labels)


def prepared(table: pa.Table, treatment: Treatment, key: Any, number: int = 0) -> Step:
    """The step that a treatment makes of a table."""
    treatment = with_types(treatment.do, treatment)
    treatment.check()
    return treatment.prepare(ListedTable(table), Tools(key=key, number=number))


def treated(table: pa.Table, treatment: Treatment, key: Any, cuts: Sequence[int] = (), number: int = 0) -> pa.Table:
    """The table after a treatment, cut into chunks before these rows."""
    step = prepared(table, treatment, key, number)
    edges = [0, *sorted(min(cut, table.num_rows) for cut in cuts), table.num_rows]
    chunks = [(start, listed_chunk(table, start, stop)) for start, stop in pairwise(edges)]
    # In any order.
    for start, chunk in reversed(chunks):
        chunk.apply(step, start)
    return pa.concat_tables([rows_of(chunk) for _, chunk in chunks])


def values_after(table: pa.Table, name: str) -> ColumnValues:
    """What a treated table has in a column."""
    return ListedTable(table).values(name)
