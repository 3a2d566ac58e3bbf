"""A table whose rows are treated when they are read, chunk by chunk: what it answers, for every source of chunks.

A subclass says how chunks arrive: `LazyTable.each` calls a function for every treated chunk. All answers to treatments
are such functions, and the same for files and for Dask.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..encoding.merge import ValueCounts
from ..errors import ColumnTypeError
from ..rows.keys import code_type
from ..rows.threads import Workers
from .coded_columns import CodedColumn, ColumnValues, column_values, counts_of, with_other_labels
from .steps import Chunk, Step, StepCounts
from .treatment import TreatedTable

# The values of columns by name; a column whose values could not be counted is absent.
Counted = Mapping[Any, ValueCounts]


@dataclass
class Steps:
    """The steps so far of a table whose rows are treated when they are read.

    names: the columns that are left.
    types: Arrow type by column name. Types of the columns that steps write, equal in all chunks.
    applied: pairs of a step and the prefix of its errors, in order.
    """

    names: Sequence[Any]
    types: dict[Any, pa.DataType] = field(default_factory=dict)
    applied: list[tuple[Step, str]] = field(default_factory=list)

    def run(
        self,
        chunk: Chunk,
        starts: list[int],
        needed: Sequence[bool] | None = None,
        counts: Sequence[StepCounts] | None = None,
    ) -> None:
        """Treat a chunk.

        starts: the number of the chunk's first row, before each step and after the last. The rows of the chunk are
        added to it. needed: whether each step is needed. Default None: all. counts: get the changes added, by step,
        and last those of all steps together.
        """
        for number, (step, said) in enumerate(self.applied):
            start, starts[number] = starts[number], starts[number] + chunk.rows
            if needed is None or needed[number]:
                chunk.apply(step, start, said, None if counts is None else counts[number])
        starts[-1] += chunk.rows
        if counts is not None:
            # Steps that only drop columns need not run.
            counts[-1].add(chunk.changes(self.names), 0)

    def needed(self, columns: Sequence[Any], every: bool) -> tuple[list[bool], set[Any]]:
        """Return for each step whether it is needed to read some columns, and the original columns to read.

        every: whether all steps that write columns are needed, also if a later step drops these columns.
        """
        read: set[Any] = set(columns)
        needed: list[bool] = []
        for step, _ in reversed(self.applied):
            needed.append(step.removes_rows or bool(step.writes if every else read & set(step.writes)))
            read |= {*step.reads, *step.writes} if needed[-1] else set()
        return needed[::-1], read


class LazyTable(TreatedTable):
    """A table whose rows are treated when they are read. names: the columns of the original table."""

    def __init__(self, names: Sequence[Hashable]) -> None:
        self.counts = [StepCounts()]
        self.steps = Steps(list(names))
        # The values after the steps so far, of the columns that were counted.
        self._values: dict[Hashable, ColumnValues] = {}
        self._asked_together: Sequence[Hashable] = ()
        self._rows: int | None = None

    @abstractmethod
    def each(self, function: Callable[[Chunk], Any], columns: Sequence[Hashable]) -> Iterable[Any]:
        """Return function(chunk) for each treated chunk, in order. columns: the columns that the function reads."""

    @abstractmethod
    def count(self, names: Sequence[Hashable]) -> Counted:
        """Return the values of columns from one pass over the rows. The first column is needed, see `values_in`."""

    @abstractmethod
    def type_before(self, name: Hashable) -> pa.DataType:
        """Return the type of a column's values before the first step."""

    def check_memory(self, names: Sequence[Hashable], code_bytes: int, row_bytes: int) -> None:
        """Raise InputError if the codes of columns do not fit into memory. Arguments: bytes for each row."""

    @property
    def names(self) -> Sequence[Hashable]:  # type: ignore[override]
        """The names of the columns that are left."""
        return self.steps.names

    @property
    def rows(self) -> int:  # type: ignore[override]
        """The number of rows that are left. They are counted if the number is not known."""
        if self._rows is None:
            self._rows = sum(self.each(rows_in, []))
        return self._rows

    def type_of(self, name: Hashable) -> pa.DataType:
        return self.steps.types[name] if name in self.steps.types else self.type_before(name)

    def ask_together(self, names: Sequence[Hashable]) -> None:
        self._asked_together = names

    def apply(self, step: Step, said: str = "") -> None:
        """Add a step. The step is applied to columns without rows now, to find the types that it writes."""
        nothing = np.empty(0, np.uint8)
        chunk = Chunk(self.names, 0, lambda name: CodedColumn(nothing, pa.array([], self.type_of(name))))
        chunk.apply(step)
        kinds = {name: chunk[name].labels.type for name in step.writes}
        self.steps.types.update({name: kind for name, kind in kinds.items() if not pa.types.is_null(kind)})
        self.steps.applied.append((step, said))
        self.steps.names = list(chunk.names)
        self.counts.insert(-1, StepCounts(dropped=step.drops))
        if step.removes_rows:
            self._values, self._rows = {}, None
        for name in step.writes:
            values = self._values.pop(name, None)
            after = None if values is None else step.values_after(values)
            if after is not None:
                self._values[name] = after

    def values(self, name: Hashable) -> ColumnValues:
        if name not in self._values:
            more = [other for other in self._asked_together if other in self.names and other not in self._values]
            for column, counted in self.count(list(dict.fromkeys([name, *more]))).items():
                values = column_values(*counted)
                self._rows = int(values.counts.sum()) + values.missing
                empty = not len(values.labels)
                self._values[column] = replace(values, labels=pa.array([], self.type_of(column))) if empty else values
        return self._values[name]

    def codes(self, names: Sequence[Hashable], row_bytes: int = 0) -> list[CodedColumn]:
        labels = [self.values(name).labels for name in names]
        kinds = [np.dtype(code_type(len(own) + 1)) for own in labels]
        self.check_memory(names, sum(kind.itemsize for kind in kinds), row_bytes)
        codes = [np.empty(self.rows, kind) for kind in kinds]
        start = 0
        for parts in self.each(partial(codes_in, names, labels), names):
            for out, part in zip(codes, parts, strict=True):
                out[start : start + len(part)] = part
            start += len(parts[0]) if parts else 0
        return [CodedColumn(own, values) for own, values in zip(codes, labels, strict=True)]

    def kept_rows(self) -> npt.NDArray[np.bool_]:
        return np.concatenate([np.empty(0, np.bool_), *self.each(Chunk.kept_rows, [])])


def rows_in(chunk: Chunk) -> int:
    """Return the number of rows that are left of a chunk."""
    return chunk.rows


def codes_in(names: Sequence[Hashable], labels: Sequence[pa.Array], chunk: Chunk) -> list[npt.NDArray[Any]]:
    """Return the codes of columns of a chunk. labels: by column, the labels of all rows."""
    return [with_other_labels(chunk[name], own).codes for name, own in zip(names, labels, strict=True)]


def values_in(names: Sequence[Hashable], needed: Hashable, chunk: Chunk) -> Counted:
    """Return the values of columns of a chunk, and how often each occurs.

    needed: the column that raises ColumnTypeError if its values are no categories. Other such columns are absent.
    """
    with Workers() as workers:
        counted = workers.run(_values_of, [(chunk, name, name == needed) for name in names])
    return {name: values for name, values in zip(names, counted, strict=True) if values is not None}


def _values_of(chunk: Chunk, name: Hashable, is_needed: bool) -> ValueCounts | None:
    try:
        column = chunk[name]
    except ColumnTypeError:
        if is_needed:
            raise
        return None
    counts = counts_of(column)
    used = counts[:-1] > 0
    return ValueCounts(column.labels.filter(pa.array(used)), counts[:-1][used], int(counts[-1]))
