"""What only CuPy has and the CUDA engine calls, held against the CuPy that is installed; needs no GPU."""

from __future__ import annotations

import inspect

import cupy
import pytest
from cuda.core._utils.cuda_utils import CUDAError

from gpupif.engines.cuda_library import device_failures

# Function to the arguments that the engine gives by name.
CALLED = {
    "argsort": (cupy.argsort, {"kind"}),
    "take": (cupy.take, {"axis"}),
    "unique": (cupy.unique, {"return_counts"}),
}
THERE = [
    *("cuda.Device", "cuda.Stream", "cuda.runtime.getDeviceProperties", "cuda.runtime.memGetInfo"),
    *("cuda.runtime.CUDARuntimeError", "get_default_memory_pool", "arange", "append", "ascontiguousarray", "asarray"),
    *("cumsum", "empty", "flatnonzero", "ones", "zeros"),
]


@pytest.mark.parametrize("name", CALLED)
def test_arguments(name):
    function, arguments = CALLED[name]
    assert arguments <= set(inspect.signature(function).parameters)


@pytest.mark.parametrize("name", THERE)
def test_names(name):
    found = cupy
    for part in name.split("."):
        found = getattr(found, part)
    assert callable(found)


def test_memory():
    assert issubclass(cupy.cuda.memory.OutOfMemoryError, MemoryError)
    pool = type(cupy.get_default_memory_pool())
    assert callable(pool.free_bytes)
    assert callable(pool.free_all_blocks)


def test_streams():
    for name in ("record", "wait_event", "synchronize", "__enter__"):
        assert callable(getattr(cupy.cuda.Stream, name))


def test_what_a_launch_raises_is_known_as_a_failure():
    """numba-cuda launches through cuda.core, whose error is none of Numba's own."""
    failures = device_failures()
    assert issubclass(CUDAError, failures)
    assert issubclass(cupy.cuda.runtime.CUDARuntimeError, failures)
    assert not issubclass(MemoryError, failures)
