"""What only CuPy, cuDF, RMM and numba-cuda have and we call, held against those installed; needs no GPU."""

from __future__ import annotations

import ast
import inspect
from functools import reduce
from pathlib import Path
from types import SimpleNamespace

import cudf
import cupy
import numpy as np
import pylibcudf
import pytest
import rmm
from numba import float64
from rmm.allocators.cupy import rmm_cupy_allocator

import gpupif.engines
from gpupif.engines import cuda_cupy
from gpupif.engines.cuda_arguments import pack
from gpupif.engines.cuda_cupy import CupyLibrary, device_failures, free_of_pool, is_out_of_memory, user_pool
from gpupif.engines.cuda_launch import DriverError

# Function to the arguments that are given by name.
CALLED = [
    (cupy, "argsort", {"kind"}),
    (cupy, "bincount", {"minlength"}),
    (cupy, "cumsum", {"dtype"}),
    (cupy, "empty", {"shape", "dtype"}),
    (cupy, "take", {"axis"}),
    (cupy, "unique", {"return_counts"}),
    (cudf, "DataFrame", {"data", "index"}),
    (cudf, "DataFrame.groupby", {"sort"}),
    (cudf, "Series.factorize", set()),
    (cudf, "Series.fillna", {"value"}),
    (cudf, "Series.reset_index", {"drop"}),
    (cudf, "core.accessors.string.StringMethods.split", {"expand", "regex"}),
    (cudf, "io.parquet.ParquetWriter", {"index", "compression", "row_group_size_rows"}),
    (cudf, "Series.from_pylibcudf", {"col"}),
    (pylibcudf, "io.parquet.read_parquet", {"options"}),
    (pylibcudf, "io.text.multibyte_split", {"source", "delimiter", "options"}),
]
THERE = [
    *((cupy, f"cuda.{name}") for name in ("Device", "Stream", "alloc_pinned_memory", "using_allocator")),
    *((cupy, f"cuda.Stream.{name}") for name in ("record", "wait_event", "synchronize", "__enter__")),
    *((cupy, f"cuda.{name}") for name in ("Event.synchronize", "Device.synchronize", "Stream.null.synchronize")),
    *((cupy, f"cuda.runtime.{name}") for name in ("getDeviceProperties", "memGetInfo", "CUDARuntimeError")),
    *((cupy, f"ndarray.{name}") for name in ("get", "set", "copy", "sum", "astype", "__array_function__")),
    *((cupy, f"get_default_{pool}") for pool in ("memory_pool", "pinned_memory_pool")),
    *((cudf, f"Series.{name}") for name in ("isna", "min", "max", "to_arrow")),
    *((cudf, f"Index.{name}") for name in ("to_arrow", "to_pandas")),
    *((cudf, f"DataFrame.{name}") for name in ("to_pandas",)),
    *((cudf, f"core.groupby.groupby.GroupBy.{name}") for name in ("ngroup",)),
    *((cudf, f"core.accessors.string.StringMethods.{name}") for name in ("len",)),
    *((cudf, f"io.parquet.ParquetWriter.{name}") for name in ("write_table", "close")),
    (pylibcudf, "io.SourceInfo"),
    (pylibcudf, "io.text.make_source_from_file"),
    (pylibcudf, "Table.columns"),
    *(
        (pylibcudf, f"io.parquet.ParquetReaderOptions.{name}")
        for name in ("set_column_names", "set_num_rows", "set_skip_rows")
    ),
    *((pylibcudf, f"io.parquet.ParquetReaderOptionsBuilder.{name}") for name in ("use_pandas_metadata", "build")),
    *((rmm, f"mr.{name}") for name in ("get_current_device_resource", "CudaMemoryResource")),
    *((rmm, f"mr.PoolMemoryResource.{name}") for name in ("pool_size", "allocate", "deallocate")),
]
PROPERTIES = [
    *((cudf, f"Series.{name}") for name in ("cat", "dtype", "iloc", "str", "values")),
    *((cudf, f"DataFrame.{name}") for name in ("columns", "index")),
    *((cudf, f"core.accessors.categorical.CategoricalAccessor.{name}") for name in ("categories", "codes")),
    *((cupy, f"ndarray.{name}") for name in ("device", "dtype", "nbytes", "shape", "size")),
]


def found(module, name):
    return reduce(getattr, name.split("."), module)


@pytest.mark.parametrize(("module", "name", "arguments"), CALLED, ids=lambda value: getattr(value, "__name__", None))
def test_arguments(module, name, arguments):
    assert arguments <= set(inspect.signature(found(module, name)).parameters)


@pytest.mark.parametrize(("module", "name"), THERE, ids=lambda value: getattr(value, "__name__", value))
def test_functions(module, name):
    assert callable(found(module, name))


@pytest.mark.parametrize(("module", "name"), PROPERTIES, ids=lambda value: getattr(value, "__name__", value))
def test_properties(module, name):
    assert found(module, name) is not None


def test_every_function_of_the_array_library_that_is_called_is_there():
    """What stands behind `xp.` in the engine's own text; NumPy takes its place without a GPU."""
    folder = Path(gpupif.engines.__file__).parent
    called = {
        node.attr
        for file in [*folder.glob("cuda_*.py"), folder.parent / "encode_device.py"]
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute)
        and (getattr(node.value, "id", None) == "xp" or getattr(node.value, "attr", None) == "xp")
    }
    assert {"argsort", "bincount", "cumsum", "empty", "flatnonzero"} <= called
    assert [name for name in called if not hasattr(cupy, name)] == []


def test_numpys_functions_of_arrays_on_the_device():
    """`np.percentile` and others are handed on to CuPy's function of the same name."""
    for name in ("percentile", "partition", "flatnonzero"):
        assert callable(getattr(cupy, name))
        assert hasattr(getattr(np, name), "_implementation") or hasattr(getattr(np, name), "__wrapped__")


def test_memory():
    assert issubclass(cupy.cuda.memory.OutOfMemoryError, MemoryError)
    pool = type(cupy.get_default_memory_pool())
    assert callable(pool.free_bytes)
    assert callable(pool.free_all_blocks)
    assert callable(type(cupy.get_default_pinned_memory_pool()).free_all_blocks)
    assert callable(rmm_cupy_allocator)


def test_a_pool_of_the_user(monkeypatch):
    class Pool:
        """Of 1,600 bytes 900 are free in one piece."""

        taken = 0

        def pool_size(self):
            return 1600

        def allocate(self, size):
            if size > 900:
                raise MemoryError
            self.taken += size
            return "here"

        def deallocate(self, place, size):
            assert place == "here"
            self.taken -= size

    class Adaptor:
        """Around it, as a statistics adaptor is."""

        upstream_mr = Pool()
        allocate, deallocate = upstream_mr.allocate, upstream_mr.deallocate

    pool = Pool()
    monkeypatch.setattr(rmm.mr, "get_current_device_resource", lambda: pool)
    assert user_pool() is pool
    assert free_of_pool(pool, 300) == 900
    assert pool.taken == 0
    assert free_of_pool(Adaptor(), 300) == 900
    # What the pool would have to take from the driver is not tried.
    monkeypatch.setattr(pool, "allocate", None, raising=False)
    assert free_of_pool(pool, 1700) == 1700
    assert free_of_pool(object(), 300) == 300
    monkeypatch.setattr(rmm.mr, "get_current_device_resource", rmm.mr.CudaMemoryResource)
    assert user_pool() is None


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (cupy.cuda.memory.OutOfMemoryError(1, 1, 1), True),
        (MemoryError("std::bad_alloc: out_of_memory: CUDA error"), True),
        (DriverError("cuLaunchKernel returned CUDA_ERROR_OUT_OF_MEMORY (2)", 2), True),
        (DriverError("cuLaunchKernel returned CUDA_ERROR_LAUNCH_FAILED (719)", 719), False),
        (np._core._exceptions._ArrayMemoryError((1 << 60,), np.dtype("u1")), False),
        (ValueError("OUT_OF_MEMORY"), False),
    ],
)
def test_what_says_that_the_memory_of_the_device_is_used_up(error, expected):
    assert is_out_of_memory(error) is expected


def test_what_a_launch_raises_is_known_as_a_failure():
    failures = device_failures()
    assert issubclass(DriverError, failures)
    assert issubclass(cupy.cuda.runtime.CUDARuntimeError, failures)
    assert not issubclass(MemoryError, failures)


def test_grids_have_a_thread_for_each_item_up_to_a_limit_and_are_never_empty(monkeypatch):
    launched = []
    monkeypatch.setattr(cuda_cupy, "launch", lambda *arguments: launched.append(arguments))
    library = CupyLibrary.__new__(CupyLibrary)
    library._blocks, library._stream, library._capability = 100, SimpleNamespace(ptr=5), (8, 0)
    for size in (0, 1, 256, 257, 10**6):
        library.launch("kernel", size, "array", 3)
    for blocks in (0, 7):
        library.launch_blocks("kernel", blocks, 128, "array", 3)
    assert [grid for _, _, *grid, _, _ in launched] == [[1, 256]] * 3 + [[2, 256], [100, 256], [1, 128], [7, 128]]
    assert {(kernel, arguments, *rest[2:]) for kernel, arguments, *rest in launched} == {
        ("kernel", ("array", 3), 5, (8, 0))
    }


def test_arrays_of_cupy_are_typed_and_packed():
    memory = cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(0x1000, 1 << 10, None, 0), 16)
    array = cupy.ndarray((3, 4), np.float64, memory)
    packed = pack((array, array[1]))
    assert packed.signature.types == (float64[:, ::1], float64[::1])
    assert packed.words == [0, 0, 12, 8, 0x1010, 3, 4, 32, 8, 0, 0, 4, 8, 0x1010 + 32, 4, 8]
    for other in (array.T, array[:, 1], array[:, :2]):
        with pytest.raises(TypeError, match="expected a C-contiguous array"):
            pack((other,))
