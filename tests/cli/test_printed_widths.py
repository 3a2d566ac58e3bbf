"""Printed results at any width: no line is too long, and no number and no heading is broken."""

from __future__ import annotations

import json
import re
import shutil
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from rich.cells import cell_len
from rich.console import Console

import gpupif
from gpupif.cli.main import NAMES
from gpupif.utils import display, printed_width
from gpupif.utils.display import Heading, draw_table

pytestmark = pytest.mark.usefixtures("on_cpu")
WIDTHS = (60, 80, 120, 200)
# So wide that nothing has to give way.
ALL = 5_000
NUMBER = re.compile(r"[<>]?\s?[+-]?\d[\d,]*(\.\d+)?(e[+-]?\d+)?( %)?")
MARKED = "[red]:bomb:\x1b[2Jmarked"
LONG = "a_name_of_a_column_that_is_longer_than_most_tables_are_wide"
NIGHT = f"""
[input]
path = "t.parquet"

[risk]
quasi_identifiers = [{json.dumps(MARKED)}, "age"]
sensitive = ["illness"]

[[gates]]
kind = "k"
min = 5

[[gates]]
kind = "pif"
percentile = 95
max = 1.25
max_rise = 0.5
"""
PLAN = """
[[treatment]]
do = "suppress_rows"
k = 2
quasi_identifiers = ["sex"]

[[treatment]]
do = "drop"
columns = ["income"]
"""


def awkward(seed):
    """A table of many columns: long names, markup, wide and missing values, texts in wide characters."""
    random = np.random.default_rng(seed)
    rows = 60
    return pd.DataFrame(
        {
            MARKED: random.choice(["[bold]x", "y\x9b2J", None], rows),
            LONG: random.choice([f"value of many words {number}" for number in range(5)], rows),
            "age": random.integers(1, 90, rows),
            "sex": random.choice(["f", "m"], rows),
            "income": random.choice([1234567.125, 7654321.5, 0.00012345678], rows),
            "城市": random.choice(["北京市" * 9, "上海市"], rows),
            "illness": random.choice(["flu", "x" * 70, "cold"], rows),
            **{f"further_{number}": random.integers(0, 3, rows) for number in range(3)},
        }
    )


class Consoles:
    """Consoles of several widths, on which the same is printed."""

    def __init__(self):
        self.by_width = {width: Console(file=StringIO(), width=width) for width in (*WIDTHS, ALL)}

    def print(self, *objects, **options):
        for console in self.by_width.values():
            console.print(*objects, **options)

    def text(self, width):
        return self.by_width[width].file.getvalue()


KNOWN = f"--quasi-identifiers sex,age,{LONG}"
COMMANDS = {
    "inspect": "inspect t.parquet",
    "score": "score t.parquet --summary-only --measures cig,csf,unique,class_size,reidentification_risk",
    "score of sensitive columns": "score t.parquet --summary-only --columns illness,income --known sex,age",
    "score to any": "score t.parquet --summary-only --columns illness,sex,age --known-any 1",
    "score to several": f"score t.parquet --summary-only --attacker neighbour=sex,age --attacker insider=sex,{LONG}",
    "risk": f"risk t.parquet {KNOWN} --sensitive illness,income --population-size 600 --population t.parquet",
    "risk of a game": "risk t.parquet --quasi-identifiers sex,further_0 --sensitive illness --publisher-benefit 1000.5",
    "global-risk": f"global-risk t.parquet {KNOWN} --sampling-fraction 0.5",
    "suda": "suda t.parquet --sampling-fraction 0.25",
    "toxic": "toxic t.parquet",
    "triples": "toxic t.parquet --size 3 --columns age,income,illness,further_1",
    "smallest sets": "toxic t.parquet --alpha 0.5",
    "advise": f"advise t.parquet --columns sex,age,{LONG}",
    "protect": f"protect t.parquet --require k>=3 {KNOWN} --sensitive illness --suppress 0.5 -o p.toml --overwrite",
    "treat": "treat t.parquet --plan plan.toml -o treated.parquet --overwrite",
    "compare": f"compare t.parquet same.parquet {KNOWN} --sensitive illness --numbers income,age",
    "tables": f"tables t.parquet --by {LONG},sex --suppress-below 3 -o counts.csv --overwrite",
    "audit": "audit workload.json --table t.parquet",
    "release": "release t.parquet --ledger ledger.json --query q.json",
    "budget": "budget ledger.json",
    "nightly init": "nightly init t.parquet -o new.toml --overwrite",
    "nightly run": "nightly run night.toml",
    "nightly history": "nightly history night.toml",
    "nightly diff": "nightly diff night.toml",
    "nightly verify": "nightly verify night.toml",
    "measures": "measures",
    "demo": "demo --rows 500",
}
QUERIES = [
    {"ask": "counts", "by": [LONG, "sex"], "delta": 0.1, "epsilon": 3},
    {"ask": "histogram", "column": "income", "bins": [0, 0.00012345678, 1234567.125], "epsilon": 1},
    {"ask": "mean", "column": "age", "bounds": [0, 99], "epsilon": 1},
]
# Commands that draw nothing.
PLAIN = {"info", "report"}
QUICK = ("score of sensitive columns", "score to several", "risk", "suda", "toxic", "protect", "treat", "measures")
CASES = [case if case in QUICK else pytest.param(case, marks=pytest.mark.slow) for case in COMMANDS]


@pytest.fixture
def printed(run, folder, monkeypatch):
    """A function that returns the consoles on which a command drew."""
    awkward(1).to_parquet("t.parquet")
    awkward(2).to_parquet("same.parquet")
    (folder / "night.toml").write_text(NIGHT)
    (folder / "plan.toml").write_text(PLAN)
    (folder / "q.json").write_text(json.dumps({"query": QUERIES}))
    workload = [{"name": f"count {age}", "where": f"age < {age}"} for age in range(2, 60)]
    (folder / "workload.json").write_text(json.dumps({"query": workload}))
    budget = gpupif.Budget(folder / "ledger.json", epsilon=9, delta=0.5)
    budget.spend(f"what {'another program' * 9} released", [gpupif.release.Loss("laplace", 3)])

    def printed_by(line):
        consoles = Consoles()
        if line.startswith("nightly") and "init" not in line:
            run("nightly", "run", "night.toml", "-q")
            shutil.copy("same.parquet", "t.parquet")
            if "run" not in line:
                run("nightly", "run", "night.toml", "-q")
        for module in (display, printed_width):
            monkeypatch.setattr(module, "standard_output", lambda: consoles)
        monkeypatch.setattr("gpupif.cli.measures.standard_output", lambda: consoles)
        ended = run(*line.split(" "))
        assert ended.code in (0, 3), ended.err
        return consoles

    return printed_by


def cells_in(text):
    """Words of headings, and cells that hold a number, of all tables in a text."""
    words, numbers, in_heading = set(), [], False
    for line in text.splitlines():
        if line.startswith("┏"):
            in_heading = True
        elif line.startswith("┡"):
            in_heading = False
        elif in_heading:
            words |= {word for cell in line.strip("┃").split("┃") for word in cell.split()}
        elif line.startswith("│"):
            numbers += [cell.strip() for cell in line.strip("│").split("│") if NUMBER.fullmatch(cell.strip())]
    return words, numbers


def left_out(text):
    """The headings of columns that were left out."""
    return {
        word
        for note in re.findall(r"left out for want of room: (.*?)\.(?: |$)", " ".join(text.split()))
        for word in note.replace(",", "").split()
    }


def test_every_command_is_printed_at_every_width():
    assert {name for name in NAMES if not any(line.startswith(name) for line in COMMANDS.values())} == PLAIN


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", CASES)
def test_no_line_is_too_long_and_no_number_or_heading_is_broken(printed, case):
    consoles = printed(COMMANDS[case])
    words, numbers = cells_in(consoles.text(ALL))
    for width in WIDTHS:
        text = consoles.text(width)
        assert [line for line in text.splitlines() if cell_len(line) > width] == []
        assert [sign for sign in text if not (sign == "\n" or sign.isprintable())] == []
        found, shown = cells_in(text)
        out = left_out(text)
        assert {word.strip(",") for word in words - found} <= out
        if not out:
            assert {*numbers} <= {*shown}
    whole = consoles.text(ALL)
    assert "none" not in [cell.strip() for cell in re.split("[│┃\n]", whole)]
    for names in headings_of(whole):
        named = [name.strip() for name in names if name.strip()]
        assert len({*named}) == len(named)


def headings_of(text):
    return [line.strip("┃").split("┃") for line in text.splitlines() if line.startswith("┃")]


def text_of(table, width):
    console = Console(file=StringIO(), width=width)
    console.print(table)
    return console.file.getvalue()


def test_a_table_is_cut_between_columns():
    headings = [Heading("name", text=True), *(Heading(f"figure {number}") for number in range(6))]
    rows = [["a b", *(10**number * 1234 + place for number in range(6))] for place in range(2)]
    text = text_of(draw_table("Figures", headings, rows), 40)
    assert text.count("┏") == 3
    assert max(map(len, text.splitlines())) <= 40
    _, numbers = cells_in(text)
    assert {f"{number:,}" for row in rows for number in row[1:]} == {*numbers}
    assert [line.split("│")[1].strip() for line in text.splitlines() if line.startswith("│")] == ["a b"] * 6


def test_a_column_that_is_always_1_is_said_below():
    text = text_of(
        draw_table("", [Heading("name", text=True), Heading("share"), Heading("n")], [["a", 1, 2], ["b", 1, 3]]), 80
    )
    assert "share" not in "".join(headings_of(text)[0])
    assert text.splitlines()[-1] == "In every line: share = 1."


def test_optional_columns_are_left_out_first():
    headings = [Heading("name", text=True), Heading("wide " + "w" * 30, optional=True), Heading("number")]
    text = text_of(draw_table("", headings, [["a", 1, 2]]), 40)
    assert len(headings_of(text)) == 1
    assert "left out for want of room: wide" in text
    assert "left out" not in text_of(draw_table("", headings, [["a", 1, 2]]), 80)
