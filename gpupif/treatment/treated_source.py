"""Files as they are after some steps: a source like any other, so that all that reads files reads treated ones."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..encoding.plain import plain_labels, plain_type
from ..errors import InputError
from ..frames.arrow_columns import other_column, other_type
from ..frames.base import Replacement
from ..io.base import Source
from ..io.read import in_chunks
from ..out_of_core.gather import prefetched
from .base import PieceColumn, RowFacts, Step
from .columns import piece_column, some_rows
from .plain_piece import PlainPiece
from .record import StepCounts
from .stored_facts import StoredFacts

# Rows that are treated at once, and those by which it is seen what a step does to which columns.
PIECE_ROWS = 1 << 18
SAMPLE_ROWS = 1 << 10


class FilePiece(PlainPiece):
    """Some rows of files."""

    def __init__(self, start: int, rows: int, names: Sequence[Hashable], columns: PieceColumns) -> None:
        super().__init__(start, rows, names, columns.find, whole=False)

    def facts(self, facts: RowFacts) -> Mapping[str, npt.NDArray[Any]]:
        assert isinstance(facts, StoredFacts)
        return facts.read(self.start, self.rows_before)


class PieceColumns:
    """The columns of some rows, encoded when they are asked for."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.now: dict[Hashable, PieceColumn] = {}
        self.replaced: set[Hashable] = set()

    def find(self, name: Hashable) -> PieceColumn:
        """A column as it is now."""
        if name not in self.now:
            self.now[name] = piece_column(name, self.table.column(str(name)))
        return self.now[name]

    def take(self, piece: PlainPiece) -> None:
        """They are now as a step has left its piece of them."""
        self.now.update(piece.replaced)
        self.replaced.update(piece.replaced)
        if piece.kept is not None:
            self.table = self.table.filter(pa.array(piece.kept))
            self.now = {name: some_rows(column, piece.kept) for name, column in self.now.items()}


@dataclass(frozen=True)
class StepUse:
    """What a step may look at, and what it may change. removes: whether it may take rows away."""

    step: Step
    looks_at: frozenset[Hashable]
    changes: frozenset[Hashable]
    dropped: frozenset[Hashable]
    removes: bool


@dataclass
class Steps:
    """Steps so far, and what comes of them. types: of the values of columns that they change.

    sample: the first rows, after them.
    """

    names: list[str]
    sample: PieceColumns
    sample_rows: int
    uses: list[StepUse] = field(default_factory=list)
    types: dict[str, pa.DataType] = field(default_factory=dict)

    def add(self, step: Step, names: Sequence[str]) -> StepUse:
        """One more, tried on the sample; names: columns that it may look at and change, also where it does not there.

        One that changes no column of the sample may take rows away.
        """
        piece = FilePiece(0, self.sample_rows, self.names, self.sample)
        step.apply(piece)
        self.sample.take(piece)
        self.sample_rows = piece.rows
        dropped = frozenset(self.names) - frozenset(piece.names)
        changes = frozenset([*piece.replaced, *names]) - dropped
        removes = not piece.replaced and not dropped
        use = StepUse(step, frozenset([*piece.looked_at, *names]) - dropped, changes, dropped, removes)
        self.uses.append(use)
        self.names = [str(name) for name in piece.names]
        for name in map(str, changes):
            kind = self.sample.find(name).labels.type
            if not pa.types.is_null(kind):
                self.types[name] = kind
        return use

    def needed(self, columns: Sequence[str]) -> tuple[list[StepUse | None], set[Hashable]]:
        """What has to be done for some columns of the treated table, None for steps that do not matter to them.

        And the columns that have to be read for it.
        """
        read: set[Hashable] = set(columns)
        several: list[StepUse | None] = []
        for use in reversed(self.uses):
            matters = use.removes or bool(use.changes & read)
            several.append(use if matters else None)
            read |= use.looks_at if matters else set()
        return several[::-1], read


class TreatedSource(Source):
    """Files after some steps.

    plain: values as steps see them, in plain types, in place of those that are to be written.
    """

    def __init__(self, source: Source, steps: Steps, plain: bool = False) -> None:
        super().__init__(source.found, steps.names)
        self.stamps = source.stamps
        self.ascending = source.ascending
        self.index_names = [name for name in source.index_names if name in self.names]
        self.folder_columns = [name for name in source.folder_columns if name in self.names]
        self.counts = [StepCounts() for _ in steps.uses]
        self.counted = False
        self._base = source
        self._steps = steps
        self._plain = plain
        self._given = source.nothing().schema
        self._schema = pa.schema([self._field(name) for name in self.names])
        # By file, the row of the table at which it begins, as each step sees it.
        self._starts = {source.found.files[0]: [0] * (len(steps.uses) + 1)}
        if not any(use.removes for use in steps.uses):
            self.rows = source.rows

    def _field(self, name: str) -> pa.Field:
        given = self._given.field(name)
        if name not in self._steps.types:
            return given
        labels, values = self._steps.types[name], given.type
        values = values.value_type if pa.types.is_dictionary(values) else values
        return pa.field(name, labels if self._plain else other_type(labels, plain_type(values), given.type))

    def about_rows(self) -> int:
        return self._base.about_rows()

    def nothing(self) -> pa.Table:
        return self._schema.empty_table()

    def as_given(self, piece: pa.Table) -> pa.Table:
        """See `Source`; text has the type of its file again."""
        kinds = pa.schema([self._schema.field(name) for name in piece.column_names])
        return piece if piece.schema.equals(kinds) else piece.cast(kinds)

    def starts_after(self, file: Path) -> list[int]:
        """The rows behind a file that was read, as each step sees them."""
        return self._starts[self.next_file(file)]

    def begin(self, file: Path, starts: Sequence[int]) -> None:
        """The row at which a file begins is known, as each step sees it."""
        self._starts[file] = list(starts)

    @property
    def changed(self) -> list[str]:
        """Columns that are not as they came, and those that went."""
        return [name for name in self._base.names if name in self._steps.types or name not in self.names]

    def next_file(self, file: Path) -> Path:
        """The file behind another one."""
        files = [*self.found.files, Path()]
        return files[files.index(file) + 1]

    def _read_file(self, file: Path, columns: list[str], rows: int, size: int) -> Iterator[pa.Table]:
        if file not in self._starts:
            before = self.found.files[list(self.found.files).index(file) - 1]
            for _ in self._read_file(before, [], rows, size):
                pass
        starts = list(self._starts[file])
        uses, read = self._steps.needed(columns)
        # Rows are counted by any column.
        names = [name for name in self._base.names if name in read] or self._base.names[:1]
        pieces = in_chunks(self._base.read_file(file, names, rows, size), PIECE_ROWS, max(1, size))
        with contextlib.closing(prefetched(pieces)) as made:
            for piece in made:
                self.bytes_read = self._base.bytes_read
                yield self._treat(piece, uses, starts, columns)
        self._starts[self.next_file(file)] = starts

    def _treat(
        self, table: pa.Table, uses: Sequence[StepUse | None], starts: list[int], columns: Sequence[str]
    ) -> pa.Table:
        """Some rows after all steps that matter; moves the starts behind them."""
        now, rows = PieceColumns(table), table.num_rows
        for number, use in enumerate(uses):
            start, starts[number] = starts[number], starts[number] + rows
            if use is None:
                continue
            piece = FilePiece(start, rows, [*table.column_names], now)
            use.step.apply(piece)
            if self.counted:
                piece.settle()
                self.counts[number].add(piece.changed, [], piece.rows_before - piece.rows)
            now.take(piece)
            rows = piece.rows
        starts[-1] += rows
        if not columns:
            return pa.table({"": pa.nulls(rows)})
        return pa.Table.from_arrays([self._array(name, now) for name in columns], names=list(columns))

    def _array(self, name: str, now: PieceColumns) -> Any:
        """A column as it is to be read."""
        kind = self._schema.field(name).type
        if name not in self._steps.types and name not in now.replaced:
            return now.table.column(name)
        column, given = now.find(name), self._given.field(name).type
        if self._plain and name in self._steps.types:
            labels = column.labels if column.labels.type == kind else plain_labels(column.labels).cast(kind)
            missing = column.codes == len(labels)
            return pa.DictionaryArray.from_arrays(pa.array(column.codes.astype(np.int32), mask=missing), labels)
        values = given.value_type if pa.types.is_dictionary(given) else given
        array = other_column(Replacement(column.codes, column.labels, plain_type(values)), given)
        try:
            return array if array.type == kind else array.cast(kind)
        except pa.ArrowException as error:
            raise InputError(
                f"column {name!r}: some of its new values do not fit into its type, {kind} ({error}). Make it a wider "
                "type first."
            ) from error


def read_sample(source: Source) -> tuple[PieceColumns, int]:
    """The first rows of files, and how many these are."""
    for file in source.found.files:
        with contextlib.closing(source.read_file(file, source.names, SAMPLE_ROWS, 1 << 24)) as pieces:
            for piece in pieces:
                if piece.num_rows:
                    return PieceColumns(piece.slice(0, SAMPLE_ROWS)), min(piece.num_rows, SAMPLE_ROWS)
    return PieceColumns(source.nothing()), 0


def removed_rows(counts: Sequence[StepCounts]) -> int:
    """Rows that steps took away."""
    return int(np.sum([one.rows_removed for one in counts], dtype=np.int64))
