"""Tables from files: Parquet, CSV (see `csv_text`), Feather."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from .errors import InputError, TableReadError
from .names import check_unique

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz")
FEATHER = (".feather", ".arrow", ".ipc")
# Names of columns that were read as dictionaries to save time, though they are none in the file.
ENCODED = b"gpupif.encoded"

# From the names that a file has, which columns to read (None: all); may raise.
Pick = Callable[[Sequence[str]], list[str] | None]


def every_column(_: Sequence[str]) -> list[str] | None:
    """The `Pick` that reads all columns."""
    return None


def read_table(path: str | os.PathLike[str], pick: Pick = every_column, sep: str | None = None) -> pa.Table:
    """Read a Parquet file or folder of them, a CSV file or a Feather (Arrow IPC) file.

    sep: separator of a CSV file; by default the one of , ; tab | that its first lines agree on. An empty CSV field
    is a missing value; a column becomes numbers or dates only where every text reads the same back.

    Raises TableReadError for a file that is missing, empty, truncated, or not what its name says, and InputError
    where column names repeat or `sep` is no separator.
    """
    from .csv_text import read_csv

    file = Path(path)
    kind = kind_of_file(file, sep)
    read: dict[str, Callable[[], pa.Table]] = {
        "Parquet": lambda: _read_parquet(file, pick),
        "CSV": lambda: read_csv(file, pick, sep),
        "Feather": lambda: _read_feather(file, pick),
    }
    try:
        table = read[kind]()
    except (pa.ArrowException, OSError) as error:
        raise unreadable(file, kind, error) from error
    check_rows(file, table.num_rows, table.column_names)
    return table


def kind_of_file(file: Path, sep: str | None) -> str:
    """What a file is, "Parquet", "CSV" or "Feather", by its name; raises what `read_table` does."""
    from .csv_text import check_separator

    name = file.name.lower()
    if not file.exists():
        raise TableReadError(f"{file}: no such file or folder. Check the path.")
    is_csv = file.is_file() and name.endswith(CSV)
    if sep is not None:
        check_separator(sep)
        if not is_csv:
            raise InputError(f"sep: {file} is no CSV file, so it has no separator. Leave sep out.")
    if file.is_dir() or name.endswith(PARQUET):
        kind = "Parquet"
    elif is_csv:
        kind = "CSV"
    elif name.endswith(FEATHER):
        kind = "Feather"
    else:
        endings = ", ".join((*PARQUET, *CSV, *FEATHER))
        raise TableReadError(
            f"{file}: expected a folder of Parquet files or a file name ending in {endings}. Save anything else, "
            "such as a spreadsheet, as CSV."
        )
    if file.is_file() and file.stat().st_size == 0:
        raise TableReadError(f"{file}: the file is empty (0 bytes). Expected a {kind} file with a table in it.")
    return kind


def check_rows(file: Path, rows: int, names: Sequence[str]) -> None:
    """Raise TableReadError for a table without rows."""
    if rows == 0 and names:
        raise TableReadError(f"{file}: expected at least one row, got none (columns: {', '.join(names)}).")


def mark_encoded(table: pa.Table, names: Iterable[str]) -> pa.Table:
    """Note in the table which columns `decode` is to turn back."""
    return table.replace_schema_metadata({**(table.schema.metadata or {}), ENCODED: json.dumps(list(names)).encode()})


def decode(table: pa.Table) -> pa.Table:
    """The table with the types that its file has."""
    metadata = dict(table.schema.metadata or {})
    encoded = json.loads(metadata.pop(ENCODED, b"[]"))
    for position, name in enumerate(table.column_names):
        column = table.column(position)
        if name in encoded and pa.types.is_dictionary(column.type):
            table = table.set_column(position, name, column.cast(column.type.value_type))
    return table.replace_schema_metadata(metadata or None)


def pandas_index_names(schema: pa.Schema) -> list[str]:
    """Columns that pandas stored as its index: labels of rows, not values of persons."""
    metadata = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    return [name for name in metadata.get("index_columns", []) if isinstance(name, str) and name in schema.names]


def unreadable(file: Path, kind: str, error: Exception) -> TableReadError:
    """What to raise for a file that cannot be parsed."""
    reason = " ".join(str(error).split()).rstrip(".")
    return TableReadError(
        f"{file}: could not be read as {kind}; it may be truncated, or not be what its name says ({reason})."
    )


def open_parquet(file: Path, pick: Pick) -> tuple[list[Path], pa.Schema, list[str] | None]:
    """Files, schema and columns to read (None: all) of a Parquet file or folder; the files have the same columns."""
    import pyarrow.parquet as pq

    files = _parquet_files(file) if file.is_dir() else [file]
    schema = pq.ParquetDataset(files if file.is_dir() else file, partitioning=None).schema
    check_unique(schema.names)
    return files, schema, pick(schema.names)


def _read_parquet(file: Path, pick: Pick) -> pa.Table:
    import pyarrow.parquet as pq

    files, schema, columns = open_parquet(file, pick)
    # Text comes as dictionaries: Parquet has it encoded already. A dot would mean a field of a struct.
    text = [
        field.name
        for field in schema
        if (pa.types.is_string(field.type) or pa.types.is_large_string(field.type)) and "." not in field.name
    ]
    return mark_encoded(
        pq.read_table(files if file.is_dir() else file, columns=columns, read_dictionary=text, partitioning=None), text
    )


def _parquet_files(folder: Path) -> list[Path]:
    """Parquet files of a folder in order of their paths; they must all have the same columns."""
    import pyarrow.parquet as pq

    parts = [
        part
        for part in sorted(folder.rglob("*"))
        if part.name.lower().endswith(PARQUET) and not any(p[0] in "._" for p in part.relative_to(folder).parts)
    ]
    if not parts:
        raise TableReadError(f"{folder}: expected a folder with .parquet files in it, found none.")
    first: dict[str, Any] = {}
    for part in parts:
        try:
            fields = {field.name: field.type for field in pq.read_schema(part)}
        except (pa.ArrowException, OSError) as error:
            raise unreadable(part, "Parquet", error) from error
        first = first or fields
        for name in [*first, *fields]:
            if first.get(name) != fields.get(name):
                raise TableReadError(
                    f"{part}: column {name!r} is {fields.get(name, 'not there')}, in {parts[0].name} it is "
                    f"{first.get(name, 'not there')}. Expected files with the same columns; write one of them anew."
                )
    return parts


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
