"""Tables from files: Parquet, CSV (see `csv_text`), Feather."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from ..errors import TableReadError
from ..utils.arrays import validate
from ..utils.names import check_unique
from .paths import Input, denied, find_input

# Names of columns that were read as dictionaries to save time, though they are none in the file.
ENCODED = b"gpupif.encoded"

# What stands for a missing value in the name of a folder.
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"

# From the names that a file has, which columns to read (None: all); may raise.
Pick = Callable[[Sequence[str]], list[str] | None]


def every_column(_: Sequence[str]) -> list[str] | None:
    """The `Pick` that reads all columns."""
    return None


def read_table(path: str | os.PathLike[str], pick: Pick = every_column, sep: str | None = None) -> pa.Table:
    """Read a Parquet, CSV or Feather (Arrow IPC) file, a folder of Parquet files, or files that a pattern matches.

    sep: separator of a CSV file; by default the one of , ; tab | that its first lines agree on. An empty CSV field
    is a missing value; a column becomes numbers or dates only where every text reads the same back.

    Raises TableReadError for a file that is missing, empty, truncated, or not what its name says, and InputError
    where column names repeat or `sep` is no separator.
    """
    from .csv_files import read_csv

    file = Path(path)
    found = find_input(file, sep)
    read: dict[str, Callable[[], pa.Table]] = {
        "Parquet": lambda: _read_parquet(found, pick),
        "CSV": lambda: read_csv(found.files, pick, sep),
        "Feather": lambda: _read_feather(found.files, pick),
    }
    try:
        table = read[found.kind]()
    except (pa.ArrowException, OSError) as error:
        raise unreadable(file, found.kind, error) from error
    check_rows(file, table.num_rows, table.column_names)
    return table


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
    """Columns that pandas stored as its index: labels of rows, not values of persons.

    Raises pyarrow.ArrowInvalid where its note is damaged.
    """
    try:
        index = json.loads((schema.metadata or {}).get(b"pandas", b"{}")).get("index_columns", [])
        return [name for name in index if isinstance(name, str) and name in schema.names]
    except (ValueError, AttributeError, TypeError) as error:
        raise pa.ArrowInvalid("what pandas noted of its index is damaged") from error


def unreadable(file: Path, kind: str, error: Exception) -> TableReadError:
    """What to raise for a file that cannot be read or parsed."""
    if isinstance(error, PermissionError):
        return denied(file, error)
    reason = " ".join(str(error).split()).rstrip(".")
    return TableReadError(
        f"{file}: could not be read as {kind}; it may be truncated, or not be what its name says ({reason})."
    )


def check_values(columns: Iterable[tuple[str, pa.ChunkedArray]]) -> None:
    """Raise pyarrow.ArrowInvalid, which names the column, for data that do not hold together."""
    for name, column in columns:
        try:
            validate(column)
        except pa.ArrowInvalid as error:
            raise pa.ArrowInvalid(f"column {name!r}: {error}") from error


class ParquetTable(NamedTuple):
    """Parquet files in order of their paths, all with the same columns, and these columns.

    keys: those that names of folders hold, as in sex=F/part.parquet, None where there are none. columns: which to read,
    None for all.
    """

    files: list[Path]
    schema: pa.Schema
    keys: Any
    columns: list[str] | None


def open_parquet(found: Input, pick: Pick) -> ParquetTable:
    """What Parquet files hold; raises TableReadError where they do not fit together."""
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    file, files = found.path, list(found.files)
    keys = None
    if found.several:
        check_alike(files, _fields_of)
        own = pq.read_schema(files[0]).names
        segments = [segment for part in files for segment in part.relative_to(found.base).parts[:-1]]
        held = dict.fromkeys(unquote(segment.partition("=")[0]) for segment in segments if "=" in segment)
        twice = [name for name in held if name in own]
        if twice:
            raise TableReadError(
                f"{file}: the names of its folders hold column {twice[0]!r}, and so do its files. Rename the folders."
            )
        if held:
            guessed = ds.dataset([str(part) for part in files], partitioning="hive").schema
            fields = [guessed.field(name) for name in held]
            fields = [field.with_type(pa.string()) if _are_codes(segments, field.name) else field for field in fields]
            keys = ds.partitioning(pa.schema(fields), flavor="hive")
    schema = pq.ParquetDataset(files if found.several else file, partitioning=keys).schema
    check_unique(schema.names)
    pandas_index_names(schema)
    return ParquetTable(files, schema, keys, pick(schema.names))


def _are_codes(segments: Iterable[str], name: str) -> bool:
    """Whether among the values of a column that names of folders hold one is no text of a number: 01 is not 1."""
    texts = [
        unquote(value) for key, _, value in (segment.partition("=") for segment in segments) if unquote(key) == name
    ]
    try:
        return any(str(int(text)) != text for text in texts if text != NO_VALUE)
    except ValueError:
        return True


def keys_of_files(table: ParquetTable) -> dict[Path, dict[str, Any]]:
    """For each file the values of the columns that the names of its folders hold."""
    import pyarrow.dataset as ds

    if table.keys is None:
        return {file: {} for file in table.files}
    found = ds.dataset([str(file) for file in table.files], partitioning=table.keys)
    parts = [ds.get_partition_keys(fragment.partition_expression) for fragment in found.get_fragments()]
    return dict(zip(table.files, parts, strict=True))


def text_columns(schema: pa.Schema) -> list[str]:
    """Columns of text, to be read as dictionaries: Parquet has them encoded already.

    Not those with a dot in their name, which would mean a field of a struct.
    """
    kinds = (pa.types.is_string, pa.types.is_large_string)
    return [field.name for field in schema if any(kind(field.type) for kind in kinds) and "." not in field.name]


def _read_parquet(found: Input, pick: Pick) -> pa.Table:
    import pyarrow.parquet as pq

    files, schema, keys, columns = open_parquet(found, pick)
    text = text_columns(schema)

    def read(source: Any) -> pa.Table:
        table = pq.read_table(source, columns=columns, read_dictionary=text, partitioning=keys)
        check_values(zip(table.column_names, table.columns, strict=True))
        return table

    try:
        table = read(files if found.several else found.path)
    except (pa.ArrowException, OSError):
        # Which of them it is, only reading them one by one shows.
        for file in files if found.several else ():
            try:
                read([file])
            except (pa.ArrowException, OSError) as error:
                raise unreadable(file, found.kind, error) from error
        raise
    return mark_encoded(table, text)


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


def _fields_of(file: Path) -> dict[str, object]:
    import pyarrow.parquet as pq

    try:
        return {field.name: field.type for field in pq.read_schema(file)}
    except (pa.ArrowException, OSError) as error:
        raise unreadable(file, "Parquet", error) from error


def feather_fields(file: Path) -> dict[str, object]:
    """Columns of a Feather file with their types."""
    try:
        schema = open_feather(file)[0]
        pandas_index_names(schema)
        return {field.name: field.type for field in schema}
    except (pa.ArrowException, OSError) as error:
        raise unreadable(file, "Feather", error) from error


def _read_feather(files: Sequence[Path], pick: Pick) -> pa.Table:
    check_alike(files, feather_fields)
    tables = []
    for file in files:
        try:
            schema, batches = open_feather(file)
            check_unique(schema.names)
            columns = pick(schema.names)
            table = pa.Table.from_batches(batches, schema)
            table = table if columns is None else table.select(columns)
            check_values(zip(table.column_names, table.columns, strict=True))
        except (pa.ArrowException, OSError) as error:
            raise unreadable(file, "Feather", error) from error
        tables.append(table)
    return pa.concat_tables(tables)


def open_feather(file: Path, columns: Sequence[str] | None = None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Schema of a Feather file, and its rows, of some columns only, when they are asked for."""
    from pyarrow import ipc

    source = pa.memory_map(str(file))
    try:
        opened: Any = ipc.open_file(source)
        if columns is not None:
            places = [opened.schema.get_field_index(name) for name in columns]
            opened = ipc.open_file(source, options=ipc.IpcReadOptions(included_fields=sorted(places)))
        return opened.schema, (opened.get_batch(number) for number in range(opened.num_record_batches))
    except pa.ArrowInvalid:
        # `.arrow` files may hold the stream format.
        source.seek(0)
        stream = ipc.open_stream(source)
        return stream.schema, iter(stream)
