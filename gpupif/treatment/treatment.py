"""The base classes of treatments, and of the tables that treatments are prepared for.

`Treatment.prepare` is called once, and may ask the table for facts about all rows: values, codes or scores. The
resulting step is then applied to chunks of rows. The result depends neither on the order nor on the size of the chunks.
Treatments use only the methods of `TreatedTable`, and a `TreatedTable` uses only the methods of `Step`. A new treatment
or a new kind of table is therefore written once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import InputError
from .coded_columns import CodedColumn, ColumnValues, column_values, relabeled, with_used_labels
from .field_checks import checks_of
from .labels import Labelled, explained
from .steps import Chunk, RowFacts, Step, StepCounts

if TYPE_CHECKING:
    from ..attack.arguments import Arguments
    from ..hierarchies.hierarchy import Hierarchy
    from .random.draws import Draws
    from .random.key import Key


class TreatedTable(ABC):
    """A table after the steps so far, of any kind. A step is applied at once, or when rows are read.

    names: list of column names. The columns that are left.
    rows: int. The number of rows that are left.
    index: row labels beside the columns, which no treatment changes; None if the kind of table has no index.
    counts: list of `StepCounts`, an item for each step, and last the changes of all steps together, from the original
        value of a cell to its last one, in the rows that are left. Complete when all rows were treated.
    """

    names: Sequence[Hashable]
    rows: int
    index: Any = None
    counts: list[StepCounts]

    @abstractmethod
    def type_of(self, name: Hashable) -> pa.DataType:
        """Return the type of a column's values."""

    @abstractmethod
    def values(self, name: Hashable) -> ColumnValues:
        """Return the distinct values of a column, and the number of rows with each value."""

    @abstractmethod
    def codes(self, names: Sequence[Hashable], row_bytes: int = 0) -> list[CodedColumn]:
        """Return the codes of all rows of some columns, with the labels of `values`.

        row_bytes: bytes of memory that the caller needs for each row beside the codes. A table of files raises
        InputError if both exceed the memory limit of `gpupif.config`.
        """

    @abstractmethod
    def facts_of(self, arrays: Mapping[str, npt.NDArray[Any]]) -> RowFacts:
        """Return the facts that are given as arrays (rows,) in memory."""

    @abstractmethod
    def scores(
        self, arguments: Arguments, make: Callable[[Mapping[str, npt.NDArray[Any]]], Mapping[str, npt.NDArray[Any]]]
    ) -> RowFacts:
        """Score the table after the steps so far, and return the facts that `make` computes from the scores.

        make: called for each chunk with the scores, arrays (rows of the chunk,) by their name in a file of scores.
        """

    @abstractmethod
    def apply(self, step: Step, said: str = "") -> None:
        """Apply a step to all rows. said: prefix of errors that are raised later, when rows are read."""

    @abstractmethod
    def kept_rows(self) -> npt.NDArray[np.bool_]:
        """Return for each row of the original table whether it is left: booleans (rows,)."""

    def expect(self, names: Sequence[Hashable]) -> None:  # noqa: B027
        """Prepare for treatments that read these columns, before the first step."""

    def ask_together(self, names: Sequence[Hashable]) -> None:  # noqa: B027
        """Note that `values` will soon be called for each of these columns: one pass over the rows can serve all."""


@dataclass(frozen=True)
class Tools:
    """The arguments of `Treatment.prepare` that come from the plan and its run.

    hierarchies: dictionary by column name. Hierarchies of the plan.
    key: secret of random values. None if the plan has no random treatment.
    number: position of the treatment in the plan, from 0. It keeps the random numbers of two treatments apart.
    labelled: dictionary by column name. Columns that have labels of treatments before.
    """

    hierarchies: Mapping[Hashable, Hierarchy] = field(default_factory=dict)
    key: Key | None = None
    number: int = 0
    labelled: Mapping[Hashable, Labelled] = field(default_factory=dict)

    def draws(self, do: str, column: Hashable, purpose: str = "") -> Draws:
        """Return the random numbers of a treatment for a column; raises InputError if there is no key."""
        if self.key is None:
            raise InputError(
                f"key: {do} of column {column!r} draws by a secret key, and none was given. Give key= "
                "(gpupif.treatments.Key.new(), or the path of a file with 32 bytes)."
            )
        return self.key.draws(self.number, column, purpose)


@dataclass(frozen=True)
class PlanPart(ABC):
    """A part of a plan. The fields are its keys, with their defaults.

    The type of a field is the type that its key may have in a plan: it must be importable, not only for type checkers.
    `Annotated` adds checks of the value, see `field_checks`. A list of columns has each name once.

    do: text. The word for the part.
    files: names of fields that may be the path of a file. A relative path begins at the plan's folder.
    """

    do: ClassVar[str]
    files: ClassVar[Sequence[str]] = ()

    @property
    def own_labels(self) -> Sequence[str]:
        """The texts that the treatment puts in place of some numbers, which stay numbers otherwise."""
        return ()

    @property
    def keeps_numbers(self) -> bool:
        """True if the treatment writes no other numbers than those of its columns."""
        return False

    def reads_numbers(self, hierarchies: Mapping[Hashable, Hierarchy]) -> bool:
        """Return whether the treatment maps the numbers of its column, and leaves the labels of treatments before."""
        return False

    @property
    def said(self) -> str:
        """The words that begin errors: the treatment, and its column if it has a single one."""
        column = getattr(self, "column", None)
        return self.do if column is None else f"{self.do}: column {column!r}"

    def check(self) -> None:
        """Raise InputError for fields that no table allows. Called when a plan is made or read.

        The types of the fields were checked before. Here the fields get the checks that they declare, unless they are
        None. A subclass adds checks of fields that depend on each other.
        """
        for name, check in checks_of(type(self)):
            if getattr(self, name) is not None:
                check(f"{self.said}: {name}", getattr(self, name))

    def named(self) -> Sequence[Hashable]:
        """Return the columns that the table must have: here the fields `column` and `columns`."""
        values = {own.name: getattr(self, own.name) for own in fields(self)}
        column, columns = values.get("column"), values.get("columns")
        return [*([] if column is None else [column]), *([] if columns is None else columns)]


@dataclass(frozen=True)
class Treatment(PlanPart):
    """A treatment of a table.

    value_lists: names of fields that list values of columns. Public records omit them.
    is_random: whether the treatment draws random numbers by the key.
    reads_values: whether the treatment reads the values of columns.
    """

    value_lists: ClassVar[Sequence[str]] = ()
    is_random: ClassVar[bool] = False
    reads_values: ClassVar[bool] = True

    def check_hierarchies(self, hierarchies: Mapping[Hashable, Hierarchy]) -> None:
        """Raise InputError for fields that do not fit the hierarchies of the plan, by column. Called after `check`."""

    @abstractmethod
    def prepare(self, table: TreatedTable, tools: Tools) -> Step:
        """Return the step for this table; raises InputError if the treatment does not fit the table."""


# A function of distinct values, none missing. It returns the new value of each, in the same order, null if missing.
Mapper = Callable[[pa.Array], pa.Array]


@dataclass(frozen=True)
class ValueMap(Treatment):
    """A treatment that replaces each value of a column by a function of the value alone. column: name of the column."""

    column: Hashable

    @abstractmethod
    def mapper(self, table: TreatedTable, tools: Tools) -> Mapper:
        """Return the function of values. The table tells how often each value occurs. Raises InputError."""

    def prepare(self, table: TreatedTable, tools: Tools) -> ValueMapStep:
        mapper = self.mapper(table, tools)
        if self.reads_numbers(tools.hierarchies) and self.column in tools.labelled:
            mapper = tools.labelled[self.column].beside(mapper, self.missing_value(tools))

        def explaining(values: pa.Array) -> pa.Array:
            with explained(tools.labelled, self.do):
                return mapper(values)

        return ValueMapStep(explaining, self.missing_value(tools), writes=[self.column])

    def missing_value(self, tools: Tools) -> str | None:
        """Return the value that replaces missing values; None if they stay missing."""
        return None


@dataclass(frozen=True)
class NumberMap(ValueMap):
    """A value map of numbers, which leaves the labels of treatments before."""

    def reads_numbers(self, hierarchies: Mapping[Hashable, Hierarchy]) -> bool:
        return True


@dataclass(frozen=True)
class ValueMapStep(Step):
    """A prepared value map.

    mapper: see `Mapper`. missing_value: the text that replaces missing values; None if they stay missing.
    """

    mapper: Mapper
    missing_value: str | None = None

    def mapped(self, column: CodedColumn) -> CodedColumn:
        """Return a column with the mapped values."""
        try:
            labels = self.mapper(column.labels)
        except InputError:
            # The refused value may be a label that no row has any more: a step before may have replaced it.
            column = with_used_labels(column)
            labels = self.mapper(column.labels)
        return relabeled(column, labels, self.missing_value)

    def apply(self, chunk: Chunk) -> None:
        chunk[self.column] = self.mapped(chunk[self.column])

    def values_after(self, values: ColumnValues) -> ColumnValues:
        column = self.mapped(CodedColumn(np.arange(len(values.labels) + 1), values.labels))
        counts = np.zeros(len(column.labels) + 1, np.int64)
        np.add.at(counts, column.codes, np.append(values.counts, values.missing))
        return column_values(column.labels, counts[:-1], int(counts[-1]))
