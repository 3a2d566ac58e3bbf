"""The treatments of a plan, and what they ask of the table that they are prepared for.

A treatment is prepared once, with what it has to know of the whole table (values, codes, scores). The step that this
makes is then applied to chunks of rows, in any order and any cut, with the same result. So no treatment knows in which
way the table is held, and no way to hold one knows a treatment.
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
from .steps import Chunk, RowFacts, Step, StepCounts

if TYPE_CHECKING:
    from ..attack.arguments import Arguments
    from ..hierarchies.hierarchy import Hierarchy
    from .random.draws import Draws
    from .random.key import Key


class TreatedTable(ABC):
    """A table as treated so far, whatever holds it. Steps are applied at once, or when its rows are read.

    names: its columns; rows: how many it has. index: row labels beside the columns, which no treatment changes; None if
    the kind of table has none. counts: what each step did, as far as that is known.
    """

    names: Sequence[Hashable]
    rows: int
    index: Any = None
    counts: list[StepCounts]

    @abstractmethod
    def values(self, name: Hashable) -> ColumnValues:
        """Return the values of a column, and how often each occurs."""

    @abstractmethod
    def codes(self, names: Sequence[Hashable], row_bytes: int = 0) -> list[CodedColumn]:
        """Return columns with the codes of all rows, labels as of `values`.

        row_bytes: memory that the caller takes for each row beside the codes. Raises InputError if both do not fit into
        the memory that `gpupif.config` allows.
        """

    @abstractmethod
    def facts_of(self, arrays: Mapping[str, npt.NDArray[Any]]) -> RowFacts:
        """Return facts from arrays over all rows, in memory."""

    @abstractmethod
    def scores(
        self, arguments: Arguments, make: Callable[[Mapping[str, npt.NDArray[Any]]], Mapping[str, npt.NDArray[Any]]]
    ) -> RowFacts:
        """Return facts that `make` makes of the scores of rows, by the names that files of scores have.

        The table is scored as it is treated so far, as `gpupif.score` does it; `make` is called chunk by chunk.
        """

    @abstractmethod
    def apply(self, step: Step, said: str = "") -> None:
        """Have all rows treated. said: begins errors that come later, when rows are read."""

    @abstractmethod
    def kept_rows(self) -> npt.NDArray[np.bool_]:
        """Return by row that came in whether it is still there."""

    def expect(self, names: Sequence[Hashable]) -> None:  # noqa: B027
        """Prepare for treatments that look at these columns."""

    def ask_together(self, names: Sequence[Hashable]) -> None:  # noqa: B027
        """Note that the values of these columns are asked for one soon after the other."""


@dataclass(frozen=True)
class Tools:
    """What treatments are prepared with.

    hierarchies: by column. key: the secret of what is random, None if the plan has nothing random. number: the place of
    the treatment in the plan, from 0, so that no two treatments draw the same.
    """

    hierarchies: Mapping[Hashable, Hierarchy] = field(default_factory=dict)
    key: Key | None = None
    number: int = 0

    def draws(self, do: str, column: Hashable, purpose: str = "") -> Draws:
        """Return the random numbers of a treatment; raises InputError if there is no key to draw them by."""
        if self.key is None:
            raise InputError(
                f"key: {do} of column {column!r} draws by a secret key, and none was given. Give key= "
                "(gpupif.treatments.Key.new(), or the path of a file with 32 bytes), or --key-file."
            )
        return self.key.draws(self.number, column, purpose)


@dataclass(frozen=True)
class Treatment(ABC):
    """One thing done to a table. Its fields are the keys that it has in a plan, with their defaults.

    The types of fields are what a plan may have there, and have to be known when the class is made.

    do: its word in a plan. is_random: whether it draws by the key. reads_values: whether it looks at what columns hold.
    files: keys that may be the path of a file, which begins at the plan's folder. value_lists: keys that list values of
    columns, which public records leave out.
    """

    do: ClassVar[str]
    files: ClassVar[Sequence[str]] = ()
    value_lists: ClassVar[Sequence[str]] = ()
    is_random: ClassVar[bool] = False
    reads_values: ClassVar[bool] = True

    @abstractmethod
    def check(self) -> None:
        """Raise InputError for what is wrong whatever the table: called when a plan is made or read."""

    def check_hierarchies(self, hierarchies: Mapping[Hashable, Hierarchy]) -> None:  # noqa: B027
        """Raise InputError for what does not go with the hierarchies of the plan, by column; called likewise."""

    @abstractmethod
    def prepare(self, table: TreatedTable, tools: Tools) -> Step:
        """Return the step for this table; raises InputError for what does not fit the table."""

    def named(self) -> Sequence[Hashable]:
        """Return the columns that the table must have: those of the fields `column` and `columns`."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        column, columns = values.get("column"), values.get("columns")
        return [*([] if column is None else [column]), *([] if columns is None else columns)]


# Makes of distinct values, none missing, what is put in their place, null for a missing value; in the same order.
Mapper = Callable[[pa.Array], pa.Array]


@dataclass(frozen=True)
class ValueMap(Treatment):
    """A treatment that puts a value in the place of another, whatever else the row has. column: whose values."""

    column: Hashable

    @abstractmethod
    def mapper(self, table: TreatedTable, tools: Tools) -> Mapper:
        """Return what is to be done to values; it may ask the table how often each value occurs. Raises InputError."""

    def prepare(self, table: TreatedTable, tools: Tools) -> ValueMapStep:
        return ValueMapStep(self.column, self.mapper(table, tools), self.of_missing(tools))

    def of_missing(self, tools: Tools) -> str | None:
        """Return the value that missing values get; None if they stay missing."""
        return None


@dataclass(frozen=True)
class ValueMapStep(Step):
    """A value map prepared."""

    column: Hashable
    mapper: Mapper
    of_missing: str | None = None

    @property
    def writes(self) -> Sequence[Hashable]:
        return (self.column,)

    def mapped(self, column: CodedColumn) -> CodedColumn:
        """Return a column with its values mapped."""
        try:
            labels = self.mapper(column.labels)
        except InputError:
            # Perhaps because of a value that no row has any more.
            column = with_used_labels(column)
            labels = self.mapper(column.labels)
        return relabeled(column, labels, self.of_missing)

    def apply(self, chunk: Chunk) -> None:
        chunk[self.column] = self.mapped(chunk[self.column])

    def values_after(self, values: ColumnValues) -> ColumnValues:
        column = self.mapped(CodedColumn(np.arange(len(values.labels) + 1), values.labels))
        counts = np.zeros(len(column.labels) + 1, np.int64)
        np.add.at(counts, column.codes, np.append(values.counts, values.missing))
        return column_values(column.labels, counts[:-1], int(counts[-1]))
