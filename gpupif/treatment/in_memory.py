"""A table in memory as treated so far: one piece with all rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..attack.arguments import Arguments
from ..encoding.encode import encode_column
from ..frames.base import Frame
from .base import ColumnValues, Piece, PieceColumn, RowFacts, Step, WorkingTable


class MemoryFacts(RowFacts):
    """Facts in memory, of all rows."""

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self.arrays = arrays
        self.names = list(arrays)


class MemoryTable(WorkingTable, Piece):
    """A table in memory; treated by `apply` of a step. touched: columns that are not as they came."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self.start, self.rows = 0, frame.rows
        self._columns: dict[Hashable, PieceColumn] = {}
        self._names = list(frame.names)

    @property
    def names(self) -> Sequence[Hashable]:  # type: ignore[override]
        return self._names

    def __getitem__(self, name: Hashable) -> PieceColumn:
        if name not in self._columns:
            column = encode_column(name, self._frame.column(self._frame.names.index(name)))
            labels = column.labels if isinstance(column.labels, pa.Array) else pa.array(column.labels)
            self._columns[name] = PieceColumn(column.codes, labels)
        return self._columns[name]

    def __setitem__(self, name: Hashable, column: PieceColumn) -> None:
        self._columns[name] = column

    def drop(self, name: Hashable) -> None:
        self._names.remove(name)
        self._columns.pop(name, None)

    def keep_rows(self, kept: npt.NDArray[np.bool_]) -> None:
        raise NotImplementedError

    def facts(self, facts: RowFacts) -> Mapping[str, npt.NDArray[Any]]:
        assert isinstance(facts, MemoryFacts)
        return facts.arrays

    def values(self, name: Hashable) -> ColumnValues:
        column = self[name]
        counts = np.bincount(column.codes, minlength=len(column.labels) + 1)
        order = pc.array_sort_indices(column.labels)
        places = order.to_numpy()
        there = places[counts[places] > 0]
        return ColumnValues(column.labels.take(pa.array(there)), counts[there], int(counts[-1]))

    def codes(self, names: Sequence[Hashable]) -> list[PieceColumn]:
        found = []
        for name in names:
            labels = self.values(name).labels
            column = self[name]
            place = pc.index_in(column.labels, labels).fill_null(0).to_numpy(zero_copy_only=False)
            found.append(PieceColumn(np.append(place, len(labels))[column.codes], labels))
        return found

    def facts_of(self, arrays: Mapping[str, npt.NDArray[Any]]) -> RowFacts:
        return MemoryFacts(arrays)

    def scores(
        self, arguments: Arguments, make: Callable[[Mapping[str, npt.NDArray[Any]]], Mapping[str, npt.NDArray[Any]]]
    ) -> RowFacts:
        from ..scoring.score import score_table

        found = score_table(self.arrow(), arguments)
        frame = found.frame()
        return MemoryFacts(make({name: frame[name].to_numpy() for name in frame.column_names}))

    def arrow(self) -> pa.Table:
        """The table as it is now."""
        arrays = {}
        for name in self._names:
            column = self[name]
            missing = column.codes == len(column.labels)
            arrays[str(name)] = pa.DictionaryArray.from_arrays(pa.array(column.codes, mask=missing), column.labels)
        return pa.table(arrays)


def treat_in_memory(table: MemoryTable, prepare: Sequence[Callable[[WorkingTable], Step]]) -> MemoryTable:
    """Treat a table, one treatment after the other."""
    for one in prepare:
        one(table).apply(table)
    return table
