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
    command = [sys.executable, "-m", "benchmarks.files", "--rows", "5e3", "--turns", "2"]
    command += ["--temp", str(tmp_path), "--out", str(tmp_path / "out")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "out" / "files.json").read_text())
    results = {result["contender"]: result for result in document["files"]}
    assert {name: result["state"] for name, result in results.items()} == dict.fromkeys(results, "done")
    assert list(results) == ["gpupif", "gpupif, 1 thread", "polars", "duckdb", "pandas"]
    assert all(0 <= results[name]["difference"] < 1e-9 for name in list(results)[1:])
    assert all(0 < result["best"] <= result["first"] for result in results.values())
    assert {"read", "encode", "score", "write"} == set(results["gpupif"]["runs"][0]["stages"])
    assert all(run["page_faults"] > 1000 for result in results.values() for run in result["runs"])
    assert [one["contender"] for one in document["reading"]] == ["gpupif, to codes", "pyarrow, to Arrow"]
    ways = ["gpupif, zstd", "gpupif, zstd, 1 thread", "polars, lz4", "polars, zstd"]
    assert [one["contender"] for one in document["writing"]] == ways
    assert "| 5,000 | gpupif |" in done.stdout
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_one_that_did_not_come_to_its_end():
    failed = {"contender": "pandas", "rows": 10, "state": "more than 600 s"}
    told = lines({"files": [failed], "reading": [], "writing": []})
    assert told[2] == "| 10 | pandas | more than 600 s | more than 600 s |  |  |  |"
