"""Chunks of scores: the facts of a chunk for the summary, and readers of rows from chunks."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from ..io.documents import parse_json
from ..io.file_errors import disk_errors
from ..results.riskiest import RiskyCell
from ..results.summary_figures import Figures
from ..utils.private_folder import write_private

Piece = TypeVar("Piece")


class ChunkFacts(NamedTuple):
    """Facts of a chunk for the summary: its figures, and the candidates for the riskiest cells."""

    figures: Figures
    top: list[RiskyCell]

    @classmethod
    def read(cls, file: Path) -> ChunkFacts:
        """Return the facts that `write` wrote."""
        facts = parse_json(file.read_text())
        return cls(Figures.from_stored(facts["figures"]), [RiskyCell(*cell) for cell in facts["top"]])

    def write(self, file: Path) -> None:
        """Write the facts to a file, which appears whole or not at all."""
        with disk_errors(file):
            write_private(file, json.dumps({"figures": self.figures.to_stored(), "top": self.top}).encode())


class RowReader(Generic[Piece]):
    """The reader of ranges of rows, in order, from chunks that follow each other.

    pieces: iterator of chunks.
    first: int. The first row of the first chunk.
    size: function that returns the number of rows of a chunk.
    cut: function that returns a slice of a chunk.
    """

    def __init__(
        self, pieces: Iterator[Piece], first: int, size: Callable[[Piece], int], cut: Callable[[Piece, slice], Piece]
    ) -> None:
        self._pieces = pieces
        self._start = self._stop = first
        self._piece: Piece | None = None
        self._size = size
        self._cut = cut

    def between(self, start: int, stop: int) -> Iterator[Piece]:
        """Yield the rows `start` to `stop` - 1, chunk by chunk."""
        while start < stop:
            if self._piece is None or start >= self._stop:
                # Free the memory of a chunk before the next chunk is made.
                self._piece = None
                self._piece = next(self._pieces)
                self._start, self._stop = self._stop, self._stop + self._size(self._piece)
                continue
            end = min(stop, self._stop)
            yield self._cut(self._piece, slice(start - self._start, end - self._start))
            start = end


def prefetched(items: Iterator[Any]) -> Generator[Any]:
    """Yield the same items; a thread makes the next item while the caller uses the current one."""

    def make() -> Any:
        return next(items, None)

    # The thread has to see the settings of `gpupif.config` too.
    here = copy_context()
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(here.run, make)
        while (item := coming.result()) is not None:
            coming = pool.submit(here.run, make)
            yield item
            del item
