"""The benchmark of the GPU, without one: what it measures, that it holds its time, that it goes on."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import gpu
from benchmarks.budget import Budget
from benchmarks.device_tables import CARDINALITIES, device_codes, digest
from gpupif.gpu.open import open_libraries
from tests.helpers.checkout import ROOT
from tests.helpers.gpu.without_gpu import DeviceLibrary, need_stand_in

need_stand_in()

pytestmark = [pytest.mark.gpu, pytest.mark.subprocess]


def bench(budget, libraries=None, times=1):
    document = {"results": [], "differences": {}, "notes": budget.notes}
    return gpu.Bench(libraries or open_libraries([0]), budget, times, document, lambda: None)


def test_the_benchmark_runs_without_a_gpu_and_writes_no_figures(tmp_path):
    script = ROOT / "tests" / "cuda" / "benchmark.py"
    command = [sys.executable, str(script), "--no-tests", "--rows", "40", "20", "--compare-rows", "20"]
    command += ["--times", "1", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for said in ("40 rows cuda, cudf ", "40 rows cuda, rotation, memory given back", "40 rows cpu", "caches filled"):
        assert said in done.stdout
    assert "failed" not in done.stdout
    assert "left out" not in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_help_names_the_measurements():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for said in ("--seconds", "first calls in a fresh process", "bits", "notes"):
        assert said in done.stdout


def test_each_measured_call_has_its_runs_and_its_best():
    one = bench(Budget(1e6), times=2)
    gpu.measure_engine(one, 30, moved=1e9)
    gpu.measure_peer(one, 30, "cpu", moved=1e9)
    results = one.document["results"]
    groupings = ("cuda, cudf", "cuda, rotation")
    names = [f"{grouping}{pools}" for grouping in groupings for pools in ("", ", memory given back")] + ["cpu"]
    assert [result["engine"] for result in results] == names
    for result in results:
        assert len(result["runs"]) == 2
        assert result["best"] == min(result["runs"])
        assert result["best"] <= result["seconds"] <= max(result["runs"])
        # 1 byte of code and two scores of 8 bytes a cell.
        assert result["floor"] == pytest.approx(30 * 10 * 17 / 1e9)
    for result in results[:4]:
        assert set(result["stages"]) == {"pack", "collapse", "weigh", "group", "score", "spread"}
        # Of the runs that count only.
        assert sum(result["stages"].values()) <= sum(result["runs"]) / 2
        assert (result["scores_on"], result["through_host"]) == ("device", "")
    assert gpu.same_bits(results) == {
        f"30 rows, {measure}": {"groupings": ["cudf", "rotation"], "cuda": True, "cuda and cpu": True}
        for measure in ("cig", "csf")
    }
    results[0]["bits"]["cig"] = "0"
    assert not gpu.same_bits(results)["30 rows, cig"]["cuda"]
    assert one.budget.notes == []
    assert json.loads(json.dumps(one.document)) == one.document


def test_memory_is_kept_or_given_back_after_each_call():
    class Library(DeviceLibrary):
        released = 0

        def release(self):
            self.released += 1
            super().release()

    library = Library()
    one = bench(Budget(1e6), [library], times=2)
    gpu.measure_engine(one._replace(groupings=["rotation"]), 20, moved=1e9)
    assert [result["pools"] for result in one.document["results"]] == ["kept", "given back"]
    # After each of three calls, after the grouping, and after the table.
    assert library.released == 3 + 2


def test_the_other_groupings_are_measured_without_cudf(monkeypatch):
    monkeypatch.setattr(gpu, "is_device", lambda library: library.xp is not np)
    one = bench(Budget(1e6))._replace(groupings=("rotation",))
    monkeypatch.setattr(gpu, "COPIED_BYTES", 1 << 16)
    gpu.measure_all(one, [20], 20, tests=False)
    assert {result.get("grouping") for result in one.document["results"]} == {"rotation", None}
    assert {facts["within_tolerance"] for facts in one.document["differences"].values()} == {True}
    assert [note for note in one.budget.notes if "first call" not in note] == []


def test_sizes_that_do_not_fit_the_time_are_left_out_with_a_note():
    now = [0.0]
    one = bench(Budget(100, lambda: now[0]))
    one.budget.took("cuda, cudf", 30, 5.0)
    one.budget.took("cuda, rotation", 30, 1.0)
    gpu.measure_engine(one, 600, moved=1e9)
    assert {result["grouping"] for result in one.document["results"]} == {"rotation"}
    assert one.budget.notes == ["600 rows, cuda, cudf: left out, it takes about 120 s and 100 s are left"]
    now[0] = 101
    gpu.measure_all(one, [20, 30], 20, tests=True)
    assert len(one.document["results"]) == 2
    assert [note.partition(":")[0] for note in one.budget.notes[1:]] == [
        *(f"first call, {call}" for call in ("cudf, caches empty", "cudf, caches filled", "rotation, caches filled")),
        *(f"{rows} rows, cuda, {grouping}" for rows in (20, 30) for grouping in ("cudf", "rotation")),
        *(f"{rows} rows, cpu" for rows in (20, 30)),
        *(f"{rows} rows from file to file" for rows in (20, 30)),
        *(f"engines compared on {table}" for table in ("census", "skewed", "60 columns", "missing texts")),
        "tests marked gpu",
    ]


def test_a_call_is_repeated_until_the_time_runs_out():
    now = [0.0]
    one = bench(Budget(10, lambda: now[0]), times=50)
    calls = []

    def run():
        calls.append(now[0])
        # As if each took 3 seconds of the budget.
        now[0] += 3.0

    found, _ = gpu.timed(one, run)
    assert len(calls) == 1 + len(found["runs"])
    # Until less is left than a run takes.
    assert now[0] >= 10


def test_a_failing_measurement_is_noted_and_the_rest_goes_on(monkeypatch):
    class Broken(DeviceLibrary):
        def group_rows(self, words, counts):
            raise RuntimeError("no\nhash table")

    one = bench(Budget(1e6), [Broken()])
    gpu.measure_engine(one, 20, moved=1e9)
    assert [result["engine"] for result in one.document["results"]] == [
        "cuda, rotation",
        "cuda, rotation, memory given back",
    ]
    assert one.budget.notes == ["20 rows, cuda, cudf: failed, RuntimeError: no hash table"]


def test_a_table_that_does_not_fit_on_the_device_is_noted():
    one = bench(Budget(1e6), [DeviceLibrary(memory=100)])
    gpu.measure_engine(one, 20, moved=1e9)
    assert one.document["results"] == []
    assert one.budget.notes == [f"20 rows: left out, they do not fit on {DeviceLibrary.name} as a whole"]
    # Its scores do not fit there beside it.
    one = bench(Budget(1e6), [DeviceLibrary(memory=18_000)])
    gpu.measure_engine(one, 20, moved=1e9)
    assert {result["scores_on"] for result in one.document["results"]} == {"host"}


def test_digests_differ_if_a_bit_or_a_place_differs(monkeypatch):
    library = DeviceLibrary()
    scores = np.random.default_rng(0).random((2, 50))
    found = {digest(library, scores)}
    monkeypatch.setattr("benchmarks.device_tables.DIGEST_CELLS", 7)
    found.add(digest(library, scores))
    assert len(found) == 1
    for change in (lambda a: np.negative(a, where=a == a[1, 3], out=a), lambda a: a[0].sort(), lambda a: a[::-1]):
        other = scores.copy()
        changed = change(other)
        found.add(digest(library, np.ascontiguousarray(other if changed is None else changed)))
    assert len(found) == 4
    # The sign of zero is a bit as well.
    assert digest(library, np.zeros(3)) != digest(library, -np.zeros(3))


def test_the_difference_of_a_number_and_an_unknown_one_is_infinite():
    some = np.array([1.0, np.nan, np.inf, 0.0])
    assert gpu.difference(some, some.copy()) == 0
    assert gpu.difference(some, np.array([1.5, np.nan, np.inf, 1e-3])) == pytest.approx(0.5)
    assert gpu.difference(some, np.array([1.0, 2.0, np.inf, 0.0])) == math.inf


def test_goals_are_checked_on_the_faster_grouping_with_kept_memory():
    def result(engine, rows, seconds, **more):
        return {"engine": engine, "rows": rows, "seconds": seconds, **more}

    results = [
        result("cuda, cudf", 100_000_000, 0.8, pools="kept"),
        result("cuda, rotation", 100_000_000, 0.4, pools="kept"),
        result("cuda, rotation, memory given back", 100_000_000, 0.1, pools="given back"),
        result("cpu", 100_000_000, 10.0),
        result("cpu", 10, 10.0),
    ]
    assert gpu.against_goals(results) == ["100,000,000 rows in 0.5 s: 0.400 s", "100 times cpu: 25.0 times, by size"]


def test_columns_on_the_device_resemble_a_census():
    """The columns are made without a library of random numbers, which a light install lacks."""
    library = DeviceLibrary()
    functions = {name: getattr(np, name) for name in dir(np) if name != "random"}
    library.xp = SimpleNamespace(**functions)
    codes = device_codes(library, 5_000)
    apart = np.corrcoef(np.array([np.asarray(column) for column in codes]))[np.triu_indices(len(codes), 1)]
    assert (apart > 0.1).all()
    assert (apart < 0.9).all()
    assert len({np.asarray(column).tobytes() for column in codes}) == len(codes)
    for column, cardinality in zip(codes, CARDINALITIES, strict=True):
        assert column.dtype == np.uint8
        assert column.max() < cardinality
        assert len(np.unique(column)) >= 0.8 * cardinality
