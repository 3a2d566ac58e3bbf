"""Which libraries the CUDA engine works with: CuPy and a device, or NumPy and Numba's simulator to check it without.

This is the one place that decides. Everything that only CuPy has is in `CupyLibrary`.
"""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

THREADS = 256
# Streams of each device: while one computes, the other copies.
STREAMS = 2
# Numba warns below this.
LEAST_BLOCKS = 128


class Library(ABC):
    """Arrays (`xp`, with NumPy's functions), launches and copies on one stream of one device.

    failures: what is raised where the device itself fails.
    """

    xp: Any
    name: str
    failures: tuple[type[Exception], ...] = ()

    @abstractmethod
    def active(self) -> contextlib.AbstractContextManager[None]:
        """Make the device and stream those of the calling thread for a while; what is started then is done after."""

    @abstractmethod
    def launch(self, kernel: Any, size: int, *arguments: Any) -> None:
        """Run a kernel over so many items."""

    @abstractmethod
    def launch_blocks(self, kernel: Any, blocks: int, threads: int, *arguments: Any) -> None:
        """Run a kernel in blocks of exactly so many threads."""

    @abstractmethod
    def stable_order(self, keys: Any) -> Any:
        """Places of the keys in ascending order, equal ones as they stand."""

    @abstractmethod
    def group_labels(self, words: Sequence[Any]) -> Any:
        """A number for each row, the same for rows that agree in all words, by the frame library's group-by."""

    @abstractmethod
    def is_there(self, array: Any) -> bool:
        """Whether an array is on the device already."""

    @abstractmethod
    def upload(self, array: Any) -> Any:
        """The array on the device; one that is there already as it is. Raises MemoryError."""

    @abstractmethod
    def to_host(self, array: Any, out: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
        """A NumPy array with the same contents, `out` where it is given."""

    @abstractmethod
    def free_bytes(self) -> int:
        """Memory of the device that can be taken."""

    @abstractmethod
    def release(self) -> None:
        """Give back memory that is kept for later."""


class CupyLibrary(Library):
    """CuPy arrays on one device; kernels and copies on a stream of their own."""

    def __init__(self, device: int) -> None:
        import cupy
        from numba import cuda

        self.xp = cupy
        self.failures = device_failures()
        self._cuda = cuda
        self._device = cupy.cuda.Device(device)
        with self._device:
            self._stream = cupy.cuda.Stream(non_blocking=True)
            self.name = cupy.cuda.runtime.getDeviceProperties(device)["name"].decode()
        self._blocks = 32 * self._device.attributes["MultiProcessorCount"]

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """See `Library`; what the caller's stream was given before is done first. Numba follows CuPy's device."""
        with self._device:
            before = self.xp.cuda.get_current_stream().record()
            self._stream.wait_event(before)
            with self._stream:
                try:
                    yield
                finally:
                    self._stream.synchronize()

    def launch(self, kernel: Any, size: int, *arguments: Any) -> None:
        """See `Library`."""
        self.launch_blocks(kernel, min(self._blocks, -(-size // THREADS)), THREADS, *arguments)

    def launch_blocks(self, kernel: Any, blocks: int, threads: int, *arguments: Any) -> None:
        """See `Library`; Numba warns of grids that leave most of a device idle, and kernels take any."""
        kernel[max(LEAST_BLOCKS, blocks), threads, self._cuda.external_stream(self._stream.ptr)](*arguments)

    def stable_order(self, keys: Any) -> Any:
        """See `Library`; CuPy's stable argsort of integers is a radix sort."""
        return self.xp.argsort(keys, kind="stable")

    def group_labels(self, words: Sequence[Any]) -> Any:
        """See `Library`: cuDF."""
        import cudf

        return label_rows(cudf, words).values

    def is_there(self, array: Any) -> bool:
        """See `Library`."""
        return isinstance(array, self.xp.ndarray)

    def upload(self, array: Any) -> Any:
        """See `Library`."""
        return self.xp.asarray(array)

    def to_host(self, array: Any, out: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
        """See `Library`."""
        host: npt.NDArray[Any] = self.xp.asnumpy(array)
        if out is None:
            return host
        out[...] = host
        return out

    def free_bytes(self) -> int:
        """See `Library`: what the driver has, and what CuPy's pool keeps for later."""
        with self._device:
            free, _ = self.xp.cuda.runtime.memGetInfo()
            return int(free + self.xp.get_default_memory_pool().free_bytes())

    def release(self) -> None:
        """See `Library`."""
        with self._device:
            self.xp.get_default_memory_pool().free_all_blocks()


class OnDevice(np.ndarray):
    """An array that stands for one on the device, where there is none."""


class SimulatedLibrary(Library):
    """NumPy and Numba's simulator (NUMBA_ENABLE_CUDASIM=1): the same host code and kernels without a GPU, slowly.

    memory: bytes that the device is to have; an array beyond them raises MemoryError.
    """

    xp = np
    name = "Numba's CUDA simulator"

    def __init__(self, memory: int = 1 << 40) -> None:
        self._memory = memory

    def active(self) -> contextlib.AbstractContextManager[None]:
        """See `Library`."""
        return contextlib.nullcontext()

    def launch(self, kernel: Any, size: int, *arguments: Any) -> None:
        """See `Library`."""
        kernel[1, 8](*arguments)

    def launch_blocks(self, kernel: Any, blocks: int, threads: int, *arguments: Any) -> None:
        """See `Library`."""
        kernel[min(blocks, 2), threads](*arguments)

    def stable_order(self, keys: Any) -> Any:
        """See `Library`."""
        return np.argsort(keys, kind="stable")

    def group_labels(self, words: Sequence[Any]) -> Any:
        """See `Library`: pandas."""
        import pandas as pd

        return label_rows(pd, words).to_numpy()

    def is_there(self, array: Any) -> bool:
        """See `Library`: what `on_device` made."""
        return isinstance(array, OnDevice)

    def upload(self, array: Any) -> Any:
        """See `Library`."""
        copy = np.array(array)
        if copy.nbytes > self._memory:
            raise MemoryError
        return copy

    def to_host(self, array: Any, out: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
        """See `Library`."""
        if out is None:
            return np.array(array)
        out[...] = array
        return out

    def free_bytes(self) -> int:
        """See `Library`."""
        return self._memory

    def release(self) -> None:
        """See `Library`."""


def device_failures() -> tuple[type[Exception], ...]:
    """What CuPy and numba-cuda raise where the driver, the compiler or the device fails."""
    import importlib

    import cupy
    from numba.cuda.cudadrv import error

    failures = [cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError]
    failures += [error.CudaDriverError, error.CudaSupportError, error.NvvmError, error.NvrtcError]
    with contextlib.suppress(ImportError, AttributeError):
        # What numba-cuda launches kernels with; private, so it may go.
        failures.append(importlib.import_module("cuda.core._utils.cuda_utils").CUDAError)
    return tuple(failures)


def label_rows(frames: Any, words: Sequence[Any]) -> Any:
    """Series of the groups' numbers; frames: pandas or cuDF."""
    table = frames.DataFrame({str(number): word for number, word in enumerate(words)})
    return table.groupby(list(table.columns), sort=False).ngroup()


def open_libraries(devices: Sequence[int]) -> list[Library]:
    """STREAMS for each of these devices; where Numba's simulator is asked for, that."""
    if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
        return [SimulatedLibrary()]
    return [CupyLibrary(device) for _ in range(STREAMS) for device in devices]
