"""The benchmark of engines: it runs, and its contenders agree."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import engines
from gpupif.kernels.cache import CACHE_FOLDER

pytestmark = pytest.mark.subprocess


@pytest.mark.slow
def test_the_benchmark_runs_and_its_contenders_agree(tmp_path, monkeypatch, capsys):
    """What its first run would compile is compiled already: tests/benchmarks/test_first_run.py compiles anew."""
    first_runs = engines.first_runs

    def compiled_before(folder):
        (folder / "cache").symlink_to(Path(CACHE_FOLDER).parent.parent)
        return first_runs(folder)

    monkeypatch.setattr(engines, "first_runs", compiled_before)
    options = ["--rows", "1000", "--small", "1000", "--no-plot", "--seconds", "0", "--out", str(tmp_path)]
    names = ["gpupif", "pandas", "polars", "duckdb", "packed"]
    monkeypatch.setattr(sys, "argv", ["engines", *options, "--contenders", *names])
    engines.main()
    document = json.loads((tmp_path / "engines.json").read_text())
    assert {result["contender"] for result in document["results"]} == {*names}
    assert 0 < document["largest_difference"] < 1e-9
    assert "times faster" in capsys.readouterr().out
