"""Parquet files written by all cores: each column of each row group is encoded by itself, see `parquet_pages`.

Source: Apache Parquet format 2.11: parquet.thrift (FileMetaData, RowGroup, ColumnChunk).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from .._version import __version__
from ..rows.threads import Workers
from ..utils.arrays import GROUP_ROWS
from .parquet_pages import ColumnChunk, encode_columns, read_footer, write_by_arrow
from .row_group import Multiple, RowGroup
from .thrift import BINARY, I64, LIST, STRUCT, Struct, read_struct, write_struct

MAGIC = b"PAR1"


class ParquetWriter:
    """Writes tables of one schema to `sink`; what the file says comes last, when the context is left without an error.

    codec: "zstd", "lz4", "snappy" or "none". threads: see `Workers`.
    """

    def __init__(self, sink: IO[bytes], schema: pa.Schema, codec: str, threads: int | None = None) -> None:
        self._sink = sink
        self._schema = schema
        self._codec = codec
        self._threads = threads
        self._groups: list[Struct] = []
        self._said: dict[bytes, bytes] = {}
        self._place = 0
        self._write(MAGIC)

    def __enter__(self) -> ParquetWriter:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is None:
            self._write_footer()

    def add_key_value_metadata(self, said: Mapping[bytes, bytes]) -> None:
        """Have the file say this, too."""
        self._said |= said

    def write(self, several: Iterable[RowGroup]) -> None:
        """Write rows; the columns of all groups are encoded at the same time."""
        groups = [part for group in several for part in group.cut(GROUP_ROWS)]
        tasks = [(group, places) for group in groups for places in _encoded_together(group)]
        with Workers(self._threads) as workers:
            encoded = iter(workers.run(self._encode, tasks))
        for group in groups:
            columns: dict[int, list[ColumnChunk]] = {}
            for _ in _encoded_together(group):
                columns |= next(encoded)
            self._write_group([columns[place] for place in range(len(columns))], len(group))

    def _encode(self, group: RowGroup, places: Sequence[int]) -> dict[int, list[ColumnChunk]]:
        """The columns at some places, of which all but the first are multiples of it."""
        first, *others = places
        factors = [one.factor for one in map(group.columns.__getitem__, others) if isinstance(one, Multiple)]
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

    def _write_footer(self) -> None:
        """Write what Arrow would say of a file with this schema, with the row groups that there are."""
        footer = read_footer(write_by_arrow(self._schema.empty_table(), self._codec))
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
    """Have a Parquet file that is written already say this, in place of what it said under the same keys."""
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
    """Return the last bytes of a Parquet file: its FileMetaData with these keys, the size of that, and the magic."""
    others = [pair for pair in footer[5][1][1] if pair[1][1] not in said] if 5 in footer else []
    pairs = [*others, *({1: (BINARY, key), 2: (BINARY, value)} for key, value in said.items())]
    written = write_struct(footer | {5: (LIST, (STRUCT, pairs))})
    return written + len(written).to_bytes(4, "little") + MAGIC


def _encoded_together(group: RowGroup) -> list[list[int]]:
    """Places of columns, each with those of its multiples."""
    together = {place: [place] for place, column in enumerate(group.columns) if not isinstance(column, Multiple)}
    for place, column in enumerate(group.columns):
        if isinstance(column, Multiple):
            together[column.place].append(place)
    return list(together.values())
