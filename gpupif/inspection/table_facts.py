"""The facts of the columns of a table: in memory, from files in streams, or with Dask.

The tasks of `dask` hold all values of a column at once. Files may not: their values are merged in partitions that fit
into memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..encoding.merge import ColumnMerger, ValueCounts, encode_part
from ..errors import ColumnTypeError
from ..frames.dask_frame import is_dask
from ..frames.open import open_table
from ..io.base import Source, check_rows
from ..io.file_errors import disk_errors
from ..io.ipc_batches import BatchReader, BatchWriter
from ..io.read import in_chunks, open_source
from ..io.temporary_folder import temporary_folder
from ..marginals.request import CountRequest
from ..out_of_core.file_encoding import rows_read
from ..out_of_core.memory_budget import READS_PER_CHUNK, plan_reading
from ..out_of_core.merged_values import MERGING
from ..rows.threads import Workers
from ..utils.config import resources
from ..utils.progress import Reporter
from .column_facts import OTHER, ColumnFacts, column_values, facts_of, value_hashes


def find_facts(table: Any, request: CountRequest, report: Reporter) -> dict[Hashable, ColumnFacts]:
    """Return the facts of the columns of a table of any kind, or of a path. Large files are read in streams.

    Raises InputError, TableReadError, OutputError, DeviceError.
    """
    if is_dask(table):
        from .dask import facts_on_dask

        return facts_on_dask(table, request, report)
    find = facts_in_streams if request.in_streams(table) else facts_in_memory
    return find(table, request, report)


def facts_in_memory(table: Any, request: CountRequest, report: Reporter) -> dict[Hashable, ColumnFacts]:
    """Return the facts of a table's columns, in memory. table: of any kind except a Dask frame.

    Raises InputError, TableReadError.
    """
    frame = open_table(table, request.pick)
    names = request.chosen(frame.names, frame.index_names)
    report.stage("look at", len(names), "columns")

    def find(name: Hashable, array: Any) -> ColumnFacts:
        facts = facts_of(column_values(name, array), frame.rows)
        report.advance()
        return facts

    with frame.active(), Workers() as workers:
        arrays = [(name, frame.column(frame.names.index(name))) for name in names]
        on_device = frame.device_frames() is not None
        facts = [find(*named) for named in arrays] if on_device else workers.run(find, arrays)
    return dict(zip(names, facts, strict=True))


# A chunk takes at most the memory for a column's values divided by CHUNKS, since all its values may be distinct.
CHUNKS = 3
# The most partitions in which the values of a column are merged.
MOST_PARTITIONS = 1 << 9


@dataclass
class _Stored:
    """The distinct values of a column on disk, chunk by chunk.

    nbytes: bytes of the values in memory. missing: rows without a value.
    """

    name: Hashable
    file: Path
    nbytes: int = 0
    missing: int = 0


def facts_in_streams(table: Any, request: CountRequest, report: Reporter) -> dict[Hashable, ColumnFacts]:
    """Return the facts of the columns of files, within the memory limit.

    Raises InputError, TableReadError, OutputError.
    """
    source, here = open_source(table), resources()
    names = request.choose(source)
    budget = plan_reading(here.memory, len(names))
    memory = budget.values_bytes()
    with contextlib.ExitStack() as files:
        folder = files.enter_context(temporary_folder(here.temp))
        files.enter_context(disk_errors(folder))
        plain = [name for name in names if _is_plain(source, name)]
        stored = [_Stored(name, folder / f"values-{place}.arrow") for place, name in enumerate(plain)]
        rows = _store(source, stored, names, budget.chunk_rows, memory, report)
        check_rows(source.input_files.path, rows, source.names)
        report.stage("look at", len(stored), "columns")
        facts: dict[Hashable, ColumnFacts] = dict.fromkeys(names, ColumnFacts(OTHER, rows=rows))
        for column in stored:
            facts[column.name] = _merge_facts(source, column, memory)
            column.file.unlink()
            report.advance()
    return facts


def _is_plain(source: Source, name: Hashable) -> bool:
    """Return whether the values of a column can be compared."""
    try:
        encode_part(name, source.nothing().column(name))
    except ColumnTypeError:
        return False
    return True


def _store(
    source: Source, stored: Sequence[_Stored], names: Sequence[Any], chunk_rows: int, memory: int, report: Reporter
) -> int:
    """Read the table and store the values of its plain columns. Return the number of rows.

    stored: the plain columns. names: all columns that are asked for. memory: bytes for the values of a column.
    """
    # Without a plain column, another column is read to count rows.
    read: list[Any] = [column.name for column in stored] or [names[0]]
    done, rows = rows_read(source, report), 0
    tables = (table for _, table in source.read(read, chunk_rows, memory // READS_PER_CHUNK))
    writers: list[BatchWriter] = []
    with contextlib.ExitStack() as files, Workers() as workers:
        for chunk in in_chunks(tables, chunk_rows, memory // CHUNKS):
            parts: list[ValueCounts] = workers.run(_values, [(one.name, chunk.column(one.name)) for one in stored])
            if not writers:
                writers = [
                    files.enter_context(_writer(column.file, part.labels.type))
                    for column, part in zip(stored, parts, strict=True)
                ]
            for column, writer, part in zip(stored, writers, parts, strict=True):
                writer.write([part.labels, part.counts])
                column.nbytes += part.labels.nbytes
                column.missing += part.missing
            rows += chunk.num_rows
            done(chunk.num_rows)
    return rows


def _values(name: Hashable, array: Any) -> ValueCounts:
    """Return the distinct values of some rows of a column, without their codes."""
    return encode_part(name, array).values


def _writer(file: Path, kind: pa.DataType) -> BatchWriter:
    """Return a writer for values and how often each occurs."""
    return BatchWriter(file, {"label": kind, "count": pa.int64()})


def _merge_facts(source: Source, column: _Stored, memory: int) -> ColumnFacts:
    """Return the facts of a column, from values that are merged in partitions."""
    partitions = min(MOST_PARTITIONS, -(-MERGING * column.nbytes // memory))
    if partitions <= 1:
        [values] = _merge(column.name, [column.file])
        return ColumnFacts.from_values(ValueCounts(source.labels(values.labels), values.counts, column.missing))
    files = _cut(source, column.file, partitions)
    labels = source.labels_in_parts(lambda: (values.labels for values in _merge(column.name, files)))
    counts = _merge(column.name, files)
    missing = [column.missing, *([0] * (partitions - 1))]
    facts = [
        ColumnFacts.from_values(ValueCounts(own, values.counts, absent))
        for own, values, absent in zip(labels, counts, missing, strict=True)
    ]
    for file in files:
        file.unlink()
    return ColumnFacts.total(facts)


def _merge(name: Hashable, files: Sequence[Path]) -> Iterator[ValueCounts]:
    """Yield the distinct values in each of these files."""
    for file in files:
        merger = ColumnMerger(name)
        with BatchReader(file) as reader:
            for number in range(len(reader)):
                labels, counts = reader.columns(number)
                merger.add(ValueCounts(labels, counts.to_numpy(), 0))
        merger.flush()
        yield merger.values


def _cut(source: Source, file: Path, partitions: int) -> list[Path]:
    """Cut the values in a file by their hashes, so that equal values are in one file; return the files."""
    files = [file.with_suffix(f".{partition}") for partition in range(partitions)]
    with BatchReader(file) as reader, contextlib.ExitStack() as opened:
        writers: list[BatchWriter] = []
        for number in range(len(reader)):
            labels, counts = reader.columns(number)
            writers = writers or [opened.enter_context(_writer(path, labels.type)) for path in files]
            partition_of = (value_hashes(source.part_key(labels)) % np.uint64(partitions)).astype(np.int64)
            for partition, writer in enumerate(writers):
                own = pa.array(np.flatnonzero(partition_of == partition))
                writer.write([labels.take(own), counts.take(own)])
    return files
