"""`gpupif inspect`, and `--roles` of the commands that take what it writes."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpupif

RANDOM = np.random.default_rng(18)
TABLE = pd.DataFrame(
    {
        "id": range(1, 61),
        "age": RANDOM.permutation([20, 30, 40] * 20),
        "sex": RANDOM.permutation(["f", "m"] * 30),
        "town, now": RANDOM.permutation(["A", "B", "C"] * 20),
        "religion": RANDOM.permutation(["x", "y", "y", "z"] * 15),
        "pweight": [1.5, 2.5, 4.0] * 20,
        "source": ["s"] * 60,
    }
)
ROLES = {
    "id": "identifier",
    "age": "quasi-identifier",
    "sex": "quasi-identifier",
    "town, now": "quasi-identifier",
    "religion": "sensitive",
    "pweight": "weight",
    "source": "leave out",
}


@pytest.fixture
def table(folder):
    """A table in two formats, and a file of its roles."""
    TABLE.to_csv(folder / "it is.csv", index=False)
    TABLE.to_parquet(folder / "t.parquet")
    gpupif.results.Roles(ROLES).write(folder / "r.toml")
    return folder / "it is.csv"


def test_the_command_shows_the_columns_and_writes_their_roles(table, run, folder):
    told = run("inspect", table.name, "-o", "roles.toml")
    assert (told.code, told.err) == (0, "")
    assert "Roles written to roles.toml" in told.out
    assert "numbers of persons" not in told.out
    assert dict(gpupif.read_roles(folder / "roles.toml")) == ROLES
    told = run("inspect", table.name, "--json")
    document = json.loads(told.out)
    assert document["roles"] == ROLES
    assert [record["values"] for record in document["columns"]] == [60, 3, 2, 3, 3, 3, 1]
    assert document["input"] == table.name
    assert run("inspect", table.name, "-q").out == ""
    streamed = json.loads(run("inspect", table.name, "--json", "--memory-limit", "16GiB").out)
    whole = json.loads(run("inspect", table.name, "--json").out)
    assert all("--memory-limit 16GiB" in command for command in streamed["commands"])
    assert streamed | {"seconds": 0, "commands": []} == whole | {"seconds": 0, "commands": []}


@pytest.mark.parametrize("options", [(), ("--sep", ",", "--memory-limit", "16GiB")])
def test_the_proposed_next_commands_run(table, run, options):
    """The name of the table has signs that a shell would split."""
    commands = json.loads(run("inspect", table.name, *options, "--json").out)["commands"]
    assert len(commands) == 6
    for command in commands:
        name, *arguments = shlex.split(command)
        assert name == "gpupif"
        ended = run(*arguments)
        assert ended.code == 0, (command, ended.err)


def taken(run, command, *arguments):
    told = run(command, "it is.csv", "--roles", "r.toml", "--json", *arguments)
    assert (told.code, told.err) == (0, "")
    found = json.loads(told.out)
    assert found.pop("roles")["file"] == "r.toml"
    return {name: value for name, value in found.items() if name != "seconds"}


def given(run, command, *arguments):
    found = json.loads(run(command, "it is.csv", "--json", *arguments).out)
    return {name: value for name, value in found.items() if name != "seconds"}


NAMES = 'age,sex,"town, now"'


@pytest.mark.parametrize(
    ("command", "arguments", "more"),
    [
        ("risk", ["--quasi-identifiers", NAMES, "--sensitive", "religion", "--weights", "pweight"], []),
        ("suda", ["--columns", NAMES, "--weights", "pweight"], []),
        ("toxic", ["--columns", NAMES, "--weights", "pweight"], []),
        # What an option names has the role that the option gives it.
        ("risk", ["--quasi-identifiers", "religion", "--weights", "pweight"], ["--quasi-identifiers", "religion"]),
        (
            "risk",
            ["--quasi-identifiers", 'sex,"town, now"', "--sensitive", "age", "--weights", "pweight"],
            ["--sensitive", "age"],
        ),
        ("suda", ["--columns", "age,id", "--weights", "pweight"], ["--columns", "age,id"]),
        ("toxic", ["--columns", 'sex,"town, now"', "--weights", "age"], ["--weights", "age"]),
    ],
)
def test_roles_give_the_same_result_as_the_options(table, run, command, arguments, more):
    assert taken(run, command, *more) == given(run, command, *arguments)


ALL = 'age,sex,"town, now",religion'


@pytest.mark.parametrize(
    ("arguments", "more"),
    [
        (["--columns", ALL, "--known", NAMES], []),
        (["--columns", ALL, "--known-any", "1", "--among", NAMES], ["--known-any", "1"]),
        (["--columns", ALL, "--attacker", "one=sex"], ["--attacker", "one=sex"]),
        (["--columns", 'religion,"town, now"', "--known", NAMES], ["--columns", 'religion,"town, now"']),
        (["--columns", ALL, "--known", "sex"], ["--known", "sex"]),
    ],
)
def test_scores_by_roles_are_those_by_options(table, run, folder, arguments, more):
    for name, said in (
        ("a.parquet", ["--weights", "pweight", *arguments]),
        ("b.parquet", ["--roles", "r.toml", *more]),
    ):
        told = run("score", table.name, "-o", name, "-q", *said)
        assert (told.code, told.out, told.err) == (0, "", "")
    pd.testing.assert_frame_equal(*(pd.read_parquet(folder / name) for name in ("a.parquet", "b.parquet")))


def test_a_line_lists_the_options_taken_from_the_roles_file(table, run):
    told = run("suda", table.name, "--roles", "r.toml")
    assert "From r.toml: --columns 'age,sex,\"town, now\"'; --weights pweight" in told.out.splitlines()
    told = run("suda", table.name, "--roles", "r.toml", "--columns", "sex,religion", "--weights", "age")
    assert "From r.toml: nothing, for options say it all" in told.out.splitlines()
    assert run("suda", table.name, "--roles", "r.toml", "-q").out == ""
    pd.DataFrame({f"column {number}": [1, 2, 2] for number in range(40)}).to_csv("wide.csv", index=False)
    Path("wide.toml").write_text("[roles]\n" + "".join(f'"column {n}" = "quasi-identifier"\n' for n in range(40)))
    told = run("suda", "wide.csv", "--roles", "wide.toml", "--max-size", "1").out.splitlines()
    assert told[-1] == f"From wide.toml: --columns '{','.join(f'column {number}' for number in range(6))}' and 34 more"


def test_labels_of_rows_need_no_role(folder, run):
    # In this order the file has them as a column, with pandas 2 and 3.
    places = pd.Index([*range(1, 60, 2), *range(0, 60, 2)], name="place")
    TABLE.drop(columns="id").set_index(places).to_parquet(folder / "indexed.parquet")
    assert run("inspect", "indexed.parquet", "-o", "i.toml", "-q").code == 0
    assert "place" not in gpupif.read_roles(folder / "i.toml")
    assert run("suda", "indexed.parquet", "--roles", "i.toml", "-q").code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["inspect", "none.csv"], "none.csv: no such file"),
        (["inspect", "it is.csv", "-o", "r.toml"], "r.toml: exists already"),
        (["inspect", "it is.csv", "-o", "r.json"], "ending in .toml"),
        (["inspect", "it is.csv", "--overwrite"], "--overwrite: goes with --output"),
        (["inspect", "it is.csv", "--memory-limit", "1MB"], "--memory-limit: expected at least"),
        (["risk", "it is.csv"], "--quasi-identifiers: expected columns, got none. Name them, or give their --roles."),
        (["risk", "it is.csv", "--roles", "none.toml"], "--roles: none.toml: could not be read"),
        (["suda", "people.csv", "--roles", "r.toml"], "--roles: r.toml: no column 'town, now', 'religion'"),
        (["toxic", "it is.csv", "--roles", "few.toml"], "--roles: few.toml: expected a role for each column"),
        (["score", "it is.csv", "-o", "s.csv", "--roles", "no.toml"], "--roles: no.toml: expected at least one column"),
        (["suda", "it is.csv", "--roles", "one.toml", "--weights", "age"], "--roles: one.toml: expected a quasi"),
    ],
)
def test_bad_arguments_and_roles_are_refused(table, run, folder, arguments, words):
    gpupif.results.Roles({"id": "identifier"}).write(folder / "few.toml")
    gpupif.results.Roles(dict.fromkeys(ROLES, "sensitive")).write(folder / "no.toml")
    gpupif.results.Roles(dict.fromkeys(ROLES, "sensitive") | {"age": "quasi-identifier"}).write(folder / "one.toml")
    told = run(*arguments)
    assert (told.code, told.out) == (2, "")
    assert words in told.err
    assert told.err.startswith("gpupif: error: ")
    assert told.err.count("\n") == 1
