"""What docs/attackers.md says goes together does, and what it says is refused is."""

from __future__ import annotations

import re

import pandas as pd
import pytest

import gpupif
from tests.helpers.checkout import ROOT

PAGE = ROOT / "docs" / "attackers.md"
TABLE = pd.DataFrame(
    {
        "sex": ["f", "f", "m", "m", None, "m"],
        "age": [30, 30, 40, 40, 30, 40],
        "town": ["A", "B", "A", "A", "B", "B"],
        "people": [2.0, 1.0, 3.0, 1.5, 2.0, 1.0],
        "some": [2.0, 1.0, 0.0, 1.5, 2.0, 1.0],
    }
)
COLUMNS = ["sex", "age", "town"]
# Each feature by its name in the page's table, as arguments.
FEATURES = {
    "a list of columns": {"known": ["sex", "age"]},
    "named attackers": {"attackers": {"one": ["sex"], "other": ["age", "town"]}},
    "any r columns": {"known": 1},
    "weights": {"weights": "people"},
    "weights of 0": {"weights": "some"},
    "population": {"population": pd.concat([TABLE, TABLE])},
    "wildcards": {"missing": "wildcard"},
    "priors": {"priors": {"town": {"A": 0.3, "B": 0.5, "C": 0.2}}},
    "accuracies": {"accuracies": {"town": 0.9}},
}
# Two ways to say who attacks, in one call.
TOGETHER = {
    frozenset(["a list of columns", "named attackers"]): None,
    frozenset(["any r columns", "named attackers"]): {"attackers": {"one": ["sex"], "anybody": 1}},
}
LACKING = TABLE.iloc[:3]
# What is refused by its name in the page, as arguments, and what is said.
REFUSED = {
    "known= beside attackers=": (
        {"known": ["sex"], "attackers": {"one": ["age"]}},
        "attackers: expected them or known=, which is what the only one knows; got both",
    ),
    "any r of fewer than r other columns": ({"known": 3}, "known: expected at most 2, the number of other columns"),
    "weights that are all 0": ({"weights": "none"}, "weights: column 'none': expected weights that sum to more than 0"),
    "a prior without a value that occurs": (
        {"priors": {"town": {"A": 1.0}}},
        "priors: column 'town': expected a probability above 0 for every value that occurs; got none or 0 for 'B'",
    ),
    "wildcards with a prior of missing values": (
        {"missing": "wildcard", "priors": {"sex": {"f": 0.5, "m": 0.25, None: 0.25}}},
        "priors: column 'sex': expected no probability for missing values",
    ),
    "a population that lacks rows of the table": ({"population": LACKING}, "population: it lacks 3 of the table's 6"),
    "wildcards with a population that has a value of the table nowhere": (
        {"missing": "wildcard", "population": TABLE.assign(age=30)},
        "population: column 'age' has 40 nowhere in it",
    ),
}


def asked_for(row: str, column: str) -> dict | None:
    """Both features as arguments of one call; None for two values of one argument."""
    if frozenset([row, column]) in TOGETHER:
        return TOGETHER[frozenset([row, column])]
    first, second = FEATURES[row], FEATURES[column]
    return None if set(first) & set(second) else {**first, **second}


def cells(head: str) -> list[list[str]]:
    """The page's first table that begins with a word, row by row, without marks of emphasis and code."""
    lines = PAGE.read_text("utf-8").split(f"| {head} |", 1)[1].split("\n\n", 1)[0].splitlines()
    rows = [f"| {head} |{lines[0]}", *lines[2:]]
    return [[re.sub(r"[*`]", "", cell).strip() for cell in row[1:-1].split("|")] for row in rows]


def pairs() -> list[tuple[str, str, str]]:
    """Of the matrix: row, column and what stands there."""
    (_, *columns), *rows = cells("goes with")
    return [(row, column, cell) for row, *found in rows for column, cell in zip(columns, found, strict=True)]


def test_every_pair_stands_there_once():
    assert {name for row, column, _ in pairs() for name in (row, column)} == set(FEATURES)
    assert len(pairs()) == len(FEATURES) ** 2
    verdicts = {(row, column): cell for row, column, cell in pairs()}
    assert all(verdicts[column, row] == cell for (row, column), cell in verdicts.items())


@pytest.mark.parametrize(("row", "column", "cell"), pairs())
def test_what_goes_together(row, column, cell):
    """Whether the scores are right is for tests/attack/test_any_attack_any_way.py to say."""
    asked = asked_for(row, column)
    if asked is None:
        assert cell == ""
    else:
        assert cell == "yes"
        assert gpupif.score(TABLE, columns=COLUMNS, **asked).columns == COLUMNS


def test_all_that_is_refused_stands_there():
    assert {what for what, _ in cells("refused")[1:]} == set(REFUSED)


@pytest.mark.parametrize(("arguments", "says"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(way, arguments, says):
    with pytest.raises(gpupif.InputError, match=re.escape(says)):
        way.score(TABLE.assign(none=0.0), columns=COLUMNS, **arguments)
