"""The benchmark from file to file: it runs, and all contenders find the same scores."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from benchmarks.files import lines
from tests.helpers.checkout import ROOT

pytestmark = [pytest.mark.subprocess, pytest.mark.slow]


def test_the_benchmark_runs_and_scores_are_the_same(tmp_path):
    command = [sys.executable, "-m", "benchmarks.files", "--rows", "5e3", "--turns", "1"]
    command += ["--temp", str(tmp_path), "--out", str(tmp_path / "out")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "out" / "files.json").read_text())
    results = {(result["contender"], result["format"]): result for result in document["files"]}
    assert {name: result["state"] for name, result in results.items()} == dict.fromkeys(results, "done")
    names = ["gpupif", "gpupif, 1 thread", "polars", "duckdb", "pandas"]
    assert list(results) == [(name, kind) for kind in ("parquet", "csv") for name in names]
    assert all(0 <= result["difference"] < 1e-9 for (name, _), result in results.items() if name != "gpupif")
    assert all(0 < result["best"] <= result["first"] for result in results.values())
    assert {"read", "encode", "score", "write"} == set(results["gpupif", "csv"]["runs"][0]["stages"])
    assert all(run["page_faults"] > 1000 for result in results.values() for run in result["runs"])
    assert [one["contender"] for one in document["reading"]] == ["gpupif, to codes", "pyarrow, to Arrow"] * 2
    ways = ["gpupif, zstd", "gpupif, zstd, 1 thread", "polars, lz4", "polars, zstd"]
    assert [one["contender"] for one in document["writing"]] == [*ways, "gpupif", "gpupif, 1 thread", "polars"]
    assert "| 5,000 | csv | gpupif |" in done.stdout
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_a_run_that_did_not_finish_has_a_line_with_its_state():
    failed = {"contender": "pandas", "format": "csv", "rows": 10, "state": "more than 600 s"}
    told = lines({"files": [failed], "reading": [], "writing": []})
    assert told[2] == "| 10 | csv | pandas | more than 600 s | more than 600 s |  |  |  |"
