"""The fast reader of large CSV files: all cores read chunks of the file to dictionaries.

It reads regular files: in UTF-8, quotes only around whole fields, no line of more than 64 KiB, 2 to 256 fields. Arrow
reads any other file, or reports the error in it.

Arrow takes 2.2 to 3.5 times as long for the same files, whole or in chunks cut at line breaks. Measured on tables of 1
and 10 million rows by 10 columns of few values.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..rows.threads import Spares, Workers, default_threads

TEXT = pa.dictionary(pa.int32(), pa.string())
# Bytes of the smallest file for which loading or compiling a kernel saves time.
SMALLEST = 1 << 23
# Bytes of a chunk, and of the longest line.
CHUNK_BYTES, LONGEST_LINE = 1 << 22, 1 << 16
# Chunks of a stream that are read at the same time, at most: each takes memory.
MOST_AHEAD = 4
# Distinct texts of a column that are numbered together: at first, and at most.
FEW_TEXTS, MOST_TEXTS = 1 << 12, 1 << 16
# Fields of a line, and slots for the texts of all columns together: both bound the memory that a chunk takes.
MOST_FIELDS, MOST_SLOTS = 1 << 8, 1 << 22


class Fields(NamedTuple):
    """The layout of the lines of a file.

    start: the place of the first line after the header, in bytes. separator: the character between fields. names: the
    columns to read. places: for each field the place of its column among `names`, -1 for a column that is not read.
    """

    start: int
    separator: str
    names: Sequence[str]
    places: Sequence[int]


def read_chunks(file: Path, fields: Fields) -> pa.Table | None:
    """Return columns of a file as dictionaries of texts, empty fields missing; None if Arrow must read it."""
    starts, reader = _chunk_starts(file, fields)
    try:
        with reader, Workers() as workers:
            chunks = workers.run(reader.read, [(start,) for start in starts])
    except (_OddChunkError, pa.ArrowInvalid):
        return None
    return pa.Table.from_batches([batch for chunk in chunks for batch in chunk], reader.schema) if chunks else None


def stream_chunks(file: Path, fields: Fields) -> Iterator[tuple[int, pa.Table]]:
    """Yield the chunks of a file, each with the byte of its end, up to the first chunk that Arrow must read."""
    starts, reader = _chunk_starts(file, fields)
    ahead = min(default_threads(), MOST_AHEAD)
    with reader, ThreadPoolExecutor(ahead) as pool:
        coming = deque(pool.submit(reader.read, start) for start in starts[:ahead])
        try:
            for place, start in enumerate(starts):
                batches = coming.popleft().result()
                coming.extend(pool.submit(reader.read, later) for later in starts[place + ahead : place + ahead + 1])
                yield min(reader.size, start + CHUNK_BYTES), pa.Table.from_batches(batches, reader.schema)
        except (_OddChunkError, pa.ArrowInvalid):
            return
        finally:
            pool.shutdown(cancel_futures=True)


def _chunk_starts(file: Path, fields: Fields) -> tuple[range, _ChunkReader]:
    """Return the byte at which each chunk of a file begins, and the reader of the chunks.

    There are no chunks if Arrow must read the whole file.
    """
    reader = _ChunkReader(file, fields)
    # In a file of one column an empty line is a missing value.
    is_regular = reader.size >= SMALLEST and 2 <= len(fields.places) <= MOST_FIELDS and not is_packed(file)
    return range(fields.start, reader.size if is_regular else 0, CHUNK_BYTES), reader


def is_packed(file: Path) -> bool:
    """Return whether a file is compressed, by its name."""
    return file.name.lower().endswith(".gz")


class _OddChunkError(Exception):
    """A chunk of an irregular file, which Arrow must read."""


class _ChunkReader:
    """A reader of chunks of a file, which several threads may use at the same time; a context manager.

    size: the bytes of the file. schema: the schema of the chunks. The file stays open: if another file gets its name
    meanwhile, the chunks are still those of one file.
    """

    def __init__(self, file: Path, fields: Fields) -> None:
        self._opened = file.open("rb", buffering=0)
        self._fields = fields
        self.size = os.fstat(self._opened.fileno()).st_size
        self.schema = pa.schema([(name, TEXT) for name in fields.names])
        self._places = np.array(fields.places, np.int64)
        self._most = FEW_TEXTS
        # Memory for the bytes of a chunk and for the texts in it.
        self._memory = Spares(_memory)

    def __enter__(self) -> _ChunkReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def read(self, start: int) -> list[pa.RecordBatch]:
        """Return the lines that begin in the chunk at `start`.

        Raises _OddChunkError for an irregular chunk, and pyarrow.ArrowInvalid for text that is not UTF-8.
        """
        memory = data, texts = self._memory.take()
        at, stop = self._load(start, data)
        batches = []
        while at < stop:
            lines = data.count(b"\n", at, stop)
            done, batch = self._encode(np.frombuffer(data, np.uint8)[at:], stop - at, lines, texts)
            batches.append(batch)
            at += done
        self._memory.give_back(memory)
        return batches

    def _load(self, start: int, data: bytearray) -> tuple[int, int]:
        """Bring a chunk into memory. Return the byte of `data` at which its first line begins and its last line ends.

        If a chunk ends within quotes, `_encode` finds no end of the quotes and raises. The next chunk, which begins
        within quotes, is then never used.
        """
        before = int(start > self._fields.start)
        begin, end = start - before, min(self.size, start + CHUNK_BYTES + LONGEST_LINE)
        size = end - begin
        if os.preadv(self._opened.fileno(), [memoryview(data)[:size]], begin) != size:
            raise _OddChunkError
        if end == self.size and data[size - 1] != ord("\n"):
            data[size] = ord("\n")
            size += 1
        first = data.find(b"\n", 0, size) + 1 if before else 0
        stop = size if start + CHUNK_BYTES >= self.size else data.find(b"\n", before + CHUNK_BYTES - 1, size) + 1
        if before > first or not stop or _has_lone_returns(data, stop):
            raise _OddChunkError
        return first, stop

    def _encode(
        self, data: npt.NDArray[np.uint8], stop: int, lines: int, texts: npt.NDArray[np.uint8]
    ) -> tuple[int, pa.RecordBatch]:
        """Return the lines at the beginning of `data`, and the bytes that they take. lines: the most lines in `data`.

        Encoding ends early if a column has more distinct texts than there is memory for.
        """
        from gpupif.kernels.csv_lines import ODD, encode_fields

        columns, most = len(self._fields.names), min(self._most, lines + 1)
        width = most.bit_length() + 1
        codes, counts = np.empty((columns, lines), np.int32), np.zeros((2, columns), np.int64)
        distinct, starts = np.empty((columns, most), np.int32), np.empty(columns * most + 1, np.int32)
        done, rows = encode_fields(
            data,
            stop,
            ord(self._fields.separator),
            self._places,
            64 - width,
            np.zeros((columns, 1 << width), np.uint32),
            codes,
            counts,
            distinct,
            starts,
            texts,
        )
        if done == ODD:
            raise _OddChunkError
        if done < stop:
            self._most = min(MOST_TEXTS, 4 * most, max(FEW_TEXTS, MOST_SLOTS // (4 * columns)))
        distinct_texts = int(counts[0].sum())
        dictionary = pa.StringArray.from_buffers(distinct_texts, pa.py_buffer(starts), pa.py_buffer(texts))
        dictionary.validate(full=True)
        arrays = []
        for place, (size, missing) in enumerate(counts.T.tolist()):
            values = dictionary.take(pa.array(distinct[place, :size]))
            indices = _indices(codes[place, :rows], missing > 0)
            arrays.append(pa.DictionaryArray.from_arrays(indices, values, safe=False))
        return done, pa.record_batch(arrays, schema=self.schema)


def _memory() -> tuple[bytearray, npt.NDArray[np.uint8]]:
    """Allocate memory for a chunk between two line breaks, and for its texts. Kernels read up to `STEP` bytes more."""
    from gpupif.kernels.intrinsics import STEP

    room = 1 + CHUNK_BYTES + LONGEST_LINE + 1 + STEP
    return bytearray(room), np.empty(room, np.uint8)


def _indices(codes: npt.NDArray[np.int32], missing: bool) -> pa.Array:
    """Return codes, -1 for a missing value, as dictionary indices."""
    if not missing:
        return pa.array(codes)
    absent = codes < 0
    codes[absent] = 0
    return pa.array(codes, mask=absent)


def _has_lone_returns(data: bytearray, stop: int) -> bool:
    """Return whether lines that end at `stop` have a carriage return without a line feed after it."""
    if data.find(b"\r", 0, stop) < 0:
        return False
    content: npt.NDArray[Any] = np.frombuffer(data, np.uint8)[:stop]
    return bool((content[np.flatnonzero(content == ord("\r")) + 1] != ord("\n")).any())
