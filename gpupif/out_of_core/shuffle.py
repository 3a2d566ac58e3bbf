"""A table hash-partitioned on disk, such that rows that agree on some columns lie in one part; and put together again.

A part holds its rows chunk after chunk, in the order of the table. Which part each row of a chunk went to is kept; that
tells where the rows of the parts belong, so no row numbers are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels import spread

from ..engines.partition_plan import part_ids
from ..io.ipc_batches import BatchReader, BatchWriter, read_batch, write_batch
from ..rows.threads import Workers
from ..utils.repeated import Repeated
from .chunks import Chunks, PartChunks


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
        """How many parts there are."""
        return len(self.sizes)

    def part(self, number: int) -> PartChunks:
        """The rows of a part."""
        return PartChunks(self.folder / f"part-{number:05}.arrow", self.sizes[number])

    def each(self, hashes: HashRange | None = None, drop: bool = False) -> Iterator[tuple[int, PartChunks, HashRange]]:
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
                self.drop_part(part)

    def drop_part(self, number: int) -> None:
        """Delete the rows of a part that is scored."""
        (self.folder / f"part-{number:05}.arrow").unlink(missing_ok=True)

    def scores(self, number: int) -> Path:
        """The file for the scores of a part."""
        return self.folder / f"scores-{number:05}.arrow"

    def order(self, chunk: int) -> npt.NDArray[Any] | None:
        """The rows of a chunk in the order in which its parts hold them, None for as they stand."""
        if self.parts == 1:
            return None
        return np.argsort(read_batch(self.folder / f"ids-{chunk:06}.arrow")[0], kind="stable")


def hash_partition(
    chunks: Chunks,
    cardinalities: Sequence[int],
    by: Sequence[int],
    parts: int,
    folder: Path,
    workers: Workers,
    hashes: HashRange | None = None,
    done: Callable[[int], None] = lambda rows: None,
    keep_ids: bool = True,
) -> Partitioned:
    """Partition a table by the hash of the columns `by`.

    hashes: of the table itself, where it is a part of a partition by the same columns. keep_ids: so that the scores of
    the parts can be put together in the order of the table.
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
                if keep_ids:
                    write_batch(folder / f"ids-{number:06}.arrow", {"id": ids})
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


class PartScores:
    """The scores of the parts of a partitioned table, put together chunk by chunk; a context manager.

    columns: of the files of scores.
    """

    def __init__(self, partitioned: Partitioned, columns: Sequence[str]) -> None:
        self._partitioned = partitioned
        self._place = {name: place for place, name in enumerate(columns)}
        self._files = contextlib.ExitStack()
        self._readers = [
            (part, self._files.enter_context(BatchReader(partitioned.scores(part))))
            for part in range(partitioned.parts)
            if any(partitioned.sizes[part])
        ]

    def __enter__(self) -> PartScores:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def fill(self, chunk: int, outs: Mapping[str, Iterable[tuple[Any, npt.NDArray[Any]]]], workers: Workers) -> None:
        """Fill arrays with the scores of a chunk in the order of the table: by column, each a factor and the array."""
        order = self._partitioned.order(chunk)
        start = 0
        for part, reader in self._readers:
            size = self._partitioned.sizes[part][chunk]
            if size == 0:
                continue
            columns = reader.repeated(chunk)
            rows = slice(start, start + size) if order is None else order[start : start + size]

            def fill(name: str, columns: Any = columns, rows: Any = rows) -> None:
                values = columns[self._place[name]]
                for factor, out in outs[name]:
                    if isinstance(rows, slice):
                        np.multiply(np.asarray(values), factor, out=out[rows], casting="same_kind")
                    elif isinstance(values, Repeated):
                        # Not the distinct ones before: these may be more than the rows here.
                        spread.place_repeated(values.distinct, values.numbers, factor, rows, out)
                    else:
                        spread.place(values, factor, rows, out)

            workers.run(fill, [(name,) for name in outs if name in self._place])
            start += size
