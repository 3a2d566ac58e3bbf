"""A table of files encoded in streams into a temporary folder, for what is computed from its codes chunk by chunk."""

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

# Of a cell in memory: as it is read, and as a code.
CELL_BYTES = 8
# Which columns of a table of files are wanted, after checks.
Choose = Callable[[Source], Sequence[Hashable]]


@dataclass(eq=False)
class TemporaryTable:
    """The encoded table; a context manager, which deletes it. folder: for further temporary files.

    names: of the columns, chunks: their codes. budget: what may be in memory. files: what is closed and
    deleted with it.
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
    """Encode columns of the files that a path names, within the memory limit.

    copies: how often the codes may lie on the disk at a time.
    joined: values will be joined to those of another table. argument: what names the path. budget: of a run that has
    one already.

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
    """Return whether to read a table in streams: a path, under a memory limit or to more than free memory holds."""
    if not isinstance(table, str | os.PathLike):
        return False
    if resources().memory_limit is not None:
        return True
    source = open_source(table)
    return source.about_rows() * len(choose(source)) * CELL_BYTES > default_limit() - resident_bytes()
