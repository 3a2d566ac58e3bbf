"""Feather (Arrow IPC) files, read whole and in streams, and written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from ..rows.threads import default_threads
from .base import Describe, FileFormat, Input, Source, check_alike, check_values, pandas_index_names, types_of
from .row_group import RowGroup


class FeatherFormat(FileFormat):
    """The format Feather: Arrow IPC, as a file or as a stream."""

    name = "Feather"
    endings = (".feather", ".arrow", ".ipc")
    written = endings
    dataset = "ipc"
    codecs = ("lz4", "zstd", "none")
    metadata_last = False

    def open(self, input_files: Input) -> Source:
        return FeatherSource(input_files)

    def writer(self, sink: IO[bytes], file: Path, schema: pa.Schema, describe: Describe) -> Any:
        codec = self.codec(file)
        schema = schema.with_metadata({**(schema.metadata or {}), **describe()})
        compression = None if codec == "none" else codec
        options = ipc.IpcWriteOptions(
            compression=compression, use_threads=default_threads() > 1, emit_dictionary_deltas=True
        )
        return ipc.new_file(sink, schema, options=options)

    def write(self, writer: Any, groups: Sequence[RowGroup]) -> None:
        for group in groups:
            writer.write_table(group.table())


def feather_fields(file: Path) -> dict[str, object]:
    """Return the columns of a Feather file. Raises pyarrow.ArrowInvalid, also if pandas' note in it is damaged."""
    schema = open_feather(file)[0]
    pandas_index_names(schema)
    return types_of(schema)


def open_feather(file: Path, columns: Sequence[str] | None = None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the schema of a Feather file, and its batches of rows, each of which is read when it is taken.

    columns: the columns of the batches. Default: all.
    """
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


class FeatherSource(Source):
    """Feather (Arrow IPC) files, opened to be read."""

    def __init__(self, input_files: Input) -> None:
        check_alike(input_files.files, "Feather", feather_fields)
        self._schema = schema = open_feather(input_files.files[0])[0]
        super().__init__(input_files, schema.names)
        self.index_names = pandas_index_names(schema)

    def nothing(self) -> pa.Table:
        return self._schema.remove_metadata().empty_table()

    def _read_file(self, file: Path, columns: list[str], rows: int, size: int) -> Iterator[pa.Table]:
        for batch in open_feather(file, columns)[1]:
            table = pa.Table.from_batches([batch]).select(columns)
            check_values(zip(columns, table.columns, strict=True))
            yield table


class GrowingDictionaries:
    """The values so far of each column of categories of a file.

    A later batch of Arrow IPC may add values to a dictionary, and must keep the number of each value.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._numbers: dict[str, dict[Any, int]] = {
            field.name: {} for field in schema if pa.types.is_dictionary(field.type)
        }

    def grown(self, table: pa.Table) -> pa.Table:
        """Return the rows of `table` with dictionaries that begin with the values of all batches before."""
        from gpupif.kernels.codes import recode

        for name, number_of in self._numbers.items():
            place = table.column_names.index(name)
            field = table.schema.field(place)
            column = table.column(place).unify_dictionaries().combine_chunks()
            chunk = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
            renumbered = [number_of.setdefault(value, len(number_of)) for value in chunk.dictionary.to_pylist()]
            codes = chunk.indices.cast(pa.int64()).fill_null(len(renumbered)).to_numpy(zero_copy_only=False)
            numbers = np.empty(len(codes), np.int32)
            recode(codes, 0, np.array([*renumbered, -1], np.int64), numbers)
            values = pa.array(list(number_of), field.type.value_type)
            indices = pa.array(numbers, mask=numbers < 0).cast(field.type.index_type)
            array = pa.DictionaryArray.from_arrays(indices, values, ordered=field.type.ordered)
            table = table.set_column(place, field, array)
        return table
