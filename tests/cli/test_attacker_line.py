"""Each command says first what the attacker knows; one file of roles means one attacker for all."""

from __future__ import annotations

import json

import pytest

import gpupif

TABLE, ROLES = "census.csv", ("--roles", "roles.toml")
ASKED = {
    "score": (TABLE, "--summary-only", "--measures", "cig"),
    "advise": (TABLE,),
    "protect": (TABLE, "--target", "pif95<=100"),
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


def test_one_file_of_roles_one_risk_before(census, run):
    told = {command: run(command, *arguments, *ROLES).out.splitlines() for command, arguments in ASKED.items()}
    assert {lines[0] for lines in told.values()} == {"The attacker knows age, sex, region."}
    assert run("risk", TABLE, *ROLES).out.splitlines()[0] == "The attacker knows age, sex, region."
    found = {command: json.loads(run(command, *ASKED[command], *ROLES, "--json").out) for command in ASKED}
    assert len({pif95(command, document) for command, document in found.items()}) == 1


def test_without_roles_the_attacker_knows_every_other_column(census, run):
    told = {command: run(command, *arguments).out.splitlines() for command, arguments in ASKED.items()}
    assert {lines[0] for lines in told.values()} == {"The attacker knows every other scored column."}
    found = {command: json.loads(run(command, *ASKED[command], "--json").out) for command in ASKED}
    assert len({pif95(command, document) for command, document in found.items()}) == 1
