"""The benchmark of engines: it runs, and its contenders agree."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.helpers.checkout import ROOT

pytestmark = pytest.mark.subprocess


@pytest.mark.slow
def test_the_benchmark_runs_and_its_contenders_agree(tmp_path):
    command = [
        sys.executable,
        "-m",
        "benchmarks.engines",
        "--rows",
        "1000",
        "--small",
        "1000",
        "--no-plot",
        "--seconds",
        "0",
    ]
    command += ["--contenders", "gpupif", "pandas", "polars", "duckdb", "packed", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "engines.json").read_text())
    assert {result["contender"] for result in document["results"]} == {"gpupif", "pandas", "polars", "duckdb", "packed"}
    assert 0 < document["largest_difference"] < 1e-9
    assert "times faster" in done.stdout
