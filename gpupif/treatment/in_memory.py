"""A table in memory as treated so far."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..attack.arguments import Arguments
from ..encoding.device import DeviceColumn, encode_on_device
from ..encoding.encode import encode_column
from ..errors import ColumnTypeError
from ..frames.base import Frame
from ..frames.replacement import Replacement
from ..rows.threads import Workers
from ..scoring.score import score_table
from ..utils.validation import check_unique
from .base import ColumnValues, PieceColumn, RowFacts, Step, ValueMapStep
from .columns import Changes, in_order, joined, some_rows, table_column
from .memory_column import MemoryColumn
from .plain_piece import PlainPiece
from .record import StepCounts
from .run import TreatableTable

# Rows that a step treats at once.
PIECE_ROWS = 1 << 20


class MemoryFacts(RowFacts):
    """Facts in memory, of all rows."""

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self.arrays = arrays
        self.names = list(arrays)


class MemoryPiece(PlainPiece):
    """Some rows of a table in memory."""

    def facts(self, facts: RowFacts) -> Mapping[str, npt.NDArray[Any]]:
        assert isinstance(facts, MemoryFacts)
        return {name: array[self.start : self.start + self.rows_before] for name, array in facts.arrays.items()}


class MemoryTable(TreatableTable):
    """A table in memory as treated so far; a column is encoded when it is first asked for.

    frame: as it came in.
    """

    def __init__(self, frame: Frame) -> None:
        check_unique(frame.names)
        self.frame = frame
        self.rows = frame.rows
        self.names = list(frame.names)
        self.index = frame.index
        self.counts: list[StepCounts] = []
        self._columns: dict[Hashable, MemoryColumn] = {}
        self._types: dict[Hashable, pa.DataType] = {}
        self._changed: set[Hashable] = set()
        self._kept: npt.NDArray[np.bool_] | None = None

    def expect(self, names: Sequence[Hashable]) -> None:
        """See `TreatableTable`: encode columns, several at a time; those that cannot be when they are asked for."""
        left = [name for name in dict.fromkeys(names) if name not in self._columns]
        with self.frame.active(), Workers() as workers:
            arrays = [self.frame.column(self.frame.names.index(name)) for name in left]
            if any(isinstance(array, DeviceColumn) for array in arrays):
                columns = encode_on_device(left, arrays, encode_column)
                arrays = [column.on_host() for column in columns]
            for name, column in zip(left, workers.run(_encoded, list(zip(left, arrays, strict=True))), strict=True):
                if column is not None:
                    self._take_column(name, column)

    def _take_column(self, name: Hashable, column: MemoryColumn) -> None:
        self._types[name] = column.labels.type
        self._columns[name] = column if self._kept is None else MemoryColumn(some_rows(column.rows(), self._kept))

    def column(self, name: Hashable) -> PieceColumn:
        """A column as it is now; raises ColumnTypeError for values that are no categories."""
        return self._stored(name).rows()

    def _stored(self, name: Hashable) -> MemoryColumn:
        self.expect([name])
        if name not in self._columns:
            self._take_column(name, MemoryColumn.encoded(name, self.frame.column(self.frame.names.index(name))))
        return self._columns[name]

    def apply(self, step: Step, names: Sequence[Hashable] = (), said: str = "") -> None:
        if isinstance(step, ValueMapStep):
            column, found = self._stored(step.column).mapped(step)
            self.counts.append(StepCounts({step.column: found}))
            self._put(step.column, column, found)
            return
        starts = range(0, max(1, self.rows), PIECE_ROWS)
        sizes = [min(PIECE_ROWS, self.rows - start) for start in starts]
        pieces = [MemoryPiece(*rows, self.names, self.column) for rows in zip(starts, sizes, strict=True)]

        def treat(piece: MemoryPiece) -> None:
            step.apply(piece)
            piece.settle()

        # What the first one has encoded no other thread has to.
        treat(pieces[0])
        with Workers() as workers:
            workers.run(treat, [(piece,) for piece in pieces[1:]])
        self._take(pieces)

    def _take(self, pieces: Sequence[MemoryPiece]) -> None:
        """The table is now what the pieces are."""
        counts, before = StepCounts(), self.names
        self.names = list(pieces[0].names)
        for piece in pieces:
            counts.add(piece.changed, [], piece.rows_before - piece.rows)
        counts.dropped = [name for name in before if name not in self.names]
        for name, found in counts.changed.items():
            if name in self.names:
                self._put(name, MemoryColumn(joined(name, [piece.settled(name) for piece in pieces])), found)
        self._columns = {name: column for name, column in self._columns.items() if name in self.names}
        if counts.rows_removed:
            self._keep(np.concatenate([piece.kept_rows() for piece in pieces]))
        self.counts.append(counts)

    def _put(self, name: Hashable, column: MemoryColumn, found: Changes) -> None:
        self._columns[name] = column
        if found.cells or column.labels.type != self._types[name]:
            self._changed.add(name)

    def _keep(self, kept: npt.NDArray[np.bool_]) -> None:
        before = np.ones(self.frame.rows, np.bool_) if self._kept is None else self._kept.copy()
        before[before] = kept
        self._kept = before
        self._columns = {name: MemoryColumn(some_rows(column.rows(), kept)) for name, column in self._columns.items()}
        self.rows = int(kept.sum())

    def kept_rows(self) -> npt.NDArray[np.bool_]:
        """Return by row that came in whether it is still there."""
        return np.ones(self.frame.rows, np.bool_) if self._kept is None else self._kept

    def values(self, name: Hashable) -> ColumnValues:
        return self._stored(name).values()

    def codes(self, names: Sequence[Hashable], row_bytes: int = 0) -> list[PieceColumn]:
        self.expect(names)
        with Workers() as workers:
            tasks = [(self._stored(name),) for name in names]
            return workers.run(lambda column: in_order(column.rows(), column.values().labels), tasks)

    def facts_of(self, arrays: Mapping[str, npt.NDArray[Any]]) -> RowFacts:
        return MemoryFacts(arrays)

    def scores(
        self, arguments: Arguments, make: Callable[[Mapping[str, npt.NDArray[Any]]], Mapping[str, npt.NDArray[Any]]]
    ) -> RowFacts:
        frame = WorkingFrame(self)
        self.expect(arguments.needed([*frame.names]) or frame.names)  # type: ignore[list-item]
        found = score_table(frame, arguments).to_arrow()
        return MemoryFacts(make({name: found.column(name).to_numpy() for name in found.column_names}))

    def done(self) -> Any:
        """The table as it is now, of the kind that came in; columns that did not change as they came."""
        names = [name for name in self.names if name in self._changed]
        with Workers() as workers:
            made = workers.run(self._replacement, [(name,) for name in names])
        replaced = dict(zip(names, made, strict=True))
        return self.frame.replaced(self.names, replaced, self._kept)

    def _replacement(self, name: Hashable) -> Replacement:
        return self._columns[name].replacement(self._types[name])


def _encoded(name: Hashable, array: Any) -> MemoryColumn | None:
    with contextlib.suppress(ColumnTypeError):
        return MemoryColumn.encoded(name, array)
    return None


class WorkingFrame(Frame):
    """A table as treated so far, for what takes frames: encoded columns."""

    scores_on = "host"

    def __init__(self, table: MemoryTable) -> None:
        self._table = table
        self.names = list(table.names)
        self.rows = table.rows
        self.index_names = [name for name in table.frame.index_names if name in self.names]

    def column(self, position: int) -> Any:
        name = self.names[position]
        return table_column(name, self._table.column(name))

    def orders(self) -> dict[Hashable, list[Any]]:
        """See `Frame`; a column with values that the order has not has none."""
        found = {}
        for name, order in self._table.frame.orders().items():
            if name in self.names and set(self._table.values(name).labels.to_pylist()) <= set(order):
                found[name] = order
        return found

    def arrow(self) -> pa.Table:
        columns = []
        for name in self.names:
            column = self._table.column(name)
            missing = column.codes == len(column.labels)
            columns.append(pa.DictionaryArray.from_arrays(pa.array(column.codes, mask=missing), column.labels))
        return pa.table(columns, names=[str(name) for name in self.names])
