"""Which libraries the CUDA engine works with: CuPy and the device, or NumPy and Numba's simulator to check it without.

This is the one place that decides. Everything that only CuPy has is in `CupyLibrary`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

THREADS = 256


class Library(Protocol):
    """Arrays (`xp`, with NumPy's functions), launches, and the memory of one device."""

    xp: Any

    def launch(self, kernel: Any, size: int, *arguments: Any) -> None:
        """Run a kernel over so many items."""

    def launch_blocks(self, kernel: Any, blocks: int, threads: int, *arguments: Any) -> None:
        """Run a kernel in blocks of exactly so many threads."""

    def stable_order(self, keys: Any) -> Any:
        """Places of the keys in ascending order, equal ones as they stand."""

    def upload(self, array: npt.NDArray[Any]) -> Any:
        """The array on the device; one that is there already as it is."""

    def to_host(self, array: Any, out: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
        """A NumPy array with the same contents, `out` where it is given."""

    def free_bytes(self) -> int:
        """Memory of the device that can be taken."""


class CupyLibrary:
    """CuPy arrays on the current device, kernels on CuPy's current stream."""

    def __init__(self) -> None:
        import cupy

        self.xp = cupy
        self._blocks = 32 * cupy.cuda.Device().attributes["MultiProcessorCount"]

    def launch(self, kernel: Any, size: int, *arguments: Any) -> None:
        """See `Library`."""
        self.launch_blocks(kernel, max(1, min(self._blocks, -(-size // THREADS))), THREADS, *arguments)

    def launch_blocks(self, kernel: Any, blocks: int, threads: int, *arguments: Any) -> None:
        """See `Library`."""
        from numba import cuda

        stream = cuda.external_stream(self.xp.cuda.get_current_stream().ptr)
        kernel[blocks, threads, stream](*arguments)

    def stable_order(self, keys: Any) -> Any:
        """See `Library`; CuPy's stable argsort of integers is a radix sort."""
        return self.xp.argsort(keys, kind="stable")

    def upload(self, array: npt.NDArray[Any]) -> Any:
        """See `Library`."""
        return self.xp.asarray(array)

    def to_host(self, array: Any, out: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
        """See `Library`."""
        host: npt.NDArray[Any] = self.xp.asnumpy(array, out=out)
        return host

    def free_bytes(self) -> int:
        """See `Library`: what the driver has, and what CuPy's pool keeps for later."""
        free, _ = self.xp.cuda.runtime.memGetInfo()
        pool = self.xp.get_default_memory_pool()
        return int(free + pool.free_bytes())


class SimulatedLibrary:
    """NumPy and Numba's simulator (NUMBA_ENABLE_CUDASIM=1): the same host code and kernels without a GPU, slowly."""

    xp = np

    def __init__(self, memory: int = 1 << 30) -> None:
        self._memory = memory

    def launch(self, kernel: Any, size: int, *arguments: Any) -> None:
        """See `Library`."""
        kernel[1, 8](*arguments)

    def launch_blocks(self, kernel: Any, blocks: int, threads: int, *arguments: Any) -> None:
        """See `Library`."""
        kernel[min(blocks, 2), threads](*arguments)

    def stable_order(self, keys: Any) -> Any:
        """See `Library`."""
        return np.argsort(keys, kind="stable")

    def upload(self, array: npt.NDArray[Any]) -> Any:
        """See `Library`."""
        return np.asarray(array)

    def to_host(self, array: Any, out: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
        """See `Library`."""
        if out is None:
            return np.asarray(array)
        out[...] = array
        return out

    def free_bytes(self) -> int:
        """See `Library`."""
        return self._memory


def current_library() -> Library:
    """What the engine works with in this process."""
    from numba import config

    return SimulatedLibrary() if config.ENABLE_CUDASIM else CupyLibrary()
