"""What docs/explanation/combinations.md says goes together does."""

from __future__ import annotations

import itertools

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
# Each feature by its name on the page, as arguments.
FEATURES = {
    "a list of columns": {"known": ["sex", "age"]},
    "named attackers": {"attackers": {"one": ["sex"], "other": ["age", "town"]}},
    "any r columns": {"known": 1},
    "weights": {"weights": "people"},
    "weights of 0": {"weights": "some"},
    "a population": {"population": pd.concat([TABLE, TABLE])},
    "wildcards": {"missing": "wildcard"},
    "priors": {"priors": {"town": {"A": 0.3, "B": 0.5, "C": 0.2}}},
    "accuracies": {"accuracies": {"town": 0.9}},
}
# Two ways to say who attacks, in one call.
TOGETHER = {
    frozenset(["a list of columns", "named attackers"]): None,
    frozenset(["any r columns", "named attackers"]): {"attackers": {"one": ["sex"], "anybody": 1}},
}


def asked_for(first: str, second: str) -> dict | None:
    """Both features as arguments of one call; None for two values of one argument."""
    if frozenset([first, second]) in TOGETHER:
        return TOGETHER[frozenset([first, second])]
    if set(FEATURES[first]) & set(FEATURES[second]):
        return None
    return {**FEATURES[first], **FEATURES[second]}


PAIRS = {pair: asked for pair in itertools.combinations(FEATURES, 2) if (asked := asked_for(*pair))}


def test_the_page_names_every_feature():
    named = PAGE.read_text("utf-8").split("What goes together: ")[1].split(".")[0].replace("\n", " ")
    assert set(FEATURES) <= set(named.split(", "))


@pytest.mark.parametrize("pair", PAIRS, ids=" and ".join)
def test_each_pair_of_features_can_be_scored(pair):
    assert gpupif.score(TABLE, columns=COLUMNS, **PAIRS[pair]).columns == COLUMNS
