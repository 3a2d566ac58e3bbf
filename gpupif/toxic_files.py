"""Toxic pairs of a table larger than memory: read once in streams, then counted chunk by chunk."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Hashable, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .coded import chosen
from .engines.subsets import SubsetCounter, in_batches
from .engines.workers import Workers
from .errors import InputError, OutputError
from .job import check_word, warn_of_unique
from .memory import default_limit, parse_size, resident_bytes, shown
from .progress import Reporter, announce_compilation
from .sources import open_source
from .spill.budget import (
    CHUNK_SHARE,
    LEAST_CHUNK,
    MOST_CHUNK,
    RESERVE,
    SPARE_FILES,
    VALUES_SHARE,
    files_to_open,
)
from .spill.encode import encode, open_encoded
from .spill.store import disk_errors
from .toxic import ToxicPairs, check_enough
from .toxic_values import Measured

if TYPE_CHECKING:
    from .spill.chunks import EncodedChunks

# Of a cell of a chunk: as it is read, and as codes.
CELL_BYTES = 32
# Of the working memory: what the combinations may take that are kept from chunk to chunk; while they are merged they
# are there three times.
COUNTS_SHARE, MERGING = 0.5, 3


def toxic_in_streams(
    table: Any,
    size: int,
    columns: Sequence[Hashable] | None,
    top: int,
    missing: str,
    progress: bool | None,
    memory_limit: int | str | None,
    temp: str | os.PathLike[str] | None,
    sep: str | None = None,
) -> ToxicPairs:
    """`toxic_pairs` of a path within a memory limit."""
    check_word("missing", missing, ("category", "error"))
    if not isinstance(table, str | os.PathLike):
        raise InputError(
            f"table: with memory_limit= or temp= expected the path of a file, a folder or a pattern such as "
            f"'data/*.parquet', got {type(table).__name__}. For a table in memory leave them out."
        )
    limit = default_limit() if memory_limit is None else parse_size("memory_limit", memory_limit)
    if temp is not None and not (Path(temp).is_dir() and os.access(temp, os.W_OK)):
        raise OutputError(f"temp: {temp} is no folder that can be written to. Make it first, or choose another.")
    source = open_source(Path(table), sep)
    names = chosen(source.names, source.index_names, columns)
    check_enough(names, size)
    working = _working(limit, len(names))
    chunk_rows = min(MOST_CHUNK, int(CHUNK_SHARE * working) // (CELL_BYTES * len(names)))
    started = time.perf_counter()
    with (
        tempfile.TemporaryDirectory(prefix="gpupif-", dir=temp) as folder,
        Reporter(progress) as report,
        announce_compilation(quiet=progress is False),
        disk_errors(Path(folder)),
    ):
        report.stage("encode", source.rows, "rows")
        facts = encode(source, names, missing, chunk_rows, Path(folder), int(VALUES_SHARE * working), report.advance)
        chunks = open_encoded(Path(folder), names, facts, source)
        encoded = time.perf_counter()
        try:
            warn_of_unique(chunks.columns, chunks.rows)
            measured = _measure(chunks, size, top, int(COUNTS_SHARE * working), report)
        finally:
            chunks.close()
    seconds = {"encode": encoded - started, "count": time.perf_counter() - encoded}
    return ToxicPairs(chunks.rows, names, size, measured.sets(), measured.values(), seconds)


def _measure(chunks: EncodedChunks, size: int, top: int, memory: int, report: Reporter) -> Measured:
    columns = chunks.columns
    cardinalities = [column.cardinality for column in columns]
    measured = Measured(columns, chunks.rows, top)
    batches = list(in_batches(list(combinations(range(len(columns)), size)), cardinalities, chunks.rows, memory))
    report.stage("count", len(batches) * chunks.rows, "rows")
    with Workers() as workers:
        for batch in batches:
            counter = SubsetCounter(batch, cardinalities, chunks.rows, workers)
            for number, rows in enumerate(chunks.sizes):
                counter.add(chunks.codes(number))
                report.advance(rows)
                if len(batch) == 1 and MERGING * counter.nbytes() > memory:
                    names = " + ".join(repr(columns[column].name) for column in batch[0])
                    raise InputError(
                        f"columns: to count the combinations of {names} takes more than "
                        f"{shown(MERGING * counter.nbytes())}, of the memory limit {shown(memory)} are there for it. "
                        "Leave an identifier out with columns=, bin a measurement, or raise memory_limit."
                    )
            for place, subset in enumerate(batch):
                measured.add(subset, counter.combinations(place))
    return measured


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
