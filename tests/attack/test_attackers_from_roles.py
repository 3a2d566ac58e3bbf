"""Roles in one file give each function the same attacker, and the same risk before."""

from __future__ import annotations

import pandas
import pytest

import gpupif

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
TABLE = "people.csv"
KNOWN = ["age", "sex", "region"]
LINE = "The attacker knows age, sex, region."
EVERYTHING = "The attacker knows every other scored column."


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """Return a folder with a table of two sensitive columns and an identifier, and a file of their roles."""
    place = tmp_path_factory.mktemp("people")
    table = gpupif.datasets.census(300, seed=2)[["age", "sex", "region", "occupation", "income_band"]]
    table.assign(person=range(300)).to_csv(place / TABLE, index=False)
    roles = dict.fromkeys(KNOWN, "quasi-identifier") | dict.fromkeys(("occupation", "income_band"), "sensitive")
    (place / "roles.toml").write_text(
        "[roles]\n" + "".join(f'{name} = "{role}"\n' for name, role in {**roles, "person": "identifier"}.items())
    )
    return place


@pytest.fixture(scope="module")
def expected(people):
    scores = gpupif.score(people / TABLE, "cig", [*KNOWN, "occupation", "income_band"], known=KNOWN, missing="category")
    return float(scores.pif(95))


@pytest.mark.slow
def test_every_function_knows_the_attacker_from_the_roles(people, expected):
    roles, table = gpupif.read_roles(people / "roles.toml"), people / TABLE
    frame = pandas.read_csv(table)
    for given, of in ((roles, table), (people / "roles.toml", frame), (dict(roles), frame)):
        assert float(gpupif.score(of, "cig", roles=given).pif(95)) == expected
    assert float(gpupif.score_files(table, None, "cig", roles=roles, summary_only=True).pif(95)) == expected
    advice = gpupif.advise(frame, roles=roles)
    protection = gpupif.protect(frame, ["pif95<=100", "k>=1"], roles=roles)
    comparison = gpupif.compare(frame, frame, roles=roles)
    assert advice.before["pif95"] == expected
    assert protection.before[0].value == expected
    assert comparison.risk.loc["pif95", "before"] == expected
    risk = gpupif.risk(frame, roles=roles)
    assert (risk.quasi_identifiers, risk.sensitive) == (KNOWN, ["occupation", "income_band"])
    assert advice.before["k"] == protection.before[1].value == comparison.risk.loc["k", "before"] == risk.k
    for result in (advice, protection, comparison, risk, gpupif.score(frame, "cig", roles=roles).summary()):
        assert LINE.removesuffix(".") in str(result).splitlines()[0]


def test_arguments_go_before_the_roles(people):
    roles = gpupif.read_roles(people / "roles.toml")
    frame = pandas.read_csv(people / TABLE)
    scores = gpupif.score(frame, "cig", ["occupation"], known=["sex"], roles=roles)
    assert (scores.columns, scores.known) == (["occupation"], ["sex"])
    anyone = gpupif.score(frame, "cig", known=1, roles=roles)
    assert anyone.known == KNOWN
    several = gpupif.score(frame, "cig", attackers={"a": ["sex"], "b": 1}, roles=roles)
    assert several.against("b").known == KNOWN
    risk = gpupif.risk(frame, sensitive="sex", roles=roles)
    assert (risk.quasi_identifiers, risk.sensitive) == (["age", "region"], ["sex"])


def test_the_attacker_knows_every_other_column_if_no_roles_are_given(people):
    frame = pandas.read_csv(people / TABLE)[[*KNOWN, "occupation"]]
    found = float(gpupif.score(frame, "cig").pif(95))
    results = gpupif.advise(frame), gpupif.protect(frame, "pif95<=100"), gpupif.compare(frame, frame)
    assert [results[0].before["pif95"], results[1].before[0].value] == [found, found]
    assert results[2].risk.loc["pif95", "before"] == found
    for result in (*results, gpupif.score(frame, "cig").summary()):
        assert EVERYTHING in " ".join(str(result).splitlines()[:2])


def test_any_known_columns_are_drawn_from_the_quasi_identifiers(people):
    frame = pandas.read_csv(people / TABLE)
    roles = gpupif.read_roles(people / "roles.toml")
    scores = gpupif.score(frame, "csf", known=2, roles=roles)
    found = gpupif.protect(frame, "known=2: max csf<=1", roles=roles).before[0].value
    assert found == float(scores.percentiles("csf", [100]).to_numpy().max())


def test_identifiers_of_roles_are_not_compared(people):
    """They would count as information that the treatment lost."""
    roles, frame = gpupif.read_roles(people / "roles.toml"), pandas.read_csv(people / TABLE)
    found = gpupif.compare(frame, frame.drop(columns="person"), roles=roles)
    assert list(found.columns.index) == [*KNOWN, "occupation", "income_band"]
    columns = [*found.columns.index]
    expected = gpupif.compare(
        frame[columns], frame[columns], quasi_identifiers=KNOWN, sensitive=["occupation", "income_band"]
    )
    assert found.utility.to_dict() == expected.utility.to_dict()


def test_roles_say_which_of_the_given_columns_are_known(people):
    roles, frame = gpupif.read_roles(people / "roles.toml"), pandas.read_csv(people / TABLE)
    columns = ["age", "sex", "occupation"]
    expected = float(gpupif.score(frame, "cig", columns, known=["age", "sex"]).pif(95))
    advice = gpupif.advise(frame, columns=columns, roles=roles)
    comparison = gpupif.compare(frame, frame, columns=columns, roles=roles)
    assert advice.before["pif95"] == comparison.risk.loc["pif95", "before"] == expected
    assert list(comparison.columns.index) == columns
    with pytest.raises(gpupif.InputError, match=r"roles: .*: expected a quasi-identifier among the columns"):
        gpupif.advise(frame, columns="occupation", roles=roles)


def test_roles_of_another_table_are_refused(people):
    frame = pandas.read_csv(people / TABLE)
    for wrong, words in (
        ({"age": "quasi-identifier"}, "expected a role for each column, got none for 'sex'"),
        ({"ages": "quasi-identifier"}, "'ages'"),
        (7, "roles: expected a file of roles"),
    ):
        for ask in (gpupif.score, gpupif.risk, gpupif.advise):
            with pytest.raises(gpupif.InputError, match=words):
                ask(frame, roles=wrong)
