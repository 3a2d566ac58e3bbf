"""How the tests are laid out: what several of them share stands in tests/helpers."""

from __future__ import annotations

import ast
import re
import tomllib

import pytest

import gpupif
from gpupif.engines import choose
from gpupif.engines.choose import DeviceRequest, choose_engine
from gpupif.gpu import status
from gpupif.gpu.status import CudaStatus, Gpu
from tests.helpers.checkout import ROOT, nodes_of, reads_modules

FILES = sorted(path.relative_to(ROOT) for path in (ROOT / "tests").rglob("*.py"))


def imported(file):
    """Dotted names of all that a module imports, wherever it does."""
    for node in nodes_of(file):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@reads_modules
def test_no_test_module_is_imported():
    found = {str(path): list(imported(ROOT / path)) for path in FILES}
    assert len(found) > 100
    of_tests = {
        path: [name for name in names if any(part.startswith(("test_", "conftest")) for part in name.split("."))]
        for path, names in found.items()
    }
    assert {path: names for path, names in of_tests.items() if names} == {}


def test_folders_hold_tests_or_helpers():
    """A file elsewhere would not be run."""
    scripts = {"benchmark.py", "compile_check.py", "conftest.py"}
    loose = [path for path in FILES if path.parts[1] != "helpers" and not path.name.startswith("test_")]
    assert {path.name for path in loose} <= scripts


def test_an_unmarked_test_starts_no_gpu():
    """The test runs as on a machine with a GPU, and small tables are scored by the CPU."""
    assert status.shown_gpus().usable
    assert gpupif.score(gpupif.datasets.pif_example()).device == "cpu"
    for word in ("auto", "cuda", "cuda:0"):
        with pytest.raises(pytest.fail.Exception, match="would start a GPU: mark it gpu or every_engine"):
            choose_engine(DeviceRequest(word))


@pytest.mark.every_engine
def test_a_marked_test_uses_a_gpu_for_small_tables():
    assert choose.LEAST_CELLS == 0
    device = "cuda" if status.cuda_status().usable else "cpu"
    assert gpupif.score(gpupif.datasets.pif_example()).device == device


@pytest.mark.parametrize(("gpus", "processes"), [([], 32), ([0], 4), ([0, 1], 4)])
def test_few_processes_share_a_gpu(pytestconfig, monkeypatch, gpus, processes):
    (conftest,) = (plugin for plugin in pytestconfig.pluginmanager.get_plugins() if hasattr(plugin, "MOST_ON_GPU"))
    monkeypatch.setattr(conftest, "shown_gpus", lambda: CudaStatus([Gpu("a GPU", (9, 0))] * len(gpus), gpus))
    monkeypatch.setenv("PYTEST_XDIST_AUTO_NUM_WORKERS", "32")
    assert pytestconfig.hook.pytest_xdist_auto_num_workers(config=pytestconfig) == processes


TESTS = """
import pytest

def test_quick():
    pass

@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2])
def test_slow(number):
    pass
"""

SAMPLED = """
import pytest

@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", range(7))
def test_some(number):
    print("ran", number)
"""

BY_TURNS = """
import pytest

@pytest.fixture(params=["cpu", "cpu-1-thread", "cpu-3-threads"])
def engine(request):
    return request.param

@pytest.mark.slow
@pytest.mark.parametrize("number", range(20))
def test_slow(number, engine):
    print("ran", number, engine)

def test_quick(engine):
    pass

@pytest.mark.parametrize("number", range(4))
def test_quick_cases(number, engine):
    print("ran", number, engine)
"""


@pytest.fixture
def few_tests(pytester, monkeypatch):
    """A folder of one quick and two slow tests, with this repository's options of pytest."""
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["addopts"]
    pytester.makeini(f"[pytest]\naddopts = {options} -n 0 -p tests.helpers.slow_tests\nmarkers = slow\n  sampled(n)")
    pytester.makepyfile(test_few=TESTS)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return pytester


@pytest.mark.parametrize(
    ("arguments", "passed", "left_out"),
    [
        ([], 1, 2),
        (["test_few.py"], 1, 2),
        (["--everything"], 3, 0),
        (["-m", ""], 3, 0),
        (["-m", "slow"], 2, 0),
        (["test_few.py::test_slow"], 2, 0),
        (["test_few.py::test_slow[2]"], 1, 0),
        (["test_few.py", "test_few.py::test_slow[2]"], 1, 2),
        pytest.param(["-n", "1"], 1, 2, marks=pytest.mark.slow),
    ],
)
def test_slow_tests_run_only_if_asked_for(few_tests, arguments, passed, left_out):
    in_workers = "-n" in arguments
    ended = few_tests.runpytest_subprocess(*arguments) if in_workers else few_tests.runpytest_inprocess(*arguments)
    ended.assert_outcomes(passed=passed)
    said = [line for line in ended.outlines if "left out" in line]
    assert said == [
        "slow tests are left out: pytest --everything runs them",
        f"{left_out} slow tests were left out: pytest --everything runs all tests",
    ] * bool(left_out)


@pytest.mark.parametrize(
    ("arguments", "passed", "left_out", "cases"),
    [(["-m", "slow", "--by-turns"], 20, 55, 20), (["--everything", "--by-turns"], 27, 48, None), ([], 7, 68, 4)],
)
def test_engines_take_turns(few_tests, arguments, passed, left_out, cases):
    few_tests.makepyfile(test_few=BY_TURNS)
    ended = few_tests.runpytest_inprocess("-s", *arguments)
    ended.assert_outcomes(passed=passed, deselected=left_out)
    runs = re.findall(r"ran (\d+) (cpu(?:-\d-threads?)?)", "\n".join(ended.outlines))
    assert {engine for _, engine in runs} == {"cpu", "cpu-1-thread", "cpu-3-threads"}
    if cases is not None:
        assert sorted(int(number) for number, _ in runs) == list(range(cases))


@pytest.mark.parametrize(
    ("arguments", "cases"), [([], [0, 3, 6]), (["-m", "slow"], [1, 2, 4, 5]), (["--everything"], list(range(7)))]
)
def test_of_a_sampled_test_some_cases_are_quick(few_tests, arguments, cases):
    few_tests.makepyfile(test_few=SAMPLED)
    ended = few_tests.runpytest_inprocess("-s", *arguments)
    assert [int(number) for number in re.findall(r"ran (\d+)", "\n".join(ended.outlines))] == cases
