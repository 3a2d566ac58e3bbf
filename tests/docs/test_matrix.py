"""What docs/explanation/combinations.md says goes together does."""

from __future__ import annotations

import re

import pandas as pd
import pytest

import gpupif
from tests.helpers.checkout import ROOT

PAGE = ROOT / "docs" / "explanation" / "combinations.md"
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


def asked_for(row: str, column: str) -> dict | None:
    """Both features as arguments of one call; None for two values of one argument."""
    if frozenset([row, column]) in TOGETHER:
        return TOGETHER[frozenset([row, column])]
    first, second = FEATURES[row], FEATURES[column]
    return None if set(first) & set(second) else {**first, **second}


def pairs() -> list[tuple[str, str, str]]:
    """Of the page's first table that begins with "goes with": row, column and what stands there."""
    lines = PAGE.read_text("utf-8").split("| goes with |", 1)[1].split("\n\n", 1)[0].splitlines()
    columns = [cell.strip() for cell in lines[0].strip("| ").split("|")]
    found = []
    for line in lines[2:]:
        row, *cells = (re.sub(r"[*`]", "", cell).strip() for cell in line.strip("|").split("|"))
        found += [(row, column, cell) for column, cell in zip(columns, cells, strict=True)]
    return found


def test_the_matrix_has_every_pair_once():
    assert {name for row, column, _ in pairs() for name in (row, column)} == set(FEATURES)
    assert len(pairs()) == len(FEATURES) ** 2
    verdicts = {(row, column): cell for row, column, cell in pairs()}
    assert all(verdicts[column, row] == cell for (row, column), cell in verdicts.items())


@pytest.mark.parametrize(("row", "column", "cell"), pairs())
def test_the_matrix_says_yes_for_pairs_that_can_be_scored(row, column, cell):
    asked = asked_for(row, column)
    if asked is None:
        assert cell == ""
    else:
        assert cell == "yes"
        assert gpupif.score(TABLE, columns=COLUMNS, **asked).columns == COLUMNS
