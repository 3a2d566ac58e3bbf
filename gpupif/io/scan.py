"""Files read in streams: a table larger than memory, some rows at a time, in the order of its rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from ..errors import TableReadError
from ..utils.names import check_unique
from .csv_files import TEXT, not_utf8, parser_options, read_heads, typed_texts
from .paths import Input, find_input
from .read import (
    check_alike,
    check_values,
    every_column,
    feather_fields,
    keys_of_files,
    open_feather,
    open_parquet,
    pandas_index_names,
    text_columns,
    unreadable,
)

# Bytes of a column that are read from disk at once.
READ_BYTES = 1 << 20
# Of a cell of a file that does not say how many rows it has.
CELL_BYTES = 5
# How much smaller such a file is compressed.
PACKED = 6
# What a dictionary of a Parquet file takes at most, and a value that is looked up in it.
DICTIONARY_BYTES, CODE_BYTES = 2 << 20, 4
# Rows that are read at once at most.
PIECE_ROWS = 1 << 16


class Stamp(NamedTuple):
    """What tells a file from one that took its place."""

    inode: int
    size: int
    changed: int

    @classmethod
    def of(cls, file: Path) -> Stamp:
        """That of a file as it is now."""
        status = file.stat()
        return cls(status.st_ino, status.st_size, status.st_mtime_ns)


class Source(ABC):
    """Files that together are one table.

    found: the files. names: columns of the table; index_names: those that only label rows; folder_columns: those that
    names of folders hold. rows: of the table, None where files do not say. bytes: of the files; bytes_read: so far, of
    files that do not say how many rows they have. ascending: codes of whole numbers are in the order of the values; if
    not, and for all others, in order of first appearance.
    """

    ascending = True
    index_names: Sequence[str] = ()
    rows: int | None = None
    bytes_read = 0
    folder_columns: Sequence[str] = ()

    def __init__(self, found: Input, names: Sequence[str]) -> None:
        check_unique(names)
        self.found = found
        self.names = list(names)
        self.stamps = {file: Stamp.of(file) for file in found.files}
        self.bytes = sum(stamp.size for stamp in self.stamps.values())

    def read(self, columns: Sequence[str], rows: int, size: int) -> Iterator[tuple[int, pa.Table]]:
        """The table's columns piece by piece of at most `rows` rows, each with the number of its file.

        size: bytes that a piece may have, as far as that can be chosen. Raises TableReadError for a file that cannot be
        read or is not what it was.
        """
        for number, file in enumerate(self.found.files):
            self.check_unchanged([file])
            try:
                for piece in self._read_file(file, list(columns), min(rows, PIECE_ROWS), size):
                    for start in range(0, piece.num_rows, rows):
                        yield number, piece.slice(start, rows)
            except (pa.ArrowException, OSError) as error:
                self.check_unchanged([file])
                raise self._unreadable(file, error) from error
            self.check_unchanged([file])

    def check_unchanged(self, files: Iterable[Path]) -> None:
        """Raise TableReadError where a file is not what it was when the table was opened."""
        for file in files:
            if not file.exists() or Stamp.of(file) != self.stamps[file]:
                raise TableReadError(f"{file}: the file changed while it was scored. Score it again.")

    def labels(self, merged: pa.Array) -> pa.Array:
        """The values that different labels stand for, one for one."""
        return merged

    def about_rows(self) -> int:
        """Rows of the table; where files do not say, a guess by their size, a cell taking so many bytes."""
        if self.rows is not None:
            return self.rows
        sizes = (stamp.size * (PACKED if file.suffix.lower() == ".gz" else 1) for file, stamp in self.stamps.items())
        return sum(sizes) // (CELL_BYTES * max(1, len(self.names)))

    @abstractmethod
    def nothing(self) -> pa.Table:
        """All columns, without rows, with the types of `as_given`."""

    def as_given(self, piece: pa.Table) -> pa.Table:
        """What `read` gave, with the types that the files have."""
        return piece

    def _unreadable(self, file: Path, error: Exception) -> TableReadError:
        return unreadable(file, self.found.kind, error)

    @abstractmethod
    def _read_file(self, file: Path, columns: list[str], rows: int, size: int) -> Iterator[pa.Table]:
        """The columns of one file, in pieces of so many rows and bytes, as far as they can be chosen."""


class ParquetSource(Source):
    """Parquet files; the names of their folders may hold columns."""

    def __init__(self, found: Input) -> None:
        import pyarrow.parquet as pq

        try:
            self._table = open_parquet(found, every_column)
            self._keys = keys_of_files(self._table)
            self.rows = 0
            plain: set[str] = set()
            for file in found.files:
                metadata = pq.read_metadata(file)
                self.rows += metadata.num_rows
                plain |= _plain_columns(metadata)
        except (pa.ArrowException, OSError) as error:
            raise unreadable(found.path, found.kind, error) from error
        schema = self._table.schema
        super().__init__(found, schema.names)
        self.index_names = pandas_index_names(schema)
        self.folder_columns = [] if self._table.keys is None else self._table.keys.schema.names
        self._text = text_columns(schema)
        self._encoded = [name for name in self._text if name not in plain]

    def as_given(self, piece: pa.Table) -> pa.Table:
        """See `Source`."""
        given = self._table.schema
        kinds = [given.field(field.name) if field.name in self._text else field for field in piece.schema]
        return piece.cast(pa.schema(kinds))

    def nothing(self) -> pa.Table:
        """See `Source`."""
        return self._table.schema.remove_metadata().empty_table()

    def _read_file(self, file: Path, columns: list[str], rows: int, size: int) -> Iterator[pa.Table]:
        import pyarrow.parquet as pq

        schema, keys = self._table.schema, self._keys[file]
        own = [name for name in columns if name not in keys]
        # Not buffered ahead: a row group may be as large as the table.
        encoded = [name for name in self._encoded if name not in keys]
        opened = pq.ParquetFile(file, read_dictionary=encoded, buffer_size=READ_BYTES, pre_buffer=False)
        with opened:
            fits = size * max(1, opened.metadata.num_rows) // max(1, _bytes_of(opened.metadata))
            for batch in opened.iter_batches(max(1, min(rows, fits)), columns=own):
                table = pa.Table.from_batches([batch])
                check_values(zip(table.column_names, table.columns, strict=True))
                arrays = {
                    name: pa.chunked_array([pa.repeat(pa.scalar(keys[name], schema.field(name).type), batch.num_rows)])
                    if name in keys
                    else _as_text(table.column(name))
                    for name in columns
                }
                yield pa.table(arrays)


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text as dictionaries have it, for some files may be read so and others not."""
    return column.cast(pa.string()) if pa.types.is_large_string(column.type) else column


def _plain_columns(metadata: Any) -> set[str]:
    """Columns that a file has not as dictionaries: Arrow would make one of a whole row group of them."""
    chunks = (
        metadata.row_group(group).column(place)
        for group in range(metadata.num_row_groups)
        for place in range(metadata.num_columns)
    )
    return {
        chunk.path_in_schema
        for chunk in chunks
        if chunk.total_uncompressed_size > DICTIONARY_BYTES + CODE_BYTES * chunk.num_values
    }


def _bytes_of(metadata: Any) -> int:
    """What a Parquet file takes when it is not compressed."""
    return sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))


class CsvSource(Source):
    """CSV files; all fields are read as text."""

    ascending = False

    def __init__(self, found: Input, sep: str | None) -> None:
        heads = read_heads(found.files, sep)
        self._heads = dict(zip(found.files, heads, strict=True))
        super().__init__(found, heads[0].names)

    def labels(self, merged: pa.Array) -> pa.Array:
        """See `Source`."""
        return merged if pa.types.is_null(merged.type) else typed_texts(merged)

    def as_given(self, piece: pa.Table) -> pa.Table:
        """See `Source`; as text, for what a column's type is only all of its values say."""
        return piece.cast(pa.schema([(name, pa.string()) for name in piece.column_names]))

    def _unreadable(self, file: Path, error: Exception) -> TableReadError:
        return not_utf8(file) if "UTF8" in str(error) else super()._unreadable(file, error)

    def nothing(self) -> pa.Table:
        """See `Source`."""
        return pa.schema([(name, pa.string()) for name in self.names]).empty_table()

    def _read_file(self, file: Path, columns: list[str], rows: int, size: int) -> Iterator[pa.Table]:
        from pyarrow import csv as arrow_csv

        head = self._heads[file]
        if head.alone:
            yield pa.table({name: pa.array([], TEXT) for name in columns})
            return
        done = 0
        before = self.bytes_read
        try:
            with pa.OSFile(str(file)) as raw:
                stream = pa.CompressedInputStream(raw, "gzip") if file.name.lower().endswith(".gz") else raw
                with arrow_csv.open_csv(stream, **parser_options(file, head, columns)) as opened:
                    for batch in opened:
                        self.bytes_read = before + raw.tell()
                        yield pa.Table.from_batches([batch])
                        done += batch.num_rows
        except pa.ArrowInvalid as error:
            raise pa.ArrowInvalid(f"{error}, after row {done:,}") from error


class FeatherSource(Source):
    """Feather (Arrow IPC) files."""

    def __init__(self, found: Input) -> None:
        check_alike(found.files, feather_fields)
        self._schema = schema = open_feather(found.files[0])[0]
        super().__init__(found, schema.names)
        self.index_names = pandas_index_names(schema)

    def nothing(self) -> pa.Table:
        """See `Source`."""
        return self._schema.remove_metadata().empty_table()

    def _read_file(self, file: Path, columns: list[str], rows: int, size: int) -> Iterator[pa.Table]:
        for batch in open_feather(file, columns)[1]:
            table = pa.Table.from_batches([batch]).select(columns)
            check_values(zip(columns, table.columns, strict=True))
            yield table


def open_source(path: Path, sep: str | None = None) -> Source:
    """The files that a path names, to be read in streams; raises what `read_table` does for what can be seen now."""
    found = find_input(path, sep)
    if found.kind == "Parquet":
        return ParquetSource(found)
    return CsvSource(found, sep) if found.kind == "CSV" else FeatherSource(found)


def in_chunks(pieces: Iterable[pa.Table], rows: int, most: int) -> Iterator[pa.Table]:
    """The same rows in tables of `rows` rows, or fewer where these would take more than `most` bytes."""
    waiting: list[Any] = []
    size = taken = 0
    for piece in pieces:
        if size and taken + piece.nbytes > most:
            yield pa.concat_tables(waiting)
            waiting, size, taken = [], 0, 0
        start = 0
        while size + piece.num_rows - start >= rows:
            part = piece.slice(start, rows - size)
            yield pa.concat_tables([*waiting, part])
            waiting, size, taken, start = [], 0, 0, start + part.num_rows
        if start < piece.num_rows:
            rest = piece.slice(start)
            waiting.append(rest)
            size += rest.num_rows
            taken += rest.nbytes
    if waiting:
        yield pa.concat_tables(waiting)
