"""Kernels that other processes compile: all that scoring needs, and no result depends on these processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numba
import pytest

import gpupif
from gpupif.datasets import census
from gpupif.disclosure.models import MODELS
from gpupif.engines.cpu import ahead
from gpupif.kernels import blocks
from gpupif.kernels.jit import Subroutine

KINDS = (["cig", "csf", "wcig"], ["cig", "renyi_2"], ["emd", "recursive_2", "cohort_size"])


def assert_called(question, measures):
    """Assert that each kernel compiled ahead was called with these types, directly or by another kernel."""
    for kernel, arguments in ahead.NEEDED[question](measures):
        called = tuple(map(numba.typeof, arguments)) in kernel.overloads
        assert called or (isinstance(kernel, Subroutine) and kernel.is_kept_for(arguments)), kernel.py_func.__name__


@pytest.mark.parametrize("measures", KINDS)
def test_kernels_compiled_ahead_are_the_kernels_called(measures):
    before = len(blocks.score_blocks.overloads)
    with gpupif.config(device="cpu"):
        gpupif.score(census(200), measures)
    assert_called("scores", measures)
    assert len(blocks.score_blocks.overloads) <= before + 1


def test_kernels_compiled_ahead_for_risk_are_the_kernels_called():
    with gpupif.config(device="cpu"):
        gpupif.risk(census(20_000), ["age", "sex", "region"], "income_band")
    assert_called("risk", [model.measure(2) for model in MODELS.values()])


def test_only_the_kernels_that_a_question_needs_are_compiled():
    """Powers and logarithms are compiled only for the sums that need them."""
    plain, risk, powers = (
        ahead.NEEDED["scores"](measures)[0][1][5] for measures in (["cig"], ["recursive_2", "emd"], ["renyi_2"])
    )
    assert (plain.values.masses, plain.axes) == (None, None)
    assert risk.values.masses is None
    assert risk.axes is not None
    assert powers.values.masses is not None


def test_no_process_starts_if_all_kernels_are_cached(monkeypatch):
    measures = KINDS[0]
    with gpupif.config(device="cpu"):
        gpupif.score(census(200), measures)
    monkeypatch.setattr(subprocess, "Popen", None)
    # On one core no process would start anyway.
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    with ahead.compiling_ahead("scores", measures):
        pass


@pytest.mark.subprocess
@pytest.mark.parametrize("program", ["import sys; sys.exit(3)", "import time; time.sleep(60)"])
def test_compiling_processes_that_fail_or_hang_delay_no_run(monkeypatch, program):
    started = []

    class Recorded(subprocess.Popen):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            started.append(self)

    monkeypatch.setattr(type(blocks.score_blocks), "is_kept_for", lambda *_: False)
    monkeypatch.setattr(ahead.os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(ahead, "CACHE_FOLDER", "somewhere")
    monkeypatch.setattr(ahead, "_COMMAND", program)
    monkeypatch.setattr(subprocess, "Popen", Recorded)
    before = time.perf_counter()
    with pytest.raises(ZeroDivisionError), ahead.compiling_ahead("scores", KINDS[0]):
        1 / 0  # noqa: B018
    assert time.perf_counter() - before < 20
    assert len(started) == ahead.HELPERS
    assert all(process.poll() is not None for process in started)


def test_a_refused_process_is_no_error(monkeypatch):
    def refuse(*_, **__):
        raise BlockingIOError("too many processes")

    monkeypatch.setattr(type(blocks.score_blocks), "is_kept_for", lambda *_: False)
    monkeypatch.setattr(ahead.os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(ahead, "CACHE_FOLDER", "somewhere")
    monkeypatch.setattr(subprocess, "Popen", refuse)
    with ahead.compiling_ahead("scores", KINDS[0]):
        pass


@pytest.mark.slow
@pytest.mark.subprocess
def test_compiling_processes_find_the_modules_of_their_parent():
    """The helpers have the module path of this process, in any current folder."""
    command = ahead._COMMAND.format(path=sys.path, question="scores", measures=["nothing"])
    done = subprocess.run([sys.executable, "-c", command], cwd="/", capture_output=True, text=True, check=False)
    assert "expected some of cig" in done.stderr.splitlines()[-1]


TOLD_TO_END = """
import os, signal, sys
from pathlib import Path
from gpupif.engines.cpu import ahead
from gpupif.kernels import cache

class Swallowing:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)

class Kernel:
    def compile_unless_claimed(self, arguments):
        if sys.argv[1] == "__del__":
            Swallowing()
        else:
            replace = os.replace
            os.replace = lambda *names: (os.kill(os.getpid(), signal.SIGTERM), replace(*names))
            cache.write_whole(Path(sys.argv[2], "kernel.code"), b"all of it")
            os.replace = replace

class Never:
    def compile_unless_claimed(self, arguments):
        Path(sys.argv[2], "kernel.code").write_bytes(b"too late")

ahead.NEEDED = {"scores": lambda measures: [(Kernel(), ()), (Never(), ())]}
ahead.compile_needed("scores", [])
"""


@pytest.mark.slow
@pytest.mark.subprocess
@pytest.mark.parametrize("moment", ["__del__", "write_whole"])
def test_a_terminated_compiling_process_leaves_no_partial_file(tmp_path, moment):
    command = [sys.executable, "-P", "-c", TOLD_TO_END, moment, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == ((143, "") if moment == "__del__" else (0, ""))
    left = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert left == ({} if moment == "__del__" else {"kernel.code": b"all of it"})
