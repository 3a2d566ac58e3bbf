"""The oracle for special uniques, and the published example."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import pandas as pd
import pytest


def agree(one, other, missing):
    """Whether a row agrees with one that lacks none of these values; by what missing values are."""
    if missing == "wildcard":
        return all(theirs is None or mine == theirs for mine, theirs in zip(one, other, strict=True))
    return one == other


def minimal_uniques(table, max_size, missing="category"):
    """For each row the sets of columns that are its MSUs: every set tried, smaller ones first."""
    rows = len(next(iter(table.values())))
    found = [[] for _ in range(rows)]
    for size in range(1, max_size + 1):
        for names in combinations(table, size):
            cells = list(zip(*(table[name] for name in names), strict=True))
            counts = Counter(cells)
            # Rows that lack values of these columns; all others agree only where they are equal.
            lacking = [cell for cell in counts if None in cell]
            for row, cell in enumerate(cells):
                if counts[cell] > 1 or any(set(smaller) <= set(names) for smaller in found[row]):
                    continue
                lacks = missing != "category" and None in cell
                if not lacks and not any(agree(cell, other, missing) for other in lacking if other != cell):
                    found[row].append(names)
    return found


def score_of(sets, columns, max_size):
    return sum(math.prod(columns - i for i in range(len(each), min(max_size, columns - 1) + 1)) for each in sets)


def check(found, table, max_size, missing="category"):
    expected = minimal_uniques(table, max_size, missing)
    columns = len(table)
    scores = [score_of(sets, columns, max_size) for sets in expected]
    assert list(found.msus.columns) == [f"msu_{size}" for size in range(1, max_size + 1)]
    for size in range(1, max_size + 1):
        assert found.msus[f"msu_{size}"].tolist() == [sum(len(each) == size for each in sets) for sets in expected]
    assert found.score.tolist() == scores
    for name in table:
        shares = [
            score_of([each for each in sets if name in each], columns, max_size) / max(1, score)
            for sets, score in zip(expected, scores, strict=True)
        ]
        assert found.contributions[name].tolist() == pytest.approx(shares, abs=1e-14)
    summary = found.summary()
    assert summary.scored_rows == sum(score > 0 for score in scores)
    for size, record in summary.sizes.to_dict("index").items():
        sizes = [[len(each) for each in sets] for sets in expected]
        assert record == {
            "msus": sum(each.count(size) for each in sizes),
            "rows": sum(size in each for each in sizes),
            "smallest": sum(min(each, default=0) == size for each in sizes),
        }
    for name, record in summary.columns.to_dict("index").items():
        sets = [[each for each in of_row if name in each] for of_row in expected]
        assert record["msus"] == sum(map(len, sets))
        part = sum(score_of(each, columns, max_size) for each in sets) / max(1, sum(scores))
        assert record["contribution"] == pytest.approx(part)


EXAMPLE = pd.DataFrame(
    [
        ("urban", "female", "secondary incomplete", "employed"),
        ("urban", "female", "secondary incomplete", "employed"),
        ("urban", "female", "primary incomplete", "non-LF"),
        ("urban", "male", "secondary complete", "employed"),
        ("rural", "female", "secondary complete", "unemployed"),
        ("urban", "male", "secondary complete", "employed"),
        ("urban", "female", "primary complete", "non-LF"),
        ("urban", "male", "post-secondary", "unemployed"),
        ("urban", "female", "secondary incomplete", "non-LF"),
        ("urban", "female", "secondary incomplete", "non-LF"),
    ],
    columns=["residence", "gender", "education", "labour"],
)
