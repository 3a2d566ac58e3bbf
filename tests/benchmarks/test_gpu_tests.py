"""The tests that the benchmark of the GPU runs: which they are, and what is said of them."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

import pytest

from benchmarks import gpu_tests

SAID = """
[gw0] [ 33%] PASSED tests/cuda/test_engine.py::test_a[cuda-cudf]
[gw1] [ 66%] SKIPPED tests/cuda/test_engine.py::test_b
[gw1] [100%] FAILED tests/cuda/test_engine.py::test_c
"""


def test_what_is_run_is_there(monkeypatch):
    ran = []
    monkeypatch.setattr(
        subprocess,
        "run",
        lambda *given, **more: ran.append((*given, more)) or SimpleNamespace(stdout=SAID.encode(), returncode=1),
    )
    found = gpu_tests.run_tests(10)
    ((command, more),) = ran
    assert command[command.index("-m", 3) + 1] == "gpu"
    # All of them, wherever they lie.
    assert command[-1] == "tests"
    assert (more["cwd"] / "tests" / "cuda").is_dir()
    assert found == {
        "counts": {"passed": 1, "skipped": 1, "failed": 1},
        "failures": ["tests/cuda/test_engine.py::test_c"],
        "status": 1,
    }


@pytest.mark.parametrize(
    ("said", "last"),
    [("", ""), ("ERROR: file or directory not found: x\n", ": ERROR: file or directory not found: x")],
)
def test_no_test_that_passed_is_a_failure(said, last):
    assert gpu_tests.outcomes(said) == {"counts": {}, "failures": [f"no test passed{last}"]}


def test_tests_that_were_only_left_out_are_a_failure():
    found = gpu_tests.outcomes(SAID.replace("PASSED", "SKIPPED").replace("FAILED", "SKIPPED"))
    assert found["counts"] == {"skipped": 3}
    assert len(found["failures"]) == 1


def test_what_is_stopped_before_any_test_passed_is_a_failure(monkeypatch):
    def stopped(*given, timeout, **more):
        raise subprocess.TimeoutExpired("pytest", timeout, b"collecting")

    monkeypatch.setattr(subprocess, "run", stopped)
    found = gpu_tests.run_tests(3)
    assert found["failures"] == ["no test passed: collecting"]
    assert found["stopped_after_seconds"] == 3
