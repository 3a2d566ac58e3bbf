"""Tables read from files of any format, whole or in streams: some rows at a time, in their order."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from .base import Pick, Source, check_rows, every_column
from .file_errors import unreadable
from .paths import find_input


def read_table(path: str | os.PathLike[str], pick: Pick = every_column, sep: str | None = None) -> pa.Table:
    """Read a Parquet, CSV or Feather (Arrow IPC) file, a folder of Parquet files, or files that a pattern matches.

    sep: separator of a CSV file; by default the one of , ; tab | that its first lines agree on. An empty CSV field
    is a missing value; a column becomes numbers or dates only where every text reads the same back.

    Raises TableReadError for a file that is missing, empty, truncated, or not what its name says, and InputError
    where column names repeat or `sep` is no separator.
    """
    found = find_input(path, sep)
    try:
        table = found.format.read(found, pick)
    except (pa.ArrowException, OSError) as error:
        raise unreadable(found.path, found.format.name, error) from error
    check_rows(found.path, table.num_rows, table.column_names)
    return table


def open_source(path: str | os.PathLike[str]) -> Source:
    """The files that a path names, to be read in streams; raises what `read_table` does for what can be seen now.

    What is opened already is taken as it is.
    """
    if isinstance(path, Source):
        return path
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
