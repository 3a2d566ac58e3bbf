"""Treatments of continuous columns: MDAV, rank swapping, correlated noise and shuffling follow their definitions."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pyarrow as pa
import pytest

import gpupif
from gpupif.errors import ColumnTypeError, InputError
from gpupif.treatment.continuous import microaggregate_together
from gpupif.treatments import CorrelatedNoise, MicroaggregateTogether, RankSwap, Shuffle
from tests.helpers.treated_chunks import prepared, treated

KEY = gpupif.treatments.Key.from_any(bytes(range(7, 39)))


def pay(rows=200, seed=0):
    random = np.random.default_rng(seed)
    income = random.lognormal(8, 0.6, rows).round(2)
    return pa.table(
        {
            "income": income,
            "tax": (0.3 * income + random.normal(0, 200, rows)).round(1),
            "hours": random.integers(0, 60, rows),
            "sex": random.choice(["f", "m"], rows),
        }
    )


def naive_mdav(rows, k):
    """Return the groups of MDAV: lists of rows. Of rows that are equally far the earlier counts as nearer."""

    def by_distance(left, point):
        return sorted(left, key=lambda row: (sum((rows[row][c] - point[c]) ** 2 for c in range(len(point))), row))

    left, groups = list(range(len(rows))), []
    while len(left) >= 2 * k:
        two = len(left) >= 3 * k
        centre = [sum(rows[row][c] for row in left) / len(left) for c in range(len(rows[0]))]
        first = by_distance(left, centre)[-1]
        second = by_distance(left, rows[first])[-1]
        for start in (first, second)[: 1 + two]:
            group = by_distance(left, rows[start])[:k]
            groups.append(group)
            left = sorted(set(left) - set(group))
    return [*groups, left]


def standardised(table, names):
    columns = [np.array(table[name].to_pylist(), float) for name in names]
    spread = [column.std() or 1.0 for column in columns]
    return np.column_stack([(column - column.mean()) / own for column, own in zip(columns, spread, strict=True)])


@pytest.mark.parametrize(("rows", "k"), [(3, 3), (5, 3), (6, 3), (8, 3), (9, 3), (10, 3), (200, 3), (101, 7), (40, 1)])
def test_groups_and_means_follow_the_definition(rows, k):
    table, names = pay(rows), ["income", "tax", "hours"]
    found = treated(table, MicroaggregateTogether(names, k), None, [rows // 3])
    groups = naive_mdav(standardised(table, names).tolist(), k)
    for name in names:
        values, expected = table[name].to_pylist(), [None] * rows
        for group in groups:
            for row in group:
                expected[row] = math.fsum(values[other] for other in group) / len(group)
        assert found[name].to_pylist() == pytest.approx(expected, rel=1e-13)
    assert prepared(table, MicroaggregateTogether(names, k), None).record["groups"] == len(groups)


def test_ties_are_resolved_by_the_order_of_rows():
    points = np.array([[0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 0], [0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1]], float)
    found = microaggregate_together.mdav(points, 3)
    for number, group in enumerate(naive_mdav(points.T.tolist(), 3)):
        assert np.flatnonzero(found == number).tolist() == sorted(group)


def test_strata_are_grouped_by_themselves():
    table = pay(90)
    found = treated(table, MicroaggregateTogether(["income", "tax"], 4, ["sex"]), None)
    for sex in "fm":
        mask = pa.compute.equal(table["sex"], sex)
        rows = np.flatnonzero(mask.to_pylist())
        groups = naive_mdav(standardised(table, ["income", "tax"])[rows].tolist(), 4)
        income, own = table["income"].filter(mask).to_pylist(), found["income"].filter(mask).to_pylist()
        for group in groups:
            mean = math.fsum(income[row] for row in group) / len(group)
            assert [own[row] for row in group] == pytest.approx([mean] * len(group), rel=1e-13)


def test_blocks_are_halves_that_are_grouped_by_themselves(monkeypatch):
    monkeypatch.setattr(microaggregate_together, "MOST_ROWS", 50)
    table = pay(120)
    with pytest.raises(InputError, match=r"method: 'mdav' takes up to 50 rows, got 120\. Say method='mdav_blocks'"):
        prepared(table, MicroaggregateTogether(["income", "tax"], 3), None)
    found = treated(table, MicroaggregateTogether(["income", "tax"], 3, method="mdav_blocks"), None)
    assert min(Counter(zip(*(found[name].to_pylist() for name in ("income", "tax")), strict=True)).values()) >= 3
    assert sum(found["income"].to_pylist()) == pytest.approx(sum(table["income"].to_pylist()))


@pytest.mark.parametrize("places", [0, 1])
def test_means_of_large_numbers_are_exact(places):
    # The largest number of the first column is in the middle of the groups, and 8 columns say where these are.
    numbers = [Decimal(number).scaleb(-places) for number in [0] * 3 + [2**62 + 5] * 3 + [1] * 4]
    others = [160.0] * 3 + [-90.0] * 3 + [0.0] * 4
    large = pa.array(numbers, pa.decimal128(30, 1)) if places else pa.array(map(int, numbers))
    table = pa.table({"x": large, **{f"y{number}": others for number in range(8)}})
    found = treated(table, MicroaggregateTogether(table.column_names, 3), None)
    assert found["x"].to_pylist()[3:6] == ([numbers[3]] * 3 if places else [float(2**62)] * 3)


@pytest.mark.parametrize(("missing", "kept"), [("keep", 5.0), ("suppress", None)])
def test_rows_with_a_missing_value_follow_the_rule(missing, kept):
    table = pa.table({"a": [1, 2, 3, 5], "b": [1.0, 2.0, 3.0, None]})
    found = treated(table, MicroaggregateTogether(["a", "b"], 3, missing=missing), None)
    assert found["a"].to_pylist() == [2.0, 2.0, 2.0, kept]
    assert found["b"].to_pylist() == [2.0, 2.0, 2.0, None]


@pytest.mark.parametrize(
    ("columns", "treatment", "message"),
    [
        ({"a": ["x", "y"]}, MicroaggregateTogether(["a"], 2), "column 'a': expected numbers, got 'x'"),
        ({"a": [1, 2]}, MicroaggregateTogether(["a"], 3), "expected at least 3 rows without a missing value, got 2"),
        ({"a": [1, 2, None]}, MicroaggregateTogether(["a"], 2), "1 rows have a missing value in columns"),
        ({"a": [1.0, math.inf]}, MicroaggregateTogether(["a"], 2), "expected finite numbers, got infinite ones"),
        (
            {"a": [1, 2, 3], "b": [1, 1, 2]},
            MicroaggregateTogether(["a"], 2, ["b"]),
            "expected at least 2 rows without a missing value in each class of b, got 1. Take a smaller k or fewer",
        ),
        ({"a": [1, 2]}, MicroaggregateTogether(["a"], 2, ["a"]), "column 'a' is in columns and in within"),
        ({"a": [1, 2]}, RankSwap(["a"], 0.1), "reach: 0.1 of 2 rows, the most of a stratum, is less than one rank"),
        ({"a": ["x", "y"]}, RankSwap(["a"], 0.9), "column 'a': expected numbers, or dates as type"),
        ({"a": [1, None], "b": [None, 1]}, CorrelatedNoise(["a", "b"], 0.1), "expected rows with a value in all"),
        ({"a": [1.0, math.inf]}, CorrelatedNoise(["a"], 0.1), "expected finite numbers, got infinite ones"),
        ({"a": [1, None]}, Shuffle(["a"]), "expected two rows or more with a value in all columns"),
    ],
)
def test_bad_input_is_refused(columns, treatment, message):
    with pytest.raises(InputError, match=message):
        prepared(pa.table(columns), treatment, KEY)


@pytest.mark.parametrize("kind", [MicroaggregateTogether, CorrelatedNoise])
def test_other_types_are_refused(kind):
    with pytest.raises(ColumnTypeError, match="numbers"):
        prepared(pa.table({"a": [True, False]}), kind(["a"], 1), KEY)


def naive_rank_swap(values, reach, draws):
    """Return the values after rank swapping, by the definition: a list of the ranks that are not swapped yet."""
    there = [row for row, value in enumerate(values) if value is not None]
    order = sorted(there, key=lambda row: (values[row], row))
    most, left, after = math.floor(Fraction(str(reach)) * len(order)), list(range(len(order))), list(values)
    while left:
        rank = left.pop(0)
        near = [other for other in left if other <= rank + most]
        if near:
            other = near[((int(draws[order[rank]]) >> 32) * len(near)) >> 32]
            left.remove(other)
            after[order[rank]], after[order[other]] = values[order[other]], values[order[rank]]
    return after


@pytest.mark.parametrize("reach", [0.02, 0.1, 0.29, 1])
@pytest.mark.parametrize("rows", [61, 300])
def test_rank_swapping_follows_the_definition(rows, reach):
    random = np.random.default_rng(3)
    table = pa.table({"a": pa.array(random.integers(0, 40, rows), mask=random.random(rows) < 0.1)})
    found = treated(table, RankSwap(["a"], reach), KEY, [10, 100])
    draws = KEY.draws(0, "a").of_rows(0, rows)
    assert found["a"].to_pylist() == naive_rank_swap(table["a"].to_pylist(), reach, draws)
    assert Counter(found["a"].to_pylist()) == Counter(table["a"].to_pylist())


def test_the_reach_of_rank_swapping_is_exact():
    # 0.29 * 100 is below 29 in floats.
    found = treated(pa.table({"a": range(100)}), RankSwap(["a"], 0.29), KEY)["a"].to_pylist()
    assert found == naive_rank_swap(list(range(100)), 0.29, KEY.draws(0, "a").of_rows(0, 100))


def test_rank_swapping_stays_within_strata():
    table = pay(200)
    found = treated(table, RankSwap(["income"], 0.1, ["sex"]), KEY)
    own, other = (Counter(zip(t["sex"].to_pylist(), t["income"].to_pylist(), strict=True)) for t in (table, found))
    assert own == other
    assert found["income"].to_pylist() != table["income"].to_pylist()


@pytest.mark.parametrize("rescaled", [False, True])
def test_correlated_noise_follows_the_definition(rescaled):
    table, names, share = pay(150), ["income", "tax"], 0.3
    before = np.column_stack([table[name].to_numpy() for name in names])
    draws = [KEY.draws(0, name).of_rows(0, 150) >> np.uint64(12) for name in names]
    normal = np.array([[NormalDist().inv_cdf((int(n) + 0.5) / 2**52) for n in own] for own in draws])
    expected = before + normal.T @ np.linalg.cholesky(share * np.cov(before.T, bias=True)).T
    if rescaled:
        expected = before.mean(axis=0) + (expected - before.mean(axis=0)) / math.sqrt(1 + share)
    found = treated(table, CorrelatedNoise(names, share, rescaled), KEY, [40, 41])
    assert np.column_stack([found[name].to_numpy() for name in names]) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("rescaled", "factor"), [(False, 1.5), (True, 1.0)])
def test_correlated_noise_keeps_covariances(rescaled, factor):
    table, names = pay(20_000), ["income", "tax"]
    found = gpupif.treat(table, [CorrelatedNoise(names, 0.5, rescaled)], key=bytes(range(32))).table
    before, after = (np.cov([t[name].to_numpy() for name in names]) for t in (table, found))
    assert after == pytest.approx(factor * before, rel=0.06)


def test_a_column_that_others_explain_gets_their_noise():
    table = pa.table({"a": [1.0, 2.0, 4.0, 8.0], "b": [2.0, 4.0, 8.0, 16.0]})
    found = treated(table, CorrelatedNoise(["a", "b"], 0.5), KEY)
    assert found["b"].to_numpy() == pytest.approx(2 * found["a"].to_numpy())


def test_shuffling_follows_the_definition():
    table, rows = pay(80), 80
    names = ["hours", "income", "tax"]
    values = [table[name].to_pylist() for name in names]
    scores = []
    for own in values:
        order = sorted(range(rows), key=lambda row: (own[row], row))
        scores.append([NormalDist().inv_cdf((order.index(row) + 0.5) / rows) for row in range(rows)])
    scores = np.array(scores)
    covariance = np.cov(scores, bias=True)
    inverse = covariance[1:, :1] / covariance[0, 0]
    residual = covariance[1:, 1:] - inverse @ covariance[:1, 1:]
    draws = [KEY.draws(0, name).of_rows(0, rows) >> np.uint64(12) for name in names[1:]]
    normal = np.array([[NormalDist().inv_cdf((int(n) + 0.5) / 2**52) for n in own] for own in draws])
    drawn = inverse @ scores[:1] + np.linalg.cholesky(residual) @ normal
    found = treated(table, Shuffle(["income", "tax"], ["hours"]), KEY, [13])
    for own, name in zip(drawn, names[1:], strict=True):
        expected = [None] * rows
        for value, row in zip(sorted(table[name].to_pylist()), np.argsort(own, kind="stable"), strict=True):
            expected[row] = value
        assert found[name].to_pylist() == expected
    assert found["hours"].to_pylist() == table["hours"].to_pylist()


def test_shuffling_leaves_rows_with_a_missing_value():
    table = pa.table({"a": [1, 2, 3, None, 5], "b": [1, 2, 3, 4, None]})
    found = treated(table, Shuffle(["a"], ["b"]), KEY)
    assert found["a"].to_pylist()[3:] == [None, 5]
    assert sorted(found["a"].to_pylist()[:3]) == [1, 2, 3]
    assert prepared(table, Shuffle(["a"], ["b"]), KEY).record == {"rows_not_shuffled": 2}
