"""The benchmark of the first command on a machine and the next."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import first_run
from benchmarks.first_run import commands, lines, measure
from tests.helpers.checkout import ROOT


@pytest.mark.subprocess
@pytest.mark.slow
def test_the_benchmark_runs_each_command_first_and_again(tmp_path, monkeypatch):
    """Two of them: the others take the same way, and would compile for a minute."""
    few = ("gpupif version", "gpupif toxic", "polars")
    monkeypatch.setattr(
        first_run, "commands", lambda *places: {name: one for name, one in commands(*places).items() if name in few}
    )
    results = measure(1000, tmp_path, turns=1)
    assert [one["command"] for one in results] == list(few)
    compiled = results[1]
    assert compiled["first"]["processor_seconds"] > compiled["next"]["processor_seconds"] > 0


def test_every_contender_has_a_command():
    names = commands(Path("table.parquet"), Path("folder"))
    assert {"gpupif score", "gpupif risk", "polars", "duckdb", "pandas"} <= set(names)
    assert all(command[0] == sys.executable for command in names.values())


def test_stored_figures_are_drawn_as_a_table():
    document = json.loads((ROOT / "benchmarks" / "results" / "first_run.json").read_text())
    told = lines(document["runs"])
    assert told[0].startswith("| command | first | next | ratio |")
    assert len(told) == len(document["runs"]) + 2


def test_a_ratio_is_of_seconds_on_the_clock():
    runs = {"first": {"seconds": 8.0, "processor_seconds": 12.0}, "next": {"seconds": 2.0, "processor_seconds": 1.5}}
    assert (
        lines([{"command": "gpupif score", **runs}])[-1]
        == "| gpupif score | 8.00 s | 2.00 s | 4.0 | 12.00 s | 1.50 s |"
    )
