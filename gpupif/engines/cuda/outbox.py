"""Scores on their way from where they are made to where they are kept."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from ...gpu.base import Library


class Outbox:
    """Brings scores to where they are kept; to the host while the next ones are made, where there are two streams."""

    def __init__(self, streams: Sequence[Library], home: Library) -> None:
        self._library, self._copier, self._home = streams[0], streams[-1], home
        self._pool = ThreadPoolExecutor(1)
        self._under_way: Future[None] | None = None

    def __enter__(self) -> Outbox:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def put(self, arrays: Sequence[Any], places: Sequence[Any]) -> None:
        """Have arrays copied to their places; those given before are there already."""
        self.empty()
        self._library.finish()
        if self._home.on_device(places[0]):
            with self._home.active():
                for array, place in zip(arrays, places, strict=True):
                    place[...] = self._home.bring(array)
        else:
            self._under_way = self._pool.submit(self._copy, arrays, places)

    def empty(self) -> None:
        """Wait until all is where it is kept."""
        if self._under_way is not None:
            self._under_way.result()
            self._under_way = None

    def _copy(self, arrays: Sequence[Any], places: Sequence[Any]) -> None:
        with self._copier.active():
            for array, place in zip(arrays, places, strict=True):
                self._copier.to_host(array, place)
