"""How kernels are typed, packed, compiled, kept and launched, held against numba-cuda's own ways; needs no GPU."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.gpu.without_gpu import need_real_libraries

need_real_libraries()
pytest.importorskip("numba_cuda")

from cuda.bindings import driver as bindings
from numba import cuda, float64, int64, types
from numba.cuda import compiler, dispatcher
from numba.cuda.cudadrv import nvvm
from numba.cuda.typing.typeof import typeof

from gpupif.errors import DeviceError
from gpupif.gpu import kernel_cache as cuda_kernel_cache
from gpupif.gpu import launch as cuda_launch
from gpupif.gpu.compile import CompiledKernel
from gpupif.gpu.kernel_arguments import pack, types_of
from gpupif.gpu.kernel_cache import code_of
from gpupif.gpu.launch import DriverError, launch
from gpupif.kernels.cache import CACHE_FOLDER
from gpupif.kernels.cuda import any_known, rows
from tests.cuda.compile_check import SIGNATURES
from tests.helpers.gpu.stand_ins import StandIn, arguments_of

CAPABILITY = (9, 0)
CALLED = [
    pytest.param(getattr(module, called.split()[0]), tuple(signature), id=called)
    for module, signatures in SIGNATURES.items()
    for called, signature in signatures.items()
]
each_kernel = pytest.mark.parametrize(("kernel", "signature"), CALLED)
NUMBERS = (int64[::1], int64[::1], int64[::1])


class Numba:
    """numba-cuda's own packing of arguments."""

    extensions = ()
    _prepare_args = dispatcher._Kernel._prepare_args

    def pack(self, signature, arguments):
        words = []
        for kind, argument in zip(signature, arguments, strict=True):
            self._prepare_args(kind, argument, 0, [], words)
        whole = [word if isinstance(word, int) else word.value for word in words]
        return b"".join(np.array(word, "f8" if isinstance(word, float) else "i8").tobytes() for word in whole)


@each_kernel
@pytest.mark.parametrize("length", [1, 4])
def test_arguments_are_typed_and_packed_as_numba_cuda_does(kernel, signature, length):
    arguments = arguments_of(signature, length)
    assert types_of(arguments) == signature
    assert tuple(map(typeof, arguments)) == signature
    assert bytes(pack(arguments)) == Numba().pack(signature, arguments)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0), (0, 3), (1, 3), (3, 1), (2, 3, 4)])
def test_arrays_of_any_shape_are_packed_as_numba_does(shape):
    array = StandIn(np.zeros(shape, np.uint8))
    packed = pack((array, 1, 0.5))
    assert packed.signature.types == tuple(map(typeof, (array, 1, 0.5)))
    ours, numbas = (
        np.frombuffer(words, "i8") for words in (bytes(packed), Numba().pack(packed.signature.types, (array, 1, 0.5)))
    )
    # Of no items, it lies nowhere and has steps that are never made.
    told = np.ones(len(ours), bool)
    if 0 in shape:
        told[4] = told[5 + len(shape) : 5 + 2 * len(shape)] = False
    np.testing.assert_array_equal(ours[told], numbas[told])


def test_strides_of_single_items_are_packed_as_contiguous():
    for shape, strides, expected in (((1, 3), (800, 8), [24, 8]), ((0,), (5,), [8]), ((3, 1), (8, 800), [8, 8])):
        array = StandIn(np.zeros(shape))
        array.strides = strides
        assert pack((array,)).words[-len(shape) :] == expected


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (StandIn(np.zeros((2, 3)).T), r"expected a C-contiguous array, got shape \(3, 2\) and strides \(8, 24\)"),
        (StandIn(np.zeros(8)[::2]), "expected a C-contiguous array"),
        (StandIn(np.zeros(8)[::-1]), "expected a C-contiguous array"),
        (np.zeros(3), "expected an array of the device, got one of numpy"),
        (True, "expected an array, an int, a float, or a tuple of them, got True"),
        (np.int32(1), "expected an array, an int"),
        (None, "got None"),
        ([1, 2], r"got \[1, 2\]"),
        ((1, ("a",)), "got 'a'"),
        (1 << 63, "expected a whole number of 64 bits with a sign, got 9223372036854775808"),
    ],
)
def test_arguments_that_no_kernel_takes_are_refused(argument, message):
    with pytest.raises(TypeError, match=message):
        pack((argument,))


def test_numpy_numbers_are_packed_as_numbers():
    packed = pack((np.int64(-3), np.float64(0.5), -3, 0.5))
    assert packed.signature.types == (int64, float64, int64, float64)
    assert bytes(packed) == np.int64(-3).tobytes() + np.float64(0.5).tobytes() + bytes(pack((-3, 0.5)))


@pytest.fixture(scope="module")
def compiled():
    """Kernels that were compiled before, by kernel and types."""
    known = {}

    def compile_once(kernel, signature):
        key = kernel, signature
        if key not in known:
            known[key] = CompiledKernel(kernel, signature, CAPABILITY)
        return known[key]

    return compile_once


@pytest.mark.slow
@each_kernel
def test_a_kernel_has_a_parameter_for_each_packed_word(compiled, kernel, signature):
    code = compiled(kernel, signature).ptx()
    declared = re.search(r"\.visible \.entry (\w+)\((.*?)\)", code, re.DOTALL)
    assert declared[1] == compiled(kernel, signature).name
    parameters = re.findall(r"\.param (\.\w+)", declared[2])
    assert set(parameters) <= {".u64", ".b64", ".f64"}
    assert len(parameters) == len(pack(arguments_of(signature)).words)


def contractions(kernel, **options):
    """How many products and sums are one operation in a kernel's PTX, leaving aside what libdevice brings."""
    # Unknown by another name, libdevice's functions stay calls.
    modules = [module.replace("__nv_", "outside_") for module in kernel.modules]
    code = nvvm.compile_ir(modules, **{**kernel._library._nvvm_options, "arch": "compute_90a", **options})
    return code.count(b"fma.")


@pytest.mark.slow
@each_kernel
def test_no_product_and_sum_are_contracted(compiled, kernel, signature):
    kernel = compiled(kernel, signature)
    assert contractions(kernel) == 0
    if not any("__nv_" in module for module in kernel.modules):
        assert "fma." not in kernel.ptx()


@cuda.jit
def add_product(numbers, out):
    out[0] = numbers[0] * numbers[1] + numbers[2]


@pytest.mark.slow
def test_products_and_sums_are_contracted_if_fma_is_allowed():
    kernel = CompiledKernel(add_product, (float64[::1], float64[::1]), CAPABILITY)
    assert contractions(kernel, fma=True) == 1
    assert contractions(kernel) == 0
    assert [operation in kernel.ptx() for operation in ("mul.rn.f64", "add.rn.f64", "fma.")] == [True, True, False]


def test_another_thread_that_compiles_sees_its_own_device():
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dispatcher, "get_current_device", lambda: "theirs")

        def ask(*arguments, **options):
            other = threading.Thread(target=lambda: seen.append(dispatcher.get_current_device()))
            other.start()
            other.join()
            seen.append(dispatcher.get_current_device().compute_capability)
            raise ZeroDivisionError

        patch.setattr(compiler, "_compile_pyfunc_with_fixup", ask)
        with pytest.raises(ZeroDivisionError):
            CompiledKernel(rows.number_rows, NUMBERS, (8, 0))
        assert seen == ["theirs", (8, 0)]
        assert dispatcher.get_current_device() == "theirs"


def test_an_unknown_version_of_numba_cuda_is_refused(monkeypatch):
    monkeypatch.delattr(compiler, "_compile_pyfunc_with_fixup")
    with pytest.raises(DeviceError, match=r"numba-cuda \d.* cannot compile kernels .*_compile_pyfunc.*pip install"):
        CompiledKernel(rows.number_rows, NUMBERS, CAPABILITY)


@pytest.mark.slow
def test_a_device_unknown_to_the_toolkit_is_refused():
    kernel = CompiledKernel(rows.number_rows, NUMBERS, (99, 0))
    for made in (kernel.ptx, kernel.cubin):
        with pytest.raises(DeviceError, match=r"number_rows cannot be compiled for sm_990a .*device='cpu'"):
            made()


@pytest.fixture
def compilations(monkeypatch):
    """Names of kernels that were compiled, not read."""
    made = []

    class Counted(CompiledKernel):
        def __init__(self, kernel, *rest):
            made.append(kernel.py_func.__name__)
            super().__init__(kernel, *rest)

    monkeypatch.setattr(cuda_kernel_cache, "CompiledKernel", Counted)
    return made


def number_rows(folder, capability=CAPABILITY):
    return code_of(rows.number_rows, NUMBERS, capability, str(folder))


def same_code(one, other):
    """Whether both are of one kernel; Numba numbers what it compiles, which is part of the name."""
    names = {re.sub(r"B\d+v\d+B", "B", code.name) for code in (one, other)}
    return len(names) == 1 and all(code.cubin.startswith(b"\x7fELF") for code in (one, other))


def test_a_compiled_kernel_is_read_from_the_cache_the_next_time(tmp_path, compilations):
    first = number_rows(tmp_path)
    assert first.cubin.startswith(b"\x7fELF")
    assert first.name.encode() in first.cubin
    assert number_rows(tmp_path) == first
    assert compilations == ["number_rows"]
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.slow
def test_a_cached_kernel_is_for_one_signature_capability_and_compiler(tmp_path, compilations, monkeypatch):
    number_rows(tmp_path)
    number_rows(tmp_path, (8, 0))
    for number in (types.uint32, types.int64):
        code_of(any_known.place_pairs, SIGNATURES[any_known][f"place_pairs {number}"], CAPABILITY, str(tmp_path))
    monkeypatch.setattr(cuda_kernel_cache, "_versions", lambda: ("another",))
    number_rows(tmp_path)
    assert len(compilations) == len(list(tmp_path.iterdir())) == 5


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-100],
        lambda content: b"",
        lambda content: content[:1000] + bytes([content[1000] ^ 1]) + content[1001:],
        lambda content: b"something else",
    ],
)
def test_damaged_files_are_compiled_anew(tmp_path, compilations, damage):
    first = number_rows(tmp_path)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    again = number_rows(tmp_path)
    assert same_code(again, first)
    assert number_rows(tmp_path) == again
    assert len(compilations) == 2
    assert list(tmp_path.iterdir()) == [file]


def test_code_of_another_kernel_is_not_taken(tmp_path, compilations):
    first = number_rows(tmp_path)
    (file,) = tmp_path.iterdir()
    number_rows(tmp_path, (8, 0))
    (other,) = set(tmp_path.iterdir()) - {file}
    file.write_bytes(other.read_bytes())
    assert same_code(number_rows(tmp_path), first)
    assert len(compilations) == 3


@pytest.mark.parametrize("folder", ["", "/proc/none"])
def test_no_kernel_is_cached_without_a_folder(compilations, folder):
    assert same_code(number_rows(folder), number_rows(folder))
    assert compilations == ["number_rows", "number_rows"]


def test_a_cache_file_that_cannot_be_written_whole_is_removed(tmp_path, monkeypatch):
    def fail(*arguments):
        raise OSError

    monkeypatch.setattr(os, "replace", fail)
    assert number_rows(tmp_path).cubin
    assert list(tmp_path.iterdir()) == []


KEEP = """
import sys
from numba import int64
from gpupif.gpu.kernel_cache import code_of
from gpupif.kernels.cuda.rows import number_rows
print(hash(code_of(number_rows, (int64[::1],) * 3, (9, 0), sys.argv[1]).cubin))
"""


@pytest.mark.slow
@pytest.mark.subprocess
def test_two_processes_at_once_leave_one_cached_kernel(tmp_path):
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-P", "-c", KEEP, str(tmp_path)]
    both = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) for _ in range(2)]
    printed = {process.communicate()[0] for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert len(printed) == 1
    assert len(list(tmp_path.iterdir())) == 1


class Driver:
    """In place of the driver: what it was called with."""

    def __init__(self):
        self.libraries, self.launches, self.fails = [], [], {}

    def result(self, call, *given):
        return self.fails.get(call, bindings.CUresult.CUDA_SUCCESS), *given

    def cuLibraryLoadData(self, code, *options):  # noqa: N802
        assert options == ([], [], 0, [], [], 0)
        self.libraries.append(code)
        return self.result("load", len(self.libraries))

    def cuLibraryGetKernel(self, library, name):  # noqa: N802
        return self.result("get", (library, name))

    def cuLaunchKernel(self, kernel, *launched):  # noqa: N802
        *grid, stream, table, extra = launched
        assert extra == 0
        number = len(self.expected) // 8
        places = (ctypes.c_uint64 * number).from_address(table)
        assert b"".join(ctypes.string_at(place, 8) for place in places) == self.expected
        self.launches.append((kernel, tuple(grid), stream))
        return self.result("launch")


@pytest.fixture
def driver(monkeypatch):
    stub = Driver()
    monkeypatch.setattr(cuda_launch, "driver", stub)
    monkeypatch.setattr(cuda_launch, "_loaded", {})
    return stub


@pytest.mark.parametrize("name", ["pack_column uint8", "number_rows"])
def test_a_launch_passes_the_grid_and_the_packed_arguments(driver, name):
    kernel, signature = getattr(rows, name.split()[0]), SIGNATURES[rows][name]
    for length in (3, 5):
        arguments = arguments_of(signature, length)
        driver.expected = bytes(pack(arguments))
        launch(kernel, arguments, 7, 256, 0x55, CAPABILITY)
    code = code_of(kernel, signature, CAPABILITY, CACHE_FOLDER)
    assert driver.libraries == [code.cubin]
    assert driver.launches == [((1, code.name.encode()), (7, 1, 1, 256, 1, 1, 0), 0x55)] * 2


def test_other_types_and_other_devices_have_kernels_of_their_own(driver):
    for name in ("pack_column uint8", "pack_column uint16"):
        arguments = arguments_of(SIGNATURES[rows][name])
        driver.expected = bytes(pack(arguments))
        for capability in (CAPABILITY, (8, 0)):
            launch(rows.pack_column, arguments, 1, 32, 0, capability)
    assert len(set(driver.libraries)) == len(driver.libraries) == 4


def test_several_threads_load_a_kernel_once_and_have_parameters_of_their_own(driver, monkeypatch):
    asked, results = [], []
    together = threading.Barrier(4)

    def code(*arguments):
        asked.append(arguments)
        return code_of(*arguments)

    def run(number):
        signature = SIGNATURES[rows]["number_rows"]
        arguments = arguments_of(signature)
        together.wait()
        for _ in range(50):
            launch(rows.number_rows, arguments, 1, 32, number, CAPABILITY)
        results.append(number)
        together.wait()

    class Apart(Driver):
        """Parameters of two threads are never at one place."""

        def cuLaunchKernel(self, kernel, *launched):  # noqa: N802
            *_, stream, table, _ = launched
            self.launches.append((stream, table))
            return self.result("launch")

    stub = Apart()
    monkeypatch.setattr(cuda_launch, "driver", stub)
    monkeypatch.setattr(cuda_launch, "code_of", code)
    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [0, 1, 2, 3]
    assert len(asked) == len(stub.libraries) == 1
    assert len(stub.launches) == 200
    assert len(set(stub.launches)) == len({table for _, table in stub.launches}) == 4


@pytest.mark.parametrize("call", ["load", "get", "launch"])
def test_an_error_of_the_driver_is_raised_with_its_name(driver, call):
    arguments = arguments_of(SIGNATURES[rows]["number_rows"])
    driver.expected = bytes(pack(arguments))
    driver.fails[call] = bindings.CUresult.CUDA_ERROR_OUT_OF_MEMORY
    with pytest.raises(DriverError, match=r"cu\w+ returned CUDA_ERROR_OUT_OF_MEMORY \(2\)") as failed:
        launch(rows.number_rows, arguments, 1, 32, 0, CAPABILITY)
    assert failed.value.status == 2
    driver.fails.clear()
    launch(rows.number_rows, arguments, 1, 32, 0, CAPABILITY)


def test_launches_call_only_known_functions_of_the_driver():
    """Every function called as `driver.` is in the installed bindings."""
    called = set(re.findall(r"driver\.(cu\w+)\(", Path(cuda_launch.__file__).read_text()))
    assert called == {name for name in vars(Driver) if name.startswith("cu")}
    assert all(callable(getattr(bindings, name)) for name in called)
