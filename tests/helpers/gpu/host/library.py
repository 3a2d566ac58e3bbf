"""What the CUDA engine works with where its kernels run on this machine's CPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpupif.gpu.kernel_arguments import types_of
from tests.helpers.gpu.numpy_device import NumpyLibrary, one_kernel

from .function import HostFunction

# Of a grid that only has to be large enough: few, as they run one after the other, in several blocks.
BLOCKS, THREADS = 4, 8
# Of other grids, whose kernels take any number of blocks.
MOST_BLOCKS = 5

# All that was launched in this process, by kernel and types of arguments.
functions: dict[tuple[Any, tuple[Any, ...]], HostFunction] = {}


def forward(number: int) -> Any:
    """The first first."""
    return np.arange(number)


def backward(number: int) -> Any:
    """The last first."""
    return np.arange(number)[::-1].copy()


class Shuffled:
    """Another order each time, the same ones for the same seed."""

    def __init__(self, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)

    def __call__(self, number: int) -> Any:
        """See `fibers.Order`."""
        return self._random.permutation(number)


class HostLibrary(NumpyLibrary):
    """NumPy, and kernels on the CPU. memory: see `NumpyLibrary`; order: of threads and blocks."""

    name = "the CPU in place of a GPU"

    def __init__(self, device: int = 0, memory: int = 1 << 40, order: Any = forward) -> None:
        super().__init__(device, memory)
        self._order = order

    def launch(self, kernel: Any, size: int, *arguments: Any) -> None:
        """See `CupyLibrary`."""
        self._run(kernel, BLOCKS, THREADS, arguments)

    def launch_blocks(self, kernel: Any, blocks: int, threads: int, *arguments: Any) -> None:
        """Run a kernel whose threads wait for each other, in blocks of so many; the engine has none at present."""
        self._run(kernel, min(blocks, MOST_BLOCKS), threads, arguments)

    def _run(self, kernel: Any, blocks: int, threads: int, arguments: tuple[Any, ...]) -> None:
        key = kernel, types_of(arguments)
        with one_kernel:
            if key not in functions:
                functions[key] = HostFunction(*key)
            functions[key](blocks, threads, arguments, self._order)
