"""The writer of Parquet, which uses all cores: each column of each row group is encoded by itself.

Repeating numbers become a dictionary and indices, other numbers are written plain, and Arrow encodes all other columns.

Source: Apache Parquet format 2.11: parquet.thrift (FileMetaData, RowGroup, ColumnChunk, PageHeader, ColumnMetaData),
Encodings.md (PLAIN, RLE, RLE_DICTIONARY).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .._version import __version__
from ..rows.threads import Workers
from ..utils.arrays import GROUP_ROWS
from ..utils.repeated import Repeated, find_repeated
from .row_group import ArrowColumn, Multiple, RowGroup, times
from .thrift import BINARY, I32, I64, LIST, STRUCT, Struct, read_struct, unsigned, write_struct

MAGIC = b"PAR1"
# Types of numbers, encodings, kinds of pages and codecs, as the format numbers them.
TYPES = {pa.int32(): 1, pa.uint32(): 1, pa.int64(): 2, pa.uint64(): 2, pa.float32(): 4, pa.float64(): 5}
PLAIN, RLE, RLE_DICTIONARY = 0, 3, 8
DATA_PAGE, DICTIONARY_PAGE = 0, 2
CODECS = {"none": 0, "snappy": 1, "zstd": 6, "lz4": 7}
# Fields of ColumnMetaData: the bytes of all pages, the places of the data and of the dictionary, and the statistics.
SIZE, DATA_PLACE, DICTIONARY_PLACE, STATISTICS = 7, 9, 11, 12
# Fields of Statistics: the highest and the lowest value, in both of their versions, and whether they are exact.
BOUNDS = (1, 2, 5, 6, 7, 8)
# Fields of ColumnMetaData that are places in the file.
PLACES = (DATA_PLACE, 10, DICTIONARY_PLACE, 14)
# Files of so many columns or more, and so few rows or fewer, are written by Arrow: what a page takes beside its values
# is nearly all of the time. Their pages are plain, and no larger than compressed ones.
WIDE, FEW_ROWS = 1000, 64
# Bytes that are compressed as a sample. A column stays uncompressed if the sample keeps this share of its size or more.
SAMPLE_BYTES, NOT_SMALLER = 1 << 16, 0.9


class ParquetWriter:
    """A writer of rows of one schema to `sink`; a context manager, which writes the metadata at the end of its block.

    If the block ends with an error, no metadata are written. codec: "zstd", "lz4", "snappy" or "none". threads: see
    `Workers`.
    """

    def __init__(self, sink: IO[bytes], schema: pa.Schema, codec: str, threads: int | None = None) -> None:
        self._sink = sink
        self._schema = schema
        self._codec = codec
        self._threads = threads
        self._groups: list[Struct] = []
        self._held: list[RowGroup] = []
        self._said: dict[bytes, bytes] = {}
        self._place = 0
        self._write(MAGIC)

    def __enter__(self) -> ParquetWriter:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is None and self._held:
            self._write_by_arrow()
        elif error is None:
            self._write_footer()

    def add_key_value_metadata(self, said: Mapping[bytes, bytes]) -> None:
        """Add keys and values to the metadata of the file."""
        self._said |= said

    def write(self, row_groups: Iterable[RowGroup]) -> None:
        """Write rows; the columns of all groups are encoded at the same time. The first of a wide file may wait."""
        groups = [*self._held, *(part for group in row_groups for part in group.cut(GROUP_ROWS))]
        waits = len(self._schema) >= WIDE and not self._groups and sum(map(len, groups)) <= FEW_ROWS
        self._held = groups if waits else []
        if waits:
            return
        tasks = [(group, places) for group in groups for places in _encoded_together(group)]
        with Workers(self._threads) as workers:
            encoded = iter(workers.run(self._encode, tasks))
        for group in groups:
            columns: dict[int, list[ColumnChunk]] = {}
            for _ in _encoded_together(group):
                columns |= next(encoded)
            self._write_group([columns[place] for place in range(len(columns))], len(group))

    def _encode(self, group: RowGroup, places: Sequence[int]) -> dict[int, list[ColumnChunk]]:
        """Return the encoded columns at `places`: a column, and after it the multiples of this column."""
        first, *others = places
        multiples = map(group.columns.__getitem__, others)
        factors = [multiple.factor for multiple in multiples if isinstance(multiple, Multiple)]
        fields = [self._schema.field(place) for place in places]
        return dict(zip(places, encode_columns(group.columns[first], factors, fields, self._codec), strict=True))

    def _write_group(self, columns: list[list[ColumnChunk]], rows: int) -> None:
        start, described, plain_size = self._place, [], 0
        for chunk in chain.from_iterable(columns):
            metadata = chunk.moved(self._place)
            described.append({2: (I64, 0), 3: (STRUCT, metadata)})
            plain_size += metadata[6][1]
            for page in chunk.pages:
                self._write(page)
        self._groups.append(
            {
                1: (LIST, (STRUCT, described)),
                2: (I64, plain_size),
                3: (I64, rows),
                5: (I64, start),
                6: (I64, self._place - start),
            }
        )

    def _write_by_arrow(self) -> None:
        """Write the groups that waited, and the metadata."""
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(
            sink, self._schema, compression="none", use_dictionary=False, write_statistics=False
        ) as writer:
            for group in self._held:
                writer.write_table(group.table())
            writer.add_key_value_metadata(self._said)
        self._write(memoryview(sink.getvalue())[len(MAGIC) :])

    def _write_footer(self) -> None:
        """Write the footer that Arrow would write for this schema, with the row groups that were written."""
        sink = pa.BufferOutputStream()
        pq.ParquetWriter(sink, self._schema).close()
        footer = read_footer(sink.getvalue().to_pybytes())
        footer |= {
            3: (I64, sum(group[3][1] for group in self._groups)),
            4: (LIST, (STRUCT, self._groups)),
            6: (BINARY, f"gpupif version {__version__}".encode()),
        }
        self._write(_end_of_file(footer, self._said))

    def _write(self, data: Any) -> None:
        self._sink.write(data)
        self._place += len(data)


def say_in_file(file: Path, said: Mapping[bytes, bytes]) -> None:
    """Add keys and values to the metadata of a finished Parquet file, in place of values that have the same keys."""
    with file.open("r+b") as opened:
        opened.seek(-8, os.SEEK_END)
        size = int.from_bytes(opened.read(4), "little")
        opened.seek(-8 - size, os.SEEK_END)
        start = opened.tell()
        footer = read_struct(opened.read(size))
        opened.seek(start)
        opened.write(_end_of_file(footer, said))
        opened.truncate()


def _end_of_file(footer: Struct, said: Mapping[bytes, bytes]) -> bytes:
    """Return the last bytes of a Parquet file: FileMetaData with the keys of `said`, its size, and the magic."""
    others = [pair for pair in footer[5][1][1] if pair[1][1] not in said] if 5 in footer else []
    pairs = [*others, *({1: (BINARY, key), 2: (BINARY, value)} for key, value in said.items())]
    written = write_struct(footer | {5: (LIST, (STRUCT, pairs))})
    return written + len(written).to_bytes(4, "little") + MAGIC


def _encoded_together(group: RowGroup) -> list[list[int]]:
    """Return a list for each column that is no multiple: its place, and after it the places of its multiples."""
    together = {place: [place] for place, column in enumerate(group.columns) if not isinstance(column, Multiple)}
    for place, column in enumerate(group.columns):
        if isinstance(column, Multiple):
            together[column.place].append(place)
    return list(together.values())


class ColumnChunk(NamedTuple):
    """The pages of a column, and their ColumnMetaData, which counts places from the first page."""

    pages: list[Any]
    metadata: Struct

    def moved(self, start: int) -> Struct:
        """Return the metadata of the pages if the first page is at the byte `start` of the file."""
        places = {number: self.metadata[number] for number in PLACES if number in self.metadata}
        return self.metadata | {number: (kind, place + start) for number, (kind, place) in places.items()}


def encode_columns(
    column: ArrowColumn | Repeated, factors: Sequence[float], fields: Sequence[pa.Field], codec: str
) -> list[list[ColumnChunk]]:
    """Return the column chunks of a column and of each of its multiples. A nested column has several column chunks.

    factors: the factor of each multiple. fields: the field of the column, and after it of each multiple. codec: one of
    `CODECS`. Dictionary indices are encoded once, for the column and all its multiples.
    """
    if not isinstance(column, Repeated):
        if column.type not in TYPES or column.null_count or not len(column):
            columns = [column, *(times(column, factor) for factor in factors)]
            return [_encode_by_arrow(values, field, codec) for values, field in zip(columns, fields, strict=True)]
        numbers = column.to_numpy()
        repeated = find_repeated(numbers)
        if repeated is None or not _packs_better(repeated, numbers, codec):
            arrays = [numbers, *(factor * numbers for factor in factors)]
            return [[_encode_plain(array, field, codec)] for array, field in zip(arrays, fields, strict=True)]
        column = repeated
    indices = {nullable: _index_page(column, nullable, codec) for nullable in {field.nullable for field in fields}}
    tables = [column.distinct, *(factor * column.distinct for factor in factors)]
    return [
        [_encode_repeated(distinct, indices[field.nullable], len(column), field, codec)]
        for distinct, field in zip(tables, fields, strict=True)
    ]


def read_footer(file: bytes) -> Struct:
    """Return the FileMetaData of a Parquet file."""
    return read_struct(file[-8 - int.from_bytes(file[-8:-4], "little") :])


def write_by_arrow(table: pa.Table, codec: str) -> bytes:
    """Return the bytes of a Parquet file of a table, in one row group."""
    sink, level = pa.BufferOutputStream(), 1 if codec == "zstd" else None
    pq.write_table(table, sink, row_group_size=max(1, len(table)), compression=codec, compression_level=level)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def _encode_by_arrow(column: pa.ChunkedArray, field: pa.Field, codec: str) -> list[ColumnChunk]:
    if pa.types.is_dictionary(column.type):
        # The pages of both types are the same. The schema of the file says that readers return plain values.
        field = field.with_type(column.type)
    data = write_by_arrow(pa.table([column], schema=pa.schema([field])), codec)
    (group,) = read_footer(data)[4][1][1]
    unbounded = _may_hold_nan(column)
    chunks = []
    for chunk in group[1][1][1]:
        metadata: Struct = chunk[3][1]
        if unbounded and STATISTICS in metadata:
            kind, statistics = metadata[STATISTICS]
            metadata[STATISTICS] = kind, {field: fact for field, fact in statistics.items() if field not in BOUNDS}
        start = min(metadata[number][1] for number in (DATA_PLACE, DICTIONARY_PLACE) if number in metadata)
        pages = data[start : start + metadata[SIZE][1]]
        chunks.append(ColumnChunk([pages], ColumnChunk([], metadata).moved(-start)))
    return chunks


def _may_hold_nan(column: ArrowColumn) -> bool:
    """Return whether a column has a NaN; True for nested values, which are not searched."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_nested(kind):
        return True
    return pa.types.is_floating(kind) and bool(pc.any(pc.is_nan(column.cast(kind))).as_py())


def _encode_plain(values: npt.NDArray[Any], field: pa.Field, codec: str) -> ColumnChunk:
    """Return the column chunk of numbers, none of them missing, without a dictionary."""
    body, encodings = _levels(len(values), field.nullable) + values.tobytes(), [PLAIN, RLE]
    if _packed_size(body, codec) >= NOT_SMALLER * len(body):
        codec = "none"
    return _chunk([_data_page(body, len(values), PLAIN, codec)], len(values), values, encodings, field, codec)


def _index_page(column: Repeated, nullable: bool, codec: str) -> _Page:
    """Return the page of the dictionary indices of all rows."""
    body = _levels(len(column), nullable) + _packed(column.numbers, len(column.distinct))
    return _data_page(body, len(column), RLE_DICTIONARY, codec)


def _encode_repeated(distinct: npt.NDArray[Any], indices: _Page, rows: int, field: pa.Field, codec: str) -> ColumnChunk:
    """Return the column chunk of numbers, none of them missing, as a dictionary and indices."""
    header = {1: (I32, len(distinct)), 2: (I32, PLAIN)}
    dictionary = _page(DICTIONARY_PAGE, distinct.tobytes(), {7: (STRUCT, header)}, codec)
    return _chunk([dictionary, indices], rows, distinct, [PLAIN, RLE, RLE_DICTIONARY], field, codec)


def _chunk(
    pages: Sequence[_Page],
    rows: int,
    values: npt.NDArray[Any],
    encodings: Sequence[int],
    field: pa.Field,
    codec: str,
) -> ColumnChunk:
    """Return pages as a column chunk. pages: a page of data, or a dictionary and a page of indices.

    values: all numbers of the pages, for the statistics; a repeated number may be there once.
    """
    metadata: Struct = {
        1: (I32, TYPES[field.type]),
        2: (LIST, (I32, encodings)),
        3: (LIST, (BINARY, [field.name.encode()])),
        4: (I32, CODECS[codec]),
        5: (I64, rows),
        6: (I64, sum(page.plain_size for page in pages)),
        SIZE: (I64, sum(page.size for page in pages)),
        DATA_PLACE: (I64, sum(page.size for page in pages[:-1])),
        STATISTICS: (STRUCT, _statistics(values)),
    }
    if len(pages) > 1:
        metadata[DICTIONARY_PLACE] = I64, 0
    return ColumnChunk([part for page in pages for part in page.parts], metadata)


def _levels(rows: int, nullable: bool) -> bytes:
    """Return the definition levels of a page: each row has a value."""
    if not nullable:
        return b""
    levels = _repeated(rows, b"\1")
    return len(levels).to_bytes(4, "little") + levels


def _packed(numbers: npt.NDArray[np.uint32], distinct: int) -> bytes:
    """Return dictionary indices (RLE_DICTIONARY): the bits that each index takes, and one run of all indices."""
    from gpupif.kernels.pack import pack_bits

    if distinct == 1:
        return b"\1" + _repeated(len(numbers), b"\0")
    width, eights = (distinct - 1).bit_length(), -(-len(numbers) // 8)
    words = np.zeros(-(-eights * width // 8), np.uint64)
    pack_bits(numbers, 0, width, words)
    return bytes([width]) + unsigned(eights << 1 | 1) + words.tobytes()[: eights * width]


def _repeated(times: int, value: bytes) -> bytes:
    """Return a run of one value (RLE)."""
    return unsigned(times << 1) + value


def _compress(codec: str, data: Any) -> Any:
    if codec == "none":
        return data
    return pa.Codec({"lz4": "lz4_raw"}.get(codec, codec), 1 if codec == "zstd" else None).compress(data)


def _packs_better(column: Repeated, values: npt.NDArray[Any], codec: str) -> bool:
    """Return whether a dictionary and its indices take less room than all values, both compressed."""
    if codec == "none" or column.distinct.nbytes < SAMPLE_BYTES:
        return True
    indices = _packed(column.numbers, len(column.distinct))
    coded = _packed_size(column.distinct.tobytes(), codec) + _packed_size(indices, codec)
    return coded < _packed_size(values.tobytes(), codec)


def _packed_size(data: bytes, codec: str) -> float:
    """Return how many bytes data takes if it is compressed, estimated from its first `SAMPLE_BYTES` bytes."""
    sample = data[:SAMPLE_BYTES]
    return len(_compress(codec, sample)) * len(data) / max(1, len(sample))


class _Page(NamedTuple):
    """A page, compressed, with its header. plain_size: its bytes before compression, with the header."""

    parts: list[Any]
    plain_size: int

    @property
    def size(self) -> int:
        """The bytes that the page takes in the file."""
        return sum(map(len, self.parts))


def _page(kind: int, body: bytes, header: Struct, codec: str) -> _Page:
    """Return a page. header: the fields of the page header that only this kind of page has."""
    packed = _compress(codec, body)
    head = write_struct({1: (I32, kind), 2: (I32, len(body)), 3: (I32, len(packed)), **header})
    return _Page([head, packed], len(head) + len(body))


def _data_page(body: bytes, rows: int, encoding: int, codec: str) -> _Page:
    header = {1: (I32, rows), 2: (I32, encoding), 3: (I32, RLE), 4: (I32, RLE)}
    return _page(DATA_PAGE, body, {5: (STRUCT, header)}, codec)


def _statistics(values: npt.NDArray[Any]) -> Struct:
    """Return the statistics of values: that no value is missing, and the lowest and the highest value.

    Bounds are left out if a value is NaN: readers that search within bounds would skip it. A lowest zero is -0.0 and a
    highest zero 0.0, so that the bounds include both zeros.
    """
    statistics: Struct = {3: (I64, 0)}
    if len(values) and not (values != values).any():
        low, high = values.min(), values.max()
        if values.dtype.kind == "f":
            low, high = (bound if bound else values.dtype.type(zero) for bound, zero in ((low, -0.0), (high, 0.0)))
        statistics |= {5: (BINARY, high.tobytes()), 6: (BINARY, low.tobytes())}
    return statistics
