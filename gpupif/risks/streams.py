"""A table of files of any size: read once in streams, then looked at in parts that hold equivalence classes whole.

A part is its distinct rows, and how often each occurs, in order of first appearance: what is found of it is the same,
to the last bit, as in memory. Where the distinct rows of all files fit into memory they are the only part; else rows
are cut into parts on disk by the hash of their quasi-identifiers.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpupif.errors import InputError, OutputError
from gpupif.memory import default_limit, parse_size
from gpupif.sources import Source, open_source
from gpupif.spill.budget import CODE_BYTES, ELSEWHERE, Budget, check_room, plan_reading
from gpupif.spill.encode import encode, open_encoded, rows_read
from gpupif.spill.store import disk_errors

from .asked import Asked
from .assess import assess_parts
from .findings import Stopwatch
from .parts import Parts
from .search import Assessed, Search

if TYPE_CHECKING:
    from gpupif.engines.base import Engine
    from gpupif.progress import Reporter


def assess_files(table: Any, asked: Asked, most: int, engine: Engine, report: Reporter) -> Assessed:
    """`assess` of what a path names, within a memory limit."""
    if not isinstance(table, str | os.PathLike):
        raise InputError(
            f"table: with memory_limit= or temp= expected the path of a file, a folder or a pattern such as "
            f"'data/*.parquet', got {type(table).__name__}. For a table in memory leave them out."
        )
    limit = default_limit() if asked.memory_limit is None else parse_size("memory_limit", asked.memory_limit)
    if asked.temp is not None and not (Path(asked.temp).is_dir() and os.access(asked.temp, os.W_OK)):
        raise OutputError(f"temp: {asked.temp} is no folder that can be written to. Make it first, or choose another.")
    source = open_source(Path(table), asked.sep)
    asked.check(source.names)
    budget = plan_reading(limit, len(asked.columns))
    with tempfile.TemporaryDirectory(prefix="gpupif-", dir=asked.temp) as name, disk_errors(Path(name)):
        return _assess(source, asked, most, engine, report, budget, Path(name))


def _assess(
    source: Source, asked: Asked, most: int, engine: Engine, report: Reporter, budget: Budget, folder: Path
) -> Assessed:
    """folder: for temporary files."""
    rows, names = source.about_rows(), [str(name) for name in asked.columns]
    # Codes as they are read, and of distinct rows in parts, with their counts.
    check_room(folder, int(rows * (2 * CODE_BYTES * len(names) + 1)), f"temporary files of {rows:,} rows", ELSEWHERE)
    watch = Stopwatch()
    with watch("read and encode"):
        done = rows_read(source, report)
        facts = encode(source, names, asked.missing, budget.chunk_rows, folder, budget.values_bytes(), done)
        chunks = open_encoded(folder, names, facts, source)
    try:
        search = Search.of(asked, chunks.columns, chunks.rows, most, {})
        with watch("collapse and cut"):
            parts = Parts(search, chunks, budget, folder, report)
        return assess_parts(search, parts, engine, report, watch)
    finally:
        chunks.close()
