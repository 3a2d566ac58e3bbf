"""What kernels are launched with, in the host's memory: arrays that numba-cuda and the engine take for CuPy's."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numba import types


class StandIn:
    """An array in the host's memory that is none of NumPy's: with a pointer, DLPack and the CUDA array interface."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.dtype, self.shape, self.strides, self.size = array.dtype, array.shape, array.strides, array.size
        self.data = SimpleNamespace(ptr=array.ctypes.data)

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, **place: Any) -> Any:
        return self.array.__dlpack__(max_version=max_version)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        strides = None if self.array.flags.c_contiguous else self.strides
        place = {"data": (self.data.ptr, False), "strides": strides, "stream": 1}
        return {"shape": self.shape, "typestr": self.dtype.str, "version": 3, **place}


def arguments_of(signature: Sequence[Any], length: int = 4) -> tuple[Any, ...]:
    """Arguments of these Numba types; arrays are so long in each direction."""
    return tuple(_argument_of(kind, length) for kind in signature)


def _argument_of(kind: Any, length: int) -> Any:
    if isinstance(kind, types.Array):
        return StandIn(np.ones((length,) * kind.ndim, str(kind.dtype)))
    if isinstance(kind, types.BaseTuple):
        values = arguments_of(kind, length)
        return kind.instance_class(*values) if isinstance(kind, types.BaseNamedTuple) else values
    return {types.int64: -7, types.float64: 0.1}[kind]
