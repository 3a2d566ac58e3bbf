"""Tables from files: Parquet, CSV (see `csv_text`), Feather."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

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


class ParquetTable(NamedTuple):
    """A Parquet file or folder: files in order of their paths, all with the same columns, and its columns.

    keys: those that names of folders hold, as in sex=F/part.parquet, None where there are none. columns: which to read,
    None for all.
    """

    files: list[Path]
    schema: pa.Schema
    keys: Any
    columns: list[str] | None


def open_parquet(file: Path, pick: Pick) -> ParquetTable:
    """What a Parquet file or folder holds; raises TableReadError where its parts do not fit together."""
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    files = _parquet_files(file) if file.is_dir() else [file]
    keys = None
    if file.is_dir():
        own = pq.read_schema(files[0]).names
        segments = [segment for part in files for segment in part.relative_to(file).parts[:-1]]
        held = dict.fromkeys(unquote(segment.partition("=")[0]) for segment in segments if "=" in segment)
        twice = [name for name in held if name in own]
        if twice:
            raise TableReadError(
                f"{file}: the names of its folders hold column {twice[0]!r}, and so do its files. Rename the folders."
            )
        if held:
            found = ds.dataset([str(part) for part in files], partitioning="hive")
            keys = ds.partitioning(pa.schema([found.schema.field(name) for name in held]), flavor="hive")
    schema = pq.ParquetDataset(files if file.is_dir() else file, partitioning=keys).schema
    check_unique(schema.names)
    return ParquetTable(files, schema, keys, pick(schema.names))


def keys_of_files(table: ParquetTable) -> dict[Path, dict[str, Any]]:
    """For each file the values of the columns that the names of its folders hold."""
    import pyarrow.dataset as ds

    if table.keys is None:
        return {file: {} for file in table.files}
    found = ds.dataset([str(file) for file in table.files], partitioning=table.keys)
    parts = [ds.get_partition_keys(fragment.partition_expression) for fragment in found.get_fragments()]
    return dict(zip(table.files, parts, strict=True))


def _read_parquet(file: Path, pick: Pick) -> pa.Table:
    import pyarrow.parquet as pq

    files, schema, keys, columns = open_parquet(file, pick)
    # Text comes as dictionaries: Parquet has it encoded already. A dot would mean a field of a struct.
    text = [
        field.name
        for field in schema
        if (pa.types.is_string(field.type) or pa.types.is_large_string(field.type)) and "." not in field.name
    ]
    source = files if file.is_dir() else file
    return mark_encoded(pq.read_table(source, columns=columns, read_dictionary=text, partitioning=keys), text)


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
