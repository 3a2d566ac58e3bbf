"""Rows on disk, partitioned by hash: rows that agree on some columns are in one partition.

Rows of a partition keep the order of the table and its chunks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..engines.partition_plan import partition_ids
from ..io.ipc_batches import BatchWriter
from ..pipeline.fitting_rows import Span
from ..rows.threads import Workers
from .table_chunks import Chunks, PartitionChunks


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

    With no columns all rows are in one partition. A partition is deleted when the next partition is asked for.
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
