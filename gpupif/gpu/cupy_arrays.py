"""CuPy and a real device: all that only CuPy has, and what it raises."""

from __future__ import annotations

import contextlib
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from .base import Library, RowGroups
from .launch import DriverError, launch
from .staging import PinnedStaging

THREADS = 256
# The driver's and the runtime's number for memory that is used up.
OUT_OF_MEMORY = 2
# Of a device's memory, what CuPy's pool keeps from one score to the next at most, so that the same need not be asked of
# the driver again. The rest goes back to the driver: other libraries and processes, cuDF without a pool among them,
# take their memory there. A choice, not measured on a GPU.
KEPT_SHARE = 0.25
# Shares of a pool that are tried, the largest first, to see how much of it is free in one piece.
POOL_STEPS = 16

# Streams that no library uses, by device. Memory that CuPy's pool keeps is given out again on the same stream only.
_idle_streams: defaultdict[int, list[Any]] = defaultdict(list)


class CupyLibrary(Library):
    """CuPy arrays on one device; kernels and copies on a stream of their own.

    Where the user has set up a memory pool of RMM, arrays lie there; else in CuPy's own.
    """

    def __init__(self, device: int) -> None:
        import cupy

        self.xp = cupy
        self.device = device
        self.failures = device_failures()
        self.staging = PinnedStaging(self)
        self._device = cupy.cuda.Device(device)
        with self._device:
            try:
                self._stream = _idle_streams[device].pop()
            except IndexError:
                self._stream = cupy.cuda.Stream(non_blocking=True)
            properties = cupy.cuda.runtime.getDeviceProperties(device)
            self._pool = user_pool()
        self.name = properties["name"].decode()
        self._capability = (properties["major"], properties["minor"])
        self._blocks = 32 * self._device.attributes["MultiProcessorCount"]

    @contextlib.contextmanager
    def _current(self) -> Iterator[None]:
        """See `Library`; what the caller's stream was given before is done first."""
        with self._device, array_memory(self._pool):
            before = self.xp.cuda.get_current_stream().record()
            self._stream.wait_event(before)
            with self._stream:
                try:
                    yield
                finally:
                    self._stream.synchronize()

    def ran_out(self, error: Exception) -> bool:
        return is_out_of_memory(error)

    def launch(self, kernel: Any, size: int, *arguments: Any) -> None:
        """Run a kernel, see `Library`; the driver takes no grid of 0 blocks."""
        blocks = max(1, min(self._blocks, -(-size // THREADS)))
        launch(kernel, arguments, blocks, THREADS, self._stream.ptr, self._capability)

    def stable_order(self, keys: Any) -> Any:
        """See `Library`; CuPy's stable argsort of integers is a radix sort."""
        return self.xp.argsort(keys, kind="stable")

    def group_rows(self, words: Mapping[int, Any], counts: Any) -> RowGroups:
        """See `Library`: cuDF, on this library's stream and in the memory that its arrays lie in."""
        from .cudf_grouping import group_rows
        from .rmm_pool import memory_of_cupy

        try:
            with memory_of_cupy(self.device) if self._pool is None else contextlib.nullcontext():
                return group_rows(words, counts, self._stream)
        except RuntimeError as error:
            # cuDF has no class of its own for what the driver tells it.
            raise error if isinstance(error, self.failures) else DriverError(f"cuDF: {error}") from error

    def on_device(self, array: Any) -> bool:
        return isinstance(array, self.xp.ndarray)

    def empty(self, shape: Any, dtype: Any) -> Any:
        return self.xp.empty(shape, dtype)

    def device_of(self, array: Any) -> int | None:
        return int(array.device.id) if self.on_device(array) else None

    def settle(self, array: Any) -> None:
        if self.on_device(array):
            array.device.synchronize()

    def bring(self, array: Any) -> Any:
        """See `Library`; a copy of an array of another device is made on the current one."""
        elsewhere = self.on_device(array) and array.device.id != self.device
        return array.copy() if elsewhere else self.xp.asarray(array)

    def pinned(self, size: int) -> npt.NDArray[np.uint8]:
        return np.frombuffer(self.xp.cuda.alloc_pinned_memory(size), np.uint8, size)

    def start_download(self, array: Any, pinned: npt.NDArray[Any]) -> Any:
        array.get(out=pinned, stream=self._stream, blocking=False)
        return self._stream.record().synchronize

    def start_upload(self, pinned: npt.NDArray[Any], array: Any) -> Any:
        array.set(pinned, stream=self._stream)
        return self._stream.record().synchronize

    def finish(self) -> None:
        self._stream.synchronize()

    def free_bytes(self) -> int:
        """See `Library`: what the driver has, and what a pool keeps for later."""
        with self._device:
            free, _ = self.xp.cuda.runtime.memGetInfo()
            if self._pool is not None:
                return free_of_pool(self._pool, int(free))
            return int(free + self.xp.get_default_memory_pool().free_bytes())

    def trim(self) -> None:
        with contextlib.suppress(*self.failures), self._device:
            _, total = self.xp.cuda.runtime.memGetInfo()
            if self.xp.get_default_memory_pool().free_bytes() > KEPT_SHARE * total:
                self.release()

    def close(self) -> None:
        """See `Library`; a stream that failed is not used again."""
        self.staging.release()
        with contextlib.suppress(*self.failures), self._device:
            self._stream.synchronize()
            _idle_streams[self.device].append(self._stream)

    def release(self) -> None:
        self.staging.release()
        # After a failure the device may fail once more; what is to be told is the first one.
        with contextlib.suppress(*self.failures), self._device:
            self.xp.get_default_memory_pool().free_all_blocks()
            self.xp.get_default_pinned_memory_pool().free_all_blocks()


def array_memory(pool: Any) -> contextlib.AbstractContextManager[Any]:
    """Have CuPy take its arrays for a while from the user's pool, see `user_pool`, or without one from its own.

    What `import cudf` sets, RMM without a pool, asks the driver for each array, which waits for all that it was given.
    """
    import cupy

    if pool is None:
        return cupy.cuda.using_allocator(cupy.get_default_memory_pool().malloc)  # type: ignore[no-any-return]
    from rmm.allocators.cupy import rmm_cupy_allocator

    return cupy.cuda.using_allocator(rmm_cupy_allocator)  # type: ignore[no-any-return]


def user_pool() -> Any:
    """The memory resource of RMM that the user set up for the current device; None where there is none."""
    if "rmm" not in sys.modules:
        return None
    import rmm

    from .rmm_pool import CupyMemory

    resource = rmm.mr.get_current_device_resource()
    return None if type(resource) in (rmm.mr.CudaMemoryResource, CupyMemory) else resource


def free_of_pool(pool: Any, free: int) -> int:
    """How much a pool of RMM can give in one piece, to a sixteenth of its size; free: what the driver has.

    Looks through adaptors; of a resource that does not tell its size only what the driver has is counted.
    """
    inner = pool
    while not hasattr(inner, "pool_size") and hasattr(inner, "upstream_mr"):
        inner = inner.upstream_mr
    size = inner.pool_size() if hasattr(inner, "pool_size") else 0
    for part in range(POOL_STEPS, 0, -1):
        wanted = size // POOL_STEPS * part
        # What the driver has a pool may take from there, and would keep.
        if wanted <= free:
            break
        with contextlib.suppress(MemoryError):
            pool.deallocate(pool.allocate(wanted), wanted)
            return int(wanted)
    return free


def device_failures() -> tuple[type[Exception], ...]:
    """What CuPy and our own launches raise where the driver or the device fails."""
    import cupy

    runtime, compiler = cupy.cuda.runtime, cupy.cuda.compiler
    return runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError, compiler.CompileException, DriverError


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of CuPy, RMM, cuDF or our own launches says that the device has no memory left.

    RMM and cuDF raise a bare MemoryError; NumPy's, for the host, is a class of its own.
    """
    import cupy

    if isinstance(error, MemoryError):
        return isinstance(error, cupy.cuda.memory.OutOfMemoryError) or type(error) is MemoryError
    return isinstance(error, device_failures()) and getattr(error, "status", None) == OUT_OF_MEMORY
