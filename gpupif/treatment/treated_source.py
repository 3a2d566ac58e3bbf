"""Files after some steps, as a `Source`: every function that reads files can read treated files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..encoding.plain_values import family, plain_labels, plain_type
from ..errors import InputError
from ..frames.arrow_frame import other_column, other_type
from ..frames.replacement import Replacement
from ..io.base import Source
from ..io.read import in_chunks
from ..out_of_core.chunk_scores import prefetched
from .coded_columns import coded_column
from .steps import Chunk, StepCounts, Steps

# The most rows of a chunk that steps are applied to.
CHUNK_ROWS = 1 << 18


class TreatedSource(Source):
    """Files after some steps.

    counts: list of `StepCounts`, an item for each step. The changes so far, if `counted` is True.
    counted: bool. Whether changes are counted while rows are read. Default False.
    coded: bool. Whether changed text is read as dictionaries, as Parquet encodes it: writing is faster. Default False.
    masked: bool. Whether reading no columns gives a boolean for each original row, True if the row is left. Default
        False: reading no columns gives a null for each row that is left.
    plain: bool. Whether changed columns are read in the plain types of steps, else in the types of the output.
    """

    def __init__(self, source: Source, steps: Steps, plain: bool = False) -> None:
        super().__init__(source.input_files, steps.names)
        self.stamps = source.stamps
        self.ascending = source.ascending
        self.index_names = [name for name in source.index_names if name in self.names]
        self.folder_columns = [name for name in source.folder_columns if name in self.names]
        self.counts = [StepCounts() for _ in steps.applied]
        self.counted = self.coded = self.masked = False
        self._base = source
        self._steps = steps
        self._plain = plain
        self._loses_rows = any(step.removes_rows for step, _ in steps.applied)
        self._given = source.nothing().schema
        self._schema = pa.schema([self._field(name) for name in self.names])
        # For each file and each step, the number of the file's first row among the rows before that step.
        self._starts = {source.input_files.files[0]: [0] * (len(steps.applied) + 1)}
        self.rows = None if self._loses_rows else source.rows

    def _field(self, name: str) -> pa.Field:
        given = self._given.field(name)
        if name not in self._steps.types:
            # The metadata may describe rows that are removed.
            return given.remove_metadata() if self._loses_rows else given
        labels, values = self._steps.types[name], given.type
        values = values.value_type if pa.types.is_dictionary(values) else values
        return pa.field(name, labels if self._plain else other_type(labels, plain_type(values), given.type))

    def about_rows(self) -> int:
        return self._base.about_rows()

    def nothing(self) -> pa.Table:
        return self._schema.empty_table()

    def as_given(self, chunk: pa.Table) -> pa.Table:
        """Return a chunk with the types of the output, see `Source`: dictionaries become text again."""
        kinds = pa.schema([self._schema.field(name) for name in chunk.column_names])
        return chunk if chunk.schema.equals(kinds) else chunk.cast(kinds)

    def starts_after(self, file: Path) -> list[int]:
        """Return the number of the first row after a file that was read, before each step and after the last."""
        return self._starts[self.next_file(file)]

    def begin(self, file: Path, starts: Sequence[int]) -> None:
        """Set the number of a file's first row, before each step and after the last, see `starts_after`."""
        self._starts[file] = list(starts)

    @property
    def changed(self) -> list[str]:
        """The names of original columns that were changed or dropped."""
        return [name for name in self._base.names if name in self._steps.types or name not in self.names]

    def next_file(self, file: Path) -> Path:
        """Return the file after another file; an empty path after the last."""
        files = [*self.input_files.files, Path()]
        return files[files.index(file) + 1]

    def _read_file(self, file: Path, columns: list[str], rows: int, size: int) -> Iterator[pa.Table]:
        if file not in self._starts:
            before = self.input_files.files[list(self.input_files.files).index(file) - 1]
            for _ in self._read_file(before, [], rows, size):
                pass
        starts = list(self._starts[file])
        needed, read = self._steps.needed(columns, self.counted)
        # If no column is needed, the first column is read to count the rows.
        names = [name for name in self._base.names if name in read] or self._base.names[:1]
        chunks = in_chunks(self._base.read_file(file, names, rows, size), min(CHUNK_ROWS, rows), max(1, size))
        with contextlib.closing(prefetched(chunks)) as read_ahead:
            for chunk in read_ahead:
                self.bytes_read = self._base.bytes_read
                yield self._treat(chunk, needed, starts, columns)
        self._starts[self.next_file(file)] = starts

    def _treat(self, table: pa.Table, needed: Sequence[bool], starts: list[int], columns: Sequence[str]) -> pa.Table:
        """Apply the needed steps to a chunk, and advance `starts` by its rows before each step and after the last."""
        chunk = Chunk(table.column_names, table.num_rows, lambda name: coded_column(name, table.column(str(name))))
        for number, ((step, said), is_needed) in enumerate(zip(self._steps.applied, needed, strict=True)):
            start, starts[number] = starts[number], starts[number] + chunk.rows
            if is_needed:
                chunk.apply(step, start, said, self.counts[number] if self.counted else None)
        starts[-1] += chunk.rows
        if not columns:
            kept = pa.array(chunk.kept_rows(table.num_rows)) if self.masked else pa.nulls(chunk.rows)
            return pa.table({"": kept})
        return pa.Table.from_arrays([self._array(name, table, chunk) for name in columns], names=list(columns))

    def _array(self, name: str, table: pa.Table, chunk: Chunk) -> Any:
        """Return a column of a treated chunk in its type for readers."""
        kind = self._schema.field(name).type
        if name not in self._steps.types and name not in chunk.replaced:
            return table.column(name) if chunk.kept is None else table.column(name).filter(pa.array(chunk.kept))
        column, given = chunk[name], self._given.field(name).type
        if self._plain and name in self._steps.types:
            labels = column.labels if column.labels.type == kind else plain_labels(column.labels).cast(kind)
            missing = column.codes == len(labels)
            return pa.DictionaryArray.from_arrays(pa.array(column.codes.astype(np.int32), mask=missing), labels)
        values = given.value_type if pa.types.is_dictionary(given) else given
        if self.coded and pa.types.is_string(kind) and family(column.labels.type) == "text":
            given = pa.dictionary(pa.int32(), kind)
        array = other_column(Replacement(column.codes, column.labels, plain_type(values)), given)
        if self.coded and array.type == given:
            return array
        try:
            return array if array.type == kind else array.cast(kind)
        except pa.ArrowException as error:
            raise InputError(
                f"column {name!r}: some of its new values do not fit into its type, {kind} ({error}). Make it a wider "
                "type first."
            ) from error


class TypedSource(Source):
    """A source of text files with other types for some columns. types: Arrow type by column name."""

    def __init__(self, source: Source, types: Mapping[str, pa.DataType]) -> None:
        super().__init__(source.input_files, source.names)
        self.ascending, self.index_names, self.rows = source.ascending, source.index_names, source.rows
        self.folder_columns = source.folder_columns
        self.stamps = source.stamps
        self._source = source
        self._types = types

    def nothing(self) -> pa.Table:
        table = self._source.nothing()
        kinds = [field.with_type(self._types.get(field.name, field.type)) for field in table.schema]
        return pa.schema(kinds).empty_table()

    def as_given(self, chunk: pa.Table) -> pa.Table:
        """Return a chunk with the given types, see `Source`."""
        return chunk.cast(pa.schema([self.nothing().schema.field(name) for name in chunk.column_names]))

    def about_rows(self) -> int:
        return self._source.about_rows()

    def _read_file(self, file: Path, columns: list[str], rows: int, size: int) -> Iterator[pa.Table]:
        for chunk in self._source._read_file(file, columns, rows, size):
            self.bytes_read = self._source.bytes_read
            arrays = [self._typed(name, chunk.column(name)) for name in columns]
            yield pa.table(arrays, names=columns)

    def _typed(self, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
        kind = self._types.get(name)
        if kind is None or not len(column):
            return column if kind is None else pa.chunked_array([], kind)
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        arrays = [
            pa.DictionaryArray.from_arrays(array.indices, typed_labels(array.dictionary, kind))
            for array in column.chunks
        ]
        return pa.chunked_array(arrays, pa.dictionary(column.type.index_type, kind))


def typed_labels(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the values that texts denote. kind: the type of the values; all texts of the column must fit it.

    Adding 0.0 to floats turns -0.0 into 0.0: both are one value.
    """
    values = texts.cast(kind)
    return pc.add(values, 0.0) if pa.types.is_floating(kind) else values
