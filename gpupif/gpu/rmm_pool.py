"""Memory that cuDF takes, which goes through RMM, in one pool with the arrays of CuPy."""

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
    """CuPy's own pool as RMM sees it, so that what cuDF needs for a while lies beside the arrays, in one pool."""

    def __init__(self) -> None:
        super().__init__(self._allocate, self._deallocate)
        self._taken: dict[int, Any] = {}

    def _allocate(self, size: int, stream: Any) -> int:
        # CuPy gives memory out again on the stream that it was taken on, which orders what is done to it.
        with cupy.cuda.Stream.from_external(stream):
            memory = cupy.get_default_memory_pool().malloc(size)
        self._taken[memory.ptr] = memory
        return int(memory.ptr)

    def _deallocate(self, address: int, size: int, stream: Any) -> None:
        # Of nothing at all there may be several.
        self._taken.pop(address, None)


@functools.cache
def _memory(device: int) -> CupyMemory:
    """That of a device; kept for good, for whatever was taken from it gives it back to it."""
    return CupyMemory()


_using: Counter[int] = Counter()
_before: dict[int, Any] = {}
_lock = threading.Lock()


@contextlib.contextmanager
def memory_of_cupy(device: int) -> Iterator[None]:
    """For a while have cuDF take its memory on a device, the current one, from CuPy's pool; threads may do so at once.

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
            # What somebody else has set meanwhile stays.
            if before is not None and rmm.mr.get_per_device_resource(device) is _memory(device):
                rmm.mr.set_per_device_resource(device, before)
