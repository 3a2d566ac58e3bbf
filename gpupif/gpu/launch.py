"""Kernels launched on a device through the driver; numba-cuda only compiles them.

Its own dispatcher types all arguments anew at each launch, and asks arrays for themselves in a way that makes other
streams wait.
"""

from __future__ import annotations

import ctypes
import threading
from struct import Struct
from typing import Any, NamedTuple

from cuda.bindings import driver

from .kernel_arguments import pack
from .kernel_cache import code_of

WORD_BYTES = 8


class DriverError(RuntimeError):
    """A call of the driver that failed. status: the number that it returned."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class _Parameters(threading.local):
    """The parameters of a kernel for the driver: words, and at `table` their addresses. Each thread has its own."""

    def __init__(self, number: int) -> None:
        self.words = (ctypes.c_uint64 * number)()
        first = ctypes.addressof(self.words)
        self._addresses = (ctypes.c_uint64 * number)(*range(first, first + number * WORD_BYTES, WORD_BYTES))
        self.table = ctypes.addressof(self._addresses)


class _Loaded(NamedTuple):
    """A kernel that the driver has. layout: of its parameters."""

    kernel: Any
    layout: Struct
    parameters: _Parameters


# Loaded kernels by kernel, kind of arguments, and compute capability. The driver copies a kernel to each device of this
# capability on which it is launched.
_loaded: dict[tuple[Any, ...], _Loaded] = {}
_loading = threading.Lock()


def launch(
    kernel: Any, arguments: tuple[Any, ...], blocks: int, threads: int, stream: int, capability: tuple[int, int]
) -> None:
    """Start a kernel on a stream, without waiting for it.

    Arrays may be freed at once: CuPy and RMM reuse their memory on this stream, after the kernel. Raise TypeError
    for arguments that no kernel takes, DriverError if the driver fails, and the errors of compilation.

    arguments: arrays on the stream's device, numbers and tuples (see `pack`). capability: of that device.
    """
    packed = pack(arguments)
    key = (kernel, packed.kinds, capability)
    there = _loaded.get(key) or _load(key, packed.signature)
    parameters = there.parameters
    there.layout.pack_into(parameters.words, 0, *packed.words)
    _check(
        "cuLaunchKernel",
        *driver.cuLaunchKernel(there.kernel, blocks, 1, 1, threads, 1, 1, 0, stream, parameters.table, 0),
    )


def _load(key: tuple[Any, ...], signature: Any) -> _Loaded:
    """Compile a kernel, or read its stored code, and load it into the driver, once in a process."""
    kernel, _, capability = key
    with _loading:
        if key not in _loaded:
            code = code_of(kernel, signature.types, capability)
            library = _check("cuLibraryLoadData", *driver.cuLibraryLoadData(code.cubin, [], [], 0, [], [], 0))
            function = _check("cuLibraryGetKernel", *driver.cuLibraryGetKernel(library, code.name.encode()))
            layout = signature.layout
            _loaded[key] = _Loaded(function, layout, _Parameters(layout.size // WORD_BYTES))
        return _loaded[key]


def _check(call: str, status: Any, result: Any = None) -> Any:
    """Return the result of a call of the driver. Raise DriverError if it failed."""
    if int(status):
        raise DriverError(f"{call} returned {status.name} ({int(status)})", int(status))
    return result
