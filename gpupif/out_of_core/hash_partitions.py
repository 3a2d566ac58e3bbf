"""A table hash-partitioned on disk, such that rows that agree on some columns are in one part.

A part holds its rows chunk after chunk, in the order of the table.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..engines.partition_plan import part_ids
from ..io.ipc_batches import BatchWriter
from ..rows.threads import Workers
from .table_chunks import Chunks, PartitionChunks


@dataclass(frozen=True)
class HashRange:
    """The hashes that the rows of a part have: those of part `place` of `of`."""

    place: int = 0
    of: int = 1


@dataclass(frozen=True)
class Partitioned:
    """A partitioned table: its folder, and its number of rows by part and chunk."""

    folder: Path
    sizes: Sequence[Sequence[int]]

    @property
    def parts(self) -> int:
        """Return the number of parts."""
        return len(self.sizes)

    def part(self, number: int) -> PartitionChunks:
        """The rows of a part."""
        return PartitionChunks(self.folder / f"part-{number:05}.arrow", self.sizes[number])

    def each(
        self, hashes: HashRange | None = None, drop: bool = False
    ) -> Iterator[tuple[int, PartitionChunks, HashRange]]:
        """Each part that has rows: its number, its rows, which are closed afterwards, and their hashes.

        hashes: of the table itself, where it is such a part. drop: delete each afterwards.
        """
        whole = hashes or HashRange()
        for part in range(self.parts):
            chunks = self.part(part)
            try:
                if chunks.rows:
                    yield part, chunks, HashRange(whole.place * self.parts + part, whole.of * self.parts)
            finally:
                chunks.close()
            if drop:
                (self.folder / f"part-{part:05}.arrow").unlink()


def hash_partition(
    chunks: Chunks,
    cardinalities: Sequence[int],
    by: Sequence[int],
    parts: int,
    folder: Path,
    workers: Workers,
    hashes: HashRange | None = None,
    done: Callable[[int], None] = lambda rows: None,
) -> Partitioned:
    """Partition a table by the hash of the columns `by`.

    hashes: of the table itself, where it is a part of a partition by the same columns.
    """
    parts = parts if by else 1
    hashes = hashes or HashRange()
    sizes = np.zeros((parts, len(chunks.sizes)), np.int64)
    with contextlib.ExitStack() as files:
        writers: list[BatchWriter] = []
        for number in range(len(chunks.sizes)):
            codes = chunks.codes(number)
            if not writers:
                schema = {str(place): _arrow_type(column) for place, column in enumerate(codes)}
                writers = [
                    files.enter_context(BatchWriter(folder / f"part-{part:05}.arrow", schema)) for part in range(parts)
                ]
            if parts > 1:
                ids = part_ids(codes, cardinalities, by, parts * hashes.of, workers)
                ids = (ids - hashes.place * parts).astype(np.uint8 if parts <= 2**8 else ids.dtype)
                sizes[:, number] = np.bincount(ids, minlength=parts)
                order = np.argsort(ids, kind="stable")
                codes = workers.run(lambda column, order=order: column[order], [(column,) for column in codes])
            else:
                sizes[0, number] = chunks.sizes[number]
            ends = np.cumsum([0, *sizes[:, number]])

            def write(part: int, writers: Any = writers, codes: Any = codes, ends: Any = ends) -> None:
                writers[part].write([column[ends[part] : ends[part + 1]] for column in codes])

            workers.run(write, [(part,) for part in range(parts)])
            done(chunks.sizes[number])
    return Partitioned(folder, sizes.tolist())


def _arrow_type(array: npt.NDArray[Any]) -> Any:
    import pyarrow as pa

    return pa.from_numpy_dtype(array.dtype)
