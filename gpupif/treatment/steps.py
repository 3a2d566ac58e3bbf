"""Steps, which are treatments prepared for one table, and the chunks of rows that they are applied to."""

from __future__ import annotations

import contextlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import ColumnNotFoundError, GpupifError
from .coded_columns import Changes, CodedColumn, ColumnValues, changes, some_rows

if TYPE_CHECKING:
    import pandas as pd

# How errors begin that say of which treatment they are.
SAID = re.compile(r"treatment \d+ \(")


class RowFacts(ABC):
    """Arrays with a number for each row of a table, by name, wherever the table is."""

    @abstractmethod
    def read(self, chunk: Chunk) -> Mapping[str, npt.NDArray[Any]]:
        """Return the arrays of the rows of a chunk, by name."""


class Step(ABC):
    """A treatment prepared for one table. It declares what it reads, writes and removes: it may do nothing else."""

    @property
    def writes(self) -> Sequence[Hashable]:
        """The columns in which the step may put other values; it may read them, too."""
        return ()

    @property
    def reads(self) -> Sequence[Hashable]:
        """The other columns whose values the step reads."""
        return ()

    @property
    def drops(self) -> Sequence[Hashable]:
        """The columns that the step takes away."""
        return ()

    @property
    def removes_rows(self) -> bool:
        """Whether the step may take rows away."""
        return False

    @abstractmethod
    def apply(self, chunk: Chunk) -> None:
        """Treat some rows; the result must not depend on how the table is cut, and this object must not change."""

    def values_after(self, values: ColumnValues) -> ColumnValues | None:
        """Return the values of the column that the step writes, from those before; None if rows have to be read."""
        return None

    def record(self) -> dict[str, Any]:
        """Return what the record says of the step beside the plan and the counts of changes, ready for JSON."""
        return {}

    def revealing(self) -> Sequence[str]:
        """Return the keys of `record` that a public record leaves out."""
        return ()

    def estimates(self, column: Hashable, values: ColumnValues) -> pd.DataFrame | None:
        """Estimate from the treated table how often each value of a column occurred before this step.

        values: of the treated column. Returns None if this step says nothing of the column.
        """
        return None


@dataclass
class StepCounts:
    """Counts of what a step did to rows: changed cells by column, dropped columns, rows that were taken away."""

    changed: dict[Hashable, Changes] = field(default_factory=dict)
    dropped: Sequence[Hashable] = ()
    rows_removed: int = 0

    def add(self, changed: Mapping[Hashable, Changes], rows_removed: int) -> None:
        """Add the counts of more rows."""
        for name, more in changed.items():
            self.changed[name] = self.changed.get(name, Changes()) + more
        self.rows_removed += rows_removed


class Chunk:
    """Rows of a table that follow each other, as treated so far. Steps read and replace their columns.

    start: place of the first row in the table, as the step at work finds the table. rows: how many rows are left.
    names: the columns that are left. kept: by row that came whether it is left; None: all are. replaced: the columns
    that steps have replaced. types_before: by column that was read the type of the values that came. facts: facts of
    these rows by key, for tables that hand them to each chunk.
    """

    def __init__(
        self,
        names: Sequence[Hashable],
        rows: int,
        column: Callable[[Hashable], CodedColumn],
        facts: Mapping[str, Mapping[str, npt.NDArray[Any]]] | None = None,
    ) -> None:
        self.start, self.rows = 0, rows
        self.names = list(names)
        self.kept: npt.NDArray[np.bool_] | None = None
        self.replaced: set[Hashable] = set()
        self.types_before: dict[Hashable, pa.DataType] = {}
        self.facts = {} if facts is None else facts
        self._column_that_came = column
        self._columns: dict[Hashable, CodedColumn] = {}
        # Of the step at work: columns before it, and the rows that it leaves.
        self._step: Step | None = None
        self._before: dict[Hashable, CodedColumn] = {}
        self._left: npt.NDArray[np.bool_] | None = None

    def apply(self, step: Step, start: int = 0, said: str = "", counts: StepCounts | None = None) -> None:
        """Apply a step. said: begins its errors. counts: is added to, unless it is None."""
        self.start, self._step, self._before, self._left = start, step, {}, None
        with errors_of(said):
            step.apply(self)
        self._step = None
        left = self._left
        if counts is not None:
            found = {name: changes(before, self._columns[name]) for name, before in self._before.items()}
            counts.add(found, 0 if left is None else int(np.count_nonzero(~left)))
        if left is not None:
            if self.kept is None:
                self.kept = left
            else:
                self.kept = self.kept.copy()
                self.kept[self.kept] = left
            self._columns = {name: some_rows(column, left) for name, column in self._columns.items()}
            self.rows = int(np.count_nonzero(left))

    def __getitem__(self, name: Hashable) -> CodedColumn:
        if self._step is not None and name not in self._step.writes and name not in self._step.reads:
            raise AssertionError(f"{type(self._step).__name__} does not declare that it reads column {name!r}")
        if name not in self._columns:
            if name not in self.names:
                raise ColumnNotFoundError("plan", [name], self.names)
            column = self._column_that_came(name)
            self.types_before[name] = column.labels.type
            self._columns[name] = column if self.kept is None else some_rows(column, self.kept)
        return self._columns[name]

    def __setitem__(self, name: Hashable, column: CodedColumn) -> None:
        before = self[name]
        if self._step is not None and name not in self._step.writes:
            raise AssertionError(f"{type(self._step).__name__} does not declare that it writes column {name!r}")
        if len(column.codes) != len(before.codes):
            raise AssertionError(f"column {name!r}: {len(column.codes)} rows in place of {len(before.codes)}")
        self._before.setdefault(name, before)
        self._columns[name] = column
        self.replaced.add(name)

    def drop(self, name: Hashable) -> None:
        """Take a column away."""
        self.names.remove(name)
        self._columns.pop(name, None)
        self.replaced.discard(name)

    def keep_rows(self, left: npt.NDArray[np.bool_]) -> None:
        """Take all rows away but these; the last thing that a step does to a chunk."""
        if not left.all():
            self._left = left

    def kept_rows(self, rows: int) -> npt.NDArray[np.bool_]:
        """Return by row that came whether it is left. rows: how many came."""
        return np.ones(rows, np.bool_) if self.kept is None else self.kept


@contextlib.contextmanager
def errors_of(said: str) -> Iterator[None]:
    """Say of errors that they are of a treatment, unless they say already of which. said: nothing if empty."""
    try:
        yield
    except GpupifError as error:
        if not said or SAID.match(str(error)):
            raise
        raise of_treatment(error, said) from error


def of_treatment(error: GpupifError, said: str) -> GpupifError:
    """Return an error said of a treatment, such as "treatment 2 (noise)", whose word is not said again."""
    do = said.rpartition("(")[2].removesuffix(")")
    return error.about(said, f"{do}: ", f"{do} of ")


class Steps:
    """The steps of a table whose rows are treated when they are read.

    names: the columns that are left. types: the types of values of columns that steps write, the same in all chunks.
    values: of columns that were counted. type_before: gives the type of the values of a column that came.
    """

    def __init__(self, names: Sequence[Any], type_before: Callable[[Any], pa.DataType]) -> None:
        self.names = list(names)
        self.types: dict[Any, pa.DataType] = {}
        self.values: dict[Any, ColumnValues] = {}
        # Each with how its errors begin.
        self.applied: list[tuple[Step, str]] = []
        self._type_before = type_before

    def add(self, step: Step, said: str) -> None:
        """Add a step. The types of what it writes are those that it gives to columns without rows."""
        nothing = np.empty(0, np.uint8)
        chunk = Chunk(self.names, 0, lambda name: CodedColumn(nothing, pa.array([], self.type_of(name))))
        chunk.apply(step)
        for name in step.writes:
            kind = chunk[name].labels.type
            if not pa.types.is_null(kind):
                self.types[name] = kind
        self.applied.append((step, said))
        self.names = list(chunk.names)
        if step.removes_rows:
            self.values = {}
        for name in step.writes:
            values = self.values.pop(name, None)
            after = None if values is None else step.values_after(values)
            if after is not None:
                self.values[name] = after

    def type_of(self, name: Any) -> pa.DataType:
        """Return the type of the values of a column as it is treated so far."""
        return self.types[name] if name in self.types else self._type_before(name)

    def typed(self, name: Any, labels: pa.Array) -> pa.Array:
        """Return the labels of a column in the type that it has also if no row has a value."""
        return labels if len(labels) else labels.cast(self.type_of(name))

    def needed(self, columns: Sequence[Any], every: bool) -> tuple[list[bool], set[Any]]:
        """Return for each step whether some columns of the treated table need it, and the columns to be read for them.

        every: all steps that write columns are needed, also if these columns go later.
        """
        read: set[Any] = set(columns)
        needed: list[bool] = []
        for step, _ in reversed(self.applied):
            needed.append(step.removes_rows or bool(step.writes if every else read & set(step.writes)))
            read |= {*step.reads, *step.writes} if needed[-1] else set()
        return needed[::-1], read
