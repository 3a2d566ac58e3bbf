"""The benchmark of nights in which one file changed: it runs, and holds to its goals."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from benchmarks.nightly import FULL, NIGHT, goals
from tests.helpers.checkout import ROOT

pytestmark = pytest.mark.subprocess


@pytest.mark.slow
def test_the_benchmark_runs_and_nights_are_the_same_as_full_runs(tmp_path):
    command = [sys.executable, "-m", "benchmarks.nightly", "--rows", "4e3", "--files", "4", "--turns", "1"]
    command += ["--formats", "parquet", "--temp", str(tmp_path), "--out", str(tmp_path / "nightly.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    # How much time a machine takes is no matter of a test.
    assert done.returncode in (0, 1), done.stderr
    document = json.loads((tmp_path / "nightly.json").read_text())
    (result,) = document["results"]
    assert (result["format"], result["rows"], result["files"]) == ("parquet", 4_000, 4)
    assert result["same_as_full"]
    assert result["files_read"] == [1]
    assert [run["read"] for run in result["runs"][FULL]] == [4, 4]
    first, *full = (run["seconds"] for run in result["runs"][FULL])
    assert min(run[size] for run in result["runs"][NIGHT] for size in ("state_bytes", "peak_bytes")) > 0
    assert result["first"][FULL] == first
    assert result["best"] == {FULL: min(first, *full), NIGHT: result["runs"][NIGHT][0]["seconds"]}
    missed = [goal["goal"] for goal in document["goals"] if not goal["holds"]]
    assert all(goal.startswith("seconds of a night") for goal in missed)
    assert "| parquet | 4,000 | 4 |" in done.stdout
    assert [entry.name for entry in tmp_path.iterdir()] == ["nightly.json"]


def figures(share=0.25, same=True, read=(1, 1), peak=2**31, limit="2GiB"):
    table = {"format": "csv", "rows": 8, "files": 4, "memory_limit": limit}
    return {**table, "share": share, "same_as_full": same, "files_read": list(read), "peak_bytes": peak}


@pytest.mark.parametrize(
    ("result", "missed"),
    [
        (figures(), ()),
        (figures(peak=2**40, limit=None), ()),
        (figures(share=0.26), ("seconds of a night over those of a full run",)),
        (figures(same=False), ("nights that differ from a full run",)),
        (figures(read=(1, 2)), ("files read more than changed",)),
        (figures(peak=2**31 + 2**23), ("peak memory as a share of the limit",)),
    ],
)
def test_missed_goals_are_named(result, missed):
    found = [goal["goal"] for goal in goals([result]) if not goal["holds"]]
    assert found == [f"{goal}, 8 rows, 4 files of csv" for goal in missed]
