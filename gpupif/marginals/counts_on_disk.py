"""The counts of sets of columns of a table on disk, chunk by chunk; sets of too many combinations in partitions.

Rows are cut by the hash of the columns that several sets have in common, so that a partition holds the combinations of
all these sets whole. Two cuts serve all sets that leave out one column of many. The pipeline's tasks would send the
combinations of each set apart, which is many times as much on the disk.
"""

from __future__ import annotations

import contextlib
import math
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..attack.weights import Units
from ..engines.base import Counter, Counting, Engine
from ..engines.cpu.count_tables import combination_bytes, key_layout
from ..engines.cpu.counting import in_batches
from ..engines.partition_plan import partition_ids
from ..errors import InputError
from ..io.ipc_batches import BatchWriter
from ..out_of_core.file_encoding import weigh_chunks
from ..out_of_core.memory_budget import SPARE_FILES, files_to_open
from ..out_of_core.table_chunks import Chunks, PartitionChunks, SomeColumns, TableChunks
from ..out_of_core.temporary_table import TemporaryTable
from ..pipeline.fitting_rows import Span
from ..rows.threads import Workers
from ..utils.information import entropy_of_counts
from ..utils.progress import Reporter
from .request import CountRequest
from .set_counts import CountResult, Find, MakeFind, SetCounts, SetRequest, Total, with_counts

# The share of the working memory for combinations. While combinations are merged or searched they take MERGING times
# their bytes, and SEVERAL times if several sets are counted from them.
COUNTS_SHARE, MERGING, SEVERAL = 0.5, 8, 12
# Bytes of a combination while it is searched. The share of the memory for combinations that counters may keep then.
SEARCH_BYTES, TABLES_SHARE = 100, 0.5
# Bytes of combinations that are counted at once, however little memory there is. The number of hashes of rows.
LEAST_BYTES, HASHES = 1 << 16, 1 << 32


class _Weights(NamedTuple):
    """The column of a chunk's codes that has the sampling weights, and the units of each of its codes."""

    column: int
    units: Units


class _Partition(NamedTuple):
    """The rows of the table whose hash over the columns `by` is in the span."""

    chunks: Chunks
    by: list[int]
    span: Span


class ChunkCounts(SetCounts):
    """The counts of a table on disk. The table's temporary files are deleted on exit."""

    def __init__(self, stream: TemporaryTable, request: CountRequest, report: Reporter, engine: Engine) -> None:
        chunks, used = stream.chunks, len(request.chosen(stream.names))
        self.names = stream.names[:used]
        self.device = engine.device
        self._weights, weighted = None, None
        with contextlib.ExitStack() as opened:
            opened.push(stream)
            if request.weights is not None:
                column = list(stream.names).index(request.weights)
                units, weighted = weigh_chunks(chunks, column, used)
                self._weights = _Weights(column, units)
            self._opened = opened.pop_all()
        self._columns = with_counts(chunks.columns[:used], weighted)
        self._total = Total.from_weights(chunks.rows, weighted)
        self._engine = engine
        self._stream = stream
        self._report = report

    def __exit__(self, *error: Any) -> None:
        self._opened.__exit__(*error)

    def count(self, sets: Sequence[SetRequest], make: MakeFind) -> CountResult:
        """Return the results for each set; see `SetCounts.count`."""
        memory, columns = int(COUNTS_SHARE * self._stream.budget.working), self._stream.chunks.columns
        with Workers() as workers, self._engine.counting(workers) as counting:
            run = _CountRun(
                sets=sets,
                find=make(self._columns, self._total),
                results=[[] for _ in sets],
                units=self._total.units,
                memory=memory,
                report=self._report,
                workers=workers,
                counting=counting,
                weights=self._weights,
                cardinalities=[column.cardinality for column in columns],
                entropies=[entropy_of_counts(column.counts) for column in columns],
            )
            wide = run.count_narrow(self._stream.chunks)
            if wide:
                run.count_wide(self._stream.chunks, wide, self._stream.folder)
        return CountResult(self._columns, self._total, run.results)


@dataclass
class _CountRun:
    """The state of one count of sets of columns.

    sets: the sets of columns, as `find` knows them.
    find: makes the result of a partition, a `Find`.
    results: by set the results of its partitions.
    units: the count of all rows.
    memory: bytes for combinations.
    report: counts rows that are read.
    workers: threads.
    counting: makes counters.
    weights: the column of weights. None without weights.
    cardinalities: number of values of each column of the chunks.
    entropies: entropy of each column of the chunks, bits.
    rows_to_read: rows that are to be read altogether, as far as is known.
    """

    sets: Sequence[SetRequest]
    find: Find
    results: list[list[Any]]
    units: int
    memory: int
    report: Reporter
    workers: Workers
    counting: Counting
    weights: _Weights | None
    cardinalities: list[int]
    entropies: list[float]
    rows_to_read: int = 0

    def count_narrow(self, chunks: TableChunks) -> dict[int, SetRequest]:
        """Count the sets that fit into memory, in as few passes over the table as possible; return the other sets."""
        rows, tables = chunks.rows, int(TABLES_SHARE * self.memory)

        def fits(columns: Sequence[int]) -> bool:
            cardinalities = [self.cardinalities[column] for column in columns]
            most = min(math.prod(cardinalities), rows)
            return combination_bytes(cardinalities, rows, self.units) <= tables and SEARCH_BYTES * most <= self.memory

        wide = {number: own for number, own in enumerate(self.sets) if not fits(own.columns)}
        narrow = [number for number in range(len(self.sets)) if number not in wide]
        lists = [self.sets[number].columns for number in narrow]
        passes = list(in_batches(lists, self.cardinalities, rows, tables, self.units))
        self.report.stage("count", 0, "rows")
        self._expect(len(passes) * rows)
        numbers = iter(narrow)
        for counted in passes:
            counter = self.counting.counter(counted, self.cardinalities, rows)
            for number in range(len(chunks.sizes)):
                self._add_rows(counter, chunks.codes(number))
            for place in range(len(counted)):
                self._add_result(next(numbers), counter, place)
        return wide

    def count_wide(self, chunks: TableChunks, sets: dict[int, SetRequest], folder: Path) -> None:
        """Count sets in partitions. sets: by number. folder: for the partitions."""
        used = sorted({column for own in sets.values() for column in own.columns})
        if self.weights is not None and self.weights.column not in used:
            used.append(self.weights.column)
        place_of = {column: place for place, column in enumerate(used)}
        if self.weights is not None:
            self.weights = self.weights._replace(column=place_of[self.weights.column])
        self.cardinalities = [self.cardinalities[column] for column in used]
        self.entropies = [self.entropies[column] for column in used]
        moved = {
            number: SetRequest([place_of[column] for column in own.columns], [place_of[column] for column in own.by])
            for number, own in sets.items()
        }
        self._count_partition(_Partition(SomeColumns(chunks, used), [], Span()), moved, folder)

    def _count_partition(self, partition: _Partition, sets: dict[int, SetRequest], folder: Path) -> None:
        """Count sets in a partition that holds their combinations whole; cut the partition finer if it is too large."""
        if self._count_at_once(partition.chunks, sets):
            return
        by = sorted(set.intersection(*(set(own.by) for own in sets.values())))
        parts = self._finer_partitions(partition.chunks, sets)
        # A cut is fine enough if the columns in common have enough values. The columns of the last cut were not enough.
        fine = by != partition.by and sum(self.entropies[column] for column in by) >= np.log2(parts)
        if len(sets) > 1 and not fine:
            numbers = list(sets)
            for half in (numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]):
                self._count_partition(partition, {number: sets[number] for number in half}, folder)
            return
        span = partition.span if by == partition.by else Span()
        if parts * span.of >= HASHES:
            raise InputError("memory_limit: too little to count these columns together. Raise it, or name fewer.")
        own_folder = Path(tempfile.mkdtemp(dir=folder))
        self._expect(partition.chunks.rows)
        finer = hash_partition(
            partition.chunks, self.cardinalities, by, parts, own_folder, self.workers, span, self.report.advance
        )
        for chunks, own_span in finer:
            self._count_partition(_Partition(chunks, by, own_span), sets, folder)
        shutil.rmtree(own_folder)

    def _finer_partitions(self, chunks: Chunks, sets: dict[int, SetRequest]) -> int:
        """Return the number of partitions to cut these rows into, such that each is likely to fit into memory."""
        used = sorted({column for own in sets.values() for column in own.columns})
        row = 8 * key_layout([self.cardinalities[column] for column in used]).words + 4
        needed = (MERGING if len(sets) == 1 else SEVERAL) * row * chunks.rows
        most = max(2, files_to_open() - SPARE_FILES - 2 * len(self.cardinalities))
        return min(most, max(2, -(-needed // max(LEAST_BYTES, self.memory))))

    def _count_at_once(self, chunks: Chunks, sets: dict[int, SetRequest]) -> bool:
        """Count sets if the distinct rows of the chunks fit into memory; return whether they do."""
        alone = next(iter(sets.values())) if len(sets) == 1 else None
        used = list(alone.columns) if alone else sorted({column for own in sets.values() for column in own.columns})
        share = max(LEAST_BYTES, self.memory // (MERGING if alone else SEVERAL))
        counter = self.counting.counter([used], self.cardinalities, chunks.rows, dense=1)
        self._expect(chunks.rows)
        for number in range(len(chunks.sizes)):
            self._add_rows(counter, chunks.codes(number))
            if counter.nbytes() > share:
                self._expect(-sum(chunks.sizes[number + 1 :]))
                return False
        if alone:
            [number] = sets
            self._add_result(number, counter, 0)
            return True
        rows = counter.combinations(0, ordered=False)
        codes: list[Any] = [rows.counts] * len(self.cardinalities)
        for column, own_codes in zip(used, rows.codes, strict=True):
            codes[column] = own_codes
        del counter
        lists = [own.columns for own in sets.values()]
        counters = self.counting.counters(codes, self.cardinalities, lists, rows.counts, differ=True)
        for number, (counted, place) in zip(sets, counters, strict=True):
            self._add_result(number, counted, place)
        return True

    def _add_result(self, number: int, counter: Counter, place: int) -> None:
        """Add the result of a partition to the results of a set. place: of the set in the counter."""
        self.results[number].append(self.find(self.sets[number].columns, counter, place))

    def _add_rows(self, counter: Counter, codes: Sequence[npt.NDArray[Any]]) -> None:
        """Count the rows of a chunk."""
        weights = self.weights
        counter.add(codes, None if weights is None else weights.units.multiplicities(codes[weights.column]))
        self.report.advance(len(codes[0]))

    def _expect(self, rows: int) -> None:
        """Add rows to the number of rows to read that the progress shows."""
        self.rows_to_read += rows
        self.report.expect(self.rows_to_read)


def hash_partition(
    chunks: Chunks,
    cardinalities: Sequence[int],
    by: Sequence[int],
    partitions: int,
    folder: Path,
    workers: Workers,
    span: Span,
    done: Callable[[int], None],
) -> Iterator[tuple[Chunks, Span]]:
    """Partition rows by the hash of the columns `by`; yield the rows and the span of each partition that has rows.

    Rows keep their order. With no columns all rows are in one partition. A partition is deleted when the next partition
    is asked for.
    folder: Path. The folder for the files of the partitions.
    span: Span. The span of the rows themselves, if they are a partition by the same columns; else all hashes.
    done: function called with the number of rows of each chunk.
    """
    partitions = partitions if by else 1
    files = [folder / f"partition-{partition:05}.arrow" for partition in range(partitions)]
    sizes = np.zeros((partitions, len(chunks.sizes)), np.int64)
    with contextlib.ExitStack() as opened:
        writers: list[BatchWriter] = []
        for number in range(len(chunks.sizes)):
            codes = chunks.codes(number)
            if not writers:
                schema = {str(place): pa.from_numpy_dtype(column.dtype) for place, column in enumerate(codes)}
                writers = [opened.enter_context(BatchWriter(file, schema)) for file in files]
            if partitions > 1:
                ids = partition_ids(codes, cardinalities, by, partitions * span.of, workers)
                ids = (ids - span.place * partitions).astype(np.uint8 if partitions <= 2**8 else ids.dtype)
                sizes[:, number] = np.bincount(ids, minlength=partitions)
                order = np.argsort(ids, kind="stable")
                codes = workers.run(lambda column, order=order: column[order], [(column,) for column in codes])
            else:
                sizes[0, number] = chunks.sizes[number]
            ends = np.cumsum([0, *sizes[:, number]])

            def write(partition: int, writers: Any = writers, codes: Any = codes, ends: Any = ends) -> None:
                writers[partition].write([column[ends[partition] : ends[partition + 1]] for column in codes])

            workers.run(write, [(partition,) for partition in range(partitions)])
            done(chunks.sizes[number])
    for partition, file in enumerate(files):
        with contextlib.closing(PartitionChunks(file, sizes[partition].tolist())) as rows:
            if rows.rows:
                yield rows, Span(span.of * partitions, span.place * partitions + partition)
        file.unlink()
