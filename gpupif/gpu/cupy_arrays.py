"""Arrays on a GPU: CuPy's arrays, copies, launches, memory, and errors."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..rows.threads import Workers

# Threads of a block of a kernel.
THREADS = 256
# The driver's and the runtime's number for memory that is used up.
OUT_OF_MEMORY = 2
# Largest share of a device's memory that CuPy's pool keeps from one score to the next, to ask the driver less often.
# The rest is returned to the driver, from which other libraries and processes (and cuDF without a pool) take memory.
# A choice, not measured on a GPU.
KEPT_SHARE = 0.25
# Shares of a pool that are tried, the largest first, to see how much of it is free in one piece.
POOL_STEPS = 16
# Bytes of each of two buffers: enough that starting a copy takes no time, and few enough to be always available.
BUFFER_BYTES = 1 << 25
# Largest array that is copied without the buffers.
SMALL_BYTES = 1 << 20
# Threads that empty a buffer: one of them does not fill the bus.
COPYING_THREADS = 4

# Streams that no library uses, by device. Memory that CuPy's pool keeps is given out again on the same stream only.
_idle_streams: defaultdict[int, list[Any]] = defaultdict(list)


class DeviceMemoryError(Exception):
    """The error if the device's memory is too small. The host's memory may be large enough."""


class RowGroups(NamedTuple):
    """Groups of rows that agree in some words.

    words: by number, of each group. counts: the sum of its rows' counts, int64. of_row: the group of each row, in 32
    bits.
    """

    words: dict[int, Any]
    counts: Any
    of_row: Any


class PinnedStaging:
    """Copies of large arrays between host and device through two pinned buffers. One is filled while the other is
    copied.

    The buffers of a library are taken when first needed, and one copy at a time goes through them.
    """

    def __init__(self, library: CupyLibrary, buffer_bytes: int = BUFFER_BYTES, small_bytes: int = SMALL_BYTES) -> None:
        self._library = library
        self._bytes = buffer_bytes
        self._small = small_bytes
        self._buffers: list[npt.NDArray[np.uint8]] = []
        self._lock = threading.Lock()

    def download(self, array: Any, out: npt.NDArray[Any]) -> None:
        """Fill `out`, of one dimension or contiguous, with an array of the device."""
        library = self._library
        flat = library.xp.ascontiguousarray(array).reshape(-1)
        target = out if out.ndim == 1 else out.reshape(-1)
        if flat.nbytes <= self._small:
            host = np.empty(flat.size, flat.dtype)
            library.start_download(flat, host)()
            target[:] = host
            return
        waiting: deque[tuple[Any, npt.NDArray[Any], int]] = deque()
        with self._lock, Workers(COPYING_THREADS) as workers:
            for number, (start, stop) in enumerate(self._chunks(flat.size, flat.dtype)):
                if len(waiting) == len(self._buffers):
                    _empty(*waiting.popleft(), target, workers)
                buffer = self._view(number, flat.dtype, stop - start)
                waiting.append((library.start_download(flat[start:stop], buffer), buffer, start))
            for copy in waiting:
                _empty(*copy, target, workers)

    def upload(self, array: Any) -> Any:
        """Return an array on the device with the contents of one of the host."""
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
        for number, (start, stop) in enumerate(self._chunks(source.size, source.dtype)):
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

    def _chunks(self, size: int, dtype: Any) -> list[tuple[int, int]]:
        if not self._buffers:
            self._buffers = [self._library.pinned(self._bytes) for _ in range(2)]
        step = self._bytes // np.dtype(dtype).itemsize
        return [(start, min(size, start + step)) for start in range(0, size, step)]

    def _view(self, number: int, dtype: Any, size: int) -> npt.NDArray[Any]:
        buffer = self._buffers[number % len(self._buffers)]
        return buffer[: size * np.dtype(dtype).itemsize].view(dtype)


def _empty(wait: Any, buffer: npt.NDArray[Any], start: int, target: npt.NDArray[Any], workers: Workers) -> None:
    """Wait for a copy into a buffer, and move its content to its place, from `start` on."""
    wait()

    def move(first: int, last: int) -> None:
        target[start + first : start + last] = buffer[first:last]

    workers.run(move, workers.ranges(len(buffer)))


class CupyLibrary:
    """CuPy's arrays (`xp`), launches and copies on one stream of one device; if the user set up a pool of RMM, in it.

    Tests replace this class by one that needs no GPU.

    device: its number. failures: the exceptions if the device itself fails. staging: the buffers for large copies
    between host and device.
    """

    xp: Any
    name: str
    device: int = 0
    failures: tuple[type[Exception], ...] = ()
    staging: PinnedStaging

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
    def active(self) -> Iterator[None]:
        """Make the device and stream current for the calling thread, and wait at exit until all started work is done.

        Raises DeviceMemoryError if the device's memory runs out.
        """
        try:
            with self._current():
                yield
        except Exception as error:
            if self.ran_out(error):
                raise DeviceMemoryError from error
            raise

    @contextlib.contextmanager
    def _current(self) -> Iterator[None]:
        """Do as `active` does, without changing errors. Earlier work on the caller's stream is done first."""
        with self._device, array_memory(self._pool):
            before = self.xp.cuda.get_current_stream().record()
            self._stream.wait_event(before)
            with self._stream:
                try:
                    yield
                finally:
                    self._stream.synchronize()

    def ran_out(self, error: Exception) -> bool:
        """Return whether an error says that the device's memory is too small."""
        return is_out_of_memory(error)

    def launch(self, kernel: Any, size: int, *arguments: Any) -> None:
        """Run a kernel over a number of items."""
        from .launch import launch

        # The driver takes no grid of 0 blocks.
        blocks = max(1, min(self._blocks, -(-size // THREADS)))
        launch(kernel, arguments, blocks, THREADS, self._stream.ptr, self._capability)

    def stable_order(self, keys: Any) -> Any:
        """Return the places of the keys in ascending order, equal ones as they are: a radix sort for integers."""
        return self.xp.argsort(keys, kind="stable")

    def group_rows(self, words: Mapping[int, Any], counts: Any) -> RowGroups:
        """Return the groups of rows that agree in all words, in any order, found by cuDF's hash tables.

        words: by any numbers, uint64, at least one. counts: how often each row occurs, int64, or None: once. At most
        2^31 - 1 rows.
        """
        from .launch import DriverError
        from .rmm_pool import memory_of_cupy

        try:
            with memory_of_cupy(self.device) if self._pool is None else contextlib.nullcontext():
                return group_rows(words, counts, self._stream)
        except RuntimeError as error:
            # cuDF has no class of its own for what the driver tells it.
            raise error if isinstance(error, self.failures) else DriverError(f"cuDF: {error}") from error

    def on_device(self, array: Any) -> bool:
        """Return whether an array is on a device already, this one or another."""
        return isinstance(array, self.xp.ndarray)

    def device_of(self, array: Any) -> int | None:
        """Return the number of the device that an array is on; None for the host."""
        return int(array.device.id) if self.on_device(array) else None

    def settle(self, array: Any) -> None:
        """Wait until whatever is to fill an array, on whichever device, has done so."""
        if self.on_device(array):
            array.device.synchronize()

    def empty(self, shape: Any, dtype: Any) -> Any:
        """Return a new array on this device."""
        return self.xp.empty(shape, dtype)

    def bring(self, array: Any) -> Any:
        """Return a small or device array on this device; one that is there already as it is.

        A copy of an array of another device is made on the current one.
        """
        elsewhere = self.on_device(array) and array.device.id != self.device
        return array.copy() if elsewhere else self.xp.asarray(array)

    def upload(self, array: Any) -> Any:
        """Return a large array on this device; one that is there already as it is."""
        return self.bring(array) if self.on_device(array) else self.staging.upload(array)

    def to_host(self, array: Any, out: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
        """Return a NumPy array with the same contents: `out` if it is given."""
        host = np.empty(array.shape, array.dtype) if out is None else out
        self.staging.download(array, host)
        return host

    def pinned(self, size: int) -> npt.NDArray[np.uint8]:
        """Return pinned memory of the host, to which the device can copy while other work runs."""
        return np.frombuffer(self.xp.cuda.alloc_pinned_memory(size), np.uint8, size)

    def start_download(self, array: Any, pinned: npt.NDArray[Any]) -> Any:
        """Start to copy an array to pinned memory. Return a function that waits until the copy is complete."""
        array.get(out=pinned, stream=self._stream, blocking=False)
        return self._stream.record().synchronize

    def start_upload(self, pinned: npt.NDArray[Any], array: Any) -> Any:
        """Start to copy pinned memory to an array. Return a function that waits until the copy is complete."""
        array.set(pinned, stream=self._stream)
        return self._stream.record().synchronize

    def finish(self) -> None:
        """Wait until all that was started is done."""
        self._stream.synchronize()

    def free_bytes(self) -> int:
        """Return the free bytes of the device: free in the driver, or unused in a pool."""
        with self._device:
            free, _ = self.xp.cuda.runtime.memGetInfo()
            if self._pool is not None:
                return free_of_pool(self._pool, int(free))
            return int(free + self.xp.get_default_memory_pool().free_bytes())

    def trim(self) -> None:
        """Give memory that is kept for later back if it is more than a library may keep between scores."""
        with contextlib.suppress(*self.failures), self._device:
            _, total = self.xp.cuda.runtime.memGetInfo()
            if self.xp.get_default_memory_pool().free_bytes() > KEPT_SHARE * total:
                self.release()

    def close(self) -> None:
        """Hand the stream on to the library that is opened next, unless it failed; this one is not used any more."""
        self.staging.release()
        with contextlib.suppress(*self.failures), self._device:
            self._stream.synchronize()
            _idle_streams[self.device].append(self._stream)

    def release(self) -> None:
        """Give back memory that is kept for later."""
        self.staging.release()
        # After a failure the device may fail once more; what is to be told is the first one.
        with contextlib.suppress(*self.failures), self._device:
            self.xp.get_default_memory_pool().free_all_blocks()
            self.xp.get_default_pinned_memory_pool().free_all_blocks()

    def stage(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Note the stage of the work that is started in the context. Benchmarks replace this."""
        return contextlib.nullcontext()


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
    """Return the memory resource of RMM that the user set up for the current device; None if there is none."""
    if "rmm" not in sys.modules:
        return None
    import rmm

    from .rmm_pool import CupyMemory

    resource = rmm.mr.get_current_device_resource()
    return None if type(resource) in (rmm.mr.CudaMemoryResource, CupyMemory) else resource


def free_of_pool(pool: Any, free: int) -> int:
    """Return the largest piece that a pool of RMM can give, to a sixteenth of its size. free: the driver's free bytes.

    Adaptors are looked through. If a resource has no size, the driver's free bytes are returned.
    """
    inner = pool
    while not hasattr(inner, "pool_size") and hasattr(inner, "upstream_mr"):
        inner = inner.upstream_mr
    size = inner.pool_size() if hasattr(inner, "pool_size") else 0
    for part in range(POOL_STEPS, 0, -1):
        wanted = size // POOL_STEPS * part
        # A pool may take this much from the driver, and would keep it.
        if wanted <= free:
            break
        with contextlib.suppress(MemoryError):
            pool.deallocate(pool.allocate(wanted), wanted)
            return int(wanted)
    return free


def device_failures() -> tuple[type[Exception], ...]:
    """Return the exceptions that CuPy and our own launches raise if the driver or the device fails."""
    import cupy

    from .launch import DriverError

    runtime, compiler = cupy.cuda.runtime, cupy.cuda.compiler
    return runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError, compiler.CompileException, DriverError


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error of CuPy, RMM, cuDF or our own launches is for lack of memory on the device.

    RMM and cuDF raise a bare MemoryError; NumPy's, for the host, is a class of its own.
    """
    import cupy

    if isinstance(error, MemoryError):
        return isinstance(error, cupy.cuda.memory.OutOfMemoryError) or type(error) is MemoryError
    return isinstance(error, device_failures()) and getattr(error, "status", None) == OUT_OF_MEMORY


def group_rows(words: Mapping[int, Any], counts: Any, stream: Any) -> RowGroups:
    """Return the groups of rows that agree in all words, by cuDF's lower layer. stream: CuPy's current stream.

    Two calls of pylibcudf hash and compare whole keys: a group-by of sums or counts (`GroupBy.aggregate`, if atomic
    operations can form all sums) and a join. Other calls sort: `GroupBy.get_groups`, `scan` and `transform.encode`.
    No key is missing (null) here, so no null masks are compared.
    """
    import cupy
    import pylibcudf

    columns = [as_column(values) for values in words.values()]
    keys = pylibcudf.Table(columns)
    # Rows are counted in 32 bits, and counts added up in 64.
    added = columns[0] if counts is None else as_column(counts)
    how = pylibcudf.aggregation.count() if counts is None else pylibcudf.aggregation.sum()
    request = pylibcudf.groupby.GroupByRequest(added, [how])
    groups, (sums,) = pylibcudf.groupby.GroupBy(keys).aggregate([request], stream=stream)
    # Each row finds the one group that has its key; pairs of them come in any order.
    rows, found = pylibcudf.join.inner_join(keys, groups, pylibcudf.types.NullEquality.EQUAL, stream=stream)
    of_row = cupy.empty(keys.num_rows(), "int32")
    of_row[as_array(rows, "int32")] = as_array(found, "int32")
    of_groups = dict(zip(words, (as_array(column, "uint64") for column in groups.columns()), strict=True))
    total = as_array(sums.columns()[0], "int32" if counts is None else "int64")
    return RowGroups(of_groups, total.astype("int64", copy=False), of_row)


def as_column(array: Any) -> Any:
    """Return a contiguous array of CuPy, of one dimension, as a column, without a copy."""
    import pylibcudf

    kind = pylibcudf.types.DataType(getattr(pylibcudf.types.TypeId, array.dtype.name.upper()))
    return pylibcudf.Column(kind, len(array), pylibcudf.gpumemoryview(array), None, 0, 0, [])


def as_array(column: Any, dtype: str) -> Any:
    """Return a column without missing values, as cuDF made it, as an array of CuPy, without a copy."""
    import cupy

    return cupy.asarray(column.data()).view(dtype)
