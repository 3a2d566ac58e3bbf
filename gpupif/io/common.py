"""What all formats of table files share: what is asked of them, what is checked, and what is raised."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from ..errors import TableReadError, reason_of
from ..utils.arrays import validate
from .documents import parse_json

# Columns that were read as dictionaries to save time, though they are none in the file, and which of them are large.
ENCODED = b"gpupif.encoded"
GZIP = "a gzip archive"
# What files of other kinds begin with, the kind, and what to do about one.
SIGNATURES = {
    b"PAR1": ("Parquet", "Give it a name that ends in .parquet."),
    b"ARROW1": ("Feather", "Give it a name that ends in .feather."),
    b"PK\x03\x04": ("a ZIP archive or an Excel workbook", "Unpack it, or save the sheet as CSV."),
    b"\xd0\xcf\x11\xe0": ("an old Excel workbook", "Save the sheet as CSV."),
    b"\x1f\x8b": (GZIP, "Unpack it, or give it a name that ends in .gz, such as table.csv.gz."),
}
SIGNATURE_BYTES = max(map(len, SIGNATURES))
# From the names that a file has, which columns to read (None: all); may raise.
Pick = Callable[[Sequence[str]], list[str] | None]


def every_column(_: Sequence[str]) -> list[str] | None:
    """The `Pick` that reads all columns."""
    return None


def check_rows(file: Path, rows: int, names: Sequence[str]) -> None:
    """Raise TableReadError for a table without rows."""
    if rows == 0 and names:
        raise TableReadError(f"{file}: expected at least one row, got none (columns: {', '.join(names)}).")


def mark_encoded(table: pa.Table, names: Iterable[str], large: Container[str] = ()) -> pa.Table:
    """Note in the table which columns `decode` is to turn back; large: those of large_string in the file."""
    said = json.dumps({name: name in large for name in names}).encode()
    return table.replace_schema_metadata({**(table.schema.metadata or {}), ENCODED: said})


def decode(table: pa.Table) -> pa.Table:
    """Return the table with the types that its file has."""
    metadata = dict(table.schema.metadata or {})
    encoded = parse_json(metadata.pop(ENCODED, b"{}"))
    for position, name in enumerate(table.column_names):
        column = table.column(position)
        if name in encoded and pa.types.is_dictionary(column.type):
            kind = pa.large_string() if encoded[name] else column.type.value_type
            table = table.set_column(position, name, column.cast(kind))
    return table.replace_schema_metadata(metadata or None)


def pandas_index_names(schema: pa.Schema) -> list[str]:
    """Columns that pandas stored as its index: labels of rows, not values of persons.

    Raises pyarrow.ArrowInvalid where its note is damaged.
    """
    try:
        index = parse_json((schema.metadata or {}).get(b"pandas", b"{}")).get("index_columns", [])
        return [name for name in index if isinstance(name, str) and name in schema.names]
    except (ValueError, AttributeError, TypeError) as error:
        raise pa.ArrowInvalid("what pandas noted of its index is damaged") from error


def unreadable(file: Path, kind: str, error: Exception) -> TableReadError:
    """What to raise for a file that cannot be read or parsed."""
    if isinstance(error, PermissionError):
        return denied(file, error)
    misnamed = misnamed_file(file, kind)
    if misnamed is not None:
        return misnamed
    return TableReadError(
        f"{file}: could not be read as {kind}; it may be truncated, or not be what its name says ({reason_of(error)})."
    )


def misnamed_file(file: Path, kind: str) -> TableReadError | None:
    """What to raise for a file that begins as those of another kind do; None where it does not, or cannot be read."""
    try:
        with file.open("rb") as stream:
            start = stream.read(SIGNATURE_BYTES)
    except OSError:
        return None
    for signature, (other, instead) in SIGNATURES.items():
        packed = file.suffix.lower() == ".gz" and other == GZIP
        if start.startswith(signature) and other != kind and not packed:
            return TableReadError(f"{file}: could not be read as {kind}: it begins as {other} does. {instead}")
    return None


def check_values(columns: Iterable[tuple[str, pa.ChunkedArray]]) -> None:
    """Raise pyarrow.ArrowInvalid, which names the column, for data that do not hold together."""
    for name, column in columns:
        try:
            validate(column)
        except pa.ArrowInvalid as error:
            raise pa.ArrowInvalid(f"column {name!r}: {error}") from error


def check_alike(files: Sequence[Path], fields_of: Callable[[Path], Mapping[str, object]]) -> None:
    """Raise TableReadError where files differ in a column's name or type."""
    first: Mapping[str, object] = {}
    for file in files:
        fields = fields_of(file)
        first = first or fields
        for name in [*first, *fields]:
            if first.get(name) != fields.get(name):
                raise TableReadError(
                    f"{file}: column {name!r} is {fields.get(name, 'not there')}, in {files[0].name} it is "
                    f"{first.get(name, 'not there')}. Expected files with the same columns; write one of them anew."
                )


def denied(place: Path, error: OSError) -> TableReadError:
    """What to raise for a file or folder that the system does not let us read."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    mend = " Check its rights, and those of its folders." if isinstance(error, PermissionError) else ""
    return TableReadError(f"{place}: could not be read: {reason}.{mend}")


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


def stamps_of(files: Iterable[Path]) -> dict[Path, Stamp]:
    """What tells each file from one that takes its place. Raises TableReadError for one that is not there."""
    try:
        return {file: Stamp.of(file) for file in files}
    except OSError as error:
        raise denied(Path(error.filename), error) from error


def check_unchanged(
    stamps: Mapping[Path, Stamp], said: str = "the file changed since it was opened to be scored. Score it again."
) -> None:
    """Raise TableReadError where a file is not what it was when these stamps were taken; said: of such a file."""
    for file, stamp in stamps.items():
        try:
            unchanged = Stamp.of(file) == stamp
        except FileNotFoundError:
            unchanged = False
        except OSError as error:
            raise denied(file, error) from error
        if not unchanged:
            raise TableReadError(f"{file}: {said}")
