"""What only CuPy has and the CUDA engine calls, held against the CuPy that is installed; needs no GPU."""

from __future__ import annotations

import inspect

import cupy
import cupyx
import pytest

# Function to the arguments that the engine gives by name.
CALLED = {
    "argsort": (cupy.argsort, {"kind"}),
    "take": (cupy.take, {"axis"}),
    "unique": (cupy.unique, {"return_counts"}),
    "empty_pinned": (cupyx.empty_pinned, {"shape", "dtype"}),
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


def test_methods():
    assert issubclass(cupy.cuda.memory.OutOfMemoryError, MemoryError)
    for method, arguments in (("get", {"stream", "out"}), ("set", {"stream"})):
        words = set(inspect.getdoc(getattr(cupy.ndarray, method)).replace(",", " ").replace("=", " ").split())
        assert arguments <= {word.strip("():") for word in words}
    pool = type(cupy.get_default_memory_pool())
    assert callable(pool.free_bytes)
    assert callable(pool.free_all_blocks)
