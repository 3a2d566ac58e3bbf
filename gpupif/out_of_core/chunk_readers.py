"""Readers of chunks: any ranges of their rows in order, and the next chunk made ahead in a thread."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Generic, TypeVar

Piece = TypeVar("Piece")


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
