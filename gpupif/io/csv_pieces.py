"""Large CSV files read to dictionaries by all cores, piece by piece, where they are as most are.

That is: in UTF-8, quotes only around whole fields, no line of more than 64 KiB, up to 256 fields. Of any other file
Arrow says what is in it, or what is wrong with it.
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
# Bytes of a file that is worth loading a kernel, or compiling it.
SMALLEST = 1 << 23
# Bytes of a piece, and of the longest line.
PIECE, LONGEST = 1 << 22, 1 << 16
# Pieces of a stream that are read at the same time, which keeps a reader's memory small.
MOST_AHEAD = 4
# Different texts of a column that are numbered together: at first, and at most where there are many.
FEW_TEXTS, MOST_TEXTS = 1 << 12, 1 << 16
# Fields of a line, and slots for the texts of all columns together: what a piece takes in memory hangs on both.
MOST_FIELDS, MOST_SLOTS = 1 << 8, 1 << 22


class Fields(NamedTuple):
    """What the lines of a file hold, from byte `start` on.

    separator: of fields. names: of the columns that are wanted; places: for each field which of them it is of, -1 for
    none.
    """

    start: int
    separator: str
    names: Sequence[str]
    places: Sequence[int]


def read_pieces(file: Path, fields: Fields) -> pa.Table | None:
    """Columns of a file as dictionaries of texts, empty fields missing; None where Arrow is to read it."""
    starts, reader = _pieces(file, fields)
    try:
        with reader, Workers() as workers:
            pieces = workers.run(reader.read, [(start,) for start in starts])
    except (_OddPieceError, pa.ArrowInvalid):
        return None
    return pa.Table.from_batches([batch for piece in pieces for batch in piece], reader.schema) if pieces else None


def stream_pieces(file: Path, fields: Fields) -> Iterator[tuple[int, pa.Table]]:
    """As `read_pieces`, piece by piece, each with where it ends, as long as Arrow is not to read what comes then."""
    starts, reader = _pieces(file, fields)
    ahead = min(default_threads(), MOST_AHEAD)
    with reader, ThreadPoolExecutor(ahead) as pool:
        coming = deque(pool.submit(reader.read, start) for start in starts[:ahead])
        try:
            for place, start in enumerate(starts):
                batches = coming.popleft().result()
                coming.extend(pool.submit(reader.read, later) for later in starts[place + ahead : place + ahead + 1])
                yield min(reader.size, start + PIECE), pa.Table.from_batches(batches, reader.schema)
        except (_OddPieceError, pa.ArrowInvalid):
            return
        finally:
            pool.shutdown(cancel_futures=True)


def _pieces(file: Path, fields: Fields) -> tuple[range, _PieceReader]:
    """Where the pieces of a file begin, none if all of it is for Arrow, and what reads them."""
    reader = _PieceReader(file, fields)
    # In a column alone an empty line is a missing value.
    usual = reader.size >= SMALLEST and 2 <= len(fields.places) <= MOST_FIELDS and not is_packed(file)
    return range(fields.start, reader.size if usual else 0, PIECE), reader


def is_packed(file: Path) -> bool:
    """Whether a file is compressed, by its name."""
    return file.name.lower().endswith(".gz")


class _OddPieceError(Exception):
    """A piece of a file that is not as most are."""


class _PieceReader:
    """Reads pieces of a file, several at the same time; a context manager. size: of the file; schema: of what it reads.

    The file stays open: another one that comes in its place meanwhile is not mixed with it.
    """

    def __init__(self, file: Path, fields: Fields) -> None:
        self._opened = file.open("rb", buffering=0)
        self._fields = fields
        self.size = os.fstat(self._opened.fileno()).st_size
        self.schema = pa.schema([(name, TEXT) for name in fields.names])
        self._places = np.array(fields.places, np.int64)
        self._most = FEW_TEXTS
        # For bytes of the file, and for texts.
        self._memory = Spares(_memory)

    def __enter__(self) -> _PieceReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def read(self, start: int) -> list[pa.RecordBatch]:
        """The lines that begin in the piece from `start` on; raises _OddPieceError, or ArrowInvalid for no UTF-8."""
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
        """Bring a piece into memory: where in it the first line begins and the last one ends.

        Where it ends in the middle of quotes, `_encode` finds no end of them, so that the next piece is never taken for
        one that begins with a line.
        """
        before = int(start > self._fields.start)
        begin, end = start - before, min(self.size, start + PIECE + LONGEST)
        size = end - begin
        if os.preadv(self._opened.fileno(), [memoryview(data)[:size]], begin) != size:
            raise _OddPieceError
        if end == self.size and data[size - 1] != ord("\n"):
            data[size] = ord("\n")
            size += 1
        first = data.find(b"\n", 0, size) + 1 if before else 0
        stop = size if start + PIECE >= self.size else data.find(b"\n", before + PIECE - 1, size) + 1
        if before > first or not stop or _has_lone_returns(data, stop):
            raise _OddPieceError
        return first, stop

    def _encode(
        self, data: npt.NDArray[np.uint8], stop: int, lines: int, texts: npt.NDArray[np.uint8]
    ) -> tuple[int, pa.RecordBatch]:
        """The first lines of a piece, of so many at most, and how many bytes they take."""
        from gpupif.kernels.fields import ODD, encode_fields

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
            raise _OddPieceError
        if done < stop:
            self._most = min(MOST_TEXTS, 4 * most, max(FEW_TEXTS, MOST_SLOTS // (4 * columns)))
        found = int(counts[0].sum())
        different = pa.StringArray.from_buffers(found, pa.py_buffer(starts), pa.py_buffer(texts))
        different.validate(full=True)
        arrays = []
        for place, (known, missing) in enumerate(counts.T.tolist()):
            values = different.take(pa.array(distinct[place, :known]))
            indices = _indices(codes[place, :rows], missing > 0)
            arrays.append(pa.DictionaryArray.from_arrays(indices, values, safe=False))
        return done, pa.record_batch(arrays, schema=self.schema)


def _memory() -> tuple[bytearray, npt.NDArray[np.uint8]]:
    """Room for a piece with a line break before and behind it, and for the texts in it, and what kernels read more."""
    from gpupif.kernels.words import STEP

    room = 1 + PIECE + LONGEST + 1 + STEP
    return bytearray(room), np.empty(room, np.uint8)


def _indices(codes: npt.NDArray[np.int32], missing: bool) -> pa.Array:
    """Dictionary indices, -1 for none."""
    if not missing:
        return pa.array(codes)
    absent = codes < 0
    codes[absent] = 0
    return pa.array(codes, mask=absent)


def _has_lone_returns(data: bytearray, stop: int) -> bool:
    """Whether there is a carriage return without a line feed behind it in lines that end at `stop`."""
    if data.find(b"\r", 0, stop) < 0:
        return False
    content: npt.NDArray[Any] = np.frombuffer(data, np.uint8)[:stop]
    return bool((content[np.flatnonzero(content == ord("\r")) + 1] != ord("\n")).any())
