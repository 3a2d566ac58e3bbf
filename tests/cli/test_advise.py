"""`gpupif advise`."""

from __future__ import annotations

import json
import shlex

import pandas as pd
import pytest

import gpupif

pytestmark = pytest.mark.every_engine

TOML = '[hierarchies]\nage = { widths = [10] }\nsex = { f = ["person"], m = ["person"] }\n'


def test_the_command_lists_changes_as_text_and_json(folder, run):
    told = run("advise", "people.csv")
    assert (told.code, told.err) == (0, "")
    assert "drop" in told.out
    (folder / "h.toml").write_text(TOML)
    told = run("advise", "people.csv", "--hierarchies", "h.toml", "--columns", "age,sex", "--criterion", "k", "--json")
    document = json.loads(told.out)
    assert (told.code, document["input"], document["rows"], document["criterion"]) == (0, "people.csv", 5, "k")
    assert document["columns"] == ["age", "sex"]
    changes = {(row["column"], row["do"], row["level"]) for row in document["changes"]}
    # Level 1 of sex is its top, which is the same as dropping.
    assert changes == {("age", "drop", None), ("sex", "drop", None), ("age", "recode", 1)}
    streamed = json.loads(run("advise", "people.csv", "--json", "--memory-limit", "16GiB").out)
    whole = json.loads(run("advise", "people.csv", "--json").out)
    assert streamed | {"seconds": 0} == whole | {"seconds": 0}
    assert run("advise", "people.csv", "-q").out == ""


def test_roles_name_the_columns_to_advise_on(folder, run):
    (folder / "r.toml").write_text('[roles]\nage = "quasi-identifier"\nsex = "quasi-identifier"\n"a=b" = "sensitive"\n')
    told = run("advise", "people.csv", "--roles", "r.toml", "--criterion", "distinct_l", "--json")
    document = json.loads(told.out)
    assert told.code == 0
    # The sensitive column stays as it is.
    assert document["columns"] == ["age", "sex"]
    assert {change["column"] for change in document["changes"]} <= {"age", "sex"}
    command = ["gpupif", "protect", "people.csv", "--roles", "r.toml", "--require", "k>=5"]
    command += ["--suppress", "0.05", "-o", "plan.toml"]
    assert [shlex.split(own) for own in document["commands"]] == [command]
    options = ["--quasi-identifiers", "age,sex", "--sensitive", "a=b", "--criterion", "distinct_l", "--json"]
    given = json.loads(run("advise", "people.csv", *options).out)
    assert (given["before"], given["changes"]) == (document["before"], document["changes"])
    assert given["commands"][0].split(" --")[1:3] == ["quasi-identifiers age,sex", "sensitive a=b"]
    assert "From r.toml: --quasi-identifiers" in run("advise", "people.csv", "--roles", "r.toml").out


def test_figures_of_risk_are_criteria(folder, run):
    people = pd.read_csv(folder / "people.csv")
    pd.concat([people] * 3).to_csv(folder / "all.csv", index=False)
    people.assign(weight=2).to_csv(folder / "people.csv", index=False)
    known = ["--quasi-identifiers", "age,sex", "--json"]
    options = ["--criterion", "population.k_map", "--population", "all.csv"]
    assert json.loads(run("advise", "people.csv", *known, *options).out)["before"]["population.k_map"] == 3
    options = ["--criterion", "estimated.k_map", "--weights", "weight"]
    assert json.loads(run("advise", "people.csv", *known, *options).out)["before"]["estimated.k_map"] == 2
    options = ["--criterion", "games.prosecutor.attacked", "--adversary-cost", "4"]
    assert json.loads(run("advise", "people.csv", *known, *options).out)["before"]["games.prosecutor.attacked"] == 5


CLUSTER = pytest.param(("--workers", "1"), marks=[pytest.mark.slow, pytest.mark.dask, pytest.mark.thorough])


@pytest.mark.parametrize("place", [(), CLUSTER])
def test_attackers_and_distances_are_those_of_python(run, place):
    """An attacker may know a column that no other option names; a cluster reads it too."""
    people = gpupif.datasets.census(200)[["age", "sex", "education", "occupation"]]
    people.to_parquet("t.parquet", index=False)
    named = {"quasi_identifiers": ["age", "sex"], "sensitive": ["education"]}
    options = ["t.parquet", "--quasi-identifiers", "age,sex", "--sensitive", "education", "--json", *place]
    for criterion, only, more in (
        ("n: k", {"attackers": {"n": ["age", "occupation"]}}, ["--attacker", "n=age,occupation"]),
        ("m: mean csf", {"attackers": {"m": 1}}, ["--attacker-any", "m=1"]),
        ("t(education)", {"distances": {"education": "nominal"}}, ["--distance", "education=nominal"]),
    ):
        found = gpupif.advise(people, criterion=criterion, **named, **only).to_dict()
        document = json.loads(run("advise", *options, "--criterion", criterion, *more).out)
        assert (document["before"], document["changes"]) == (found["before"], found["changes"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.csv"], "none.csv: no such file"),
        (["people.csv", "--criterion", "pif"], "expected a percentile after pif"),
        (["people.csv", "--columns", "age,job"], "--columns: no column 'job'"),
        (["people.csv", "--quasi-identifiers", "job"], "--quasi-identifiers: no column 'job'"),
        (["people.csv", "--sensitive", "job"], "--sensitive: no column 'job'"),
        (["people.csv", "--hierarchies", "none.toml"], "none.toml"),
        (["people.csv", "--criterion", "estimated.k_map", "--weights", "job"], "--weights: no column 'job'"),
        (["people.csv", "--criterion", "games.prosecutor.attacked"], "needs game= (--adversary-gain 300, say)"),
        (["people.csv", "--columns", "age", "--quasi-identifiers", "sex"], "--columns: expected columns to look at"),
        (["people.csv", "--attacker", "n=age"], "--attacker: 'n': no criterion is on this attacker"),
        (["people.csv", "--criterion", "n: k", "--attacker", "n=job"], "--attacker: 'n': no column 'job'"),
        (["people.csv", "--distance", "job=nominal"], "--distance: no column 'job'"),
    ],
)
def test_bad_arguments_are_refused(folder, run, arguments, words):
    told = run("advise", *arguments)
    assert (told.code, told.out) == (2, "")
    assert words in told.err
    assert told.err.startswith("gpupif: error: ")
    assert told.err.count("\n") == 1
