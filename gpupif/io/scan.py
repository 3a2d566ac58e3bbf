"""Files read in streams: a table larger than memory, some rows at a time, in the order of its rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from .base import Source
from .paths import find_input


def open_source(path: str | os.PathLike[str]) -> Source:
    """The files that a path names, to be read in streams; raises what `read_table` does for what can be seen now."""
    found = find_input(path)
    return found.format.open(found)


def in_chunks(pieces: Iterable[pa.Table], rows: int, most: int) -> Iterator[pa.Table]:
    """The same rows in tables of `rows` rows, or fewer where these would take more than `most` bytes."""
    waiting: list[Any] = []
    size = taken = 0
    for piece in pieces:
        if size and taken + piece.nbytes > most:
            yield pa.concat_tables(waiting)
            waiting, size, taken = [], 0, 0
        start = 0
        while size + piece.num_rows - start >= rows:
            part = piece.slice(start, rows - size)
            yield pa.concat_tables([*waiting, part])
            waiting, size, taken, start = [], 0, 0, start + part.num_rows
        if start < piece.num_rows:
            rest = piece.slice(start)
            waiting.append(rest)
            size += rest.num_rows
            taken += rest.nbytes
    if waiting:
        yield pa.concat_tables(waiting)
