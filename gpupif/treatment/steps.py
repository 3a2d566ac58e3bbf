"""Steps, which are treatments prepared for one table, and the chunks of rows to which steps are applied."""

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
from .coded_columns import Changes, CodedColumn, ColumnValues, changes, selected_rows

if TYPE_CHECKING:
    import pandas as pd

# The prefix of errors that name their treatment.
SAID = re.compile(r"treatment \d+ \(")


class RowFacts(ABC):
    """Named arrays with an item for each row of a table, in memory, on disk or by partition."""

    @abstractmethod
    def read(self, chunk: Chunk) -> Mapping[str, npt.NDArray[Any]]:
        """Return the arrays (rows of the chunk,) by name."""


@dataclass(frozen=True, kw_only=True)
class Step(ABC):
    """A treatment prepared for one table.

    A step declares the columns that it reads, writes and drops, and whether it removes rows. It may do nothing else.

    writes: names of the columns whose values the step may replace. It may read them, too.
    reads: names of the columns that the step reads without writing them.
    drops: names of the columns that the step drops.
    removes_rows: whether the step may remove rows.
    record: facts for the record, beside the plan and the counts of changes, ready for JSON.
    revealing: keys of `record` that a public record omits.
    """

    writes: Sequence[Hashable] = ()
    reads: Sequence[Hashable] = ()
    drops: Sequence[Hashable] = ()
    removes_rows: bool = False
    record: Mapping[str, Any] = field(default_factory=dict)
    revealing: Sequence[str] = ()

    @property
    def column(self) -> Hashable:
        """The column that the step writes, if it writes one column."""
        (name,) = self.writes
        return name

    @abstractmethod
    def apply(self, chunk: Chunk) -> None:
        """Treat the rows of a chunk. The result must not depend on the chunks, and the step must not change itself."""

    def values_after(self, values: ColumnValues) -> ColumnValues | None:
        """Return the values of the written column, from its values before; None if only the rows can tell."""
        return None

    def estimates(self, column: Hashable, values: ColumnValues) -> pd.DataFrame | None:
        """Estimate from the treated table how often each value of a column occurred before this step.

        values: values of the treated column. Returns None if this step did not randomise the column.
        """
        return None


@dataclass
class StepCounts:
    """The changes that a step made, or that all steps made together.

    changed: changed cells by column. dropped: names of dropped columns. rows_removed: number of removed rows.
    """

    changed: dict[Hashable, Changes] = field(default_factory=dict)
    dropped: Sequence[Hashable] = ()
    rows_removed: int = 0

    def add(self, changed: Mapping[Hashable, Changes], rows_removed: int) -> None:
        """Add the changes of more rows."""
        for name, more in changed.items():
            self.changed[name] = self.changed.get(name, Changes()) + more
        self.rows_removed += rows_removed


class Chunk:
    """Consecutive rows of a table, after the steps so far. Steps read and replace columns of the chunk.

    start: int. Number of the chunk's first row in the table, counted before the current step.
    rows: int. The number of rows that are left. rows_before: int. The number of original rows.
    names: list of column names. The columns that are left.
    kept: booleans (original rows,). Whether each row is left; None if all are left.
    replaced: set of column names. The columns that steps have replaced.
    types_before: Arrow type by column name. The original types of the columns that were read.
    facts: arrays by name, by key of the facts. Facts of the rows, for tables that hand facts to each chunk.
    """

    def __init__(
        self,
        names: Sequence[Hashable],
        rows: int,
        column: Callable[[Hashable], CodedColumn],
        facts: Mapping[str, Mapping[str, npt.NDArray[Any]]] | None = None,
    ) -> None:
        self.start, self.rows, self.rows_before = 0, rows, rows
        self.names = list(names)
        self.kept: npt.NDArray[np.bool_] | None = None
        self.replaced: set[Hashable] = set()
        self.types_before: dict[Hashable, pa.DataType] = {}
        self.facts = {} if facts is None else facts
        self._column_that_came = column
        self._columns: dict[Hashable, CodedColumn] = {}
        self._came: dict[Hashable, CodedColumn] = {}
        # The state of the current step: its columns before the step, and the rows that it keeps.
        self._step: Step | None = None
        self._before: dict[Hashable, CodedColumn] = {}
        self._left: npt.NDArray[np.bool_] | None = None

    def apply(self, step: Step, start: int = 0, said: str = "", counts: StepCounts | None = None) -> None:
        """Apply a step. said: prefix of its errors. counts: gets the changes added, unless it is None."""
        self.start, self._step, self._before, self._left = start, step, {}, None
        with errors_of(said):
            step.apply(self)
        self._step = None
        left = self._left
        if counts is not None:
            changed = {name: changes(before, self._columns[name]) for name, before in self._before.items()}
            counts.add(changed, 0 if left is None else int(np.count_nonzero(~left)))
        if left is not None:
            if self.kept is None:
                self.kept = left
            else:
                self.kept = self.kept.copy()
                self.kept[self.kept] = left
            self._columns = {name: selected_rows(column, left) for name, column in self._columns.items()}
            self.rows = int(np.count_nonzero(left))

    def __getitem__(self, name: Hashable) -> CodedColumn:
        if self._step is not None and name not in self._step.writes and name not in self._step.reads:
            raise AssertionError(f"{type(self._step).__name__} does not declare that it reads column {name!r}")
        if name not in self._columns:
            if name not in self.names:
                raise ColumnNotFoundError("plan", [name], self.names)
            column = self._column_that_came(name)
            self.types_before[name] = column.labels.type
            self._came[name] = column
            self._columns[name] = column if self.kept is None else selected_rows(column, self.kept)
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
        """Drop a column."""
        self.names.remove(name)
        self._columns.pop(name, None)
        self.replaced.discard(name)

    def keep_rows(self, left: npt.NDArray[np.bool_]) -> None:
        """Remove rows. left: booleans (rows,), False for the rows to remove. A step must call this method last."""
        if not left.all():
            self._left = left

    def changes(self, names: Sequence[Hashable]) -> dict[Hashable, Changes]:
        """Return the changes of all steps together in the rows that are left, by replaced column of some names."""
        return {
            name: changes(came if self.kept is None else selected_rows(came, self.kept), self._columns[name])
            for name, came in self._came.items()
            if name in self.replaced and name in names
        }

    def kept_rows(self) -> npt.NDArray[np.bool_]:
        """Return for each original row whether it is left: booleans (original rows,)."""
        return np.ones(self.rows_before, np.bool_) if self.kept is None else self.kept


@contextlib.contextmanager
def errors_of(said: str) -> Iterator[None]:
    """Prefix errors with their treatment, unless they have such a prefix. said: the prefix; empty for none."""
    try:
        yield
    except GpupifError as error:
        if not said or SAID.match(str(error)):
            raise
        raise name_treatment(error, said) from error


def name_treatment(error: GpupifError, said: str) -> GpupifError:
    """Return an error with a prefix such as "treatment 2 (noise)", without naming the treatment twice."""
    do = said.rpartition("(")[2].removesuffix(")")
    return error.about(said, f"{do}: ", f"{do} of ")
