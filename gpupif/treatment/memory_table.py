"""A table in memory after the steps so far."""

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
from ..encoding.merge import recode
from ..encoding.plain_values import refuse_intervals
from ..errors import ColumnTypeError
from ..frames.base import Frame
from ..frames.replacement import Replacement
from ..results.provenance import describe_frame
from ..rows.threads import Workers
from ..scoring.score import score_table
from ..utils.arrays import read_only
from ..utils.validation import check_unique
from .coded_columns import (
    Changes,
    CodedColumn,
    ColumnValues,
    changes,
    coded_column,
    column_values,
    counts_of,
    joined,
    places_among,
    selected_rows,
    table_column,
    with_other_labels,
)
from .steps import Chunk, RowFacts, Step, StepCounts
from .treatment import TreatedTable, ValueMapStep

# The most rows of a chunk that a step is applied to.
CHUNK_ROWS = 1 << 20


class MemoryFacts(RowFacts):
    """Facts in memory. arrays: an array (rows,) by name."""

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self._arrays = arrays

    def read(self, chunk: Chunk) -> Mapping[str, npt.NDArray[Any]]:
        return {name: array[chunk.start : chunk.start + chunk.rows] for name, array in self._arrays.items()}


class MemoryColumn:
    """A column of all rows.

    Value maps change labels only. `_now` collects their effect on codes, and `rows` applies it once, when a step needs
    the rows.

    labels: Arrow array. The current labels. counts: int64 (labels + 1,). Rows by code, missing values last. Default
    None: counted on first use.
    """

    def __init__(self, column: CodedColumn, counts: npt.NDArray[np.int64] | None = None) -> None:
        self.labels = column.labels
        self._codes = column.codes
        # The current code by code in `_codes`; None if the codes are current.
        self._now: npt.NDArray[np.int64] | None = None
        self._counts = counts

    @classmethod
    def encoded(cls, name: Hashable, array: Any) -> MemoryColumn:
        """Encode an array, see `encode_column`; raises ColumnTypeError for values that are no categories."""
        if hasattr(array, "__len__") and len(array) == 0:
            return cls(coded_column(name, array))
        column = encode_column(name, array)
        counts = column.counts if column.missing else np.append(column.counts, 0)
        return cls(coded_column(name, column), counts)

    def rows(self) -> CodedColumn:
        """Return the current codes of all rows."""
        if self._now is not None:
            counts = self.counts()
            self._codes = recode(read_only(self._codes), self._now)
            self._now, self._counts = None, counts
        return CodedColumn(self._codes, self.labels)

    def replacement(self, before: pa.DataType) -> Replacement:
        """Return the replacement of the original column. before: type of the original values."""
        return Replacement(self._codes, self.labels, before, self.counts(), self._now)

    def counts(self) -> npt.NDArray[np.int64]:
        """Return the number of rows with each current code, missing values last: int64 (labels + 1,)."""
        if self._counts is None:
            self._counts = counts_of(CodedColumn(self._codes, self.labels))
        if self._now is None:
            return self._counts
        return np.bincount(self._now, self._counts, len(self.labels) + 1).astype(np.int64)

    def values(self) -> ColumnValues:
        """Return the current values, and how often each occurs."""
        counts = self.counts()
        return column_values(self.labels, counts[:-1], int(counts[-1]))

    def mapped(self, step: ValueMapStep) -> tuple[MemoryColumn, Changes]:
        """Return the column after a value map, and the changes. The rows are not read: counts by code suffice."""
        counts = self.counts()
        occurs = np.flatnonzero(counts)
        after = step.mapped(CodedColumn(occurs, self.labels))
        missing = len(after.labels)
        now = np.full(len(counts), missing, np.int64)
        now[occurs] = after.codes
        made = MemoryColumn(CodedColumn(self._codes, after.labels), self._counts)
        made._now = now if self._now is None else now[self._now]
        same = np.append(places_among(after.labels, self.labels), len(self.labels))[after.codes]
        changed = counts[occurs[same != occurs]].sum()
        gone = counts[occurs[(after.codes == missing) & (occurs != len(self.labels))]].sum()
        return made, Changes(int(changed), int(gone))


class MemoryTable(TreatedTable):
    """A table in memory. A column is encoded when it is first needed. frame: the original table."""

    def __init__(self, frame: Frame) -> None:
        check_unique(frame.names)
        self.frame = frame
        self.rows = frame.rows
        self.names = list(frame.names)
        self.index = frame.index
        self.counts = [StepCounts()]
        self._columns: dict[Hashable, MemoryColumn] = {}
        self._came: dict[Hashable, CodedColumn] = {}
        self._types: dict[Hashable, pa.DataType] = {}
        self._changed: set[Hashable] = set()
        self._kept: npt.NDArray[np.bool_] | None = None

    def expect(self, names: Sequence[Hashable]) -> None:
        """Encode columns in parallel. A column that cannot be encoded is refused later, when it is needed."""
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
        self._came[name] = column.rows()
        self._columns[name] = column if self._kept is None else MemoryColumn(selected_rows(column.rows(), self._kept))

    def column(self, name: Hashable) -> CodedColumn:
        """Return a column after the steps so far; raises ColumnTypeError for values that are no categories."""
        return self._stored(name).rows()

    def _stored(self, name: Hashable) -> MemoryColumn:
        self.expect([name])
        if name not in self._columns:
            self._take_column(name, MemoryColumn.encoded(name, self.frame.column(self.frame.names.index(name))))
        return self._columns[name]

    def apply(self, step: Step, said: str = "") -> None:
        if isinstance(step, ValueMapStep):
            refuse_intervals(step.column, self._stored(step.column).labels.type)
            column, changed = self._stored(step.column).mapped(step)
            self.counts.insert(-1, StepCounts({step.column: changed}))
            self._put(step.column, column, changed)
            return
        starts = range(0, max(1, self.rows), CHUNK_ROWS)
        chunks = [self._chunk(start, min(CHUNK_ROWS, self.rows - start)) for start in starts]
        counts = [StepCounts() for _ in chunks]
        # The first chunk encodes the columns that the step needs; the threads of the other chunks only read them.
        chunks[0].apply(step, counts=counts[0])
        with Workers() as workers:
            others = zip(chunks[1:], starts[1:], counts[1:], strict=True)
            workers.run(lambda chunk, start, own: chunk.apply(step, start, counts=own), list(others))
        self._take(step, chunks, counts)

    def _chunk(self, start: int, rows: int) -> Chunk:
        return Chunk(self.names, rows, lambda name: selected_rows(self.column(name), slice(start, start + rows)))

    def _take(self, step: Step, chunks: Sequence[Chunk], counts: Sequence[StepCounts]) -> None:
        """Join the treated chunks, and make them the current table."""
        total = StepCounts(dropped=step.drops)
        for own in counts:
            total.add(own.changed, own.rows_removed)
        self.names = chunks[0].names
        self._columns = {name: column for name, column in self._columns.items() if name in self.names}
        if total.rows_removed:
            self._keep(np.concatenate([chunk.kept_rows() for chunk in chunks]))
        for name, changed in total.changed.items():
            self._put(name, MemoryColumn(joined(name, [chunk[name] for chunk in chunks])), changed)
        self.counts.insert(-1, total)

    def _put(self, name: Hashable, column: MemoryColumn, changed: Changes) -> None:
        self._columns[name] = column
        if changed.cells or column.labels.type != self._types[name]:
            self._changed.add(name)

    def _keep(self, kept: npt.NDArray[np.bool_]) -> None:
        before = np.ones(self.frame.rows, np.bool_) if self._kept is None else self._kept.copy()
        before[before] = kept
        self._kept = before
        left = {name: selected_rows(column.rows(), kept) for name, column in self._columns.items()}
        self._columns = {name: MemoryColumn(column) for name, column in left.items()}
        self.rows = int(kept.sum())

    def kept_rows(self) -> npt.NDArray[np.bool_]:
        """Return for each original row whether it is left: booleans (rows,)."""
        return np.ones(self.frame.rows, np.bool_) if self._kept is None else self._kept

    def type_of(self, name: Hashable) -> pa.DataType:
        return self._stored(name).labels.type

    def values(self, name: Hashable) -> ColumnValues:
        column = self._stored(name)
        refuse_intervals(name, column.labels.type)
        return column.values()

    def has_only(self, name: Hashable, order: Sequence[Any]) -> bool:
        """Return whether a column has only values of an order. Intervals, which a treatment cannot read, are none."""
        with contextlib.suppress(ColumnTypeError):
            return set(self.values(name).labels.to_pylist()) <= set(order)
        return False

    def codes(self, names: Sequence[Hashable], row_bytes: int = 0) -> list[CodedColumn]:
        self.expect(names)
        with Workers() as workers:
            tasks = [(self._stored(name),) for name in names]
            for name, (column,) in zip(names, tasks, strict=True):
                refuse_intervals(name, column.labels.type)
            return workers.run(lambda column: with_other_labels(column.rows(), column.values().labels), tasks)

    def facts_of(self, arrays: Mapping[str, npt.NDArray[Any]]) -> RowFacts:
        return MemoryFacts(arrays)

    def scores(
        self, arguments: Arguments, make: Callable[[Mapping[str, npt.NDArray[Any]]], Mapping[str, npt.NDArray[Any]]]
    ) -> RowFacts:
        frame = WorkingFrame(self)
        self.expect(arguments.needed([*frame.names]) or frame.names)  # type: ignore[list-item]
        scores = score_table(frame, arguments).to_arrow()
        return MemoryFacts(make({name: scores.column(name).to_numpy() for name in scores.column_names}))

    def described(self) -> tuple[Mapping[str, Any], int]:
        """Return the description of the original table for the record, and the number of its rows."""
        return describe_frame(self.frame), self.frame.rows

    def _all_changes(self) -> dict[Hashable, Changes]:
        """Return the changes of all steps together, by column that is left: of the rows that are left."""
        found = {}
        for name in self.names:
            own = [counts.changed[name] for counts in self.counts if name in counts.changed]
            if len(own) == 1 and self._kept is None:
                found[name] = own[0]
            elif own:
                came = self._came[name]
                came = came if self._kept is None else selected_rows(came, self._kept)
                found[name] = changes(came, self.column(name))
        return found

    def done(self) -> Any:
        """Return the treated table, of the kind of the original table. Unchanged columns are the original columns."""
        names = [name for name in self.names if name in self._changed]
        self.counts[-1].changed = self._all_changes()
        with Workers() as workers:
            made = workers.run(MemoryColumn.replacement, [(self._columns[name], self._types[name]) for name in names])
        replaced = dict(zip(names, made, strict=True))
        return self.frame.replaced(self.names, replaced, self._kept)


def _encoded(name: Hashable, array: Any) -> MemoryColumn | None:
    with contextlib.suppress(ColumnTypeError):
        return MemoryColumn.encoded(name, array)
    return None


class WorkingFrame(Frame):
    """A table after the steps so far as a `Frame` of encoded columns, for functions that take frames."""

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
        """Return the order of categories by column, see `Frame`. A column with a value outside its order is omitted."""
        return {
            name: order
            for name, order in self._table.frame.orders().items()
            if name in self.names and self._table.has_only(name, order)
        }

    def arrow(self) -> pa.Table:
        columns = []
        for name in self.names:
            column = self._table.column(name)
            missing = column.codes == len(column.labels)
            columns.append(pa.DictionaryArray.from_arrays(pa.array(column.codes, mask=missing), column.labels))
        return pa.table(columns, names=[str(name) for name in self.names])
