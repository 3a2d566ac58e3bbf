"""The benchmark of protection: it runs, finds what it is held to, and says what it leaves out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from benchmarks import arx, protect, protect_parts
from benchmarks.protect_tables import GROUPS, SearchTable, adult, census_for_search, hierarchy_lines
from gpupif.criteria.counted_table import CountedTable
from gpupif.hierarchies.open import open_hierarchy
from gpupif.protection.column_levels import ColumnLevels
from tests.helpers.checkout import ROOT

QUICK = ["checks", "advice", "value_maps", "randomized", "comparison", "cells", "criteria"]


def run(tmp_path, *options):
    """The benchmark on tables of next to no rows, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.protect", "--share", "1e-4", "--seconds", "0"]
    command += ["--temp", str(tmp_path), "--out", str(tmp_path / "protect.json"), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    # How much time a machine takes is no matter of a test.
    assert done.returncode in (0, 1), done.stderr
    return done.stdout, json.loads((tmp_path / "protect.json").read_text())


@pytest.mark.slow
@pytest.mark.subprocess
@pytest.mark.parametrize("parts", [QUICK, ["search", "anytime"], ["files"], ["large"]], ids=" ".join)
def test_the_benchmark_runs(tmp_path, parts):
    told, document = run(tmp_path, "--only", *parts)
    figures = document["figures"]
    assert list(dict.fromkeys(one["part"] for one in figures)) == parts
    # What is no matter of the machine's speed and memory holds.
    exact = ("optimum other", "tables that differ", "rows that k", "rows and values", "checks of it")
    assert all(one["holds"] is not False for one in figures if one["what"].startswith(exact))
    assert all(one["what"] in told for one in figures)
    assert [entry.name for entry in tmp_path.iterdir()] == ["protect.json"]
    if "search" in parts:
        assert "ARX was not run (--arx); published in 2014, IHIS" in told
        assert document["arx"]["published"]["search"][2] == 219


def test_a_missing_table_of_adult_skips_its_parts(tmp_path, monkeypatch, capsys):
    assert adult(tmp_path) is None
    monkeypatch.setattr(protect, "ADULT", tmp_path)
    monkeypatch.setattr(
        sys, "argv", ["protect", "--only", "optima", "classes", "utility", "--out", str(tmp_path / "p.json")]
    )
    with pytest.raises(SystemExit) as ended:
        protect.main()
    assert ended.value.code is False
    assert capsys.readouterr().out.startswith("skipped: optima, classes, utility, for there is no adult.csv")
    monkeypatch.setattr(sys, "argv", ["protect", "--adult", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"lacks adult\.csv"):
        protect.main()


@pytest.mark.slow
def test_optima_that_differ_from_the_published_ones_are_listed(tmp_path, monkeypatch):
    """The table has nine columns of two values; the benchmark lists how its optima differ from the published ones."""
    folder = tmp_path / "adult_hierarchies"
    folder.mkdir()
    table = pd.DataFrame({name: list("aabbabab" * 8) for name in protect_parts.ADULT_COLUMNS})
    table.to_csv(tmp_path / "adult.csv", sep=";", index=False)
    for name in table:
        arx.write_hierarchy(folder / f"adult_hierarchy_{name}.csv", [["a", "*"], ["b", "*"]])
    found = adult(tmp_path)
    assert found is not None
    assert found.read().equals(table.astype(str))
    monkeypatch.setattr(protect_parts, "OPTIMA", ((5, 0.0, 0.0, (0,) * 9, 350), (5, 0.0, 1.0, (0,) * 9, None)))
    right, wrong = ("k>=5", "distinct_l(occupation)>=1"), ("k>=4", "distinct_l(occupation)>=1")
    monkeypatch.setattr(protect_parts, "CLASS_SEARCHES", (right, wrong))
    monkeypatch.setattr(protect_parts, "CLASS_SHARES", (0.02,))
    monkeypatch.setattr(protect_parts, "CLASS_OPTIMA", {right: (0.0, (0,) * 8, 0), wrong: (0.0, (0,) * 8, 1)})
    setting = protect_parts.Setting(1.0, 0.0, found, tmp_path)
    figures = protect.with_goals([*protect_parts.optima(setting), *protect_parts.classes(setting)])
    # With another loss than the one that is found it is told.
    assert [one["holds"] for one in figures if one["what"].startswith("optimum")] == [True, False, True, False]
    monkeypatch.setattr(protect_parts, "UTILITY", (((0,) * 8, None, "discernibility", 32.0 * 64),))
    (figure,) = protect_parts.utility(setting)
    assert (figure["value"], figure["found"]) == (0, 32 * 64)


def test_hierarchies_of_the_census_nest(tmp_path):
    table = census_for_search(tmp_path / "search", 500, 10)
    assert list(table.hierarchies) == list(GROUPS)
    assert SearchTable.from_folder(tmp_path / "search") == table
    counted = CountedTable.from_table(table.read())
    for name, file in table.hierarchies.items():
        coded = ColumnLevels.from_hierarchy(counted.columns[counted.place(name)], open_hierarchy(name, file))
        assert coded.height == len(GROUPS[name]) + 1
    assert hierarchy_lines(pd.Series([3, 1, 2]), (2,)) == [
        ["1", "2 values from 1", "*"],
        ["2", "2 values from 1", "*"],
        ["3", "2 values from 3", "*"],
    ]


FIGURE = {
    "what": "a search",
    "value": 0.5,
    "unit": "s",
    "most": 0.2,
    "search": [["k>=5"], 0.0, []],
    "loss": 8.0,
    "best": 0.5,
}


class FakeArx:
    """Stands for ARX: finds a loss."""

    def __init__(self, found):
        self.found = found

    def search(self, *_):
        return dict(self.found)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"best": 1.0, "first": 2.0, "checks": 1234, "loss": 8.0}, "1,234 checks: 2.00 times, the same optimum"),
        ({"best": 1.0, "first": 2.0, "checks": 7, "loss": 9.0}, "ANOTHER OPTIMUM, loss 9.0"),
        ({"best": 1.0, "first": 2.0, "checks": 7, "loss": None}, "ANOTHER OPTIMUM"),
        ({"failed": "java.lang.OutOfMemoryError"}, "ARX failed: java.lang.OutOfMemoryError"),
    ],
)
def test_a_line_says_whether_arx_finds_the_same(tmp_path, found, words):
    figures = [dict(FIGURE), {"what": "checks of it", "value": 3.0, "unit": "checks", "most": None}]
    protect.beside_arx(figures, FakeArx(found), SearchTable("t", tmp_path / "t.csv", {}), 0)
    lines = list(map(protect.line, protect.with_goals(figures)))
    assert words in lines[0]
    assert lines[0].startswith("MISSED")
    assert "ARX" not in lines[1]


def write_command(folder: Path, name: str, *lines: str) -> None:
    command = folder / name
    command.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
    command.chmod(0o755)


@pytest.mark.subprocess
def test_arx_is_compiled_and_run(tmp_path, monkeypatch):
    """With commands in place of a JDK."""
    checkout, commands = tmp_path / "arx", tmp_path / "bin"
    commands.mkdir()
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}/usr/bin{os.pathsep}/bin")
    (checkout / "lib" / "ant").mkdir(parents=True)
    (checkout / "lib" / "ant" / "colt.jar").touch()
    write_command(commands, "javac", f'cat "${{8#@}}" > {tmp_path}/compiled; exit 0')
    with pytest.raises(SystemExit, match="has no src/main with Java in it"):
        arx.Arx.compile(checkout, tmp_path / "none")
    (checkout / "src" / "main").mkdir(parents=True)
    (checkout / "src" / "main" / "A.java").touch()
    answer = '{"seconds": [0.5, 0.25], "levels": [1], "loss": 2.0, "optimal": true, "checks": 3, "nodes": 4}'
    write_command(commands, "java", f'echo "$@" > {tmp_path}/asked', f"echo '{answer}'")
    built = arx.Arx.compile(checkout, tmp_path / "build")
    assert "colt.jar" in built.classpath
    assert built.version == "unknown"
    compiled = (tmp_path / "compiled").read_text()
    assert "A.java" in compiled
    # What a checkout lacks of Hadoop is made up for.
    assert "Writable.java" in compiled
    assert "ArxSearch.java" in compiled
    found = built.search(Path("t.csv"), {"age": Path("age.csv")}, ["k>=5", "t(a)<=0.2"], 0.04, 1)
    assert (tmp_path / "asked").read_text().strip().endswith("ArxSearch t.csv k>=5;t(a)<=0.2 0.04 1 age=age.csv")
    assert (found["first"], found["best"], found["runs"], found["loss"]) == (0.5, 0.25, 2, 2.0)
    write_command(commands, "java", "echo no memory >&2", "exit 1")
    assert built.search(Path("t.csv"), {}, ["k>=5"], 0.04, 1) == {"failed": "no memory"}
    write_command(commands, "javac", "echo it is broken >&2", "exit 1")
    with pytest.raises(SystemExit, match="does not compile:\nit is broken"):
        arx.Arx.compile(checkout, tmp_path / "again")


def test_a_missing_jdk_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="javac is no command here"):
        arx.Arx.compile(tmp_path, tmp_path)
