"""Tables read whole from files of any format."""

from __future__ import annotations

import os

import pyarrow as pa

from .common import Pick, check_rows, every_column, unreadable
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
