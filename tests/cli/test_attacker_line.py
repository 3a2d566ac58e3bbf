"""Each command says first what the attacker knows; one file of roles means one attacker for all."""

from __future__ import annotations

import json

import pandas
import pytest

import gpupif

TABLE, ROLES = "census.csv", ("--roles", "roles.toml")
ASKED = {
    "score": (TABLE, "--summary-only", "--measures", "cig"),
    "advise": (TABLE,),
    "protect": (TABLE, "--require", "pif95<=100"),
    "compare": (TABLE, TABLE),
}


@pytest.fixture
def census(folder):
    columns = ["age", "sex", "region", "occupation", "income_band"]
    gpupif.datasets.census(300, seed=2)[columns].to_csv(folder / TABLE, index=False)
    roles = dict.fromkeys(columns[:3], "quasi-identifier") | dict.fromkeys(columns[3:], "sensitive")
    (folder / "roles.toml").write_text("[roles]\n" + "".join(f'{name} = "{role}"\n' for name, role in roles.items()))
    return folder


def pif95(command, document):
    found = {
        "score": lambda: document["pif"]["95"],
        "advise": lambda: document["before"]["pif95"],
        "protect": lambda: document["before"][0]["value"],
        "compare": lambda: document["risk"]["pif95"]["before"],
    }
    return found[command]()


def test_every_command_has_the_same_attacker_and_risk_for_a_roles_file(census, run):
    told = {command: run(command, *arguments, *ROLES).out.splitlines() for command, arguments in ASKED.items()}
    assert [lines[0] for lines in told.values() if "The attacker knows age, sex, region." not in lines[0]] == []
    assert run("risk", TABLE, *ROLES).out.startswith("The attacker knows age, sex, region: 300 rows")
    found = {command: json.loads(run(command, *ASKED[command], *ROLES, "--json").out) for command in ASKED}
    assert len({pif95(command, document) for command, document in found.items()}) == 1


def test_the_attacker_knows_every_other_column_if_no_roles_are_given(census, run):
    told = {command: run(command, *arguments).out.splitlines() for command, arguments in ASKED.items()}
    assert [own[0] for own in told.values() if "The attacker knows every other scored column." not in own[0]] == []
    found = {command: json.loads(run(command, *ASKED[command], "--json").out) for command in ASKED}
    assert len({pif95(command, document) for command, document in found.items()}) == 1


def test_roles_say_which_of_the_given_columns_are_known(census, run):
    """Every command takes the known columns from the roles."""
    asked = {"score": ASKED["score"], "advise": ASKED["advise"], "compare": ASKED["compare"]}
    columns = ("--columns", "age,sex,occupation")
    found = {name: json.loads(run(name, *given, *columns, *ROLES, "--json").out) for name, given in asked.items()}
    comparison = found["compare"]
    assert [column["column"] for column in comparison["columns"]] == ["age", "sex", "occupation"]
    assert pif95("advise", found["advise"]) == pif95("compare", comparison)
    for command in ("advise", "compare"):
        ended = run(command, *ASKED[command], "--columns", "occupation", *ROLES)
        assert ended.code == 2
        assert "expected a quasi-identifier among the columns that are looked at" in ended.err


def test_compare_has_the_attacker_of_the_plan_also_beside_roles(census, run):
    """The command that protect prints measures the risk that protect promised."""
    asked = ("--quasi-identifiers", "age,sex", "--require", "k>=3", "--suppress", "0.1", "-o", "plan.toml")
    assert run("protect", TABLE, *ROLES, *asked).code == 0
    assert run("treat", TABLE, "--plan", "plan.toml", "-o", "treated.csv").code == 0
    found = json.loads(run("compare", TABLE, "treated.csv", "--plan", "plan.toml", *ROLES, "--json").out)
    assert found["quasi_identifiers"] == ["age", "sex"]
    assert found["risk"]["k"]["after"] >= 3


@pytest.mark.parametrize("option", ["--keep", "--pseudonymise", "--identifiers"])
def test_no_option_takes_a_quasi_identifier_of_the_roles_from_the_attacker(census, run, option):
    ended = run("protect", TABLE, *ROLES, option, "age", "--require", "k>=2")
    assert ended.code == 2
    assert f"{option}: column 'age' is a quasi-identifier too. Name it in one of them only." in ended.err


def test_every_command_uses_the_weights_of_the_roles(census, run):
    frame = pandas.read_csv(census / TABLE).assign(people=[1.5, 1, 2] * 100)
    frame.to_csv(census / TABLE, index=False)
    with (census / "roles.toml").open("a") as file:
        file.write('people = "weight"\n')
    expected = float(gpupif.score(frame, "cig", roles=census / "roles.toml", weights="people").pif(95))
    found = {command: json.loads(run(command, *ASKED[command], *ROLES, "--json").out) for command in ASKED}
    assert {pif95(command, document) for command, document in found.items()} == {expected}
