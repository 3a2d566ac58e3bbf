"""Compiled kernels on disk: found again, compiled once however many ask, and never trusted when they are damaged."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from numba import typeof

from gpupif.kernels import cache, jit, sizes
from gpupif.kernels.cache import KernelCache
from tests.helpers.checkout import ROOT


def double(number):
    return number * 2


@pytest.fixture
def make(tmp_path):
    """Makes a kernel as another process would, which keeps what it compiles in the test's folder."""

    def made(folder=tmp_path):
        kernel = jit.Kernel(double, jit.OPTIONS)
        kernel._cache = KernelCache(double, kernel.targetoptions, str(folder))
        return kernel

    return made


def compiled(kernel):
    """How often a kernel was compiled, and loaded."""
    return sum(kernel.stats.cache_misses.values()), sum(kernel.stats.cache_hits.values())


def only_file(folder):
    [file] = [file for file in folder.iterdir() if file.suffix != ".lock"]
    return file


def test_a_kernel_is_compiled_once_for_each_type(make, tmp_path):
    first, second = make(), make()
    assert not first.is_kept_for([1])
    assert (first(21), second(21)) == (42, 42)
    assert (compiled(first), compiled(second)) == ((1, 0), (0, 1))
    assert make().is_kept_for([1])
    assert not make().is_kept_for([1.0])
    assert second(0.5) == 1.0
    assert compiled(second) == (1, 1)
    assert {file.suffix for file in tmp_path.iterdir()} == {".code"}


def test_a_damaged_cache_file_is_compiled_again(make, tmp_path):
    make()(1)
    file = only_file(tmp_path)
    whole = file.read_bytes()
    for damaged in (b"", whole[:-1], whole[:50] + bytes([whole[50] ^ 1]) + whole[51:]):
        file.write_bytes(damaged)
        kernel = make()
        assert kernel(21) == 42
        assert compiled(kernel) == (1, 0)
        again = make()
        assert again(21) == 42
        assert compiled(again) == (0, 1)


def test_cached_code_for_other_options_is_not_used(make, monkeypatch):
    """The code of a subroutine has no entry for Python, so that calling it would end the process."""
    make()(1)
    monkeypatch.setattr(jit, "OPTIONS", {**jit.OPTIONS, "no_cpython_wrapper": True})
    assert not make().is_kept_for([1])


def test_two_processes_that_need_the_same_compile_it_once(make, tmp_path):
    make()(1)
    file = only_file(tmp_path)
    code = file.read_bytes()
    file.unlink()
    lock = file.with_suffix(".lock")
    other = os.open(lock, os.O_RDWR | os.O_CREAT)
    fcntl.flock(other, fcntl.LOCK_EX)
    kernel, found = make(), []
    waiting = threading.Thread(target=lambda: found.append(kernel(21)))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    file.write_bytes(code)
    os.close(other)
    waiting.join(30)
    assert found == [42]
    assert compiled(kernel) == (0, 1)


def test_a_kernel_claimed_by_another_process_is_left_to_it(make, tmp_path):
    kernel, other = make(), make()
    assert other._cache.claims((typeof(1),), other.targetctx)
    kernel.compile_unless_claimed([1])
    assert compiled(kernel) == (0, 0)
    other.compile_unless_claimed([1])
    # And where it is there already.
    kernel.compile_unless_claimed([1])
    kernel.compile_unless_claimed([1])
    assert (compiled(kernel), compiled(other)) == ((0, 1), (1, 0))
    assert {file.suffix for file in tmp_path.iterdir()} == {".code"}


def test_a_subroutine_is_kept_for_kernels_of_other_processes(tmp_path):
    def new(kind, function):
        made = kind(function, jit.OPTIONS)
        made._cache = kind.cache(function, made.targetoptions, str(tmp_path))
        return made

    def caller_of(called):
        return new(jit.Kernel, lambda number: called(number) + called(number))

    subroutine = new(jit.Subroutine, double)
    # Of one that calls another, all there is to link.
    outer = new(jit.Subroutine, lambda number: subroutine(number) + 1)
    assert caller_of(outer)(3) == 14
    for file in tmp_path.glob("*<lambda>*"):
        if b"outer" not in file.read_bytes():
            file.unlink()
    again = new(jit.Subroutine, outer.py_func)
    assert caller_of(again)(3) == 14
    assert (compiled(outer), compiled(again)) == ((1, 0), (0, 1))


def test_a_hanging_process_is_waited_for_only_a_while(make, tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "MOST_WAITED", 0.05)
    make()(1)
    file = only_file(tmp_path)
    file.unlink()
    other = os.open(file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT)
    fcntl.flock(other, fcntl.LOCK_EX)
    kernel = make()
    assert kernel(21) == 42
    assert compiled(kernel) == (1, 0)
    os.close(other)


def test_a_lock_of_a_killed_process_delays_no_other(make, tmp_path):
    make()(1)
    file = only_file(tmp_path)
    file.unlink()
    file.with_suffix(".lock").touch()
    assert make()(21) == 42
    assert only_file(tmp_path) == file


def test_a_kernel_is_compiled_though_no_cache_can_be_written(make, tmp_path):
    kernel = make(tmp_path / "missing")
    assert kernel(21) == 42
    assert list(tmp_path.iterdir()) == []


def test_a_subroutine_cannot_be_called_from_python():
    """Which would end the process."""
    with pytest.raises(TypeError, match=r"log2_count is called by kernels only. From Python, call kernel\(log2_count"):
        sizes.log2_count(3, None)


@pytest.mark.subprocess
@pytest.mark.slow
def test_only_installations_with_the_same_kernels_share_their_cache(tmp_path):
    code = (
        "import sys; sys.path.insert(0, '.')\n"
        "import numpy as np, gpupif\n"
        "from gpupif.kernels import cache, codes\n"
        "codes.first_rows(np.zeros(3, np.uint8), np.zeros(3, np.int64))\n"
        "print(gpupif.__file__, cache.CACHE_FOLDER, *codes.first_rows.stats.cache_hits.values())"
    )
    told = []
    for number, text in enumerate(("", "", "# Another comment.\n")):
        place = tmp_path / str(number)
        for name in ("gpupif", "kernels"):
            shutil.copytree(ROOT / name, place / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        with (place / "kernels" / "codes.py").open("a") as file:
            file.write(text)
        environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
        environment["XDG_CACHE_HOME"] = str(tmp_path / "cache")
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=place, env=environment, capture_output=True, text=True, check=True
        )
        where, *rest = done.stdout.split()
        assert Path(where).is_relative_to(place)
        told.append(rest)
    assert told[0][1:] == []
    assert told[1] == [told[0][0], "1"]
    assert told[2][0] != told[0][0]
    assert told[2][1:] == []
