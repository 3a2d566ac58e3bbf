"""Tables from files: Parquet, CSV, Feather."""

from __future__ import annotations

import codecs
import csv
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from .errors import TableReadError
from .names import check_unique

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz")
FEATHER = (".feather", ".arrow", ".ipc")
SEPARATORS = ",;\t|"
HEAD_BYTES = 1 << 16

# From the names that a file has, which columns to read (None: all); may raise.
Pick = Callable[[Sequence[str]], list[str] | None]


def every_column(_: Sequence[str]) -> list[str] | None:
    """The `Pick` that reads all columns."""
    return None


def read_table(path: str | os.PathLike[str], pick: Pick = every_column, sep: str | None = None) -> pa.Table:
    """Read a Parquet file or folder of them, a CSV file or a Feather (Arrow IPC) file.

    sep: separator of a CSV file; by default the one of , ; tab | that its first lines agree on. An empty CSV field
    is a missing value, any other text is taken as it stands.

    Raises TableReadError for a file that is missing, empty, truncated, or not what its name says, and InputError
    where column names repeat.
    """
    file = Path(path)
    name = file.name.lower()
    if not file.exists():
        raise TableReadError(f"{file}: no such file or folder. Check the path.")
    read: Callable[[], pa.Table]
    if file.is_dir() or name.endswith(PARQUET):
        kind, read = "Parquet", lambda: _read_parquet(file, pick)
    elif name.endswith(CSV):
        kind, read = "CSV", lambda: _read_csv(file, pick, sep)
    elif name.endswith(FEATHER):
        kind, read = "Feather", lambda: _read_feather(file, pick)
    else:
        endings = ", ".join((*PARQUET, *CSV, *FEATHER))
        raise TableReadError(f"{file}: expected a folder of Parquet files or a file name ending in {endings}.")
    if file.is_file() and file.stat().st_size == 0:
        raise TableReadError(f"{file}: the file is empty (0 bytes). Expected a {kind} file with a table in it.")
    try:
        return read()
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(file, kind, error) from error


def _unreadable(file: Path, kind: str, error: Exception) -> TableReadError:
    reason = " ".join(str(error).split()).rstrip(".")
    return TableReadError(
        f"{file}: could not be read as {kind}; it may be truncated, or not be what its name says ({reason})."
    )


def _read_parquet(file: Path, pick: Pick) -> pa.Table:
    import pyarrow.parquet as pq

    schema = _folder_schema(file) if file.is_dir() else pq.read_schema(file)
    check_unique(schema.names)
    columns = pick(schema.names)
    # Text comes as dictionaries: Parquet has it encoded already. A dot would mean a field of a struct.
    text = [
        field.name
        for field in schema
        if (pa.types.is_string(field.type) or pa.types.is_large_string(field.type)) and "." not in field.name
    ]
    return pq.read_table(file, columns=columns, read_dictionary=text)


def _folder_schema(folder: Path) -> pa.Schema:
    """Schema of a folder of Parquet files, which must all have the same columns."""
    import pyarrow.parquet as pq

    parts = [part for part in sorted(folder.rglob("*")) if part.is_file() and part.name[0] not in "._"]
    if not any(part.name.lower().endswith(PARQUET) for part in parts):
        raise TableReadError(f"{folder}: expected a folder with .parquet files in it, found none.")
    first: dict[str, Any] = {}
    for part in parts:
        try:
            fields = {field.name: field.type for field in pq.read_schema(part)}
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(part, "Parquet", error) from error
        first = first or fields
        for name in first.keys() | fields.keys():
            if first.get(name) != fields.get(name):
                raise TableReadError(
                    f"{part}: column {name!r} is {fields.get(name, 'not there')}, in {parts[0].name} it is "
                    f"{first.get(name, 'not there')}. Expected files with the same columns; write one of them anew."
                )
    schema: pa.Schema = pq.ParquetDataset(folder).schema
    return schema


def _read_csv(file: Path, pick: Pick, sep: str | None) -> pa.Table:
    from pyarrow import csv as arrow_csv

    with pa.input_stream(str(file)) as stream:
        start = stream.read(HEAD_BYTES)
    try:
        head = codecs.getincrementaldecoder("utf-8-sig")().decode(start)
    except UnicodeDecodeError as error:
        raise _not_utf8(file) from error
    separator = sep if sep is not None else _sniff_separator(head)
    lines = head.splitlines()
    names = next(csv.reader(lines, delimiter=separator), [])
    check_unique(names)
    columns = pick(names)
    if len(lines) == 1 and len(start) < HEAD_BYTES:
        return pa.table({name: pa.nulls(0) for name in names})
    table = arrow_csv.read_csv(
        str(file),
        parse_options=arrow_csv.ParseOptions(delimiter=separator),
        convert_options=arrow_csv.ConvertOptions(
            null_values=[""], strings_can_be_null=True, include_columns=columns or []
        ),
    )
    if any(pa.types.is_binary(kind) for kind in table.schema.types):
        raise _not_utf8(file)
    return table


def _not_utf8(file: Path) -> TableReadError:
    return TableReadError(
        f"{file}: could not be read as CSV: expected text in UTF-8. Save it as UTF-8, or check that it is what its "
        "name says."
    )


def _sniff_separator(head: str) -> str:
    """The separator that gives the first lines the same number of fields, or else the header the most."""
    lines = head.splitlines()
    lines = lines[:20] if len(head) < HEAD_BYTES or len(lines) < 2 else lines[:-1][:20]

    def fields(separator: str) -> tuple[int, int]:
        counts = [len(row) for row in csv.reader(lines, delimiter=separator) if row]
        header = counts[0] if counts else 0
        return (header if header > 1 and len(set(counts)) == 1 else 0, header)

    return max(SEPARATORS, key=lambda separator: (fields(separator), -SEPARATORS.index(separator)))


def _read_feather(file: Path, pick: Pick) -> pa.Table:
    from pyarrow import ipc

    with pa.memory_map(str(file)) as source:
        try:
            reader: Any = ipc.open_file(source)
        except pa.ArrowInvalid:
            # `.arrow` files may hold the stream format.
            source.seek(0)
            reader = ipc.open_stream(source)
        names = reader.schema.names
        check_unique(names)
        columns = pick(names)
        table = reader.read_all()
    return table if columns is None else table.select(columns)
