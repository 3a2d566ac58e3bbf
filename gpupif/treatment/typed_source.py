"""Files of text with the values that their texts stand for, which only all of a column's texts say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ..io.base import Source


class TypedSource(Source):
    """A source of text some columns of which have other types; types: of these."""

    def __init__(self, source: Source, types: Mapping[str, pa.DataType]) -> None:
        super().__init__(source.found, source.names)
        self.ascending, self.index_names, self.rows = source.ascending, source.index_names, source.rows
        self.folder_columns = source.folder_columns
        self.stamps = source.stamps
        self._source = source
        self._types = types

    def nothing(self) -> pa.Table:
        table = self._source.nothing()
        kinds = [field.with_type(self._types.get(field.name, field.type)) for field in table.schema]
        return pa.schema(kinds).empty_table()

    def as_given(self, piece: pa.Table) -> pa.Table:
        """See `Source`."""
        return piece.cast(pa.schema([self.nothing().schema.field(name) for name in piece.column_names]))

    def about_rows(self) -> int:
        return self._source.about_rows()

    def _read_file(self, file: Path, columns: list[str], rows: int, size: int) -> Iterator[pa.Table]:
        for piece in self._source._read_file(file, columns, rows, size):
            self.bytes_read = self._source.bytes_read
            arrays = [self._typed(name, piece.column(name)) for name in columns]
            yield pa.table(arrays, names=columns)

    def _typed(self, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
        kind = self._types.get(name)
        if kind is None or not len(column):
            return column if kind is None else pa.chunked_array([], kind)
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        chunks = [
            pa.DictionaryArray.from_arrays(chunk.indices, typed_labels(chunk.dictionary, kind))
            for chunk in column.chunks
        ]
        return pa.chunked_array(chunks, pa.dictionary(column.type.index_type, kind))


def typed_labels(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Texts of a column as the values that they stand for; kind: their type, which all texts of the column fit."""
    values = texts.cast(kind)
    return pc.add(values, 0.0) if pa.types.is_floating(kind) else values
