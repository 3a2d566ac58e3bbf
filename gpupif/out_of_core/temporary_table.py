"""A table in files, encoded into a temporary folder, for computations on its codes chunk by chunk."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..io.base import Source
from ..io.file_errors import disk_errors
from ..io.read import open_source
from ..io.temporary_folder import temporary_folder
from ..utils.config import resources
from ..utils.memory import default_limit, resident_bytes
from ..utils.progress import Reporter
from ..utils.validation import check_word
from .file_encoding import JOINED, encode_files, open_encoded, rows_read
from .memory_budget import CODE_BYTES, ELSEWHERE, Budget, check_room, plan_reading
from .table_chunks import TableChunks

# Bytes of a cell in memory: the value as it is read, and its code.
CELL_BYTES = 8
# Checks the columns of a table in files, and returns the names of the columns to read.
Choose = Callable[[Source], Sequence[Hashable]]


@dataclass(eq=False)
class TemporaryTable:
    """The encoded table; a context manager, which deletes it.

    names: list. The names of the columns.
    chunks: TableChunks. The codes of the columns.
    folder: Path. The folder, also for further temporary files.
    budget: Budget. The memory of the run.
    files: ExitStack. It closes and deletes the files.
    """

    names: Sequence[Hashable]
    chunks: TableChunks
    folder: Path
    budget: Budget
    files: contextlib.ExitStack

    def __enter__(self) -> TemporaryTable:
        return self

    def __exit__(self, *error: Any) -> None:
        self.files.__exit__(*error)


def open_temporary_table(
    table: Any,
    choose: Choose,
    missing: str,
    report: Reporter,
    copies: int = 1,
    joined: bool = False,
    argument: str = "table",
    budget: Budget | None = None,
) -> TemporaryTable:
    """Encode columns of files within the memory limit.

    table: path of the files.
    choose: function that returns the names of the columns to read.
    missing: str. "category" or "error".
    report: Reporter. It shows the progress.
    copies: int. How many times the codes will be on the disk at once. Default 1.
    joined: bool. Whether values will be joined with those of another table. Default False.
    argument: str. The name of the argument with the path, for messages. Default "table".
    budget: Budget. The memory of the run. Default: from the memory limit.

    Raises InputError, TableReadError, OutputError.
    """
    check_word("missing", missing, ("category", "error"))
    source, here = open_source(table), resources()
    names = choose(source)
    budget = budget or plan_reading(here.memory, len(names))
    with contextlib.ExitStack() as files:
        folder = files.enter_context(temporary_folder(here.temp))
        files.enter_context(disk_errors(folder))
        rows = source.about_rows()
        needed = int(rows * (copies * CODE_BYTES * len(names) + 1))
        check_room(folder, needed, f"temporary files of {rows:,} rows", ELSEWHERE)
        other = argument != "table"
        done = rows_read(source, report, f" the {argument}" if other else "")
        memory = budget.values_bytes() // (JOINED if joined else 1)
        try:
            facts = encode_files(source, list(names), missing, budget.chunk_rows, folder, memory, done)
        except InputError as error:
            raise (error.about(argument) if other else error) from None
        chunks = open_encoded(folder, list(names), facts, source)
        files.callback(chunks.close)
        return TemporaryTable(names, chunks, folder, budget, files.pop_all())


def in_streams(table: Any, choose: Choose) -> bool:
    """Return whether to read a table in streams: a path, with a memory limit or too large for free memory."""
    if not isinstance(table, str | os.PathLike):
        return False
    if resources().memory_limit is not None:
        return True
    source = open_source(table)
    return source.about_rows() * len(choose(source)) * CELL_BYTES > default_limit() - resident_bytes()
