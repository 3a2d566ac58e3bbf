"""`gpupif risk` and `gpupif measures`."""

from __future__ import annotations

import json
import math

import pandas as pd
import pytest

import gpupif.disclosure.risk
from gpupif.cli.options import verdicts
from gpupif.disclosure.models import MODELS
from gpupif.measures import FAMILIES, MEASURES

pytestmark = pytest.mark.every_engine

CSV = "age,sex,ill,pay\n30,f,flu,1\n30,f,hiv,2\n40,m,flu,3\n40,m,hiv,1\n40,m,ulcer,2\n"


@pytest.fixture
def patients(folder):
    (folder / "patients.csv").write_text(CSV)
    (folder / "tree.json").write_text('{"flu": ["lung"], "hiv": ["blood"], "ulcer": ["belly"]}')
    return pd.read_csv(folder / "patients.csv")


CLI = [
    (["--sensitive", "ill,pay"], {"sensitive": ["ill", "pay"]}),
    ([], {}),
    (["--sensitive", "pay", "--distance", "pay=nominal"], {"sensitive": "pay", "distance": "nominal"}),
    (
        ["--sensitive", "ill", "--distance", "ill=tree.json", "--models", "t"],
        {"sensitive": "ill", "distance": {"flu": ["lung"], "hiv": ["blood"], "ulcer": ["belly"]}, "models": "t"},
    ),
    (["--sensitive", "ill", "--l", "1", "--groups", "1"], {"sensitive": "ill", "l": 1, "groups": 1}),
    (["--k", "3", "--threshold", "0.4"], {"k": 3, "threshold": 0.4}),
    (["--sampling-fraction", "0.1"], {"sampling_fraction": 0.1}),
    (["--population-size", "50", "--device", "cpu"], {"population_size": 50}),
    (["--population", "patients.csv"], {"population": "patients.csv"}),
    (["--adversary-cost", "100"], {"game": gpupif.models.Game(adversary_cost=100)}),
    (
        ["--publisher-benefit", "9.5", "--publisher-loss", "30", "--adversary-gain", "20", "--adversary-cost", "7"],
        {"game": gpupif.models.Game(9.5, 30, 20, 7)},
    ),
    (
        ["--population", "people.csv", "--population-lacks", "count"],
        {"population": gpupif.Population("people.csv", lacks="count")},
    ),
]


@pytest.mark.parametrize(("options", "arguments"), CLI)
def test_the_command_line_gives_the_json_of_python(run, patients, options, arguments):
    ended = run("risk", "patients.csv", "--quasi-identifiers", "age,sex", "--json", *options)
    assert (ended.code, ended.err) == (0, "")
    document = json.loads(ended.out, parse_constant=pytest.fail)
    with gpupif.config(device="cpu"):
        result = gpupif.risk(patients, ["age", "sex"], **arguments)
    expected = json.loads(result.to_json())
    for found in (document, expected):
        found.pop("seconds")
        found.pop("device")
    beside = {"gpupif": gpupif.__version__, "input": "patients.csv", **verdicts(result)}
    assert document == {**beside, **expected}


def test_command_line_prints_tables(run, patients):
    ended = run("risk", "patients.csv", "--quasi-identifiers", "age", "--sensitive", "ill", "--sep", ",")
    assert (ended.code, ended.err) == (0, "")
    for text in ("5 rows in 2 classes, k = 2.", "prosecutor risk, highest", "(c for l = 2)", "age=30", "0.5108"):
        assert text in ended.out
    ended = run("risk", "patients.csv", "--quasi-identifiers", "age", "--quiet")
    assert (ended.code, ended.out, ended.err) == (0, "", "")


CLI_BAD = [
    (["--quasi-identifiers", "ag"], "--quasi-identifiers: no column 'ag'"),
    (["--quasi-identifiers", "age", "--sensitive", "age"], "--sensitive: column 'age' is a quasi-identifier too"),
    (["--quasi-identifiers", "age", "--sensitive", "ill", "--distance", "ill"], "--distance: expected COLUMN=ordered"),
    (["--quasi-identifiers", "age", "--sensitive", "ill", "--distance", "ill=ordered"], "--distance: column 'ill'"),
    (["--quasi-identifiers", "age", "--sensitive", "ill", "--distance", "ill=no.json"], "--distance: no.json: No such"),
    (["--quasi-identifiers", "age", "--sensitive", "ill", "--distance", "il=tree.json"], "--distance: column 'il' is"),
    (["--quasi-identifiers", "age", "--sensitive", "ill", "--l", "9"], "--l: expected at most 3"),
    (["--quasi-identifiers", "age", "--adversary-cost", "-4"], "--adversary-cost: expected an amount, a number from 0"),
    (
        ["--quasi-identifiers", "age", "--sampling-fraction", "0.5", "--population-size", "9"],
        "--sampling-fraction, --population-size: expected one of them",
    ),
    (["--quasi-identifiers", "age", "--population-size", "2"], "--population-size: expected at least the 5 rows"),
    (["--quasi-identifiers", "age", "--models", "t"], "--models: expected only 'k'"),
    (["--quasi-identifiers", "age", "--population", "people.csv"], "--population: it lacks 4 of the table's 5 rows"),
    (["--quasi-identifiers", "age", "--population-lacks", "count"], "--population-lacks: goes with --population"),
    (
        ["--quasi-identifiers", "age", "--threshold", "20%"],
        "Invalid value for '--threshold': expected a number, such as 0.2. `gpupif risk --help` says",
    ),
    (["--quasi-identifiers", "age", "--population-lacks", "x"], "--population-lacks: expected 'error' or 'count'"),
]


@pytest.mark.parametrize(("options", "message"), CLI_BAD)
def test_command_line_errors_are_one_line(run, patients, options, message):
    ended = run("risk", "patients.csv", *options)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"gpupif: error: {message}")
    assert ended.err.count("\n") == 1


def test_measures_are_listed(run):
    document = json.loads(run("measures", "--json").out)
    cells = {entry["name"]: entry for entry in document["cells"]}
    assert list(cells) == [*MEASURES, *(f"{family.prefix}n" for family in FAMILIES)]
    assert [entry["name"] for entry in document["tables"]] == list(MODELS)
    for entry in (*document["cells"], *document["tables"]):
        assert all(entry[key] for key in ("name", "unit", "range", "meaning", "source"))
        assert "nan" not in entry["meaning"].split()
        assert math.isfinite(entry["example"])
    assert cells["cig"]["unit"] == "bits"
    shown = run("measures").out
    assert all(name in shown for name in (*cells, *MODELS))
