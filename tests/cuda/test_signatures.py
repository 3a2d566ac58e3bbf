"""What only CuPy, cuDF, RMM and numba-cuda have and we call, held against those installed; needs no GPU."""

from __future__ import annotations

import ast
import contextlib
import ctypes
import inspect
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.helpers.gpu.without_gpu import need_real_libraries

need_real_libraries()
pytest.importorskip("cudf")

import cudf
import cupy
import dask_cuda
import pylibcudf
import rmm
from numba import float64
from rmm.allocators.cupy import rmm_cupy_allocator

import gpupif
from gpupif.gpu import cupy_arrays as cuda_cupy
from gpupif.gpu.cudf_frames import CudfFrames
from gpupif.gpu.cupy_arrays import (
    CupyLibrary,
    as_array,
    as_column,
    device_failures,
    free_of_pool,
    group_rows,
    is_out_of_memory,
    user_pool,
)
from gpupif.gpu.kernel_arguments import pack
from gpupif.gpu.launch import DriverError
from gpupif.gpu.rmm_pool import CupyMemory, memory_of_cupy

# Function to the arguments that are given by name.
CALLED = [
    (cupy, "argsort", {"kind"}),
    (cupy, "bincount", {"minlength"}),
    (cupy, "cumsum", {"dtype"}),
    (cupy, "empty", {"shape", "dtype"}),
    (cupy, "take", {"axis"}),
    (cupy, "unique", {"return_counts"}),
    (cudf, "DataFrame", {"data", "index"}),
    (cudf, "Series.factorize", set()),
    (cudf, "Series.fillna", {"value"}),
    (cudf, "Series.reset_index", {"drop"}),
    (cudf, "core.accessors.string.StringMethods.split", {"expand", "regex"}),
    (cudf, "Series.from_pylibcudf", {"col"}),
    (pylibcudf, "groupby.GroupBy.aggregate", {"requests", "stream"}),
    (pylibcudf, "join.inner_join", {"left_keys", "right_keys", "nulls_equal", "stream"}),
    (pylibcudf, "io.parquet.read_parquet", {"options"}),
    (pylibcudf, "io.text.multibyte_split", {"source", "delimiter", "options"}),
    (dask_cuda, "LocalCUDACluster.__init__", {"CUDA_VISIBLE_DEVICES", "n_workers", "threads_per_worker", "kwargs"}),
]
THERE = [
    *((cupy, f"cuda.{name}") for name in ("Device", "Stream", "alloc_pinned_memory", "using_allocator")),
    *((cupy, f"cuda.Stream.{name}") for name in ("record", "wait_event", "synchronize", "__enter__", "from_external")),
    *((cupy, f"cuda.Stream.{name}") for name in ("__cuda_stream__",)),
    *((cupy, f"cuda.{name}") for name in ("Event.synchronize", "Device.synchronize", "Stream.null.synchronize")),
    *((cupy, f"cuda.runtime.{name}") for name in ("getDeviceProperties", "memGetInfo", "CUDARuntimeError")),
    *((cupy, f"cuda.{name}") for name in ("get_allocator", "set_allocator", "runtime.pointerGetAttributes")),
    *((pylibcudf, f"Column.{name}") for name in ("data", "null_mask", "children")),
    *((cupy, f"ndarray.{name}") for name in ("get", "set", "copy", "sum", "astype", "__array_function__")),
    *((cupy, f"get_default_{pool}") for pool in ("memory_pool", "pinned_memory_pool")),
    *((cudf, f"Series.{name}") for name in ("isna", "min", "max", "to_arrow")),
    *((cudf, f"Index.{name}") for name in ("to_arrow", "to_pandas")),
    *((cudf, f"DataFrame.{name}") for name in ("to_pandas",)),
    *((cudf, f"core.accessors.string.StringMethods.{name}") for name in ("len",)),
    *((cudf, f"DataFrame.{name}") for name in ("to_pylibcudf",)),
    *((pylibcudf, f"io.parquet.ChunkedParquetWriter.{name}") for name in ("from_options", "write", "close")),
    *(
        (pylibcudf, f"io.parquet.ChunkedParquetWriterOptionsBuilder.{name}")
        for name in ("metadata", "key_value_metadata", "compression", "stats_level", "row_group_size_rows", "build")
    ),
    *((pylibcudf, f"io.{name}") for name in ("SinkInfo", "types.TableInputMetadata")),
    (pylibcudf, "io.SourceInfo"),
    (pylibcudf, "io.text.make_source_from_file"),
    (pylibcudf, "Table.columns"),
    *(
        (pylibcudf, f"io.parquet.ParquetReaderOptions.{name}")
        for name in ("set_column_names", "set_num_rows", "set_skip_rows")
    ),
    *((pylibcudf, f"io.parquet.ParquetReaderOptionsBuilder.{name}") for name in ("use_pandas_metadata", "build")),
    *((rmm, f"mr.{name}") for name in ("get_current_device_resource", "CudaMemoryResource", "CallbackMemoryResource")),
    *((rmm, f"mr.{name}") for name in ("get_per_device_resource", "set_per_device_resource")),
    *((rmm, f"mr.PoolMemoryResource.{name}") for name in ("pool_size", "allocate", "deallocate")),
]
PROPERTIES = [
    *((cudf, f"Series.{name}") for name in ("cat", "dtype", "iloc", "str", "values")),
    *((cudf, f"DataFrame.{name}") for name in ("columns", "index")),
    *((cudf, f"core.accessors.categorical.CategoricalAccessor.{name}") for name in ("categories", "codes")),
    *((pylibcudf, name) for name in ("gpumemoryview.__cuda_array_interface__", "groupby.GroupByRequest")),
    *((cupy, f"ndarray.{name}") for name in ("device", "dtype", "nbytes", "shape", "size")),
]


def found(module, name):
    return reduce(getattr, name.split("."), module)


@pytest.mark.parametrize(("module", "name", "arguments"), CALLED, ids=lambda value: getattr(value, "__name__", None))
def test_functions_of_the_libraries_have_the_arguments_used_here(module, name, arguments):
    assert arguments <= set(inspect.signature(found(module, name)).parameters)


@pytest.mark.parametrize(("module", "name"), THERE, ids=lambda value: getattr(value, "__name__", value))
def test_functions_of_the_libraries_exist(module, name):
    assert callable(found(module, name))


@pytest.mark.parametrize(("module", "name"), PROPERTIES, ids=lambda value: getattr(value, "__name__", value))
def test_properties_of_the_libraries_exist(module, name):
    assert found(module, name) is not None


def test_every_function_called_of_the_array_library_exists():
    """The functions are found as `xp.` in the text of the engine; NumPy replaces CuPy without a GPU."""
    package = Path(gpupif.__file__).parent
    called = {
        node.attr
        for file in [*package.glob("engines/cuda/*.py"), *package.glob("gpu/*.py"), package / "encoding/device.py"]
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute)
        and (getattr(node.value, "id", None) == "xp" or getattr(node.value, "attr", None) == "xp")
    }
    assert {"argsort", "bincount", "cumsum", "empty", "flatnonzero"} <= called
    assert [name for name in called if not hasattr(cupy, name)] == []


def test_numpy_functions_are_handed_on_to_cupy():
    """`np.percentile` and others are handed on to CuPy's function of the same name."""
    for name in ("percentile", "partition", "flatnonzero"):
        assert callable(getattr(cupy, name))
        assert hasattr(getattr(np, name), "_implementation") or hasattr(getattr(np, name), "__wrapped__")


def test_cupy_has_the_functions_of_memory_used_here():
    assert issubclass(cupy.cuda.memory.OutOfMemoryError, MemoryError)
    pool = type(cupy.get_default_memory_pool())
    assert callable(pool.free_bytes)
    assert callable(pool.free_all_blocks)
    assert callable(type(cupy.get_default_pinned_memory_pool()).free_all_blocks)
    assert callable(rmm_cupy_allocator)


def test_memory_comes_from_a_pool_of_the_user(monkeypatch):
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
    # What another run has set for a while is none of the user's.
    monkeypatch.setattr(rmm.mr, "get_current_device_resource", CupyMemory)
    assert user_pool() is None


class HostArray(np.ndarray):
    """An array of the host that says it is one of a device."""

    @property
    def __cuda_array_interface__(self):
        return {**self.__array_interface__, "version": 3}


class HostArrays:
    """In place of CuPy: arrays of the host, and what pylibcudf's memory holds."""

    @staticmethod
    def empty(size, dtype):
        return np.empty(size, dtype).view(HostArray)

    @staticmethod
    def asarray(memory):
        about = memory.__cuda_array_interface__
        size = int(np.prod(about["shape"])) * np.dtype(about["typestr"]).itemsize
        return np.frombuffer((ctypes.c_char * size).from_address(about["data"][0]), np.uint8)


def values(column):
    """What a column of host memory holds."""
    return as_array(column, {pylibcudf.TypeId.UINT64: "uint64", pylibcudf.TypeId.INT64: "int64"}[column.type().id()])


@pytest.mark.parametrize("once", [True, False])
def test_row_keys_are_hashed(monkeypatch, once):
    """pylibcudf's own columns, tables and requests, over memory of the host; only what hashes them is made up."""
    monkeypatch.setitem(sys.modules, "cupy", HostArrays)
    rng = np.random.default_rng(3)
    words = {0: rng.integers(0, 3, 50).astype(np.uint64), 2: rng.integers(0, 4, 50).astype(np.uint64) << np.uint64(60)}
    counts = np.ones(50, np.int64) if once else rng.integers(1, 5, 50)
    keep = []

    def column(array):
        keep.append(np.ascontiguousarray(array).view(HostArray))
        return as_column(keep[-1])

    class GroupBy:
        def __init__(self, keys):
            self.keys = keys

        def aggregate(self, requests, stream):
            assert (len(requests), stream) == (1, "stream")
            assert isinstance(requests[0], pylibcudf.groupby.GroupByRequest)
            rows = np.stack([values(each) for each in self.keys.columns()])
            groups, number = np.unique(rows, axis=1, return_inverse=True)
            order = rng.permutation(groups.shape[1])
            sums = np.zeros(len(order), np.int64)
            np.add.at(sums, number.reshape(-1), counts)
            table = pylibcudf.Table([column(word[order]) for word in groups])
            # Rows it counts in 32 bits.
            return table, [pylibcudf.Table([column(sums[order].astype(np.int32 if once else np.int64))])]

    def inner_join(left, right, nulls_equal, stream):
        assert (nulls_equal, stream) == (pylibcudf.types.NullEquality.EQUAL, "stream")
        rows, groups = (list(zip(*map(values, table.columns()), strict=True)) for table in (left, right))
        order = rng.permutation(len(rows)).astype(np.int32)
        found = np.array([groups.index(rows[row]) for row in order], np.int32)
        return column(order), column(found)

    monkeypatch.setattr(pylibcudf.groupby, "GroupBy", GroupBy)
    monkeypatch.setattr(pylibcudf.join, "inner_join", inner_join)
    device = {word: array.view(HostArray) for word, array in words.items()}
    groups = group_rows(device, None if once else counts.view(HostArray), "stream")
    assert list(groups.words) == [0, 2]
    assert (groups.counts.dtype, groups.counts.sum()) == (np.int64, counts.sum())
    for word, array in words.items():
        np.testing.assert_array_equal(groups.words[word][groups.of_row], array)
    for group in range(len(groups.counts)):
        assert groups.counts[group] == counts[groups.of_row == group].sum()


@pytest.mark.parametrize("dtype", ["uint64", "int64", "int32"])
def test_arrays_become_columns_without_a_copy(dtype):
    array = np.arange(7, dtype=dtype).view(HostArray)
    column = as_column(array)
    assert (column.type().id(), column.size(), column.null_count()) == (pylibcudf.TypeId[dtype.upper()], 7, 0)
    assert column.data().ptr == array.ctypes.data
    assert column.data().size == array.nbytes


def test_cudf_takes_its_memory_from_the_pool_of_cupy(monkeypatch):
    taken = []

    class Pool:
        def malloc(self, size):
            if size > 1000:
                raise cupy.cuda.memory.OutOfMemoryError(size, 0, 0)
            taken.append(size)
            return SimpleNamespace(ptr=0 if size == 0 else 512 * len(taken))

    streams = []
    outside = SimpleNamespace(from_external=lambda stream: streams.append(stream) or contextlib.nullcontext())
    monkeypatch.setattr(cupy, "get_default_memory_pool", Pool)
    monkeypatch.setattr(cupy.cuda, "Stream", outside)
    memory = CupyMemory()
    places = [memory.allocate(size) for size in (100, 900, 0, 0)]
    assert taken == [100, 900, 0, 0]
    assert len(streams) == 4
    assert all(hasattr(stream, "__cuda_stream__") for stream in streams)
    assert places == [512, 1024, 0, 0]
    with pytest.raises(MemoryError) as refused:
        memory.allocate(5000)
    assert is_out_of_memory(refused.value)
    for place, size in zip(places, taken, strict=True):
        memory.deallocate(place, size)
    assert memory._taken == {}


def test_arrays_of_frames_are_in_the_pool_of_cupy_too(monkeypatch):
    """After `import cudf` the driver would otherwise be asked for each array while a table is read."""
    monkeypatch.setattr(cupy.cuda, "Device", OneDevice)
    monkeypatch.setattr(rmm.mr, "get_current_device_resource", rmm.mr.CudaMemoryResource)
    before = rmm.mr.get_per_device_resource(3)
    outside = cupy.cuda.get_allocator()
    with CudfFrames(3).active():
        assert cupy.cuda.get_allocator() == cupy.get_default_memory_pool().malloc
        assert isinstance(rmm.mr.get_per_device_resource(3), CupyMemory)
    assert cupy.cuda.get_allocator() is outside
    assert rmm.mr.get_per_device_resource(3) is before
    # A pool of the user's own serves both.
    monkeypatch.setattr(rmm.mr, "get_current_device_resource", object)
    with CudfFrames(3).active():
        assert cupy.cuda.get_allocator() is rmm_cupy_allocator
        assert rmm.mr.get_per_device_resource(3) is before


class OneDevice:
    """A device of CuPy, as far as it is made the current one."""

    def __init__(self, number):
        self.id = 0 if number is None else number

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


def test_a_frame_is_processed_on_the_device_of_its_memory(monkeypatch):
    """Any device may be the current one; the driver says on which device a pointer is."""

    class Column:
        def __init__(self, data, mask=None, children=()):
            self.data = lambda: data if data is None else SimpleNamespace(ptr=data)
            self.null_mask = lambda: mask if mask is None else SimpleNamespace(ptr=mask)
            self.children = lambda: list(children)

    def frame(*columns):
        return SimpleNamespace(to_pylibcudf=lambda: (SimpleNamespace(columns=lambda: tuple(columns)), {}))

    asked = {512: 0, 1024: 1}
    monkeypatch.setattr(cupy.cuda, "Device", OneDevice)
    monkeypatch.setattr(
        cupy.cuda.runtime, "pointerGetAttributes", lambda pointer: SimpleNamespace(device=asked[pointer])
    )
    monkeypatch.setattr(rmm.mr, "get_current_device_resource", rmm.mr.CudaMemoryResource)
    here = CudfFrames()
    assert here.beside(frame(Column(512))) is here
    # Lists and texts have their memory in a column below, or only a mask.
    for there in (frame(Column(1024)), frame(Column(None, None, [Column(1024)])), frame(Column(None, 1024))):
        assert here.beside(there)._device.id == 1
    for nowhere in (frame(), frame(Column(None)), frame(Column(0))):
        assert here.beside(nowhere) is here


def test_columns_of_a_frame_give_the_address_of_their_memory():
    column = as_column(np.arange(7).view(HostArray))
    assert column.data().ptr
    assert column.null_mask() is None
    assert column.children() == []


def test_the_pool_keeps_some_memory_and_streams_are_used_again(monkeypatch):
    free, freed = [0], []
    pool = SimpleNamespace(free_bytes=lambda: free[0], free_all_blocks=lambda: freed.append("device"))
    pinned = SimpleNamespace(free_all_blocks=lambda: freed.append("host"))
    runtime = SimpleNamespace(
        getDeviceProperties=lambda number: {"name": b"Card 1", "major": 9, "minor": 0},
        memGetInfo=lambda: (100, 4000),
        CUDARuntimeError=cupy.cuda.runtime.CUDARuntimeError,
    )
    monkeypatch.setattr(OneDevice, "attributes", {"MultiProcessorCount": 4}, raising=False)
    monkeypatch.setattr(cupy.cuda, "Device", OneDevice)
    monkeypatch.setattr(cupy.cuda, "runtime", runtime)
    monkeypatch.setattr(cupy.cuda, "Stream", lambda non_blocking: SimpleNamespace(synchronize=lambda: None))
    monkeypatch.setattr(cupy, "get_default_memory_pool", lambda: pool)
    monkeypatch.setattr(cupy, "get_default_pinned_memory_pool", lambda: pinned)
    monkeypatch.setattr(cuda_cupy, "user_pool", lambda: None)
    first, second = CupyLibrary(5), CupyLibrary(5)
    assert first._stream is not second._stream
    free[0] = 1000
    first.trim()
    assert freed == []
    free[0] = 1001
    first.trim()
    assert freed == ["device", "host"]
    first.close()
    third = CupyLibrary(5)
    assert third._stream is first._stream
    assert CupyLibrary(5)._stream is not first._stream

    def lost():
        raise DriverError("lost")

    second._stream.synchronize = lost
    second.close()
    assert CupyLibrary(5)._stream is not second._stream


@pytest.mark.subprocess
def test_importing_cudf_leaves_the_allocator_of_the_user():
    script = """
import cupy
from gpupif.gpu.cudf_frames import import_cudf
before = cupy.cuda.get_allocator()
assert import_cudf() is import_cudf()
assert cupy.cuda.get_allocator() == before == cupy.get_default_memory_pool().malloc
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_the_memory_resource_of_cudf_is_set_back_afterwards():
    """Several threads may use the resource at once; a resource that somebody else set meanwhile stays."""
    before = rmm.mr.get_per_device_resource(0)
    with memory_of_cupy(0):
        ours = rmm.mr.get_per_device_resource(0)
        assert isinstance(ours, CupyMemory)
        with ThreadPoolExecutor(1) as other:

            def use():
                with memory_of_cupy(0):
                    return rmm.mr.get_per_device_resource(0)

            assert other.submit(use).result() is ours
        assert rmm.mr.get_per_device_resource(0) is ours
    assert rmm.mr.get_per_device_resource(0) is before
    with pytest.raises(ZeroDivisionError), memory_of_cupy(0):
        raise ZeroDivisionError
    assert rmm.mr.get_per_device_resource(0) is before
    theirs = rmm.mr.CudaMemoryResource()
    try:
        with memory_of_cupy(0):
            rmm.mr.set_per_device_resource(0, theirs)
        assert rmm.mr.get_per_device_resource(0) is theirs
    finally:
        rmm.mr.set_per_device_resource(0, before)


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
def test_errors_that_mean_used_up_memory_are_recognised(error, expected):
    assert is_out_of_memory(error) is expected


def test_an_error_of_a_launch_is_a_failure_of_the_device():
    failures = device_failures()
    assert issubclass(DriverError, failures)
    assert issubclass(cupy.cuda.runtime.CUDARuntimeError, failures)
    assert not issubclass(MemoryError, failures)


def test_grids_have_a_thread_for_each_item_up_to_a_limit_and_are_never_empty(monkeypatch):
    launched = []
    monkeypatch.setattr("gpupif.gpu.launch.launch", lambda *arguments: launched.append(arguments))
    library = CupyLibrary.__new__(CupyLibrary)
    library._blocks, library._stream, library._capability = 100, SimpleNamespace(ptr=5), (8, 0)
    for size in (0, 1, 256, 257, 10**6):
        library.launch("kernel", size, "array", 3)
    assert [grid for _, _, *grid, _, _ in launched] == [[1, 256]] * 3 + [[2, 256], [100, 256]]
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


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (RuntimeError("CUDA error at: somewhere: 700"), (DriverError, "cuDF: CUDA error at: somewhere: 700")),
        (DriverError("launch", 2), (DriverError, "^launch$")),
        (MemoryError("std::bad_alloc"), (MemoryError, "bad_alloc")),
    ],
)
def test_an_error_of_cudf_is_a_failure_of_the_device(monkeypatch, raised, expected):
    def fail(*arguments):
        raise raised

    monkeypatch.setattr("gpupif.gpu.cupy_arrays.group_rows", fail)
    library = CupyLibrary.__new__(CupyLibrary)
    library.failures, library._pool, library._stream = device_failures(), "the user's", None
    kind, text = expected
    with pytest.raises(kind, match=text) as told:
        library.group_rows({}, None)
    assert isinstance(told.value, (*library.failures, MemoryError))


@pytest.mark.slow
@pytest.mark.subprocess
def test_a_device_is_opened_without_cudf_and_rmm():
    """Only CuPy and numba-cuda are imported; without a GPU no more can be tested."""
    script = """
import sys
from types import SimpleNamespace

class Hidden:
    def find_spec(self, name, path=None, scored_column=None):
        if name.partition(".")[0] in ("cudf", "pylibcudf", "rmm"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Hidden())
import cupy
from gpupif.engines.cuda.engine import CudaEngine
from gpupif.gpu.cupy_arrays import CupyLibrary

class Device:
    attributes = {"MultiProcessorCount": 4}
    def __init__(self, number): pass
    def __enter__(self): return self
    def __exit__(self, *error): pass

cupy.cuda.Device, cupy.cuda.Stream = Device, lambda non_blocking: SimpleNamespace(ptr=0)
cupy.cuda.runtime = SimpleNamespace(
    getDeviceProperties=lambda number: {"name": b"Card 1", "major": 9, "minor": 0},
    CUDARuntimeError=cupy.cuda.runtime.CUDARuntimeError,
)
library = CupyLibrary(0)
assert library.name == "Card 1"
assert library._pool is None
assert not library.ran_out(ValueError())
assert CudaEngine(with_frames=False).frames is None
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
