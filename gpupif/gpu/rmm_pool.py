"""Memory for cuDF, which RMM allocates, in one pool with the arrays of CuPy."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import cupy
import rmm


class CupyMemory(rmm.mr.CallbackMemoryResource):
    """CuPy's pool as a memory resource of RMM, so that cuDF's working memory and arrays share one pool."""

    def __init__(self) -> None:
        super().__init__(self._allocate, self._deallocate)
        self._taken: dict[int, Any] = {}

    def _allocate(self, size: int, stream: Any) -> int:
        # CuPy reuses memory on the stream that it was taken on, which orders all work on it.
        with cupy.cuda.Stream.from_external(stream):
            memory = cupy.get_default_memory_pool().malloc(size)
        self._taken[memory.ptr] = memory
        return int(memory.ptr)

    def _deallocate(self, address: int, size: int, stream: Any) -> None:
        # Several allocations of 0 bytes may share an address.
        self._taken.pop(address, None)


@functools.cache
def _memory(device: int) -> CupyMemory:
    """Return the memory resource of a device. It is kept for ever, because each allocation returns its memory to it."""
    return CupyMemory()


_using: Counter[int] = Counter()
_before: dict[int, Any] = {}
_lock = threading.Lock()


@contextlib.contextmanager
def memory_of_cupy(device: int) -> Iterator[None]:
    """Have cuDF take its memory on a device from CuPy's pool, in the context. Threads may do so at once.

    cuDF takes what it needs in between from the one resource that is set for the device, whatever it is told.
    """
    with _lock:
        if not _using[device]:
            _before[device] = rmm.mr.get_per_device_resource(device)
            rmm.mr.set_per_device_resource(device, _memory(device))
        _using[device] += 1
    try:
        yield
    finally:
        with _lock:
            _using[device] -= 1
            before = None if _using[device] else _before.pop(device)
            # A memory resource that other code has set meanwhile is kept.
            if before is not None and rmm.mr.get_per_device_resource(device) is _memory(device):
                rmm.mr.set_per_device_resource(device, before)
