"""A table of files encoded in streams into a temporary folder, for what is computed from its codes chunk by chunk."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .coded import chosen
from .errors import InputError, OutputError
from .job import check_word
from .memory import default_limit, parse_size, resident_bytes
from .progress import Reporter
from .sources import open_source
from .spill.budget import CHUNK_SHARE, LEAST_CHUNK, MOST_CHUNK, RESERVE, SPARE_FILES, VALUES_SHARE, files_to_open
from .spill.encode import encode, open_encoded
from .spill.store import disk_errors

if TYPE_CHECKING:
    from .spill.chunks import EncodedChunks

# Of a cell of a chunk: as it is read, and as codes.
CELL_BYTES = 32


class Stream:
    """The encoded table; a context manager, which deletes it. folder: for further temporary files.

    names: of the columns, chunks: their codes. working: bytes of memory to work with.
    """

    def __init__(
        self, names: Sequence[Hashable], chunks: EncodedChunks, folder: Path, working: int, files: contextlib.ExitStack
    ) -> None:
        self.names = names
        self.chunks = chunks
        self.folder = folder
        self.working = working
        self._files = files

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: Any) -> None:
        self._files.__exit__(*error)


def open_stream(
    table: Any,
    columns: Sequence[Hashable] | None,
    missing: str,
    report: Reporter,
    argument: str = "columns",
    memory_limit: int | str | None = None,
    temp: str | os.PathLike[str] | None = None,
    sep: str | None = None,
) -> Stream:
    """Encode the columns (None: all) of the files that a path names; see `set_counts.open_counts`."""
    check_word("missing", missing, ("category", "error"))
    if not isinstance(table, str | os.PathLike):
        raise InputError(
            f"table: with memory_limit= or temp= expected the path of a file, a folder or a pattern such as "
            f"'data/*.parquet', got {type(table).__name__}. For a table in memory leave them out."
        )
    limit = default_limit() if memory_limit is None else parse_size("memory_limit", memory_limit)
    check_temp(temp)
    source = open_source(Path(table), sep)
    names = chosen(source.names, source.index_names, columns, argument)
    working = _working(limit, len(names))
    chunk_rows = min(MOST_CHUNK, int(CHUNK_SHARE * working) // (CELL_BYTES * len(names)))
    with contextlib.ExitStack() as files:
        folder = Path(files.enter_context(tempfile.TemporaryDirectory(prefix="gpupif-", dir=temp)))
        files.enter_context(disk_errors(folder))
        report.stage("encode", source.rows, "rows")
        facts = encode(source, names, missing, chunk_rows, folder, int(VALUES_SHARE * working), report.advance)
        chunks = open_encoded(folder, names, facts, source)
        files.callback(chunks.close)
        return Stream(names, chunks, folder, working, files.pop_all())


def check_temp(temp: str | os.PathLike[str] | None) -> None:
    """Raise OutputError for a place for temporary files that cannot be used."""
    if temp is not None and not (Path(temp).is_dir() and os.access(temp, os.W_OK)):
        raise OutputError(f"temp: {temp} is no folder that can be written to. Make it first, or choose another.")


def _working(limit: int, columns: int) -> int:
    """Bytes to work with; raises InputError where they, or the files that may be open, are too few."""
    resident = resident_bytes()
    working = limit - resident - RESERVE
    least = int(LEAST_CHUNK * CELL_BYTES * columns / CHUNK_SHARE)
    if working < least:
        raise InputError(
            f"memory_limit: expected at least {(resident + RESERVE + least) / 2**20:,.0f} MiB for this table "
            f"({resident / 2**20:,.0f} MiB are taken before anything is read), got {limit / 2**20:,.0f} MiB. Raise it, "
            "or look at fewer columns."
        )
    if files_to_open() < 2 * columns + SPARE_FILES:
        raise InputError(
            f"columns: {columns:,} columns need as many files open at a time, twice over, which the system does not "
            "allow. Look at fewer, or allow more (ulimit -n)."
        )
    return working
