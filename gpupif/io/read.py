"""The reading of tables from files of any format: whole, or in streams of chunks in the order of the rows."""

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

    pick: the choice of columns, see `Pick`. Default: all columns. sep: the separator of a CSV file. Default: the
    separator among comma, semicolon, tab and | that the first lines agree on. An empty CSV field is a missing value. A
    column of CSV becomes numbers or dates only if every text reads the same back.

    Raises TableReadError for a file that is missing, empty, truncated, or not of the format that its name says. Raises
    InputError if column names repeat or `sep` is no separator.
    """
    input_files = find_input(path, sep)
    try:
        table = input_files.format.read(input_files, pick)
    except (pa.ArrowException, OSError) as error:
        raise unreadable(input_files.path, input_files.format.name, error) from error
    check_rows(input_files.path, table.num_rows, table.column_names)
    return table


def open_source(path: str | os.PathLike[str]) -> Source:
    """Open the files that a path names, to be read in streams. A `Source` is returned as it is.

    Raises the errors of `read_table` that show before the rows are read.
    """
    if isinstance(path, Source):
        return path
    input_files = find_input(path)
    return input_files.format.open(input_files)


def in_chunks(tables: Iterable[pa.Table], rows: int, most: int) -> Iterator[pa.Table]:
    """Yield the rows of some tables in chunks of `rows` rows, or fewer rows if they take more than `most` bytes."""
    waiting: list[Any] = []
    size = taken = 0
    for table in tables:
        if size and taken + table.nbytes > most:
            yield pa.concat_tables(waiting)
            waiting, size, taken = [], 0, 0
        start = 0
        while size + table.num_rows - start >= rows:
            filling = table.slice(start, rows - size)
            yield pa.concat_tables([*waiting, filling])
            waiting, size, taken, start = [], 0, 0, start + filling.num_rows
        if start < table.num_rows:
            rest = table.slice(start)
            waiting.append(rest)
            size += rest.num_rows
            taken += rest.nbytes
    if waiting:
        yield pa.concat_tables(waiting)
