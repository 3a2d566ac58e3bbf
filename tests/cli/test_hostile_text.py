"""No text of a table, a path or a column name acts on the terminal: every command, printed and as JSON."""

from __future__ import annotations

import json
import shutil
import warnings

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpupif
from gpupif.cli.main import NAMES

pytestmark = pytest.mark.every_engine

# Control characters of both sets, an ending of a line, marks that turn the direction, a line of Unicode, no width.
VALUE = "v\x1b]0;title\x07\x1b[2J\x9b2J\x7f\r\n\t\u061c\u200f\u202e\u2066\u2028\u200b[red]:smile:[link=http://a.b]\\"
NAME = "n\x1b[31m\x85\u202b\u2029[bold]:bomb:"
# The command line takes no line break in a list of names.
BROKEN_NAME = "w\n\x1b[2J"
FOLDER = "f\x1b[2J\u202e\n[red]"
PLAN = f"""
[[treatment]]
do = "drop"
columns = {json.dumps(NAME)}

[[treatment]]
do = "suppress_rows"
k = 2
quasi_identifiers = ["illness"]
"""
NIGHT = f"""
[input]
path = "t.parquet"

[risk]
quasi_identifiers = [{json.dumps(NAME)}]
sensitive = ["illness"]

[[gates]]
kind = "k"
min = 5
"""


@pytest.fixture
def hostile(folder, monkeypatch):
    """The working directory: a folder with a hostile name, that has a hostile table, a plan and a configuration."""
    there = folder / FOLDER
    there.mkdir()
    values = [VALUE, "a", VALUE, "b", "b", VALUE]
    columns = {NAME: values, BROKEN_NAME: [1, 2, 1, 2, 2, 2], "illness": [VALUE, "x", "y", "x", VALUE, "x"]}
    pq.write_table(pa.table(columns), there / "t.parquet")
    pq.write_table(pa.table({**columns, NAME: ["a", *values[1:]]}), there / "changed.parquet")
    (there / "plan.toml").write_text(PLAN)
    (there / "night.toml").write_text(NIGHT)
    query = {"ask": "counts", "by": [NAME], "values": [VALUE, "a"], "epsilon": 1}
    (there / "q.json").write_text(json.dumps({"query": [query]}))
    workload = {"query": [{"name": f"{NAME} {way}", "where": f"{way}illness = 'flu'"} for way in ("", "not ")]}
    (there / "workload.json").write_text(json.dumps(workload))
    gpupif.Budget(there / "ledger.json", epsilon=9, delta=0.5)
    return there


def assert_harmless(text):
    assert [sign for sign in text if not (sign == "\n" or sign.isprintable())] == []


def texts(document):
    """All texts in a JSON document, its keys too."""
    if isinstance(document, dict):
        return {*document, *(text for own in document.values() for text in texts(own))}
    if isinstance(document, list):
        return {text for own in document for text in texts(own)}
    return {document} if isinstance(document, str) else set()


# By what is tested: the arguments, which hostile texts are shown, and the exit code.
COMMANDS = {
    "inspect": ("inspect {t}", "name", 0),
    "roles": ("inspect {t} -o {f}/roles.toml", "name", 0),
    "score": ("score {t} -o {f}/s.parquet", "value", 0),
    "score to one who knows any column": ("score {t} --known-any 1 -o {f}/s.parquet", "value name", 0),
    "score to several": ("score {t} --attacker {n}={n} --attacker b=illness -o {f}/s.csv", "name", 0),
    "score of cells": ("score {t} --top 3 -o {f}/s.parquet", "value", 0),
    "risk": ("risk {t} --quasi-identifiers {n} --sensitive illness", "value name", 0),
    "risk in a population": ("risk {t} --quasi-identifiers {n} --population {t}", "name", 0),
    "global-risk": ("global-risk {t} --quasi-identifiers {n},illness --sampling-fraction 0.5", "name", 0),
    "toxic": ("toxic {t}", "value name", 0),
    "smallest sets": ("toxic {t} --alpha 0.1", "name", 0),
    "suda": ("suda {t} -o {f}/suda.csv", "name", 0),
    "advise": ("advise {t}", "value name", 0),
    "advise of a column": ("advise {t} --criterion csf({n})", "name", 0),
    "protect": (
        "protect {t} --require k>=2 --quasi-identifiers {n},illness --suppress 0.5 -o {f}/p.toml",
        "value name",
        0,
    ),
    "treat": ("treat {t} --plan {f}/plan.toml -o {f}/treated.parquet", "name", 0),
    "compare": ("compare {t} {f}/changed.parquet --quasi-identifiers {n} --sensitive illness", "name", 0),
    "tables": ("tables {t} --by {n} --suppress-below 2 -o {f}/counts.csv", "value name", 0),
    "audit": ("audit {f}/workload.json --table {t}", "name", 3),
    "budget": ("budget {f}/ledger.json", "", 0),
    "release": ("release {t} --ledger {f}/ledger.json --query {f}/q.json", "value name", 0),
    "report": ("report {t} --sensitive illness --no-advice -o {f}/r.html", "", 0),
    "nightly init": ("nightly init {t} -o {f}/risk.toml", "name", 0),
    "nightly run": ("nightly run {f}/night.toml", "", 3),
    "nightly history": ("nightly history {f}/night.toml", "", 0),
    "nightly diff": ("nightly diff {f}/night.toml", "name", 0),
    "nightly verify": ("nightly verify {f}/night.toml", "", 0),
}
LATER = ("nightly history", "nightly diff", "nightly verify")
TEXTS = {"value": VALUE, "name": NAME}
# Of each text a part that is short enough for a line of a narrow column. As markup it would be a picture.
SIGNS = {"value": ":smile:", "name": ":bomb:"}
BAD = {
    "no file": "score {f}/none.csv",
    "no file of a name that is no text": "score {f}/\udcff.csv",
    "no table": "score {f}/night.toml",
    "no column": "score {t} --columns {n}x",
    "a folder as output": "score {t} -o {f}/{n}.xyz",
    "no option": "score {t} --{n}",
    "no command": "{n}",
    "no roles": "risk {t} --roles {f}/plan.toml",
    "no hierarchies": "advise {t} --hierarchies {f}/night.toml",
    "no criterion": "protect {t} --require {n}",
    "no plan": "treat {t} --plan {f}/night.toml -o {f}/o.parquet",
    "no configuration": "nightly run {f}/none.toml",
}


def arguments(line, there):
    """The words of a line; {t}: the table, {f}: its folder, {n}: the name of its first column."""
    return [word.format(t=there / "t.parquet", f=there, n=NAME) for word in line.split()]


def test_every_command_is_tested_with_hostile_text():
    lines = [line for line, _, _ in COMMANDS.values()]
    without_a_table = {"measures", "demo", "info"}
    assert {name for name in NAMES if not any(line.startswith(f"{name} ") for line in lines)} == without_a_table


def test_warnings_print_no_control_signs_of_a_table(run, hostile):
    nearly_unique = {NAME: [f"{VALUE}{row}" for row in range(60)], "sex": ["f", "m"] * 30}
    pq.write_table(pa.table(nearly_unique), hostile / "t.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        ended = run("score", hostile / "t.parquet", "-o", hostile / "s.parquet", "--json")
    assert "gpupif: warning: column" in ended.err
    assert_harmless(ended.err)
    assert ended.err.count("\n") == ended.err.count("gpupif: warning: ")


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", COMMANDS)
def test_results_print_no_control_signs_of_a_table(run, hostile, case):
    line, printed, code = COMMANDS[case]
    if case in LATER:
        assert run("nightly", "run", hostile / "night.toml", "-q").code == 3
        shutil.copy(hostile / "changed.parquet", hostile / "t.parquet")
        assert run("nightly", "run", hostile / "night.toml", "-q").code == 3
    for_people = run(*arguments(line, hostile))
    for_programs = run(*arguments(line, hostile), "--json", *(["--overwrite"] if "-o" in line else []))
    assert (for_people.code, for_programs.code) == (code, code)
    assert_harmless(for_people.out + for_people.err + for_programs.out + for_programs.err)
    squeezed = "".join(for_people.out.split())
    assert [kind for kind in SIGNS if SIGNS[kind] in squeezed.replace("┃", "").replace("│", "")] == printed.split()
    told = texts(json.loads(for_programs.out))
    assert [text for kind, text in TEXTS.items() if kind in printed and not any(text in one for one in told)] == []


@pytest.mark.parametrize("case", BAD)
def test_errors_print_no_control_signs_of_a_table(run, hostile, case):
    ended = run(*arguments(BAD[case], hostile))
    assert ended.code == 2
    assert ended.err.count("\n") == 1
    assert_harmless(ended.out + ended.err)
