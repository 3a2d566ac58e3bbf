"""Kernels compiled by other processes: those that scoring needs, and nothing depends on these processes."""

from __future__ import annotations

import subprocess
import sys
import time

import numba
import pytest

import gpupif
from gpupif.datasets import census
from gpupif.engines.cpu import ahead

KINDS = (["cig", "csf", "wcig"], ["cig", "renyi_2"], ["emd", "recursive_2", "cohort_size"])


@pytest.mark.parametrize("measures", KINDS)
def test_what_is_compiled_is_what_is_called(measures):
    with gpupif.config(device="cpu"):
        gpupif.score(census(200), measures)
    for kernel, arguments in [one for half in ahead.halves(measures, extremes_only=False) for one in half]:
        assert tuple(map(numba.typeof, arguments)) in kernel.overloads, kernel.py_func.__name__


def test_what_is_compiled_is_what_is_called_for_extremes():
    with gpupif.config(device="cpu"):
        gpupif.risk(census(200), ["age", "sex"], "region")
    measures = ["posterior", "recursive_2", "emd"]
    for kernel, arguments in [one for half in ahead.halves(measures, extremes_only=True) for one in half]:
        assert tuple(map(numba.typeof, arguments)) in kernel.overloads, kernel.py_func.__name__


def test_no_process_starts_where_all_is_kept(monkeypatch):
    measures = KINDS[0]
    with gpupif.config(device="cpu"):
        gpupif.score(census(200), measures)
    monkeypatch.setattr(subprocess, "Popen", None)
    with ahead.compiling_ahead(measures):
        pass


@pytest.mark.subprocess
@pytest.mark.parametrize("program", ["import sys; sys.exit(3)", "import time; time.sleep(60)"])
def test_processes_that_fail_or_hang_hold_nobody_up(monkeypatch, program):
    started = []

    class Recorded(subprocess.Popen):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            started.append(self)

    monkeypatch.setattr(ahead, "_all_kept", lambda _: False)
    monkeypatch.setattr(ahead.os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(ahead, "CACHE_FOLDER", "somewhere")
    monkeypatch.setattr(ahead, "_COMMAND", program)
    monkeypatch.setattr(subprocess, "Popen", Recorded)
    before = time.perf_counter()
    with pytest.raises(ZeroDivisionError), ahead.compiling_ahead(KINDS[0]):
        1 / 0  # noqa: B018
    assert time.perf_counter() - before < 20
    assert len(started) == 2
    assert all(process.poll() is not None for process in started)


def test_where_no_process_may_be_started_there_is_none(monkeypatch):
    def refuse(*_, **__):
        raise BlockingIOError("too many processes")

    monkeypatch.setattr(ahead, "_all_kept", lambda _: False)
    monkeypatch.setattr(ahead.os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(ahead, "CACHE_FOLDER", "somewhere")
    monkeypatch.setattr(subprocess, "Popen", refuse)
    with ahead.compiling_ahead(KINDS[0]):
        pass


@pytest.mark.subprocess
def test_the_other_processes_find_the_modules_of_this_one():
    """Wherever they run: with what is on this process's path."""
    asked = "['nothing'], False, 0"
    command = ahead._COMMAND.format(path=sys.path, asked=asked)
    done = subprocess.run([sys.executable, "-c", command], cwd="/", capture_output=True, text=True, check=False)
    assert "expected some of cig" in done.stderr.splitlines()[-1]
