"""Parquet files, read whole and in streams, and written. Folder names may hold columns, as in sex=F/part.parquet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import TableReadError
from ..utils.validation import check_unique
from .base import (
    Describe,
    FileFormat,
    Input,
    Pick,
    Source,
    check_alike,
    check_values,
    every_column,
    mark_encoded,
    pandas_index_names,
    types_of,
)
from .file_errors import unreadable
from .parquet_writer import ParquetWriter

# Bytes of a column that are read from disk at once.
READ_BYTES = 1 << 20
# Bytes of a dictionary in a Parquet file at most, and of a row's place in the dictionary.
DICTIONARY_BYTES, CODE_BYTES = 2 << 20, 4
# The text for a missing value in the name of a folder.
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


class ParquetFormat(FileFormat):
    """The format Parquet."""

    name = "Parquet"
    endings = (".parquet", ".pq")
    written = endings
    dataset = "parquet"
    codecs = ("zstd", "lz4", "snappy", "none")
    repeated = True

    def read(self, input_files: Input, pick: Pick) -> pa.Table:
        """See `FileFormat`; columns of text are dictionaries, see `decode`."""
        files, schema, keys, columns = open_parquet(input_files, pick)
        text = text_columns(schema)

        def read(source: Any) -> pa.Table:
            table = pq.read_table(source, columns=columns, read_dictionary=text, partitioning=keys)
            check_values(zip(table.column_names, table.columns, strict=True))
            return table

        try:
            table = read(files if input_files.is_folder_or_pattern else input_files.path)
        except (pa.ArrowException, OSError):
            # Arrow does not say which file failed, so read the files one by one.
            for file in files if input_files.is_folder_or_pattern else ():
                try:
                    read([file])
                except (pa.ArrowException, OSError) as error:
                    raise unreadable(file, "Parquet", error) from error
            raise
        return mark_encoded(table, text, {name for name in text if pa.types.is_large_string(schema.field(name).type)})

    def open(self, input_files: Input) -> Source:
        return ParquetSource(input_files)

    def writer(self, sink: IO[bytes], file: Path, schema: pa.Schema, describe: Describe) -> Any:
        return ParquetWriter(sink, schema, self.codec(file))

    def finish(self, writer: Any, describe: Describe) -> None:
        writer.add_key_value_metadata(describe())


class ParquetTable(NamedTuple):
    """Parquet files that all have the same columns.

    files: in order of their paths.
    schema: the columns of the table, also the columns that names of folders hold.
    keys: the partitioning of `pyarrow.dataset` with the columns that names of folders hold; None if there are none.
    columns: the columns to read; None: all.
    """

    files: list[Path]
    schema: pa.Schema
    keys: Any
    columns: list[str] | None


def open_parquet(input_files: Input, pick: Pick) -> ParquetTable:
    """Return Parquet files as one table.

    Raises TableReadError if the files differ in a column, or if both files and names of folders hold a column.
    """
    import pyarrow.dataset as ds

    file, files = input_files.path, list(input_files.files)
    keys = None
    if input_files.is_folder_or_pattern:
        check_alike(files, "Parquet", lambda file: types_of(pq.read_schema(file)))
        own = pq.read_schema(files[0]).names
        segments = [segment for part in files for segment in part.relative_to(input_files.base).parts[:-1]]
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
    schema = pq.ParquetDataset(files if input_files.is_folder_or_pattern else file, partitioning=keys).schema
    check_unique(schema.names)
    pandas_index_names(schema)
    return ParquetTable(files, schema, keys, pick(schema.names))


def _are_codes(segments: Iterable[str], name: str) -> bool:
    """Return whether a column that names of folders hold must stay text, since a value is no whole number: 01 is not 1.

    segments: the names of the folders, such as sex=F.
    """
    texts = [
        unquote(value) for key, _, value in (segment.partition("=") for segment in segments) if unquote(key) == name
    ]
    try:
        return any(str(int(text)) != text for text in texts if text != NO_VALUE)
    except ValueError:
        return True


def keys_of_files(table: ParquetTable) -> dict[Path, dict[str, Any]]:
    """Return for each file the values of the columns that the names of its folders hold."""
    import pyarrow.dataset as ds

    if table.keys is None:
        return {file: {} for file in table.files}
    dataset = ds.dataset([str(file) for file in table.files], partitioning=table.keys)
    keys = [ds.get_partition_keys(fragment.partition_expression) for fragment in dataset.get_fragments()]
    return dict(zip(table.files, keys, strict=True))


def text_columns(schema: pa.Schema) -> list[str]:
    """Return the columns of text that are read as dictionaries, which Parquet files already have.

    Columns with a dot in their name are left out: Arrow takes such a name for a field of a struct.
    """
    kinds = (pa.types.is_string, pa.types.is_large_string)
    return [field.name for field in schema if any(kind(field.type) for kind in kinds) and "." not in field.name]


class ParquetSource(Source):
    """Parquet files, opened to be read; the names of their folders may hold columns."""

    def __init__(self, input_files: Input) -> None:
        try:
            self._table = open_parquet(input_files, every_column)
            self._keys = keys_of_files(self._table)
            self.rows = 0
            plain: set[str] = set()
            for file in input_files.files:
                metadata = pq.read_metadata(file)
                self.rows += metadata.num_rows
                plain |= _plain_columns(metadata)
        except (pa.ArrowException, OSError) as error:
            raise unreadable(input_files.path, "Parquet", error) from error
        schema = self._table.schema
        super().__init__(input_files, schema.names)
        self.index_names = pandas_index_names(schema)
        self.folder_columns = [] if self._table.keys is None else self._table.keys.schema.names
        self._text = text_columns(schema)
        self._encoded = [name for name in self._text if name not in plain]

    def as_given(self, chunk: pa.Table) -> pa.Table:
        given = self._table.schema
        kinds = [given.field(field.name) if field.name in self._text else field for field in chunk.schema]
        return chunk.cast(pa.schema(kinds))

    def nothing(self) -> pa.Table:
        return self._table.schema.remove_metadata().empty_table()

    def _read_file(self, file: Path, columns: list[str], rows: int, size: int) -> Iterator[pa.Table]:
        schema, keys = self._table.schema, self._keys[file]
        own = [name for name in columns if name not in keys]
        # Do not buffer ahead: a row group may be as large as the table.
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
    """Return large_string as string, which dictionaries have: some files of a table may be read as dictionaries."""
    return column.cast(pa.string()) if pa.types.is_large_string(column.type) else column


def _plain_columns(metadata: Any) -> set[str]:
    """Return the columns that a file does not store as dictionaries.

    Arrow would build a dictionary of a whole row group for such a column. The size of a chunk tells: a dictionary and
    its indices take at most `DICTIONARY_BYTES` and `CODE_BYTES` a value.
    """
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
    """Return the bytes of all row groups of a Parquet file before compression."""
    return sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
