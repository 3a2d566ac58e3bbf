"""What a treatment is, and what it works on: a table treated so far, piece by piece, wherever its rows lie.

A treatment is prepared once, with what it has to know of the whole table (values, scores); the step that this makes is
then applied to each piece of rows, in any order and any cut, with the same result. So no treatment knows in which way
the table is held, and no way to hold one knows a treatment.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpupif.kernels import codes as kernels

from ..encoding.column import merge_labels
from ..encoding.plain_values import plain_labels
from ..errors import InputError
from ..rows.keys import code_type as code_type
from ..rows.threads import Workers
from ..utils.arrays import read_only

if TYPE_CHECKING:
    import pandas as pd

    from ..attack.arguments import Arguments
    from ..hierarchies.base import Hierarchy
    from .randomness.key import Key


@dataclass(frozen=True)
class PieceColumn:
    """A column of some rows: per row the number of its value among the labels, `len(labels)` where it is missing.

    labels: values, all different, none of them missing; not all of them need occur, and their order means nothing.
    Those of a table that comes in are of plain types, whatever kind of table it is: int64 (uint64 beyond), float64,
    string, bool, date32, timestamps, ... What a step puts in their place has one type in all pieces.
    """

    codes: npt.NDArray[Any]
    labels: pa.Array


@dataclass(frozen=True)
class ColumnValues:
    """The values of a column of a whole table, ascending (the same order whatever the kind of table), and their rows.

    counts: by value. missing: rows without one.
    """

    labels: pa.Array
    counts: npt.NDArray[np.int64]
    missing: int


class RowFacts(ABC):
    """Arrays with a number for each row of a table, by name, wherever they lie; read by `Piece.facts`."""

    names: Sequence[str]


class Piece(ABC):
    """Some rows of a table that follow each other, as treated so far. start: the place of the first in the table."""

    start: int
    rows: int

    @property
    @abstractmethod
    def names(self) -> Sequence[Hashable]:
        """The columns that there are still."""

    @abstractmethod
    def __getitem__(self, name: Hashable) -> PieceColumn:
        """A column."""

    @abstractmethod
    def __setitem__(self, name: Hashable, column: PieceColumn) -> None:
        """Put another column in the place of one that is there."""

    @abstractmethod
    def drop(self, name: Hashable) -> None:
        """Take a column away."""

    @abstractmethod
    def keep_rows(self, kept: npt.NDArray[np.bool_]) -> None:
        """Take all rows but those kept away; the last that a step does to a piece."""

    @abstractmethod
    def facts(self, facts: RowFacts) -> Mapping[str, npt.NDArray[Any]]:
        """Those of these rows, by name."""


class WorkingTable(ABC):
    """A table as treated so far. names: its columns; rows: how many it has.

    index: row labels beside the columns, which no treatment changes; None where the kind has none.
    """

    names: Sequence[Hashable]
    rows: int
    index: Any = None

    @abstractmethod
    def values(self, name: Hashable) -> ColumnValues:
        """The values of a column, and how often each occurs."""

    @abstractmethod
    def codes(self, names: Sequence[Hashable], row_bytes: int = 0) -> list[PieceColumn]:
        """Columns with the codes of all rows, labels as of `values`; raises InputError where they do not fit into the
        memory that `gpupif.config` allows. row_bytes: what is made of them takes beside, of each row.
        """

    @abstractmethod
    def facts_of(self, arrays: Mapping[str, npt.NDArray[Any]]) -> RowFacts:
        """Facts from arrays over all rows, in memory."""

    @abstractmethod
    def scores(
        self, arguments: Arguments, make: Callable[[Mapping[str, npt.NDArray[Any]]], Mapping[str, npt.NDArray[Any]]]
    ) -> RowFacts:
        """Facts that `make` makes of the scores of some rows, by the names that files of scores have.

        The table is scored as it is treated so far, as `gpupif.score` of it; `make` is called piece by piece.
        """


@dataclass(frozen=True)
class Tools:
    """What treatments are prepared with.

    hierarchies: by column. key: of what is random, None where the plan has none. number: the place of the treatment in
    the plan, from 0, so that no two of them draw the same.
    """

    hierarchies: Mapping[Hashable, Hierarchy] = field(default_factory=dict)
    key: Key | None = None
    number: int = 0


class Step(ABC):
    """A treatment prepared for one table."""

    @abstractmethod
    def apply(self, piece: Piece) -> None:
        """Treat some rows; must not depend on how the table is cut, nor change this object."""

    def record(self) -> dict[str, Any]:
        """What the record says of it beside the plan and what was changed, ready for JSON."""
        return {}

    def revealing(self) -> Sequence[str]:
        """Keys of `record` that a public record leaves out."""
        return ()

    def estimates(self, column: Hashable, values: ColumnValues) -> pd.DataFrame | None:
        """How often each value of a column stood in the table before this step, estimated from the treated table.

        values: of the treated column. None where this step says nothing of the column.
        """
        return None


@dataclass(frozen=True)
class Treatment(ABC):
    """One thing done to a table. Its fields are the keys that it has in a plan, with their defaults.

    The types of fields are what a plan may have there, and have to be known when the class is made.

    do: its word in a plan. is_random: whether it draws by the key. reads_values: whether it looks at what columns hold.
    files: keys that may be the path of a file, which begins at the plan's folder. value_lists: keys that list values of
    columns, which public records leave out. Fields that name columns of the table tell which it looks at; `named` is
    the place to say so where they do not.
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
    def prepare(self, table: WorkingTable, tools: Tools) -> Step:
        """The step for this table; raises InputError for what does not fit it."""

    def named(self) -> Sequence[Hashable]:
        """The columns that it must find in the table: `column` and `columns`."""
        found: list[Hashable] = []
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name == "column" and value is not None:
                found.append(value)
            elif one.name == "columns" and value is not None:
                found += value
        return found


# Makes of different values, none missing, what stands in their place, null for a missing one; in the same order.
Mapper = Callable[[pa.Array], pa.Array]


@dataclass(frozen=True)
class ValueMap(Treatment):
    """A treatment that puts a value in the place of another, whatever else the row has. column: whose values."""

    column: Hashable

    @abstractmethod
    def mapper(self, table: WorkingTable, tools: Tools) -> Mapper:
        """What is to be done to values; of the whole table it may ask how often each occurs. Raises InputError."""

    def prepare(self, table: WorkingTable, tools: Tools) -> ValueMapStep:
        return ValueMapStep(self.column, self.mapper(table, tools), self.of_missing(tools))

    def of_missing(self, tools: Tools) -> str | None:
        """What stands in the place of missing values; None where they stay missing."""
        return None


@dataclass(frozen=True)
class ValueMapStep(Step):
    """A value map prepared."""

    column: Hashable
    mapper: Mapper
    of_missing: str | None = None

    def apply(self, piece: Piece) -> None:
        column = piece[self.column]
        try:
            labels = self.mapper(column.labels)
        except InputError:
            # Of a value that is in no row any more, perhaps.
            column = _of_values_that_occur(column)
            labels = self.mapper(column.labels)
        piece[self.column] = relabeled(column, labels, self.of_missing)


def _of_values_that_occur(column: PieceColumn) -> PieceColumn:
    occurs = np.bincount(column.codes, minlength=len(column.labels) + 1) > 0
    occurs[-1] = True
    new_codes = (np.cumsum(occurs) - 1).astype(code_type(len(occurs)))
    return PieceColumn(_replaced(column.codes, new_codes), column.labels.filter(pa.array(occurs[:-1])))


def relabeled(column: PieceColumn, labels: pa.Array, of_missing: str | None = None) -> PieceColumn:
    """The column with other labels, some of which may be equal to each other, or null: then the value is missing.

    of_missing: in place of missing values; the labels are texts then.
    """
    if of_missing is not None:
        labels = pa.concat_arrays([labels, pa.array([of_missing], labels.type)])
    elif labels is column.labels:
        return column
    elif pa.types.is_null(labels.type) or not len(labels):
        return PieceColumn(np.zeros(len(column.codes), np.uint8), labels[:0])
    different, number = merge_labels("", pa.chunked_array([plain_labels(labels)]))
    if len(different) == len(column.labels) and of_missing is None:
        # Each label has one of its own, in their order.
        return PieceColumn(column.codes, different)
    missing = len(different)
    new_codes = np.append(np.where(number < 0, missing, number), [missing] * (of_missing is None))
    return PieceColumn(_replaced(column.codes, new_codes.astype(code_type(missing + 1))), different)


def _replaced(codes: npt.NDArray[Any], new_codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """For each row new_codes[code], by all threads."""
    codes, found = read_only(codes), np.empty(len(codes), new_codes.dtype)
    with Workers() as workers:
        workers.run(
            lambda start, stop: kernels.recode(codes[start:stop], 0, read_only(new_codes), found[start:stop]),
            workers.ranges(len(codes)),
        )
    return found
