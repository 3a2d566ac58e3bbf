"""The benchmark of pairs of columns: it runs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.helpers.checkout import ROOT

pytestmark = pytest.mark.subprocess


@pytest.mark.slow
def test_the_benchmark_runs(tmp_path):
    command = [sys.executable, "-m", "benchmarks.pairs", "--rows", "3000", "--runs", "1", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "pairs.json").read_text())
    assert {"gpupif, pairs counted", "gpupif.suda, max_size=3", "Polars, pairs"} <= {
        result["contender"] for result in document["results"]
    }
    assert all(value > 0 for value in document["goals"].values())
    assert "times faster than Polars" in done.stdout
