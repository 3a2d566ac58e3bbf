"""What the GPU benchmark does with its time, what it says of tests, and of bits; no GPU is needed."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

import pytest

from benchmarks import gpu_tests
from benchmarks.budget import MARGIN, Budget
from benchmarks.gpu_tests import outcomes


class Clock:
    """A clock that is moved by hand."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def test_work_that_does_not_fit_the_time_is_noted():
    clock = Clock()
    budget = Budget(540, clock)
    assert budget.left == 540
    assert budget.fits("small", 540)
    clock.now += 500
    assert budget.left == 40
    assert budget.notes == []
    assert not budget.fits("300,000,000 rows, cuda", 60.4)
    assert budget.notes == ["300,000,000 rows, cuda: left out, it takes about 60 s and 40 s are left"]
    assert budget.fits("tests", 40)
    clock.now += 41
    assert not budget.fits("more", 0)
    assert budget.notes[1:] == ["more: left out, it takes about 0 s and 0 s are left"]


def test_larger_tables_are_expected_to_take_longer_in_proportion():
    budget = Budget(540, Clock())
    assert budget.expected("cpu", 10) == 0
    assert budget.expected("cpu", 10, 90.0) == 90
    budget.took("cpu", 1_000_000, 2.0)
    assert budget.expected("cpu", 10_000_000, 90.0) == pytest.approx(20 * MARGIN)
    # Smaller ones may take as long.
    assert budget.expected("cpu", 10) == pytest.approx(2 * MARGIN)
    budget.took("cpu", 10_000_000, 10.0)
    assert budget.expected("cpu", 100_000_000) == pytest.approx(100 * MARGIN)


def test_sizes_are_left_out_as_the_time_runs_out():
    clock = Clock()
    budget = Budget(100, clock)
    done = []
    for rows in (1, 10, 100, 1000):
        if budget.fits(f"{rows} rows", budget.expected("work", rows)):
            done.append(rows)
            clock.now += 0.5 * rows
            budget.took("work", rows, 0.5 * rows)
    assert done == [1, 10, 100]
    assert [note.partition(":")[0] for note in budget.notes] == ["1000 rows"]


SEVERAL = """
tests/cuda/test_a.py::test_one
[gw0] [ 12%] PASSED tests/cuda/test_a.py::test_one
[gw1] [ 25%] FAILED tests/cuda/test_a.py::test_two[a b-1]
[gw1] [ 37%] ERROR tests/cuda/test_a.py::test_two[a b-1]
[gw0] [ 50%] SKIPPED tests/cuda/test_b.py::test_three
[gw0] [ 75%] ERROR tests/cuda/test_b.py::test_four
=========================== short test summary info ============================
FAILED tests/cuda/test_a.py::test_two[a b-1]
"""

SINGLE = """
tests/cuda/test_a.py::test_one PASSED                    [ 50%]
tests/cuda/test_a.py::test_two[a b-1] FAILED             [100%]
"""


def test_outcomes_of_tests_are_counted_and_failures_named():
    assert outcomes(SEVERAL) == {
        "counts": {"passed": 1, "failed": 1, "skipped": 1, "error": 1},
        "failures": ["tests/cuda/test_a.py::test_two[a b-1]", "tests/cuda/test_b.py::test_four"],
    }
    assert outcomes(SINGLE) == {
        "counts": {"passed": 1, "failed": 1},
        "failures": ["tests/cuda/test_a.py::test_two[a b-1]"],
    }
    # What is stopped before any test passed, finds no test or only leaves them out is a failure.
    for said in ("scheduling tests via LoadScheduling\n", "ERROR: file or directory not found: x\n"):
        assert outcomes(said) == {"counts": {}, "failures": [f"no test passed: {said.strip()}"]}
    assert outcomes("") == {"counts": {}, "failures": ["no test passed"]}
    skipped = outcomes(SINGLE.replace("PASSED", "SKIPPED").replace("FAILED", "SKIPPED"))
    assert skipped["counts"] == {"skipped": 2}
    assert len(skipped["failures"]) == 1


def test_the_test_run_selects_tests_of_gpus_that_exist(monkeypatch):
    ran = []
    monkeypatch.setattr(
        subprocess,
        "run",
        lambda *given, **more: ran.append((*given, more)) or SimpleNamespace(stdout=SEVERAL.encode(), returncode=1),
    )
    found = gpu_tests.run_tests(10)
    ((command, more),) = ran
    assert command[command.index("-m", 3) + 1] == "gpu"
    # All of them, wherever they lie.
    assert command[-1] == "tests"
    assert (more["cwd"] / "tests" / "cuda").is_dir()
    assert found == {**outcomes(SEVERAL), "status": 1}


def test_a_test_run_stopped_before_any_test_passed_is_a_failure(monkeypatch):
    def stopped(*given, timeout, **more):
        raise subprocess.TimeoutExpired("pytest", timeout, b"collecting")

    monkeypatch.setattr(subprocess, "run", stopped)
    found = gpu_tests.run_tests(3)
    assert found["failures"] == ["no test passed: collecting"]
    assert found["stopped_after_seconds"] == 3
