"""The first stage: files are read once, in streams, and encoded chunk by chunk; then the values are merged."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..attack.weights import TableWeights, Units, add_chunk, read_weights
from ..encoding.column import Column
from ..encoding.merge import EncodedPart, ValueCounts, encode_part, final_order, merged_column
from ..errors import TableReadError
from ..io.base import Source
from ..io.ipc_batches import BatchReader, BatchWriter, write_batch
from ..io.read import in_chunks
from ..rows.threads import Workers
from ..utils.progress import Reporter
from .kept_source import KeptSource
from .memory_budget import READS_PER_CHUNK
from .merged_values import merge_values, missing_error
from .table_chunks import EncodedChunks, TableChunks

# Joining the values of a population takes this many times the memory of a column's values.
JOINED = 4


def encode_files(
    source: Source,
    names: Sequence[Any],
    missing: str,
    chunk_rows: int,
    folder: Path,
    memory: int,
    done: Callable[[int], None],
) -> dict[str, Any]:
    """Encode the columns `names` of a table into `folder`; return the facts that `open_encoded` needs, ready for JSON.

    A table that is kept encoded is not encoded again.
    missing: str. "error" raises InputError for a missing value.
    memory: int. The bytes that the values of a column may take; InputError if they take more.
    done: function called with the number of rows of each chunk.
    """
    if isinstance(source, KeptSource):
        return source.facts(names, missing, chunk_rows, memory, done)
    file_rows = [0] * len(source.input_files.files)
    sizes: list[int] = []
    absent = [0] * len(names)

    def tables() -> Iterator[pa.Table]:
        for number, table in source.read(names, chunk_rows, memory // READS_PER_CHUNK):
            file_rows[number] += table.num_rows
            yield table

    with contextlib.ExitStack() as files, Workers() as workers:
        labels: list[BatchWriter] = []
        for chunk in in_chunks(tables(), chunk_rows, memory):
            parts = workers.run(encode_part, [(name, chunk.column(name)) for name in names])
            if missing == "error":
                for name, part in zip(names, parts, strict=True):
                    if part.values.missing:
                        row = int(np.flatnonzero(part.codes == len(part.values.labels))[0])
                        raise missing_error(name, sum(sizes) + row)
            if not labels:
                labels = [files.enter_context(_label_writer(folder, place, part)) for place, part in enumerate(parts)]
            codes = {str(place): part.codes for place, part in enumerate(parts)}
            write_batch(folder / f"chunk-{len(sizes):06}.arrow", codes)
            for place, (writer, part) in enumerate(zip(labels, parts, strict=True)):
                writer.write([part.values.labels, part.values.counts])
                absent[place] += part.values.missing
            sizes.append(chunk.num_rows)
            done(chunk.num_rows)
    if not sizes:
        listed = ", ".join(source.names)
        raise TableReadError(f"{source.input_files.path}: expected at least one row, got none (columns: {listed}).")
    for place, name in enumerate(names):
        _merge(name, folder, place, memory)
    return {"sizes": sizes, "file_rows": file_rows, "missing": absent}


def rows_read(source: Source, report: Reporter, what: str = "") -> Callable[[int], None]:
    """Begin the stage in which a table is read; return the function to call with the number of rows of each chunk.

    what: str. The end of the stage's name. Default: empty.
    """
    report.stage(f"read and encode{what}", source.rows, "rows")
    # The source may have been read before.
    rows, before = 0, source.bytes_read

    def done(more: int) -> None:
        nonlocal rows
        rows += more
        report.advance(more)
        if source.rows is None and source.bytes_read > before:
            report.expect(rows * source.bytes // (source.bytes_read - before))

    return done


def _label_writer(folder: Path, place: int, part: EncodedPart) -> BatchWriter:
    return BatchWriter(folder / f"labels-{place}.arrow", {"label": part.values.labels.type, "count": pa.int64()})


def _merge(name: Hashable, folder: Path, place: int, memory: int) -> None:
    """Merge the values of a column from all chunks.

    One file gets the merged values, another the number that each chunk's value has among them.
    """
    with (
        BatchReader(folder / f"labels-{place}.arrow") as labels,
        BatchWriter(folder / f"numbers-{place}.arrow", {"number": pa.int64()}) as writer,
    ):
        batches = (labels.columns(number) for number in range(len(labels)))
        parts = (ValueCounts(values, counts.to_numpy(), 0) for values, counts in batches)
        merged = merge_values(name, parts, lambda numbers: writer.write([numbers]), memory)
    write_batch(folder / f"values-{place}.arrow", {"label": merged.labels, "count": merged.counts})
    (folder / f"labels-{place}.arrow").unlink()


def open_encoded(folder: Path, names: Sequence[Any], facts: dict[str, Any], source: Source) -> TableChunks:
    """Return the table that `encode_files` wrote into a folder."""
    if isinstance(source, KeptSource):
        return source.chunks(names, facts)
    columns: list[Column] = []
    ranks = []
    for place, (name, missing) in enumerate(zip(names, facts["missing"], strict=True)):
        with BatchReader(folder / f"values-{place}.arrow") as reader:
            merged, counts = reader.columns(0)
        labels = source.labels(merged)
        rank = final_order(labels, source.ascending)
        columns.append(merged_column(name, ValueCounts(merged, counts.to_numpy(), missing), rank, labels))
        ranks.append(rank)
    return EncodedChunks(folder, facts["sizes"], columns, ranks)


def weigh_chunks(chunks: TableChunks, place: int, used: int) -> tuple[Units, TableWeights]:
    """Return the sampling weights in column `place`, and their sums by column and code in the first `used` columns."""

    def first_row(code: int) -> int:
        start = 0
        for number, size in enumerate(chunks.sizes):
            found = np.flatnonzero(chunks.some_codes(number, [place])[0] == code)
            if len(found):
                return start + int(found[0])
            start += size
        raise AssertionError(code)

    units = read_weights(chunks.columns[place], first_row)
    columns = chunks.columns[:used]
    counts = {column.name: np.zeros(column.cardinality, np.int64) for column in columns}
    with Workers() as workers:
        for number in range(len(chunks.sizes)):
            *codes, weights = chunks.some_codes(number, [*range(used), place])
            multiplicities = units.multiplicities(weights)
            add_chunk(columns, codes, multiplicities, counts, workers)
    return units, TableWeights(None, counts, units.total, units.unit)
