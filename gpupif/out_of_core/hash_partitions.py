"""A table on disk, partitioned by hash: rows that agree on some columns are in one partition.

Rows of a partition keep the order of the table and its chunks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..engines.partition_plan import partition_ids
from ..io.ipc_batches import BatchWriter
from ..rows.threads import Workers
from .table_chunks import Chunks, PartitionChunks


@dataclass(frozen=True)
class HashRange:
    """A range of hashes: number `place` of `of` equal ranges. A partition holds the rows with hashes in its range."""

    place: int = 0
    of: int = 1


@dataclass(frozen=True)
class HashPartitions:
    """A table partitioned by hash.

    folder: Path. The folder with one file for each partition.
    sizes: lists of int. The number of rows of each partition and chunk.
    """

    folder: Path
    sizes: Sequence[Sequence[int]]

    @property
    def partitions(self) -> int:
        """The number of partitions."""
        return len(self.sizes)

    def partition(self, number: int) -> PartitionChunks:
        """Return the rows of a partition."""
        return PartitionChunks(self.folder / f"part-{number:05}.arrow", self.sizes[number])

    def each(self, hashes: HashRange | None = None, drop: bool = False) -> Iterator[tuple[int, Chunks, HashRange]]:
        """Yield the number, the rows and the hash range of each partition that has rows; close the rows afterwards.

        hashes: HashRange. The range of the table itself, if it is a partition. Default: all hashes.
        drop: bool. Whether to delete each partition afterwards. Default False.
        """
        whole = hashes or HashRange()
        for number in range(self.partitions):
            chunks = self.partition(number)
            try:
                if chunks.rows:
                    yield number, chunks, HashRange(whole.place * self.partitions + number, whole.of * self.partitions)
            finally:
                chunks.close()
            if drop:
                (self.folder / f"part-{number:05}.arrow").unlink()


def hash_partition(
    chunks: Chunks,
    cardinalities: Sequence[int],
    by: Sequence[int],
    partitions: int,
    folder: Path,
    workers: Workers,
    hashes: HashRange | None = None,
    done: Callable[[int], None] = lambda rows: None,
) -> HashPartitions:
    """Partition a table by the hash of the columns `by`; with no columns all rows are in one partition.

    hashes: HashRange. The range of the table itself, if it is a partition by the same columns. Default: all hashes.
    done: function called with the number of rows of each chunk.
    """
    partitions = partitions if by else 1
    hashes = hashes or HashRange()
    sizes = np.zeros((partitions, len(chunks.sizes)), np.int64)
    with contextlib.ExitStack() as files:
        writers: list[BatchWriter] = []
        for number in range(len(chunks.sizes)):
            codes = chunks.codes(number)
            if not writers:
                schema = {str(place): _arrow_type(column) for place, column in enumerate(codes)}
                writers = [
                    files.enter_context(BatchWriter(folder / f"part-{partition:05}.arrow", schema))
                    for partition in range(partitions)
                ]
            if partitions > 1:
                ids = partition_ids(codes, cardinalities, by, partitions * hashes.of, workers)
                ids = (ids - hashes.place * partitions).astype(np.uint8 if partitions <= 2**8 else ids.dtype)
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
    return HashPartitions(folder, sizes.tolist())


def _arrow_type(array: npt.NDArray[Any]) -> Any:
    import pyarrow as pa

    return pa.from_numpy_dtype(array.dtype)
