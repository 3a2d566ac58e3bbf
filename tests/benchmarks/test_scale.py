"""The benchmark of tables larger than memory: it runs, watches what it says it watches, and holds to its goals."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from benchmarks.draw import scale_table
from benchmarks.scale import best, goals
from benchmarks.scale_tables import check_difference, equal_bits, make_table
from benchmarks.watch import watch
from gpupif.datasets import census
from tests.helpers.checkout import ROOT

pytestmark = pytest.mark.subprocess

LIMIT = 2**31


def figures(contender, rows, seconds, gibibytes=1.0, **more):
    size = int(gibibytes * 2**30)
    run = {"state": "done", "seconds": seconds, "peak_bytes": size, "temporary_bytes": 0}
    return {"contender": contender, "rows": rows, **run, **more}


def missed(*results):
    return [goal["goal"] for goal in goals(list(results), LIMIT) if not goal["holds"]]


@pytest.mark.slow
def test_the_benchmark_runs_and_scores_are_the_same(tmp_path):
    command = [sys.executable, "-m", "benchmarks.scale", "--rows", "2e4", "--file-rows", "8e3", "--runs", "1"]
    command += ["--memory-limit", "600MiB", "--no-plot", "--temp", str(tmp_path), "--out", str(tmp_path / "out")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    # How much memory and time a machine takes is no matter of a test.
    assert done.returncode in (0, 1), done.stderr
    document = json.loads((tmp_path / "out" / "scale.json").read_text())
    results = {result["contender"]: result for result in document["results"]}
    assert {name: result["state"] for name, result in results.items()} == dict.fromkeys(results, "done")
    assert list(results) == ["gpupif", "gpupif in memory", "duckdb"]
    assert results["gpupif"]["same_bits"]
    assert "cut" in results["gpupif"]["stages"]
    assert "cut" not in results["gpupif in memory"]["stages"]
    assert 0 < results["duckdb"]["difference"] < 1e-9
    assert "| 20,000 |" in done.stdout
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_missed_goals_are_named():
    good = figures("gpupif", 10**6, 2.0), figures("gpupif", 10**7, 22.9), figures("gpupif in memory", 10**7, 15.4)
    assert missed(*good) == []
    assert len(missed(figures("gpupif", 10**6, 2.0, 2.29))) == 0
    assert missed(figures("gpupif", 10**6, 2.0, 2.31)) == ["peak memory as a share of the limit at 1,000,000 rows"]
    assert missed(good[0], figures("gpupif", 10**7, 23.1)) == [
        "seconds at 10,000,000 rows over 10 times those at 1,000,000"
    ]
    assert len(missed(good[1], figures("gpupif in memory", 10**7, 15.2))) == 1
    assert len(missed(figures("gpupif", 10**6, 2.0), figures("gpupif in memory", 10**6, 1.0))) == 0
    assert len(missed(figures("gpupif", 10**6, 2.0, same_bits=False))) == 1
    assert len(missed(figures("duckdb", 10**6, 2.0, difference=np.nan))) == 1
    assert len(missed(figures("gpupif in memory", 10**6, 2.0, stages={"cut": 1.0}))) == 1
    assert len(missed(figures("gpupif", 10**6, 2.0) | {"state": "out of memory"})) == 1
    assert missed(figures("duckdb", 10**6, 2.0) | {"state": "out of memory"}) == []


def test_the_fastest_run_counts_with_the_most_memory():
    runs = [figures("gpupif", 1, 2.0, 0.5), figures("gpupif", 1, 1.0, 0.25)]
    assert best(runs) == figures("gpupif", 1, 1.0, 0.5)
    assert best([*runs, runs[0] | {"state": "out of memory"}])["state"] == "out of memory"


def test_a_failed_run_has_its_state_in_the_table():
    results = [
        figures("gpupif", 10, 2.0, output_bytes=2**30),
        figures("duckdb", 10, 600.0) | {"state": "out of memory"},
    ]
    lines = scale_table({"options": {"memory_limit": LIMIT}, "results": results}).splitlines()
    assert lines[0].startswith("| rows | gpupif, 2 GiB | peak memory | temporary files | scores | DuckDB, 2 GiB |")
    assert lines[2] == "| 10 | 2.0 s | 1.00 GiB | 0.00 GiB | 1.00 GiB | out of memory | 1.00 GiB |"
    assert len({line.count("|") for line in lines}) == 1


@pytest.mark.slow
def test_memory_of_all_processes_and_temporary_files_are_seen(tmp_path):
    child = "import time; taken = b'x' * 50_000_000; time.sleep(1.5)"
    code = f"""
import subprocess, sys, time
taken = b'x' * 100_000_000
child = subprocess.Popen([sys.executable, '-S', '-c', {child!r}])
open({str(tmp_path / "file")!r}, 'wb').write(bytes(1000))
child.wait()
open({str(tmp_path / "file")!r}, 'wb').close()
print('said'); sys.exit(3)
"""
    seen = watch([sys.executable, "-S", "-c", code], tmp_path, tmp_path / "log")
    assert 150_000_000 < seen.peak_bytes < 250_000_000
    assert 1000 <= seen.temporary_bytes < 2000
    assert (seen.status, seen.output, seen.errors) == (3, "said\n", "")
    assert seen.seconds > 1.5


def test_a_run_that_takes_too_long_is_stopped(tmp_path):
    seen = watch([sys.executable, "-S", "-c", "import time; time.sleep(60)"], tmp_path, tmp_path / "log", 0.1)
    assert seen.status is None
    assert seen.seconds < 50


def test_a_table_is_made_of_files_of_different_people(tmp_path):
    folder = make_table(25, tmp_path / "table", tmp_path, 10)
    files = [pd.read_parquet(file) for file in sorted(folder.iterdir())]
    assert [len(file) for file in files] == [10, 10, 5]
    pd.testing.assert_frame_equal(files[2], census(5, seed=2))
    assert not files[0].equals(files[1])


@pytest.mark.parametrize(("other", "same", "difference"), [(-0.0, False, 0.0), (0.5, False, 0.5), (0.0, True, 0.0)])
def test_scores_in_files_are_compared(tmp_path, other, same, difference):
    one, two = tmp_path / "one.parquet", tmp_path / "two"
    two.mkdir()
    frame = pd.DataFrame({"cig_a": [1.0, 2.0, 0.0]})
    frame.to_parquet(one)
    frame.iloc[:2].to_parquet(two / "1.parquet")
    pd.DataFrame({"cig_a": [other]}).to_parquet(two / "2.parquet")
    assert equal_bits(one, two) is same
    assert check_difference(one, two) == difference
    assert check_difference(one, two / "1.parquet") == np.inf
