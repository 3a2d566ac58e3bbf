"""Files as they are after some steps: a source like any other, so that all that reads files reads treated ones."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..encoding.plain_values import family, plain_labels, plain_type
from ..errors import InputError
from ..frames.arrow_columns import other_column, other_type
from ..frames.replacement import Replacement
from ..io.base import Source
from ..io.read import in_chunks
from ..out_of_core.gather import prefetched
from .base import RowFacts
from .plain_piece import PlainPiece
from .record import StepCounts
from .steps import SAMPLE_ROWS, Steps, StepUse, TableColumns
from .stored_facts import StoredFacts

# Rows that are treated at once.
PIECE_ROWS = 1 << 18


class FilePiece(PlainPiece):
    """Some rows of files."""

    def facts(self, facts: RowFacts) -> Mapping[str, npt.NDArray[Any]]:
        assert isinstance(facts, StoredFacts)
        return facts.read(self.start, self.rows_before)


class TreatedSource(Source):
    """Files after some steps.

    plain: values as steps see them, in plain types, in place of those that are to be written. coded: text as
    dictionaries, which Parquet has them encoded as, for what writes that. counted: count what steps do. masked: where
    no columns are asked for, read of each row of the files whether it is left.
    """

    def __init__(self, source: Source, steps: Steps, plain: bool = False) -> None:
        super().__init__(source.found, steps.names)
        self.stamps = source.stamps
        self.ascending = source.ascending
        self.index_names = [name for name in source.index_names if name in self.names]
        self.folder_columns = [name for name in source.folder_columns if name in self.names]
        self.counts = [StepCounts() for _ in steps.uses]
        self.counted = self.coded = self.masked = False
        self._base = source
        self._steps = steps
        self._plain = plain
        self._loses_rows = any(use.removes for use in steps.uses)
        self._given = source.nothing().schema
        self._schema = pa.schema([self._field(name) for name in self.names])
        # By file, the row of the table at which it begins, as each step sees it.
        self._starts = {source.found.files[0]: [0] * (len(steps.uses) + 1)}
        self.rows = None if self._loses_rows else source.rows

    def _field(self, name: str) -> pa.Field:
        given = self._given.field(name)
        if name not in self._steps.types:
            # It may speak of rows that are gone.
            return given.remove_metadata() if self._loses_rows else given
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
        uses, read = self._steps.needed(columns, self.counted)
        # Rows are counted by any column.
        names = [name for name in self._base.names if name in read] or self._base.names[:1]
        pieces = in_chunks(self._base.read_file(file, names, rows, size), min(PIECE_ROWS, rows), max(1, size))
        with contextlib.closing(prefetched(pieces)) as made:
            for piece in made:
                self.bytes_read = self._base.bytes_read
                yield self._treat(piece, uses, starts, columns)
        self._starts[self.next_file(file)] = starts

    def _treat(
        self, table: pa.Table, uses: Sequence[StepUse | None], starts: list[int], columns: Sequence[str]
    ) -> pa.Table:
        """Some rows after all steps that matter; moves the starts behind them."""
        now, rows = TableColumns(table), table.num_rows
        for number, use in enumerate(uses):
            start, starts[number] = starts[number], starts[number] + rows
            if use is None:
                continue
            piece = FilePiece(start, rows, table.column_names, now.find, whole=False)
            use.apply(piece)
            if self.counted:
                piece.settle()
                self.counts[number].add(piece.changed, [], piece.rows_before - piece.rows)
            now.take(piece)
            rows = piece.rows
        starts[-1] += rows
        if not columns and self.masked:
            kept = np.ones(table.num_rows, np.bool_) if now.kept is None else now.kept
            return pa.table({"": pa.array(kept)})
        if not columns:
            return pa.table({"": pa.nulls(rows)})
        return pa.Table.from_arrays([self._array(name, now) for name in columns], names=list(columns))

    def _array(self, name: str, now: TableColumns) -> Any:
        """A column as it is to be read."""
        kind = self._schema.field(name).type
        if name not in self._steps.types and name not in now.replaced:
            return now.untouched(name)
        column, given = now.find(name), self._given.field(name).type
        if self._plain and name in self._steps.types:
            labels = column.labels if column.labels.type == kind else plain_labels(column.labels).cast(kind)
            missing = column.codes == len(labels)
            return pa.DictionaryArray.from_arrays(pa.array(column.codes.astype(np.int32), mask=missing), labels)
        values = given.value_type if pa.types.is_dictionary(given) else given
        if self.coded and pa.types.is_string(kind) and family(column.labels.type) == "text":
            given = pa.dictionary(pa.int32(), kind)
        array = other_column(Replacement(column.codes, column.labels, plain_type(values)), given)
        if self.coded and array.type == given:
            return array
        try:
            return array if array.type == kind else array.cast(kind)
        except pa.ArrowException as error:
            raise InputError(
                f"column {name!r}: some of its new values do not fit into its type, {kind} ({error}). Make it a wider "
                "type first."
            ) from error


def read_sample(source: Source) -> tuple[TableColumns, int]:
    """The first rows of files, and how many these are."""
    for file in source.found.files:
        for piece in source.read_file(file, source.names, SAMPLE_ROWS, 1 << 24):
            if piece.num_rows:
                return TableColumns(piece), piece.num_rows
    return TableColumns(source.nothing()), 0


def removed_rows(counts: Sequence[StepCounts]) -> int:
    """Rows that steps took away."""
    return int(np.sum([one.rows_removed for one in counts], dtype=np.int64))
