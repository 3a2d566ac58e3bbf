"""The device on the host: its guards catch the faults of kernels that are wrong on purpose."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.checkout import ROOT
from tests.helpers.gpu.without_gpu import need_host

need_host()

from numba import cuda, float64

from tests.helpers.gpu.host import fibers, ir, objects
from tests.helpers.gpu.host.errors import DeviceCodeError
from tests.helpers.gpu.host.library import HostLibrary, Shuffled, backward, forward

pytestmark = pytest.mark.gpu

ORDERS = {"forward": forward, "backward": backward, "shuffled": Shuffled(1)}
THREADS = 64


@cuda.jit
def copy_from(places, source, out):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = source[places[i]]


@cuda.jit
def copy_to(places, source, out):
    for i in range(cuda.grid(1), source.size, cuda.gridsize(1)):
        out[places[i]] = source[i]


@cuda.jit
def number_threads(turn, out):
    out[cuda.grid(1)] = cuda.atomic.add(turn, 0, 1)


@cuda.jit
def turn_round(source, out):
    """Each block's values the other way round, twice, so that some are read before others are written."""
    shared = cuda.shared.array(THREADS, float64)
    place, other = cuda.threadIdx.x, cuda.blockDim.x - 1 - cuda.threadIdx.x
    shared[place] = source[cuda.grid(1)]
    for _ in range(2):
        cuda.syncthreads()
        value = shared[other]
        cuda.syncthreads()
        shared[place] = value + 1
    cuda.syncthreads()
    out[cuda.grid(1)] = shared[other]


@cuda.jit
def wait_in_part(few, out):
    if cuda.threadIdx.x < few[0]:
        cuda.syncthreads()
    out[cuda.grid(1)] = 1


@cuda.jit
def multiply_and_add(source, factor, out):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = source[i] * factor - 1.0


@cuda.jit
def fill_stack(few, out):
    much = cuda.local.array(2100, float64)
    for i in range(few[0]):
        much[i] = i
    out[0] = much[few[0] // 2]


def launch(kernel, *arguments, order=forward):
    HostLibrary(order=order).launch(kernel, 1, *arguments)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float64"])
@pytest.mark.parametrize("rows", [1, 5, 512, 5000])
@pytest.mark.parametrize("beyond", [0, 1, 3000])
def test_reading_beyond_the_end_is_an_error(dtype, rows, beyond):
    source, out = np.ones(rows, dtype), np.zeros(1)
    launch(copy_from, np.array([rows - 1]), source, out)
    assert out[0] == 1
    with pytest.raises(DeviceCodeError, match=rf"copy_from: .* {beyond * source.itemsize} bytes beyond the end"):
        launch(copy_from, np.array([rows + beyond]), source, out)


@pytest.mark.parametrize("rows", [1, 700])
def test_writing_beyond_the_end_is_an_error(rows):
    out = np.zeros(rows)
    with pytest.raises(DeviceCodeError, match=r"copy_to: .* 0 bytes beyond the end of argument 2 \(float64, "):
        launch(copy_to, np.array([rows]), np.ones(1), out)
    assert not out.any()


def test_writing_before_the_start_is_an_error():
    """Numba counts an index below 0 from the end, once."""
    out, four = np.zeros(1), np.ones(4)
    launch(copy_from, np.array([-5]), four, out)
    assert np.isnan(out[0])
    with pytest.raises(DeviceCodeError, match=r"kernel copy_to: writes before argument 2"):
        launch(copy_to, np.array([-5]), np.ones(1), four)
    assert four.tolist() == [1, 1, 1, 1]


def test_reading_outside_all_arrays_is_an_error():
    with pytest.raises(DeviceCodeError, match="beside no array"):
        launch(copy_from, np.array([1 << 40]), np.ones(1), np.zeros(1))
    with pytest.raises(DeviceCodeError, match="beside no array"):
        launch(copy_from, np.array([1 << 60]), np.ones(1), np.zeros(1))


def test_more_than_a_stack_holds_is_an_error(monkeypatch):
    # LLVM takes a quarter of a minute for an array that fills a stack of the usual size.
    monkeypatch.setattr(fibers, "STACK_BYTES", 1 << 14)
    monkeypatch.setattr(fibers, "_fibers", [])
    with pytest.raises(DeviceCodeError, match="beside no array"):
        launch(fill_stack, np.array([2100]), np.zeros(1))


def test_reading_an_empty_array_is_an_error():
    empty = np.zeros(0)
    launch(copy_from, np.zeros(0, int), empty, empty)
    with pytest.raises(DeviceCodeError, match=r"0 bytes beyond the end of argument 1"):
        launch(copy_from, np.array([0]), empty, np.zeros(1))


def test_writing_to_a_read_only_array_is_an_error():
    out = np.zeros(3)
    out.flags.writeable = False
    with pytest.raises(DeviceCodeError, match=r"writes to argument 2 .*, which may only be read"):
        launch(copy_to, np.arange(3), np.ones(3), out)


def test_overlapping_arrays_share_their_memory():
    whole = np.arange(6.0)
    launch(copy_to, np.arange(3), whole[:3], whole[2:])
    assert whole.tolist() == [0, 1, 0, 1, 0, 5]


def test_kernels_run_again_after_an_error():
    test_reading_outside_all_arrays_is_an_error()
    test_reading_beyond_the_end_is_an_error("float64", 5, 0)
    out = np.zeros(4)
    launch(copy_from, np.arange(4)[::-1].copy(), np.arange(4.0), out)
    assert out.tolist() == [3, 2, 1, 0]


def test_threads_run_in_the_order_that_was_asked_for():
    found = {}
    for name, order in ORDERS.items():
        out = np.zeros(32, int)
        launch(number_threads, np.zeros(1, int), out, order=order)
        assert sorted(out) == list(range(32))
        found[name] = out.tolist()
    assert found["forward"] == list(range(32))
    assert found["backward"] == found["forward"][::-1]
    assert found["shuffled"] not in (found["forward"], found["backward"])


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_threads_of_a_block_wait_at_its_barrier(order):
    source, out = np.random.default_rng(0).random(3 * THREADS), np.zeros(3 * THREADS)
    HostLibrary(order=order).launch_blocks(turn_round, 3, THREADS, source, out)
    np.testing.assert_array_equal(out, (source + 2).reshape(3, THREADS)[:, ::-1].ravel())


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("few", [1, THREADS - 1])
def test_a_barrier_that_some_threads_miss_is_an_error(order, few):
    library = HostLibrary(order=order)
    with pytest.raises(DeviceCodeError, match=rf"kernel wait_in_part: only {few} of the {THREADS} threads .* number 1"):
        library.launch_blocks(wait_in_part, 2, THREADS, np.array([few]), np.zeros(2 * THREADS))
    out = np.zeros(2 * THREADS)
    for everybody in (0, THREADS):
        out[:] = 0
        library.launch_blocks(wait_in_part, 2, THREADS, np.array([everybody]), out)
        assert out.all()


def test_a_product_and_a_sum_are_rounded_each():
    source = 1 + np.arange(1, 200) * 2.0**-52
    out = np.zeros(source.size)
    launch(multiply_and_add, source, 1 - 2.0**-53, out)
    np.testing.assert_array_equal(out, source * (1 - 2.0**-53) - 1)


def test_new_arrays_hold_conspicuous_numbers():
    made = HostLibrary().empty((2, 3), "float64")
    assert (made > 1e300).all()
    assert (HostLibrary().empty(4, "int64") > 1 << 62).all()


SHOWN = """
import sys
sys.path.append(sys.argv[1])
from gpupif.gpu.compile import CompiledKernel
from gpupif.kernels.cuda import cohorts, rows
from tests.cuda import compile_check
from tests.helpers.gpu.host import fibers, ir, objects
for module, name in ((cohorts, "score_cells"), (cohorts, "add_cells"), (rows, "mark_heads"))[:: int(sys.argv[2])]:
    compiled = CompiledKernel(getattr(module, name), compile_check.SIGNATURES[module][name], (9, 0))
    print(name, objects.key(ir.portable(compiled.modules, compiled.name)))
"""


@pytest.mark.subprocess
def test_compiled_code_is_found_again_after_any_other_code():
    found = []
    for step, seed in (("1", "0"), ("-1", "1")):
        command = [sys.executable, "-c", SHOWN, str(ROOT), step]
        # Numba's order of a function's variables may follow the hashes of their names.
        seeded = {**os.environ, "PYTHONHASHSEED": seed}
        found.append(subprocess.run(command, capture_output=True, text=True, check=True, env=seeded).stdout.split("\n"))
    assert len(found[0]) == 4
    assert sorted(found[0]) == sorted(found[1])


def test_code_is_kept_whole_or_not_at_all(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    modules = [f"define void @{ir.ENTRY}(i64 %a) {{\n  ret void\n}}\n"]

    def fail(*_):
        raise OSError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        with pytest.raises(OSError, match="no room"):
            objects.object_code(modules)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    code = objects.object_code(modules)
    (file,) = tmp_path.rglob("*.o")
    assert file.read_bytes() == code
    monkeypatch.setattr(objects, "_compile", fail)
    assert objects.object_code(modules) == code
    assert os.stat(file.parent).st_mode & 0o777 == 0o700
