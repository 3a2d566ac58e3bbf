"""Columns of numbers before and after: disclosure risk, information loss, estimates."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.comparison import compare, record_linkage
from gpupif.comparison.risk import RiskFigures
from tests.helpers import naive_continuous as naive

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(autouse=True)
def without_risk():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare, "measure_risk", lambda *_: RiskFigures({}, {}))
        yield


NUMBERS = st.one_of(st.none(), st.integers(-6, 6))


@st.composite
def tables(draw):
    rows = draw(st.integers(1, 8))
    names = draw(st.sampled_from(["x", "xy", "xyz"]))
    # The last two rows have all values, and no column is constant.
    made = [
        {name: [*draw(st.lists(NUMBERS, min_size=rows, max_size=rows)), 7, place] for place, name in enumerate(names)}
        for _ in "ba"
    ]
    return made[0], made[1]


def frame(table):
    return pd.DataFrame({name: pd.array(values, "Int64") for name, values in table.items()})


def measured(before, after, **options):
    return gpupif.compare(frame(before), frame(after), numbers=list(before), linkage="exact", **options)


@settings(max_examples=12, deadline=None)
@given(tables(), st.sampled_from([0.05, 0.1, 0.25, 1.0]))
def test_risk_and_loss_are_those_of_the_definitions(both, interval):
    found = measured(*both, interval=interval).continuous
    by_column, loss = naive.il1s(*both)
    assert found.by_column["il1s"].to_dict() == pytest.approx(by_column)
    assert found.il1s == pytest.approx(loss)
    for kind, within in (("deviations", naive.within_deviations), ("ranks", naive.within_ranks)):
        by_column, rows = naive.shares(within(*both, interval))
        assert found.by_column[f"within_{kind}"].to_dict() == pytest.approx(by_column)
        assert getattr(found, f"rows_within_{kind}") == pytest.approx(rows)
    assert found.by_distance.share == pytest.approx(naive.linked_by_distance(*both))
    assert found.by_rank.share == pytest.approx(naive.linked_by_rank(*both))
    assert found.by_rank.rows == len(naive.complete(*both))


def by_estimate(found):
    """Before and after by column, estimate and other column."""
    return {
        (row.column, row.estimate, *([] if pd.isna(row.other) else [row.other])): (row.before, row.after)
        for row in found.estimates.itertuples()
    }


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(tables())
def test_estimates_are_those_of_the_definitions(both):
    found = by_estimate(measured(*both))
    for name in both[0]:
        known = [naive.known(table[name]) for table in both]
        assert found[name, "mean"] == pytest.approx(tuple(map(naive.mean, known)))
        assert found[name, "deviation"] == pytest.approx(tuple(map(naive.deviation, known)))
        assert found[name, "variance"] == pytest.approx(tuple(naive.deviation(own) ** 2 for own in known))
        for percent in (5, 25, 50, 75, 95):
            assert found[name, f"q{percent}"] == pytest.approx(tuple(np.percentile(own, percent) for own in known))
    names = list(both[0])
    for place, matrices in enumerate(map(naive.covariances, both)):
        for i, one in enumerate(names):
            for j, other in enumerate(names[:i]):
                assert found[other, "covariance", one][place] == pytest.approx(matrices[i][j])


@pytest.fixture
def correlated():
    random = np.random.default_rng(3)
    before = pd.DataFrame({"x": random.normal(size=80)})
    before = before.assign(y=before["x"] + random.normal(size=80), z=random.normal(size=80) - before["x"])
    return before, before + 0.3 * random.normal(size=(80, 3))


def test_correlations_coefficients_and_eigenvalues_are_those_of_the_definitions(correlated):
    found = gpupif.compare(*correlated)
    estimates, tables = by_estimate(found), [table.to_dict("list") for table in correlated]
    assert found.continuous.eigenvalues == pytest.approx(naive.eigenvalues(*tables))
    for place, table in enumerate(tables):
        assert estimates["x", "correlation", "z"][place] == pytest.approx(naive.correlations(table)[0][2])
        for name in "xyz":
            for other, value in naive.coefficients(table, name).items():
                assert estimates[name, "coefficient", other][place] == pytest.approx(value)
    difference = found.estimates["after"] - found.estimates["before"]
    assert (found.estimates["difference"] == difference).all()


def test_columns_that_follow_from_others_have_no_eigenvalues_and_coefficients(correlated):
    before, after = (table.assign(w=table["x"] + table["y"]) for table in correlated)
    found = gpupif.compare(before, after)
    estimates = by_estimate(found)
    assert found.continuous.eigenvalues is None
    assert math.isnan(estimates["z", "coefficient", "w"][0])
    # The sum of the others is x + y exactly, whatever z is.
    assert estimates["w", "coefficient", "z"] == pytest.approx((0, 0), abs=1e-9)
    assert estimates["w", "coefficient", "x"] == pytest.approx((1, 1))


@pytest.mark.slow
def test_the_tree_of_boxes_finds_the_nearest_rows_of_large_tables(monkeypatch):
    random = np.random.default_rng(0)
    before = pd.DataFrame(random.integers(0, 60, (250, 3)), columns=list("xyz"))
    after = before + random.integers(-4, 5, before.shape)
    tables = [table.to_dict("list") for table in (before, after)]
    for leaf in (1, 16):
        monkeypatch.setattr(record_linkage, "LEAF_POINTS", leaf)
        found = gpupif.compare(before, after).continuous
        assert found.by_distance.share == pytest.approx(naive.linked_by_distance(*tables))
        assert found.by_rank.share == pytest.approx(naive.linked_by_rank(*tables))


def test_a_sample_of_rows_is_near_the_truth_and_many_columns_are_limited(monkeypatch, correlated):
    exact = gpupif.compare(*correlated).continuous.by_distance
    drawn = gpupif.compare(*correlated, linkage=40, seed=2).continuous.by_distance
    assert (drawn.rows, drawn.seed) == (40, 2)
    assert abs(drawn.share - exact.share) < 4 * drawn.standard_error
    monkeypatch.setattr(record_linkage, "MOST_PAIRS", 100)
    assert gpupif.compare(*correlated, quasi_identifiers=["x"]).continuous.by_distance == exact
    monkeypatch.setattr(record_linkage, "TREE_COLUMNS", 2)
    assert gpupif.compare(*correlated).continuous.by_distance.seed == 0
    with pytest.raises(gpupif.InputError, match="linkage: 'exact' compares 80 distinct rows with 80"):
        gpupif.compare(*correlated, linkage="exact")


def test_pairs_that_do_not_fit_into_memory_are_refused_in_one_line(monkeypatch, correlated):
    from gpupif.comparison import continuous_values

    monkeypatch.setattr(continuous_values, "LINK_BYTES", 2**40)
    with pytest.raises(gpupif.InputError, match=r"linkage: 80 distinct pairs of rows .*numbers=, or say linkage=None"):
        gpupif.compare(*correlated)
    assert gpupif.compare(*correlated, linkage=None).continuous.by_distance is None


def test_unchanged_tables_lose_nothing(correlated):
    before = correlated[0]
    found = gpupif.compare(before, before, numbers=["x", "z"], linkage="exact")
    document = found.continuous
    assert (document.il1s, document.eigenvalues, document.by_distance.share, document.by_rank.share) == (0, 0, 1, 1)
    assert (document.rows_within_deviations, document.rows_within_ranks) == (1, 1)
    assert (found.estimates["difference"] == 0).all()
    assert gpupif.compare(before, before).continuous is None


def test_columns_of_numbers_that_changed_are_measured():
    before = pd.DataFrame({"x": [1, 2, 3], "same": [1, 2, 3], "text": ["1", "2", "3"], "recoded": [1, 2, 3]})
    after = before.assign(x=[1, 2, 4], text=["1", "2", "4"], recoded=["1-2", "1-2", "3"])
    found = gpupif.compare(before, after)
    assert found.continuous.columns == ["x"]
    assert gpupif.compare(before, after, numbers=["same", "x"]).continuous.columns == ["same", "x"]
    assert gpupif.compare(before, after, numbers=[]).continuous is None
    for name, came in (("text", "texts"), ("recoded", "texts")):
        with pytest.raises(
            gpupif.InputError, match=f"numbers: column '{name}': expected finite numbers.*{came}"
        ) as caught:
            gpupif.compare(before, after, numbers=[name])
        assert "\n" not in str(caught.value)


WEIGHTS = [1.5, 0.0, 4.0, 2.5, 1.0]


def test_weighted_estimates_are_those_of_the_definitions():
    before = pd.DataFrame({"pay": [10, 20, None, 40, 50], "sex": ["f", "m", "f", "m", None], "people": WEIGHTS})
    after = before.assign(pay=[12, 18, None, None, 55], sex=["f", "f", "f", "m", "m"]).drop(columns="people")
    found = by_estimate(gpupif.compare(before, after, weights="people"))
    tables = [[None if value != value else value for value in table["pay"]] for table in (before, after)]
    total, mean, median = zip(*(naive.weighted(values, WEIGHTS) for values in tables), strict=True)
    assert found["pay", "weighted_total"] == pytest.approx(total)
    assert found["pay", "weighted_mean"] == pytest.approx(mean)
    assert found["pay", "weighted_q50"] == median
    assert found["sex", "weighted_share", "f"] == pytest.approx((5.5 / 8, 5.5 / 9))
    assert found["sex", "weighted_share", "m"] == pytest.approx((2.5 / 8, 3.5 / 9))
    roles = {"pay": "quasi-identifier", "sex": "sensitive", "people": "weight"}
    assert by_estimate(gpupif.compare(before, after, roles=roles)) == found
    recoded = before.assign(pay=["low", "low", None, "high", None]).drop(columns="people")
    shares = by_estimate(gpupif.compare(before, recoded, weights="people"))
    assert shares["pay", "weighted_share", "low"] == pytest.approx((1.5 / 5, 1.5 / 4))
    for wrong, words in (
        ([1, 2, 3, 4, -1], "expected a number of people, 0 or more, got -1"),
        (list("abcde"), "people"),
    ):
        with pytest.raises(gpupif.InputError, match=f"weights: .*{words}"):
            gpupif.compare(before.assign(people=wrong), after, weights="people")


def test_the_printed_tables_and_json_have_the_figures(correlated, capsys):
    before, after = (table.assign(people=2.0, sex="f") * 1 for table in correlated)
    found = gpupif.compare(before, after, weights="people")
    text = str(found)
    for words in (
        "IL1s",
        "rows within 0.05 deviations",
        "linked by rank",
        "by their difference as a share of before",
        "weighted total: x",
    ):
        assert words in text
    assert max(map(len, text.splitlines())) <= 120
    document = json.loads(found.to_json())
    assert document["continuous"]["by_distance"]["rows"] == 80
    assert document["estimates"][0]["estimate"] == "mean"


def test_a_column_with_one_value_in_the_rows_with_all_numbers_has_no_correlation():
    before = pd.DataFrame({"n": pd.array([None] * 4, "Int64"), "m": pd.array([None] * 4, "Int64")})
    after = pd.DataFrame({"n": pd.array([None, 5, 0, 0], "Int64"), "m": pd.array([1, None, 0, 0], "Int64")})
    found = gpupif.compare(after, before.assign(n=after["n"] + 1, m=after["m"]), numbers=["n", "m"]).estimates
    assert found.loc[found["estimate"] == "correlation", ["before", "after"]].isna().all(axis=None)
    assert (found.loc[found["estimate"] == "covariance", ["before", "after"]] == 0).all(axis=None)
