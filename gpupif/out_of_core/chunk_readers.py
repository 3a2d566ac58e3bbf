"""Readers of chunks: any ranges of their rows in order, and the next chunk made ahead in a thread."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Generic, TypeVar

Chunk = TypeVar("Chunk")


class RowReader(Generic[Chunk]):
    """The reader of ranges of rows, in order, from chunks that follow each other.

    chunks: iterator of chunks.
    first: int. The first row of the first chunk.
    size: function that returns the number of rows of a chunk.
    cut: function that returns a slice of a chunk.
    """

    def __init__(
        self, chunks: Iterator[Chunk], first: int, size: Callable[[Chunk], int], cut: Callable[[Chunk, slice], Chunk]
    ) -> None:
        self._chunks = chunks
        self._start = self._stop = first
        self._chunk: Chunk | None = None
        self._size = size
        self._cut = cut

    def between(self, start: int, stop: int) -> Iterator[Chunk]:
        """Yield the rows `start` to `stop` - 1, chunk by chunk."""
        while start < stop:
            if self._chunk is None or start >= self._stop:
                # Free the memory of a chunk before the next chunk is made.
                self._chunk = None
                self._chunk = next(self._chunks)
                self._start, self._stop = self._stop, self._stop + self._size(self._chunk)
                continue
            end = min(stop, self._stop)
            yield self._cut(self._chunk, slice(start - self._start, end - self._start))
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
