"""The distinct rows of a table in files, few enough for memory, and which of them each row of the table is.

They are found in one pass over the table where that fits; where only they do, but not what finding them takes, the
table is cut first, and they are found in one part after the other.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..attack.weights import Units
from ..engines.memory import AT_ONCE
from ..io.ipc_batches import BatchWriter, read_batch, write_batch
from ..rows.keys import KeyLayout
from ..rows.partition import index_type
from ..rows.threads import Workers
from .chunks import Chunks
from .collapse import PackedChunks, Packing, TooManyRowsError, collapse
from .passes import RunContext
from .shuffle import Partitioned, PartScores, hash_partition

NUMBER = "number"


@dataclass(eq=False)
class DistinctTable:
    """A table's distinct rows, on disk; finding them is a step that is kept in the store.

    chunks: the columns that are used, and last that of the weights, if there are units of them. asked: only the first
    so many chunks are asked about; all count.
    """

    context: RunContext
    step: str
    chunks: Chunks
    cardinalities: Sequence[int]
    units: Units | None
    asked: int | None

    def __post_init__(self) -> None:
        self.sizes = list(self.chunks.sizes[: self.asked])
        self.layout = KeyLayout.of(self.cardinalities)

    def find(self, limit: int, at_once: int, what: str = "") -> int:
        """Find them, unless that is done; returns how many there are.

        limit: as many there may be, else TooManyRowsError is raised. at_once: among so many rows they are looked for,
        if need be in parts. what: of the table is collapsed, in words.
        """
        store = self.context.store

        def collapse() -> dict[str, Any]:
            self.context.report.stage(f"collapse{what}", self.chunks.rows, "rows")
            store.fresh(self.step)
            with Workers() as workers:
                with contextlib.suppress(TooManyRowsError):
                    whole = self._collapse(self.chunks, self.file("part-00000.arrow"), min(limit, at_once), 0, workers)
                    return {"rows": whole, "sizes": [self.sizes]}
                return self._collapse_parts(limit, at_once, workers)

        facts = store.once(self.step, collapse)
        self._cut = Partitioned(self.file(), facts["sizes"])
        return int(facts["rows"])

    def file(self, *names: str) -> Path:
        """A file of the step, or its folder."""
        return self.context.store.part(self.step, *names)

    @cached_property
    def codes(self) -> list[npt.NDArray[Any]]:
        """The codes of each column of the distinct rows."""
        words = [read_batch(file, range(self.layout.words)) for file in self._files()]
        return self.layout.unpack(np.stack([np.concatenate(word) for word in zip(*words, strict=True)], axis=1))

    @cached_property
    def times(self) -> npt.NDArray[np.int64]:
        """How much each of them counts: how often it occurs, or in units what its rows stand for."""
        return self._sums(1 if self.units is not None else 0)

    @property
    def row_counts(self) -> npt.NDArray[np.int64] | None:
        """How many rows each of them is, where rows have weights."""
        return None if self.units is None else self.occurs

    @cached_property
    def occurs(self) -> npt.NDArray[np.int64]:
        """How often each of them occurs among the rows that are asked about."""
        return self._sums(0)

    def forget(self) -> None:
        """Free the memory of what was read; it is read again where it is needed."""
        for name in ("codes", "times", "occurs"):
            self.__dict__.pop(name, None)

    @contextlib.contextmanager
    def numbers(self) -> Iterator[Iterator[npt.NDArray[Any]]]:
        """For each chunk that is asked about in turn, which distinct row each of its rows is."""
        with PartScores(self._cut, [NUMBER]) as gathering, Workers() as workers:

            def each() -> Iterator[npt.NDArray[Any]]:
                for chunk, size in enumerate(self.sizes):
                    number = np.empty(size, self._kind)
                    gathering.fill(chunk, {NUMBER: [(self._kind.type(1), number)]}, workers)
                    yield number

            yield each()

    @property
    def _kind(self) -> np.dtype[Any]:
        return np.dtype(index_type(self.chunks.rows))

    def _files(self) -> list[Path]:
        return sorted(self.file().glob("part-*.arrow"))

    def _sums(self, place: int) -> npt.NDArray[np.int64]:
        each = [read_batch(file, [self.layout.words + place])[0] for file in self._files()]
        return np.concatenate(each)

    def _collapse_parts(self, limit: int, at_once: int, workers: Workers) -> dict[str, Any]:
        """As `find`, in parts of about half as many rows as there is room for."""
        store, report, rows = self.context.store, self.context.report, self.chunks.rows
        parts = max(2, -(-2 * rows // at_once))
        folder = store.fresh(self.step, "cut")
        report.stage("cut", rows, "rows")
        every = range(len(self.cardinalities))
        pieces = hash_partition(self.chunks, self.cardinalities, every, parts, folder, workers, done=report.advance)
        report.stage("collapse", rows, "rows")
        found = 0
        for part, chunks, _ in pieces.each(drop=True):
            file = self.file(f"part-{part:05}.arrow")
            found += self._collapse(chunks, file, limit - found, found, workers, part)
        for number in range(len(self.sizes)):
            (folder / f"ids-{number:06}.arrow").rename(self.file(f"ids-{number:06}.arrow"))
        shutil.rmtree(folder)
        return {"rows": found, "sizes": [list(sizes[: len(self.sizes)]) for sizes in pieces.sizes]}

    def _collapse(self, chunks: Chunks, file: Path, limit: int, before: int, workers: Workers, part: int = 0) -> int:
        """Write the distinct rows of some rows, and which of them each is; returns how many.

        before: how many there were in other parts. Raises TooManyRowsError for over `limit`.
        """
        out = self.file(f"scores-{part:05}.arrow")
        packing = Packing.of(self.cardinalities, range(len(self.cardinalities)), self.units)
        most, asked = max(1, int(AT_ONCE * limit)), len(self.sizes)
        with BatchWriter(out, {NUMBER: pa.from_numpy_dtype(self._kind)}) as writer:

            def write(piece: PackedChunks, number: npt.NDArray[Any]) -> None:
                start = 0
                for size in piece.sizes_before(asked):
                    writer.write([(number[start : start + size].astype(np.int64) + before).astype(self._kind)])
                    start += size

            report = self.context.report
            table = collapse(chunks, packing, most, workers, limit, asked, each=write, done=report.advance)
        names = [*(f"word-{word}" for word in range(self.layout.words)), "occurs", "counts"]
        arrays = [*table.keys.T, *table.sums]
        write_batch(file, dict(zip(names, arrays, strict=False)))
        return len(table)
