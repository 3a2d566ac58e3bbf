"""CSV written by all cores: numbers that come again and again become text once, and lines are put together of texts."""

from __future__ import annotations

from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from ..rows.threads import Workers
from ..utils.repeated import find_repeated

# Cells whose lines are put together at once.
BLOCK_CELLS = 1 << 20
COUNTED = (pa.int32(), pa.uint32(), pa.int64(), pa.uint64(), pa.float32(), pa.float64())
TEXT = pa.large_string()
SEPARATOR = ord(",")


class CsvWriter:
    """Writes tables of one schema to `sink` as CSV; the bytes are those of Arrow. threads: see `Workers`."""

    def __init__(self, sink: IO[bytes], schema: pa.Schema, threads: int | None = None) -> None:
        self._sink = sink
        self._threads = threads
        # Memory for lines, used again.
        self._buffers: list[npt.NDArray[np.uint8]] = []
        header = pa.BufferOutputStream()
        arrow_csv.write_csv(schema.empty_table(), header)
        sink.write(header.getvalue())

    def __enter__(self) -> CsvWriter:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def write_table(self, table: pa.Table) -> None:
        """Write rows: threads put lines together at the same time, which go out one block after the other."""
        rows = max(1, BLOCK_CELLS // max(1, table.num_columns))
        blocks = [(table.slice(start, rows),) for start in range(0, len(table), rows)]
        with Workers(self._threads) as workers:
            workers.run_in_turn(self._lines, self._write, blocks)

    def _lines(self, block: pa.Table) -> tuple[npt.NDArray[np.uint8], int]:
        """The lines of some rows: so many bytes of a buffer."""
        from gpupif.kernels.lines import put_lines
        from gpupif.kernels.words import STEP

        columns = [_column_texts(column.combine_chunks()) for column in block.columns]
        numbers = np.empty((len(columns), len(block)), np.uint32)
        first = most = 0
        for place, column in enumerate(columns):
            np.add(column.numbers, first, out=numbers[place])
            first += len(column.texts)
            most += column.most_bytes + len(block)
        texts = pa.concat_arrays([*(column.texts for column in columns), pa.array([" " * STEP], TEXT)])
        _, starts, data = texts.buffers()
        buffer = self._buffers.pop() if self._buffers else np.empty(0, np.uint8)
        if len(buffer) < most + STEP:
            buffer = np.empty(most + STEP, np.uint8)
        starts, data = np.frombuffer(starts, np.int64), np.frombuffer(data, np.uint8)
        return buffer, put_lines(numbers, starts, data, SEPARATOR, buffer)

    def _write(self, lines: tuple[npt.NDArray[np.uint8], int]) -> None:
        buffer, size = lines
        self._sink.write(memoryview(buffer)[:size])
        self._buffers.append(buffer)


class _ColumnTexts(NamedTuple):
    """A column as texts and for each row the number of its own. most_bytes: of the texts of all rows."""

    texts: pa.Array
    numbers: npt.NDArray[Any]
    most_bytes: int


def _column_texts(column: pa.Array) -> _ColumnTexts:
    found = find_repeated(column.to_numpy()) if column.type in COUNTED and not column.null_count else None
    if found is None:
        texts = as_texts(column)
        return _ColumnTexts(texts, np.arange(len(texts), dtype=np.uint32), pc.sum(pc.binary_length(texts)).as_py())
    texts = as_texts(pa.array(found.distinct))
    longest = pc.max(pc.binary_length(texts)).as_py()
    return _ColumnTexts(texts, found.numbers, longest * len(column))


def as_texts(values: pa.Array) -> pa.Array:
    """Values as fields of CSV: numbers such that they read back the same, text in quotes, nothing for missing ones."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    texts = values.cast(TEXT)
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        quote, nothing = pa.scalar('"', TEXT), pa.scalar("", TEXT)
        texts = pc.binary_join_element_wise(quote, pc.replace_substring(texts, '"', '""'), quote, nothing)
    return texts.fill_null("")
