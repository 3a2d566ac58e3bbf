"""The interface of a format of table files: files are opened, read whole or in streams, and written."""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa

from ..errors import InputError, TableReadError
from ..utils.arrays import validate
from ..utils.config import AUTO, resources
from ..utils.validation import check_unique
from .documents import parse_json
from .file_errors import denied, unreadable
from .row_group import RowGroup

# The guess of the bytes of a cell in a file that does not say how many rows it has. A compressed file is `PACKED` times
# smaller.
CELL_BYTES, PACKED = 5, 6
# Rows that are read at once, at most.
CHUNK_ROWS = 1 << 16

# The key, in the metadata of a table, of the columns that were read as dictionaries to save time. The value says for
# each of them whether it is a large_string in the file.
ENCODED = b"gpupif.encoded"
# A function that takes the columns of a file and returns the columns to read (None: all). It may raise errors.
Pick = Callable[[Sequence[str]], list[str] | None]
# A function that returns the metadata of a file.
Describe = Callable[[], Mapping[bytes, bytes]]


def every_column(_: Sequence[str]) -> list[str] | None:
    """Return None: the `Pick` that reads all columns."""
    return None


class Stamp(NamedTuple):
    """The facts that tell a file from another file with its path.

    inode: the inode. size: bytes. changed: the time of the last change, in nanoseconds.
    """

    inode: int
    size: int
    changed: int

    @classmethod
    def from_file(cls, file: Path) -> Stamp:
        """Return the stamp of a file as it is now."""
        status = file.stat()
        return cls(status.st_ino, status.st_size, status.st_mtime_ns)


class FileFormat(ABC):
    """A format of table files.

    name: its name in messages.
    endings: the endings of the names of files that are read, in lower case.
    written: the endings of the names of files that scores can be written to.
    dataset: its name in `pyarrow.dataset`.
    as_text: whether numbers are written as text.
    codecs: the codecs that its files can have; the first is the default.
    metadata_last: whether its files have metadata after the rows.
    repeated: whether rows are written faster if their repeating numbers are known, see `Repeated`.
    """

    name: str
    endings: tuple[str, ...]
    written: tuple[str, ...]
    dataset: str
    as_text: bool = False
    codecs: Sequence[str] = ("none",)
    metadata_last = True
    repeated = False

    def codec(self, file: Path) -> str:
        """Return the codec of a file, see `gpupif.config`; raises InputError for a codec that this format lacks."""
        asked = resources().compression
        if asked != AUTO and asked not in self.codecs:
            raise InputError(
                f"compression: {file}: expected one of auto, {', '.join(self.codecs)} for {self.name}, got {asked!r}. "
                "Choose one of these, or .parquet."
            )
        return self.codecs[0] if asked == AUTO else asked

    def read(self, input_files: Input, pick: Pick) -> pa.Table:
        """Return the columns that `pick` names, of all files.

        Raises TableReadError, and pyarrow.ArrowException or OSError, which `read_table` puts into words.
        """
        source = self.open(input_files)
        picked = pick(source.names)
        columns = source.names if picked is None else picked
        chunks = [chunk for _, chunk in source.read(columns, sys.maxsize, sys.maxsize)]
        return pa.concat_tables(chunks or [source.nothing().select(columns)])

    @abstractmethod
    def open(self, input_files: Input) -> Source:
        """Open the files, to be read in streams; raises TableReadError for an error that shows before rows are read."""

    @abstractmethod
    def writer(self, sink: IO[bytes], file: Path, schema: pa.Schema, describe: Describe) -> Any:
        """Return a writer of rows to a file, a context manager; raises OutputError for a schema that it cannot write.

        describe: returns the metadata of the file, for a format in which the metadata come before the rows.
        """

    def write(self, writer: Any, groups: Sequence[RowGroup]) -> None:
        """Write rows with a writer that the method `writer` returned."""
        writer.write(groups)

    def finish(self, writer: Any, describe: Describe) -> None:  # noqa: B027
        """Write the metadata of the file after all rows, for a format in which the metadata come last."""


class Input(NamedTuple):
    """The files that a path names. Functions that take a path also take an `Input`.

    path: the path as it was given.
    format: the format of its files.
    base: the folder that contains the files, directly or in folders below it.
    files: the files in order of their paths, which is the order of the table's rows.
    sep: the separator of CSV; None: the separator that the first lines agree on.
    """

    path: Path
    format: FileFormat
    base: Path
    files: Sequence[Path]
    sep: str | None = None

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def is_folder_or_pattern(self) -> bool:
        """True if the path is a folder or a pattern, so that there may be any number of files."""
        return self.path != self.files[0]

    def stamps(self) -> dict[Path, Stamp]:
        """Return the stamps of the files, see `stamps_of`."""
        return stamps_of(self.files)


class Source(ABC):
    """Opened files that together are one table. Functions that take a path also take a `Source`.

    input_files: the files.
    names: the columns of the table.
    stamps: the stamp of each file at the time of opening.
    index_names: the columns that only label rows.
    folder_columns: the columns that names of folders hold.
    rows: the number of rows of the table; None if the files do not say.
    bytes: the bytes of all files.
    bytes_read: the bytes read so far, for files that do not say how many rows they have.
    ascending: whether codes of whole numbers are in the order of the values. All other codes are in order of first
        appearance.
    """

    ascending = True
    index_names: Sequence[str] = ()
    rows: int | None = None
    bytes_read = 0
    folder_columns: Sequence[str] = ()

    def __init__(self, input_files: Input, names: Sequence[str]) -> None:
        check_unique(names)
        self.input_files = input_files
        self.names = list(names)
        self.stamps = input_files.stamps()
        self.bytes = sum(stamp.size for stamp in self.stamps.values())

    def __fspath__(self) -> str:
        return str(self.input_files.path)

    def read(self, columns: Sequence[str], rows: int, size: int) -> Iterator[tuple[int, pa.Table]]:
        """Yield columns of the table in chunks of at most `rows` rows, each with the number of its file.

        size: bytes that a chunk may have, as far as that can be chosen. Raises TableReadError for a file that cannot be
        read, or that changed.
        """
        for number, file in enumerate(self.input_files.files):
            for chunk in self.read_file(file, columns, rows, size):
                yield number, chunk

    def read_file(self, file: Path, columns: Sequence[str], rows: int, size: int) -> Iterator[pa.Table]:
        """Yield columns of one of the files in chunks, see `read`."""
        self.check_unchanged([file])
        try:
            for chunk in self._read_file(file, list(columns), min(rows, CHUNK_ROWS), size):
                for start in range(0, chunk.num_rows, rows):
                    yield chunk.slice(start, rows)
        except (pa.ArrowException, OSError) as error:
            self.check_unchanged([file])
            raise self._unreadable(file, error) from error
        self.check_unchanged([file])

    def check_unchanged(self, files: Iterable[Path]) -> None:
        """Raise TableReadError for a file that changed since the table was opened."""
        check_unchanged({file: self.stamps[file] for file in files})

    def labels(self, merged: pa.Array) -> pa.Array:
        """Return the value of each distinct label of a column, in the order of the labels.

        merged: all distinct labels of the column, as `read` has them. Other formats than CSV store values as they are.
        """
        return merged

    def labels_in_parts(self, parts: Callable[[], Iterator[pa.Array]]) -> Iterator[pa.Array]:
        """Yield the values of `labels`, part by part. parts: yields the labels, in parts by the hash of `part_key`."""
        return parts()

    def part_key(self, merged: pa.Array) -> pa.Array:
        """Return a key for each label. Labels that may be one value have equal keys, so that one part has them all."""
        return merged

    def about_rows(self) -> int:
        """Return the number of rows; if files do not say, a guess by their size, at `CELL_BYTES` a cell."""
        if self.rows is not None:
            return self.rows
        sizes = (stamp.size * (PACKED if file.suffix.lower() == ".gz" else 1) for file, stamp in self.stamps.items())
        return sum(sizes) // (CELL_BYTES * max(1, len(self.names)))

    @abstractmethod
    def nothing(self) -> pa.Table:
        """Return a table of all columns without rows, with the types of `as_given`."""

    def as_given(self, chunk: pa.Table) -> pa.Table:
        """Return rows that `read` yielded, with the types that the files have."""
        return chunk

    def _unreadable(self, file: Path, error: Exception, where: str = "") -> TableReadError:
        """Return the error for a file that cannot be read, see `unreadable`."""
        return unreadable(file, self.input_files.format.name, error, where)

    @abstractmethod
    def _read_file(self, file: Path, columns: list[str], rows: int, size: int) -> Iterator[pa.Table]:
        """Yield columns of one file in chunks of about `rows` rows and `size` bytes, as far as that can be chosen."""


def check_rows(file: Path, rows: int, names: Sequence[str]) -> None:
    """Raise TableReadError for a table without rows."""
    if rows == 0 and names:
        raise TableReadError(f"{file}: expected at least one row, got none (columns: {', '.join(names)}).")


def mark_encoded(table: pa.Table, names: Iterable[str], large: Container[str] = ()) -> pa.Table:
    """Note in the metadata of a table which columns `decode` turns back.

    names: the columns that were read as dictionaries. large: the columns that are large_string in the file.
    """
    note = json.dumps({name: name in large for name in names}).encode()
    return table.replace_schema_metadata({**(table.schema.metadata or {}), ENCODED: note})


def decode(table: pa.Table) -> pa.Table:
    """Return a table with the types that its file has, by the note of `mark_encoded`."""
    metadata = dict(table.schema.metadata or {})
    encoded = parse_json(metadata.pop(ENCODED, b"{}"))
    for position, name in enumerate(table.column_names):
        column = table.column(position)
        if name in encoded and pa.types.is_dictionary(column.type):
            kind = pa.large_string() if encoded[name] else column.type.value_type
            table = table.set_column(position, name, column.cast(kind))
    return table.replace_schema_metadata(metadata or None)


def pandas_index_names(schema: pa.Schema) -> list[str]:
    """Return the columns that pandas stored as its index. They label rows, and hold no values of persons.

    Raises pyarrow.ArrowInvalid if pandas' note is damaged.
    """
    try:
        index = parse_json((schema.metadata or {}).get(b"pandas", b"{}")).get("index_columns", [])
        return [name for name in index if isinstance(name, str) and name in schema.names]
    except (ValueError, AttributeError, TypeError) as error:
        raise pa.ArrowInvalid("what pandas noted of its index is damaged") from error


def check_values(columns: Iterable[tuple[str, pa.ChunkedArray]]) -> None:
    """Raise pyarrow.ArrowInvalid, with the name of the column, if `validate` finds damaged data."""
    for name, column in columns:
        try:
            validate(column)
        except pa.ArrowInvalid as error:
            raise pa.ArrowInvalid(f"column {name!r}: {error}") from error


def types_of(schema: pa.Schema) -> dict[str, object]:
    """Return the columns of a schema with their types."""
    return {field.name: field.type for field in schema}


def check_alike(files: Sequence[Path], form: str, fields_of: Callable[[Path], Mapping[str, object]]) -> None:
    """Raise TableReadError for a file that cannot be read, or that differs from the first in a column's name or type.

    form: the name of the format. fields_of: returns the columns of a file, with their types.
    """
    first: Mapping[str, object] = {}
    for file in files:
        try:
            fields = fields_of(file)
        except (pa.ArrowException, OSError) as error:
            raise unreadable(file, form, error) from error
        first = first or fields
        for name in [*first, *fields]:
            if first.get(name) != fields.get(name):
                raise TableReadError(
                    f"{file}: column {name!r} is {fields.get(name, 'not there')}, in {files[0].name} it is "
                    f"{first.get(name, 'not there')}. Expected files with the same columns; write one of them anew."
                )


def stamps_of(files: Iterable[Path]) -> dict[Path, Stamp]:
    """Return the stamp of each file; raises TableReadError for a file that is not there."""
    try:
        return {file: Stamp.from_file(file) for file in files}
    except OSError as error:
        raise denied(Path(error.filename), error) from error


def check_unchanged(
    stamps: Mapping[Path, Stamp], said: str = "the file changed since it was opened to be scored. Score it again."
) -> None:
    """Raise TableReadError for a file that changed since its stamp was taken. said: the end of the message."""
    for file, stamp in stamps.items():
        try:
            unchanged = Stamp.from_file(file) == stamp
        except FileNotFoundError:
            unchanged = False
        except OSError as error:
            raise denied(file, error) from error
        if not unchanged:
            raise TableReadError(f"{file}: {said}")
