"""Steps that are applied when rows are read: what each looks at and changes, seen in a sample of the rows."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import GpupifError
from .base import PieceColumn, Step
from .columns import piece_column, some_rows
from .plain_piece import PlainPiece

# Rows by which it is seen what a step does to which columns.
SAMPLE_ROWS = 1 << 10
# How errors begin that say of which treatment they are.
SAID = re.compile(r"treatment \d+ \(")


class PieceColumns:
    """The columns of some rows, encoded when they are asked for.

    given: makes a column as it came, with all rows that there were. kinds: the types of values that columns have in the
    whole table, of those that may have none here. kept: a mask of the rows that are left, None for all.
    """

    def __init__(self, given: Callable[[Hashable], Any], kinds: Mapping[Hashable, pa.DataType] | None = None) -> None:
        self.given = given
        self.kinds = {} if kinds is None else kinds
        self.kept: npt.NDArray[np.bool_] | None = None
        self.now: dict[Hashable, PieceColumn] = {}
        self.replaced: set[Hashable] = set()

    def find(self, name: Hashable) -> PieceColumn:
        """A column as it is now."""
        if name not in self.now:
            column = self.before(name)
            self.now[name] = column if self.kept is None else some_rows(column, self.kept)
        return self.now[name]

    def before(self, name: Hashable) -> PieceColumn:
        """A column as it came."""
        column = piece_column(name, self.given(name))
        if pa.types.is_null(column.labels.type) and name in self.kinds:
            return PieceColumn(column.codes, pa.array([], self.kinds[name]))
        return column

    def take(self, piece: PlainPiece) -> None:
        """They are now as a step has left its piece of them."""
        self.now.update(piece.replaced)
        self.replaced.update(piece.replaced)
        if piece.kept is not None:
            kept = np.ones(piece.rows_before, np.bool_) if self.kept is None else self.kept.copy()
            kept[kept] = piece.kept
            self.kept = kept
            self.now = {name: some_rows(column, piece.kept) for name, column in self.now.items()}


class TableColumns(PieceColumns):
    """Columns of a table of Arrow."""

    def __init__(self, table: pa.Table) -> None:
        super().__init__(lambda name: table.column(str(name)))
        self._table = table

    def untouched(self, name: str) -> Any:
        """Return a column that no step changed, of the rows that are left."""
        column = self._table.column(name)
        return column if self.kept is None else column.filter(pa.array(self.kept))


@dataclass(frozen=True)
class StepUse:
    """What a step may look at, and what it may change.

    removes: whether it may take rows away. said: of it in errors.
    """

    step: Step
    looks_at: frozenset[Hashable]
    changes: frozenset[Hashable]
    dropped: Sequence[Hashable]
    removes: bool
    said: str = ""

    def apply(self, piece: PlainPiece) -> None:
        """Treat some rows; errors say of which treatment they are, whenever that is."""
        with errors_of(self.said):
            self.step.apply(piece)


@contextlib.contextmanager
def errors_of(said: str) -> Iterator[None]:
    """Say of errors that they are of a treatment, unless they say already of which."""
    try:
        yield
    except GpupifError as error:
        if not said or SAID.match(str(error)):
            raise
        raise of_treatment(error, said) from error


def of_treatment(error: GpupifError, said: str) -> GpupifError:
    """An error said of a treatment, such as "treatment 2 (noise)", whose word is not said again."""
    do = said.rpartition("(")[2].removesuffix(")")
    return error.about(said, f"{do}: ", f"{do} of ")


@dataclass
class Steps:
    """Steps so far, and what comes of them. types: of the values of columns that they change.

    sample: the first rows, after them.
    """

    names: list[Any]
    sample: PieceColumns
    sample_rows: int
    uses: list[StepUse] = field(default_factory=list)
    types: dict[Any, pa.DataType] = field(default_factory=dict)

    def add(self, step: Step, names: Sequence[Hashable], kind: Callable[..., PlainPiece], said: str = "") -> StepUse:
        """One more, tried on the sample; names: columns that it may look at and change, also where it does not there.
        kind: of the piece that the sample is.

        One that changes no column of the sample may take rows away.
        """
        piece = kind(0, self.sample_rows, self.names, self.sample.find, whole=False)
        step.apply(piece)
        self.sample.take(piece)
        self.sample_rows = piece.rows
        dropped = [name for name in self.names if name not in piece.names]
        changes = frozenset([*piece.replaced, *names]) - {*dropped}
        removes = not piece.replaced and not dropped
        use = StepUse(step, frozenset([*piece.looked_at, *names]) - {*dropped}, changes, dropped, removes, said)
        self.uses.append(use)
        self.names = list(piece.names)
        for name in changes:
            labels = self.sample.find(name).labels.type
            if not pa.types.is_null(labels):
                self.types[name] = labels
        return use

    def typed(self, name: Hashable, labels: pa.Array) -> pa.Array:
        """Labels of a column, of the type that it has also where no row has a value."""
        return labels if len(labels) else labels.cast(self.sample.find(name).labels.type)

    def needed(self, columns: Sequence[Hashable], every: bool) -> tuple[list[StepUse | None], set[Hashable]]:
        """What has to be done for some columns of the treated table, None for steps that do not matter to them.

        And the columns that have to be read for it. every: steps matter also where they change columns that go.
        """
        read: set[Hashable] = set(columns)
        several: list[StepUse | None] = []
        for use in reversed(self.uses):
            matters = use.removes or bool(use.changes if every else use.changes & read)
            several.append(use if matters else None)
            read |= use.looks_at if matters else set()
        return several[::-1], read
