"""The benchmark of attackers who know any few columns: it runs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.helpers.checkout import ROOT

pytestmark = pytest.mark.subprocess


@pytest.mark.slow
def test_the_benchmark_runs(tmp_path):
    command = [sys.executable, "-m", "benchmarks.any_known", "--rows", "300", "--columns", "4", "--known", "2"]
    command += ["--few", "1", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (result,) = json.loads((tmp_path / "any_known.json").read_text())["results"]
    assert result["attackers of each column"] == 3
    assert result["seconds"] > 0
