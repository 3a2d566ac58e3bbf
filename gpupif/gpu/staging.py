"""Copies between the host and a device through pinned memory: one buffer is filled while the other is copied."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

from ..rows.threads import Workers
from .base import Library, Staging

# Of each of two buffers: large enough that starting a copy costs nothing, small enough to be had always.
BUFFER_BYTES = 1 << 25
# What is smaller goes without them.
SMALL_BYTES = 1 << 20
# Threads that empty a buffer: one of them does not fill the bus.
THREADS = 4


class PinnedStaging(Staging):
    """Two pinned buffers of one library, taken when first needed; one copy at a time goes through them."""

    def __init__(self, library: Library, buffer_bytes: int = BUFFER_BYTES, small_bytes: int = SMALL_BYTES) -> None:
        self._library = library
        self._bytes = buffer_bytes
        self._small = small_bytes
        self._buffers: list[npt.NDArray[np.uint8]] = []
        self._lock = threading.Lock()

    def download(self, array: Any, out: npt.NDArray[Any]) -> None:
        library = self._library
        flat = library.xp.ascontiguousarray(array).reshape(-1)
        target = out if out.ndim == 1 else out.reshape(-1)
        if flat.nbytes <= self._small:
            host = np.empty(flat.size, flat.dtype)
            library.start_download(flat, host)()
            target[:] = host
            return
        waiting: deque[tuple[Any, npt.NDArray[Any], int]] = deque()
        with self._lock, Workers(THREADS) as workers:
            for number, (start, stop) in enumerate(self._pieces(flat.size, flat.dtype)):
                if len(waiting) == len(self._buffers):
                    _empty(*waiting.popleft(), target, workers)
                buffer = self._view(number, flat.dtype, stop - start)
                waiting.append((library.start_download(flat[start:stop], buffer), buffer, start))
            for copy in waiting:
                _empty(*copy, target, workers)

    def upload(self, array: Any) -> Any:
        library = self._library
        host = np.ascontiguousarray(array)
        if host.nbytes <= self._small:
            return library.bring(host)
        source = host.reshape(-1)
        flat = library.empty(source.size, source.dtype)
        with self._lock:
            self._fill(flat, source)
        return flat.reshape(host.shape)

    def _fill(self, flat: Any, source: npt.NDArray[Any]) -> None:
        library = self._library
        waiting: deque[Any] = deque()
        for number, (start, stop) in enumerate(self._pieces(source.size, source.dtype)):
            if len(waiting) == len(self._buffers):
                waiting.popleft()()
            buffer = self._view(number, source.dtype, stop - start)
            buffer[:] = source[start:stop]
            waiting.append(library.start_upload(buffer, flat[start:stop]))
        for wait in waiting:
            wait()

    def release(self) -> None:
        """Give the buffers back."""
        self._buffers = []

    def _pieces(self, size: int, dtype: Any) -> list[tuple[int, int]]:
        if not self._buffers:
            self._buffers = [self._library.pinned(self._bytes) for _ in range(2)]
        step = self._bytes // np.dtype(dtype).itemsize
        return [(start, min(size, start + step)) for start in range(0, size, step)]

    def _view(self, number: int, dtype: Any, size: int) -> npt.NDArray[Any]:
        buffer = self._buffers[number % len(self._buffers)]
        return buffer[: size * np.dtype(dtype).itemsize].view(dtype)


def _empty(wait: Any, buffer: npt.NDArray[Any], start: int, target: npt.NDArray[Any], workers: Workers) -> None:
    """Wait for a copy into a buffer and move what it brought to its place, from `start` on."""
    wait()

    def move(first: int, last: int) -> None:
        target[start + first : start + last] = buffer[first:last]

    workers.run(move, workers.ranges(len(buffer)))
