"""Treated files written, and, when all are, brought to where they were asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .._version import __version__
from ..frames.arrow_frame import kept_metadata, with_values, without_unused
from ..io.base import Source
from ..io.checkpoints import Store, identity, publish
from ..io.feather_files import GrowingDictionaries, open_feather
from ..io.file_errors import disk_errors
from ..io.formats import FEATHER, PARQUET, written_format
from ..io.row_group import RowGroup
from ..io.score_files import MARK, is_file, score_names
from ..io.write import write_groups
from ..out_of_core.budget import CHUNK_SHARE, Budget
from ..out_of_core.encode import PIECES
from ..out_of_core.gather import prefetched
from ..out_of_core.options import OutputOptions
from ..utils.arrays import GROUP_ROWS
from ..utils.private_folder import private_folder
from ..utils.progress import Reporter
from .columns import Changes
from .record import StepCounts
from .treated_source import TreatedSource

FOLDER = "scores"
# Of a cell that is written: as it is read, treated, waits for others of its group, and is written; measured.
CELL_BYTES = 320
LEAST_ROWS = 1 << 12


class TreatedWriter:
    """Writes files to a folder of the run, each of which appears whole, and publishes them."""

    def __init__(
        self, source: TreatedSource, options: OutputOptions, store: Store, budget: Budget, report: Reporter
    ) -> None:
        self._source = source
        self._options = options
        self._store = store
        self._budget = budget
        self._report = report
        self._folder = store.folder / FOLDER
        self._names = [name for name in source.names if name not in self._held()]
        kinds = [source.nothing().schema.field(name) for name in self._names]
        self._schema = pa.schema(kinds, _metadata(source, set(source.changed)))

    def _held(self) -> Sequence[str]:
        """What the names of folders hold they hold for treated files too."""
        in_folders = not is_file(self._options.output) and self._options.rows_per_file is None
        return self._source.folder_columns if in_folders else ()

    def write(self, counts: Sequence[StepCounts]) -> int:
        """Write the files that are not there yet, and add up what was done; returns how many rows came in."""
        self._ordered = self._ordered_values()
        self._source.counts, self._source.counted = list(counts), True
        self._source.coded = written_format(self._options.output) is PARQUET
        with disk_errors(self._folder):
            private_folder(self._folder)
        self._report.stage("treat and write", self._source.rows, "rows")
        if is_file(self._options.output):
            self._write(self._folder / self._options.output.name, self._pieces(self._source.found.files))
        elif self._options.rows_per_file is None:
            self._write_each(counts)
        else:
            self._write_equal(self._options.rows_per_file)
        return self._source.starts_after(self._source.found.files[-1])[0]

    def _write_each(self, counts: Sequence[StepCounts]) -> None:
        """A file for each file of the table."""
        names = score_names(self._options.output, self._source.found)
        for number, (name, file) in enumerate(zip(names, self._source.found.files, strict=True)):
            mark, criterion = f"file-{number:06}", self._folder / name
            done = self._store.done(mark)
            if done is not None and criterion.exists():
                self._source.begin(self._source.next_file(file), done["starts"])
                _set(counts, done["counts"])
                continue
            with disk_errors(criterion):
                private_folder(criterion.parent)
            self._write(criterion, self._pieces([file]))
            self._store.mark(mark, {"starts": self._source.starts_after(file), "counts": _stored(counts)})

    def _write_equal(self, rows: int) -> None:
        """Files of so many rows; how many there will be is known when all are written, and gives them their names."""
        pieces = _Rows(self._pieces(self._source.found.files))
        written: list[Path] = []
        while not written or not pieces.ended:
            criterion = self._folder / f"part-{len(written):09}.parquet"
            if criterion.exists():
                # Of a run that was killed: what is in it is known.
                self._report.advance(sum(piece.num_rows for piece in pieces.take(rows)))
            else:
                self._write(criterion, pieces.take(rows))
            written.append(criterion)
        width = max(5, len(str(len(written) - 1)))
        self._final = {
            criterion: criterion.with_name(f"part-{number:0{width}}.parquet")
            for number, criterion in enumerate(written)
        }
        if width < 9:
            for criterion, name in self._final.items():
                criterion.replace(name)

    def _pieces(self, files: Sequence[Path]) -> Iterator[pa.Table]:
        size = self._budget.values_bytes() // PIECES
        for file in files:
            yield from self._source.read_file(file, self._names, self._rows(), size)

    def _write(self, criterion: Path, pieces: Iterator[pa.Table]) -> None:
        with contextlib.closing(prefetched(self._groups(pieces))) as groups:
            write_groups(groups, criterion, self._report.advance, describe=self._describe, private=True)

    def _groups(self, pieces: Iterator[pa.Table]) -> Iterator[list[RowGroup]]:
        """Rows that are written together, put together while those before are written."""
        form = written_format(self._options.output)
        growing = GrowingDictionaries(self._schema) if form is FEATHER else None
        some = False
        for piece in _grouped(pieces, self._rows()):
            some = True
            arrays = [
                self._of_what_occurs(self._fitting(column, field), field.name)
                for column, field in zip(piece.columns, self._schema, strict=True)
            ]
            if growing is not None:
                arrays = growing.grown(pa.Table.from_arrays(arrays, schema=self._schema)).columns
            yield [RowGroup(self._schema, arrays)]
        if not some:
            yield [RowGroup.of(self._schema.empty_table())]

    def _fitting(self, column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
        """A column in its type; text for Parquet as a dictionary."""
        coded = pa.types.is_dictionary(column.type) and column.type.value_type == field.type
        return column if column.type == field.type or (coded and self._source.coded) else column.cast(field.type)

    def _of_what_occurs(self, column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
        """Return a column whose dictionary holds values that occur: of ordered ones all that the files will have."""
        return with_values(column, self._ordered[name]) if name in self._ordered else without_unused(column)

    def _ordered_values(self) -> dict[str, pa.Array]:
        """Return the values of ordered categories, in their order, that occur in the treated table, which is read.

        Readers take the order in which values come in a file for that of the categories.
        """
        kinds = {field.name: field.type for field in self._schema}
        names = [name for name, kind in kinds.items() if pa.types.is_dictionary(kind) and kind.ordered]
        occurs: dict[str, dict[Any, bool]] = {name: {} for name in names}
        for file in self._source.found.files if names else ():
            for piece in self._source.read_file(file, names, self._rows(), self._budget.values_bytes() // PIECES):
                for name in names:
                    for chunk in piece.column(name).chunks:
                        own = occurs[name]
                        own |= dict.fromkeys([one for one in chunk.dictionary.to_pylist() if one not in own], False)
                        own |= dict.fromkeys(chunk.unique().dictionary_decode().drop_null().to_pylist(), True)
        return {
            name: pa.array([value for value, there in occurs[name].items() if there], kinds[name].value_type)
            for name in names
        }

    def _rows(self) -> int:
        """Rows that are written at once."""
        most = int(CHUNK_SHARE * self._budget.working) // (CELL_BYTES * max(1, len(self._names)))
        return min(GROUP_ROWS, max(most, LEAST_ROWS))

    def _describe(self) -> dict[bytes, bytes]:
        return {MARK: __version__.encode()}

    def staged(self) -> Path:
        """The file or folder that is to be published."""
        return self._folder / self._options.output.name if is_file(self._options.output) else self._folder

    def publish(self) -> None:
        """Have what is written appear as a whole where it was asked for."""
        output, staged = self._options.output, self.staged()
        if not (output.exists() and identity(output) == identity(staged)):
            publish(staged, output)


class _Rows:
    """Rows of pieces, so many at a time."""

    def __init__(self, pieces: Iterator[pa.Table]) -> None:
        self._pieces = pieces
        self._waiting: pa.Table | None = None
        self.ended = False
        self._fill()

    def _fill(self) -> None:
        while self._waiting is None and not self.ended:
            piece = next(self._pieces, None)
            if piece is None:
                self.ended = True
            elif piece.num_rows:
                self._waiting = piece

    def take(self, rows: int) -> Iterator[pa.Table]:
        """The next ones."""
        while rows and self._waiting is not None:
            piece = self._waiting
            part = piece.slice(0, rows)
            self._waiting = piece.slice(part.num_rows) if part.num_rows < piece.num_rows else None
            rows -= part.num_rows
            self._fill()
            yield part


def _grouped(pieces: Iterator[pa.Table], rows: int) -> Iterator[pa.Table]:
    """Pieces put together to tables of about so many rows."""
    waiting: list[pa.Table] = []
    size = 0
    for piece in pieces:
        if size and size + piece.num_rows > rows:
            yield _one(waiting)
            waiting, size = [], 0
        waiting.append(piece)
        size += piece.num_rows
    if waiting:
        yield _one(waiting)


def _one(pieces: list[pa.Table]) -> pa.Table:
    return pa.concat_tables(pieces).unify_dictionaries()


def _metadata(source: Source, changed: set[str]) -> Any:
    """What files may say of the treated table: what pandas noted of its index, and of columns that did not change."""
    first = source.found.files[0]
    if source.found.format is PARQUET:
        return kept_metadata(pq.read_schema(first), changed, False)
    if source.found.format is FEATHER:
        return kept_metadata(open_feather(first)[0], changed, False)
    return None


def _stored(counts: Sequence[StepCounts]) -> list[Any]:
    """What was done so far, ready for JSON."""
    return [[{str(name): list(found) for name, found in one.changed.items()}, one.rows_removed] for one in counts]


def _set(counts: Sequence[StepCounts], stored: Sequence[Any]) -> None:
    for one, (changed, removed) in zip(counts, stored, strict=True):
        one.changed = {name: Changes(*found) for name, found in changed.items()}
        one.rows_removed = removed
