"""Differentially private quantiles on heaped data: the score of a candidate, its sensitivity, and the accuracy."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest

from gpupif.encoding.column import Column
from gpupif.release.ledger import Terms
from gpupif.release.mechanisms import choice
from gpupif.release.queries import Quantile, TrueCounts

VALUES = (0, 1, 2)
CANDIDATES = [-1, 0, 0.5, 1, 1.5, 2, 3]
# Of the issue that showed the fault: the median is 10.
HEAPED = [0] * 100 + [10] * 800 + [50] * 500 + [90] * 100


def scores(query, rows):
    """The scores of the candidates, by a column of these values."""
    counts = Counter(rows)
    labels, numbers = np.array([*counts], float), np.array([*counts.values()], np.int64)
    column = Column("x", np.empty(0, np.uint8), numbers, labels, False)
    return np.array(query.exact(TrueCounts({"x": column}, {})))


def rank_error(q, rows, value):
    """How many rows would have to be elsewhere for the value to be a quantile, by counting."""
    below, equal = sum(own < value for own in rows), sum(own == value for own in rows)
    return max(Fraction(0), below - q * len(rows), q * len(rows) - below - equal)


def sensitivity(monkeypatch, query, terms):
    """The sensitivity that noise is made for."""
    asked = []
    monkeypatch.setattr("gpupif.release.queries.choice", lambda *given: asked.append(given) or choice(*given))
    query.noises(terms)
    return asked[0][1]


@pytest.mark.parametrize("q", [0, 0.1, 0.3, 0.5, 1])
def test_a_score_is_the_error_in_ranks_and_has_the_sensitivity_of_the_noise(monkeypatch, q):
    query = Quantile(column="x", q=q, candidates=CANDIDATES, epsilon=1)
    share = Fraction(q).limit_denominator(10_000)
    tables = [rows for size in range(5) for rows in combinations_with_replacement(VALUES, size)]
    found = {rows: scores(query, rows) for rows in tables}
    for rows, own in found.items():
        assert list(own) == [rank_error(share, rows, value) * share.denominator for value in CANDIDATES]
    steps = {"add-remove": lambda rows: [(*rows, value) for value in VALUES]}
    steps["replace"] = lambda rows: [(*rows[:n], value, *rows[n + 1 :]) for n in range(len(rows)) for value in VALUES]
    for neighbours, step in steps.items():
        near = {rows: {tuple(sorted(own)) for own in step(rows)} & found.keys() for rows in tables}
        for people in (1, 2):
            reached = {rows: {further for own in near[rows] for further in near[own]} for rows in tables}
            changes = [
                abs(found[rows] - found[other]).max()
                for rows in tables
                for other in (near if people == 1 else reached)[rows]
            ]
            for terms in (Terms(1.0, 0.0, neighbours, people), Terms(1.0, 0.0, neighbours, group=people)):
                assert max(changes) == sensitivity(monkeypatch, query, terms)


@pytest.mark.slow
@pytest.mark.parametrize(
    "terms",
    [Terms(20.0), Terms(20.0, 0.0, "replace"), Terms(20.0, 0.0, contributions=3, group=2)],
    ids=["add-remove", "replace", "rows"],
)
@pytest.mark.parametrize("q", [0.1, 0.5, 0.75])
@pytest.mark.parametrize("epsilon", [0.1, 1, 20])
def test_the_error_in_ranks_is_as_promised(terms, q, epsilon):
    """In 1,000 draws from heaped wages."""
    share = Fraction(q).limit_denominator(10_000)
    random = np.random.default_rng(7)
    wages = np.clip(random.lognormal(3.2, 0.6, 2_000).round(), 1, 200)
    # Six of ten people round to tens.
    wages = np.where(random.random(len(wages)) < 0.6, (wages / 10).round() * 10, wages)
    for rows, bounds in ((HEAPED, (0, 100)), (wages.tolist(), (0, 200)), (wages.tolist(), (1.5, 199))):
        query = Quantile(column="x", q=q, bounds=bounds, epsilon=epsilon)
        candidates = query._candidates()
        errors = {value: rank_error(share, rows, value) for value in candidates.tolist()}
        [noise], exact = query.noises(terms), scores(query, rows).tolist()
        drawn = [errors[query.answered(exact, [noise])["value"]] - min(errors.values()) for _ in range(1_000)]
        moved = terms.rows * (1 if terms.replaced else max(share, 1 - share))
        for beta in (0.05, 0.5):
            promised = 2 * math.log(len(candidates) / beta) / epsilon * moved
            assert np.mean([own > promised for own in drawn]) <= beta
