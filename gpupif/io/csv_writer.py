"""The writer of CSV, which uses all cores. Each repeating number becomes text once; lines are joined from texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import IO, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from ..rows.threads import Spares, Workers
from ..utils.repeated import Repeated, find_repeated
from .row_group import ArrowColumn, RowGroup

# Cells whose lines one task joins.
BLOCK_CELLS = 1 << 18
SEPARATOR = ","
TEXT = pa.large_string()
# Types of columns that are searched for repeating numbers.
NUMBERS = (pa.int32(), pa.uint32(), pa.int64(), pa.uint64(), pa.float32(), pa.float64())
# Tests for types whose values are written without quotes.
UNQUOTED = (
    pa.types.is_null,
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_temporal,
)


class CsvWriter:
    """A writer of rows of one schema to `sink`, byte for byte as Arrow writes CSV. threads: see `Workers`."""

    def __init__(self, sink: IO[bytes], schema: pa.Schema, threads: int | None = None) -> None:
        self._sink = sink
        self._threads = threads
        # Memory for lines, used again by later blocks.
        self._buffers = Spares[npt.NDArray[np.uint8]](lambda: np.empty(0, np.uint8))
        header = pa.BufferOutputStream()
        arrow_csv.write_csv(schema.empty_table(), header)
        sink.write(header.getvalue())

    def __enter__(self) -> CsvWriter:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def write(self, groups: Iterable[RowGroup]) -> None:
        """Write rows. Several threads join lines; one block of lines is written after the other."""
        with Workers(self._threads) as workers:
            for group in groups:
                columns = workers.run(_repeated, [(column,) for column in group.resolved()])
                distinct = [pa.array(column.distinct) for column in columns if isinstance(column, Repeated)]
                texts = _Texts.from_arrays(workers.run(as_fields, [(values,) for values in distinct]))
                rows = max(1, BLOCK_CELLS // max(1, len(columns)))
                blocks = [
                    ([column[start : start + rows] for column in columns], texts)
                    for start in range(0, len(group), rows)
                ]
                workers.run_in_turn(self._lines, self._put, blocks)

    def _lines(self, columns: Sequence[ArrowColumn | Repeated], texts: _Texts) -> tuple[npt.NDArray[np.uint8], int]:
        """Return a buffer that begins with the lines of some rows, and the number of their bytes.

        texts: the texts of all repeating numbers, column by column.
        """
        from gpupif.kernels.csv_lines import put_lines
        from gpupif.kernels.intrinsics import STEP

        rows = len(columns[0])
        numbers = np.empty((len(columns), rows), np.uint32)
        own: list[pa.Array] = []
        first, first_own = 0, len(texts.starts) - 1
        for place, column in enumerate(columns):
            if isinstance(column, Repeated):
                np.add(column.numbers, first, out=numbers[place])
                first += len(column.distinct)
            else:
                numbers[place] = np.arange(first_own, first_own + rows)
                first_own += rows
                own.append(as_fields(column))
        row_texts = _Texts.from_arrays(own)
        most = (len(columns) - len(own)) * texts.longest * rows + int(row_texts.starts[-1]) + numbers.size + STEP
        buffer = self._buffers.take()
        if len(buffer) < most:
            buffer = np.empty(most, np.uint8)
        parts = (texts.starts, texts.data, row_texts.starts, row_texts.data)
        return buffer, put_lines(numbers, *parts, ord(SEPARATOR), buffer)

    def _put(self, lines: tuple[npt.NDArray[np.uint8], int]) -> None:
        buffer, size = lines
        self._sink.write(buffer[:size].data)
        self._buffers.give_back(buffer)


class _Texts(NamedTuple):
    """Texts one after the other in one buffer.

    starts: the byte of `data` at which each text begins, and at the end the byte after the last text. longest: the
    bytes of the longest text.
    """

    starts: npt.NDArray[np.int64]
    data: npt.NDArray[np.uint8]
    longest: int

    @classmethod
    def from_arrays(cls, arrays: Sequence[pa.Array]) -> _Texts:
        """Return the texts of all arrays, with `STEP` bytes after them that kernels may read."""
        from gpupif.kernels.intrinsics import STEP

        _, starts, data = pa.concat_arrays([*arrays, pa.array([" " * STEP], TEXT)]).buffers()
        edges = np.frombuffer(starts, np.int64)[: sum(map(len, arrays)) + 1]
        return cls(edges, np.frombuffer(data, np.uint8), int(np.diff(edges).max(initial=0)))


def _repeated(column: ArrowColumn | Repeated) -> ArrowColumn | Repeated:
    """Return a column of repeating numbers as `Repeated`, and any other column as it is."""
    if isinstance(column, Repeated) or column.type not in NUMBERS or column.null_count:
        return column
    return find_repeated(column.to_numpy()) or column


def as_fields(column: ArrowColumn) -> pa.Array:
    """Return values as fields of CSV: numbers that read back the same, text in quotes, "" for a missing value."""
    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    texts = values.cast(TEXT)
    if not any(is_one(values.type) for is_one in UNQUOTED):
        quote, between = pa.scalar('"', TEXT), pa.scalar("", TEXT)
        texts = pc.binary_join_element_wise(quote, pc.replace_substring(texts, '"', '""'), quote, between)
    return texts.fill_null("")
