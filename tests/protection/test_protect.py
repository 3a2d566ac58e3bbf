"""The least treatment: every node of small lattices tried, what was treated measured again, all kinds of tables."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif.protection import lattice_search
from gpupif.protection.request import as_share_of_rows
from tests.helpers import naive_protection as naive
from tests.helpers.people import HEIGHTS, NAMES, given, people, rows_of

VALUES = list("abcdefghijklmnop")

QUESTIONS = [
    (["k>=3"], {}),
    (["k>=2", "known=2: k>=6"], {}),
    (["uniques<=3", "distinct_l>=2"], {"sensitive": ["ill"]}),
    (["pif90<=2.5"], {}),
    (["k>=2", "max csf(ill)<=0.6"], {"sensitive": ["ill"]}),
    (["mean cig(ill)<=0.4", "alpha<=0.9"], {"sensitive": ["ill"]}),
    (["max total_variation<=0.5"], {}),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("criteria", "arguments"), QUESTIONS)
def test_the_plan_is_the_best_of_all_nodes(criteria, arguments, seed):
    table, hierarchies = people(seed)
    table = table if arguments else table[NAMES]
    found = gpupif.protect(table, criteria, hierarchies=given(hierarchies), **arguments)
    node, loss = naive.best(rows_of(table), hierarchies, criteria, NAMES, arguments.get("sensitive", ()))
    assert tuple(found.levels.values()) == node
    assert found.loss == pytest.approx(loss, rel=1e-12)
    assert found.optimal
    assert found.gap == 0
    assert found.is_met
    assert found.checks <= found.nodes == 4 * 3 * 3 * 2


@pytest.mark.parametrize("seed", range(3))
def test_the_plan_with_suppressed_rows_is_the_best(seed):
    table, hierarchies = people(seed)
    arguments = {"hierarchies": given(hierarchies), "sensitive": ["ill"], "suppress": 0.1}
    for criteria in (["k>=3"], ["k>=3", "mean cig(ill)<=0.8"]):
        found = gpupif.protect(table, criteria, **arguments)
        node, loss = naive.best(rows_of(table), hierarchies, criteria, NAMES, ["ill"], k=3, most=6)
        assert tuple(found.levels.values()) == node
        assert found.loss == pytest.approx(loss, rel=1e-12)
        assert found.suppressed_rows <= 6
        left = gpupif.treat(table, found.plan).table
        assert len(left) == len(table) - found.suppressed_rows
        assert gpupif.risk(left, NAMES).k >= 3


def test_no_level_is_added_above_a_root():
    table, hierarchies = people(1)
    named = {
        name: {value: (*path[:-1], "All") for value, path in groups.items()} for name, groups in hierarchies.items()
    }
    twice = {name: {value: (*path, "*") for value, path in groups.items()} for name, groups in named.items()}
    usual = gpupif.protect(table[NAMES], "k>=20", hierarchies=given(hierarchies))
    for roots in (named, twice):
        found = gpupif.protect(table[NAMES], "k>=20", hierarchies=given(roots))
        assert (found.levels, found.loss, found.checks) == (usual.levels, usual.loss, usual.checks)
        assert found.nodes == usual.nodes == 4 * 3 * 3 * 2
        assert found.heights == {name: height for name, (_, height) in HEIGHTS.items()}
        after = gpupif.treat(table[NAMES], found.plan).table
        tops = [name for name in NAMES if found.levels[name] == found.heights[name]]
        assert tops
        assert (after[tops] == "All").all(axis=None)


def test_a_level_that_is_one_group_in_the_table_is_the_top():
    ages = pd.DataFrame({"age": [21, 24, 36, 38, 47], "sex": list("ffmmm")})
    found = gpupif.protect(ages, "k>=5", hierarchies={"age": {"widths": [10, 100, 200]}})
    assert (found.levels, found.heights, found.nodes) == ({"age": 2, "sex": 1}, {"age": 2, "sex": 1}, 6)
    assert "Plan: makes each of age and sex one group; cost: " in found.verdict()[1]
    assert set(gpupif.treat(ages, found.plan).table["age"]) == {"[0, 100)"}
    # A column of one value has no other level.
    same = gpupif.protect(ages.assign(sex="f"), "pif95<=0.5", hierarchies={"age": {"widths": [10]}})
    assert (same.heights["sex"], same.levels["sex"]) == (0, 0)
    assert gpupif.protect(ages[["sex"]].assign(sex="f"), "pif95<=0.5").levels == {"sex": 0}


def test_ties_go_to_the_lowest_levels():
    # Columns may change places in this table, so that levels may too, at the same loss but for the last bit of a sum.
    groups = {value: [*(str(place // 2**level) for level in (1, 2, 3)), "*"] for place, value in enumerate(VALUES)}
    for seed in (10, 11, 12, 13):
        rng = np.random.default_rng(seed)
        rows = rng.choice(VALUES, (20, 3), p=np.arange(1, 17) / 136)
        table = pd.DataFrame([one for row in rows for one in itertools.permutations(row)], columns=list("pqr"))
        for criterion in ("k>=6", "k>=12"):
            found = gpupif.protect(table, criterion, hierarchies=given(dict.fromkeys("pqr", groups)))
            assert list(found.levels.values()) == sorted(found.levels.values())
            node = next(one for one in found.frontier if one.levels == found.levels)
            assert node.loss == found.loss


def test_importances_of_columns_change_the_best_plan():
    table, hierarchies = people(1)
    importance = {"age": 0.01, "home": 5}
    found = gpupif.protect(table[NAMES], "k>=3", hierarchies=given(hierarchies), importance=importance)
    node, loss = naive.best(rows_of(table), hierarchies, ["k>=3"], NAMES, importance=importance)
    assert tuple(found.levels.values()) == node
    assert found.loss == pytest.approx(loss, rel=1e-12)
    assert found.loss == pytest.approx(sum(importance.get(name, 1) * bits for name, bits in found.losses.items()))


def test_the_treated_table_has_the_reported_risk():
    table, hierarchies = people(2)
    criteria = ["k>=2", "pif90<=3", "known=2: k>=4", "max csf(ill)<=0.7", "t<=0.7", "mean rig<=3", "known=1: pif95<=2"]
    found = gpupif.protect(table, criteria, hierarchies=given(hierarchies), sensitive="ill")
    after = gpupif.treat(table, found.plan).table
    value = {str(one.criterion): one.value for one in found.risk}
    scores = gpupif.score(after, columns=[*NAMES, "ill"], known=NAMES)
    risk = gpupif.risk(after, NAMES, "ill")
    assert value["k>=2"] == risk.k
    assert value["t<=0.7"] == risk.worst["t"]
    assert value["pif90<=3"] == scores.pif(90)
    assert value["max csf(ill)<=0.7"] == scores.csf["ill"].max()
    assert value["mean rig<=3"] == pytest.approx(float(np.mean(scores.rig())), rel=1e-12)
    anyone = gpupif.score(after, columns=[*NAMES, "ill"], known=gpupif.AnyKnown(1, among=NAMES))
    assert value["known=1: pif95<=2"] == anyone.pif(95)
    rows = naive.treated(rows_of(table), hierarchies, tuple(found.levels.values()))
    assert value["known=2: k>=4"] == naive.value(rows, "known=2: k>=4", NAMES, ["ill"])
    # What the search knew of the node is what the treated table has.
    node = next(one for one in found.frontier if one.levels == found.levels)
    assert {name: node.values[name] for name in value} == value


def test_the_frontier_has_no_dominated_plan():
    table, hierarchies = people(0)
    found = gpupif.protect(table[NAMES], ["k>=2", "pif90<=3.5"], hierarchies=given(hierarchies))
    points = [(one.loss, -one.values["k>=2"], one.values["pif90<=3.5"]) for one in found.frontier]
    assert points == sorted(points)
    assert len(points) > 1
    for one in points:
        assert not any(other != one and all(x <= y for x, y in zip(other, one, strict=True)) for other in points)
    assert found.loss in [one.loss for one in found.frontier]


OF_HOUSES = {"weights": "w", "household": "house"}
OF_PEOPLE = {"sampling_fraction": 0.1, "game": gpupif.models.Game(adversary_gain=10, adversary_cost=4)}


def test_cells_are_suppressed_in_place_of_rows():
    table, hierarchies = people(1)
    arguments = {"hierarchies": given(hierarchies), "suppress": 0.15}
    rows = gpupif.protect(table[NAMES], "k>=3", **arguments)
    cells = gpupif.protect(table[NAMES], "k>=3", cells=True, **arguments)
    assert rows.suppressed_rows
    assert cells.levels == rows.levels
    after = gpupif.treat(table[NAMES], cells.plan).table
    assert len(after) == len(table)
    for missing in ("category", "wildcard"):
        assert gpupif.risk(after, NAMES, missing=missing).k >= 3
    assert cells.is_met
    holes = after.isna()
    assert cells.suppressed_rows == holes.any(axis=1).sum()
    assert cells.suppressed_cells == holes.sum().sum()
    assert (rows.suppressed_cells, rows.rows_with_cells, cells.rows_with_cells) == (0, None, None)


@pytest.mark.parametrize(
    ("criteria", "arguments"),
    [
        (["k>=3", "alpha<=0.8"], {"weights": "w", "sensitive": "ill"}),
        (["k>=3"], {"missing": "wildcard"}),
        pytest.param(
            ["k>=3", "estimated.individual.highest<=0.3", "households.risk.highest<=0.9"],
            OF_HOUSES,
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ["k>=2", "uniques.sample_uniques<=0", "games.prosecutor.attacked<=40"], OF_PEOPLE, marks=pytest.mark.slow
        ),
    ],
    ids=str,
)
def test_cells_are_suppressed_by_weights_figures_of_risk_and_one_reading(criteria, arguments, tmp_path):
    table, hierarchies = people(1)
    table["w"], table["house"] = np.arange(len(table)) % 4, np.arange(len(table)) // 3
    arguments = {"hierarchies": given(hierarchies), "quasi_identifiers": NAMES, "suppress": 0.4, **arguments}
    cells = gpupif.protect(table, criteria, cells=True, **arguments)
    assert cells.is_met
    assert cells.suppressed_cells > 0
    assert [str(own.criterion) for own in cells.risk] == criteria
    cells.plan.save(tmp_path / "plan.toml")
    after = gpupif.treat(table, tmp_path / "plan.toml").table
    assert after[NAMES].isna().sum().sum() == cells.suppressed_cells
    of_risk = {name: arguments[name] for name in {*arguments} & {"weights", "missing"}}
    assert gpupif.risk(after, NAMES, **of_risk).k == cells.smallest_class
    if "missing" in arguments:
        both = gpupif.protect(table, criteria, cells=True, **{**arguments, "missing": "category"})
        assert cells.suppressed_cells < both.suppressed_cells


@pytest.mark.slow
def test_rows_are_suppressed_if_cells_would_be_in_too_many_rows():
    table, hierarchies = people(0)
    arguments = {"hierarchies": given(hierarchies), "sensitive": ["ill"], "suppress": 0.1}
    criteria = ["k>=3", "max csf<=0.5"]
    rows = gpupif.protect(table, criteria, **arguments)
    cells = gpupif.protect(table, criteria, cells=True, **arguments)
    assert cells.is_met
    assert cells.rows_with_cells > 6 >= cells.suppressed_rows == rows.suppressed_rows
    assert (cells.suppressed_cells, cells.plan) == (0, rows.plan)
    assert len(gpupif.treat(table, cells.plan).table) == len(table) - cells.suppressed_rows
    assert f"would have been suppressed in {cells.rows_with_cells} rows, more than may be" in str(cells)


def test_the_worse_of_two_readings_is_reported():
    """A suppressed cell that matches every value has many equal rows, one that is a category has few."""
    table, hierarchies = people(1)
    found = gpupif.protect(table[NAMES], "k>=3", hierarchies=given(hierarchies), suppress=0.15, cells=True)
    after = gpupif.treat(table[NAMES], found.plan).table
    smallest = {missing: gpupif.risk(after, NAMES, missing=missing).k for missing in ("category", "wildcard")}
    assert smallest["wildcard"] > smallest["category"] == found.risk[0].value


ONE_VALUE_LEFT = pd.DataFrame({"a": list("xxxyz"), "S": list("ppppq")})
ONLY_ROWS_REACH = pd.DataFrame({"a": list("xxxxyzw"), "S": list("pqpqppp")})


@pytest.mark.sampled(5)
@pytest.mark.parametrize("cells", [False, True])
@pytest.mark.parametrize(
    ("criterion", "kind"),
    [("t(S)<=0.2", "memory"), ("t(S)<=0.2", "file"), ("t(S)<=0.2", "Dask"), ("basic_beta(S)<=0.3", "memory")],
)
@pytest.mark.usefixtures("on_cpu")
def test_remaining_rows_may_have_a_single_sensitive_value(cells, criterion, kind, tmp_path):
    from dask import dataframe as dd

    table = ONE_VALUE_LEFT
    if kind == "file":
        table = tmp_path / "t.parquet"
        ONE_VALUE_LEFT.to_parquet(table)
    elif kind == "Dask":
        table = dd.from_pandas(ONE_VALUE_LEFT, npartitions=2)
    arguments = {"hierarchies": {"a": {"values": dict.fromkeys("xyz", "*")}}, "sensitive": "S"}
    found = gpupif.protect(table, ["k>=3", criterion], suppress=0.5, cells=cells, **arguments)
    assert (found.levels, found.suppressed_rows, found.is_met) == ({"a": 0}, 2, True)
    assert found.rows_with_cells == (5 if cells else None)
    assert not found.cells_unreached
    assert gpupif.treat(ONE_VALUE_LEFT, found.plan).table["S"].tolist() == ["p"] * 3


@pytest.mark.parametrize("arguments", [{}, {"suppress": 0.2}, {"suppress": 0.2, "cells": True}])
def test_a_criterion_on_one_attribute_asks_nothing_of_another_one(arguments):
    table = pd.DataFrame({"group": list("aaabbbccc") * 2, "s": list("xyz") * 6, "two": list("pqpqpqppq") * 2})
    found = gpupif.protect(
        table,
        ["k>=2", "recursive_c(s, l=3)<=5", "distinct_l(two)>=2"],
        quasi_identifiers=["group"],
        sensitive=["s", "two"],
        **arguments,
    )
    assert found.levels == {"group": 0}
    assert [value.value for value in found.risk] == [6, 1, 2]


def test_a_sensitive_attribute_of_one_value_has_closeness_zero():
    table = pd.DataFrame({"a": list("xxxyz"), "S": [1, 1, 1, 1, 5]})
    arguments = {"hierarchies": {"a": {"values": dict.fromkeys("xyz", "*")}}, "sensitive": "S", "suppress": 0.5}
    found = gpupif.protect(table, ["k>=3", "t<=0.2"], distances={"S": "ordered"}, **arguments)
    assert [one.value for one in found.risk] == [3, 0]
    with pytest.raises(gpupif.InputError, match="column 'S': expected at least two different values, got 1 in all"):
        gpupif.protect(table.assign(S=1), ["k>=3", "t<=0.2"], **arguments)


def test_rows_are_suppressed_if_no_cells_reach_a_criterion():
    arguments = {"hierarchies": {"a": {"values": dict.fromkeys("xyzw", "*")}}, "sensitive": "S", "suppress": 0.7}
    rows = gpupif.protect(ONLY_ROWS_REACH, ["k>=2", "alpha(S)<=0.6"], **arguments)
    cells = gpupif.protect(ONLY_ROWS_REACH, ["k>=2", "alpha(S)<=0.6"], cells=True, **arguments)
    assert (cells.plan, cells.risk, cells.suppressed_rows) == (rows.plan, rows.risk, 3)
    assert (cells.cells_unreached, cells.rows_with_cells, rows.cells_unreached) == (True, None, False)
    assert "No single cells meet all criteria when suppressed" in str(cells)


def nominal_and_ordered_differ():
    """A table in which closeness to 0.2 takes other cells if the distances of "s" are nominal than if they are not."""
    rng = np.random.default_rng(0)
    columns = {"a": list("abcdef"), "b": list("xyz"), "s": [1, 2, 3, 9]}
    return pd.DataFrame({name: rng.choice(values, 40) for name, values in columns.items()})


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "sensitive",
    [
        nominal_and_ordered_differ()["s"],
        pd.Categorical.from_codes(nominal_and_ordered_differ()["s"] % 4, ["low", "mid", "high", "top"], ordered=True),
        pd.Categorical.from_codes(
            nominal_and_ordered_differ()["s"] % 4,
            pd.to_datetime(["2020-01-01", "2020-03-01", "2020-02-01", "2021-02-01"]),
            ordered=True,
        ),
    ],
    ids=["distances", "ordered categories", "ordered categories of dates"],
)
@pytest.mark.parametrize("cells", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.usefixtures("on_cpu")
def test_suppression_reaches_closeness_by_the_distances_asked_for_and_after_a_file(cells, sensitive, tmp_path):
    table = nominal_and_ordered_differ().assign(s=sensitive)
    distances = {"s": "nominal"} if sensitive.dtype == "int64" else None
    found = gpupif.protect(
        table,
        ["k>=2", "t<=0.2"],
        quasi_identifiers=["a", "b"],
        sensitive=["s"],
        suppress=0.97,
        cells=cells,
        distances=distances,
    )
    assert found.suppressed_rows > 0
    assert (found.suppressed_cells > 0, found.cells_unreached) == (cells, False)
    assert found.is_met or not cells
    treated = gpupif.treat(table, found.plan).table
    found.plan.save(tmp_path / "plan.toml")
    pd.testing.assert_frame_equal(gpupif.treat(table, gpupif.Plan.load(tmp_path / "plan.toml")).table, treated)


def test_rows_are_suppressed_if_the_measured_table_with_suppressed_cells_breaks_a_criterion(monkeypatch):
    # The treatment suppresses for other distances than the table is measured by.
    monkeypatch.setattr("gpupif.treatment.suppression.suppress.read_distances", lambda given: {})
    arguments = {"quasi_identifiers": ["a", "b"], "sensitive": ["s"], "suppress": 0.97, "distances": {"s": "nominal"}}
    with pytest.raises(
        gpupif.errors.UnmetError, match=r"the treated table does not meet the criteria: 't<=0\.2'"
    ) as unmet:
        gpupif.protect(nominal_and_ordered_differ(), ["k>=2", "t<=0.2"], cells=True, **arguments)
    found = unmet.value.nearest
    assert (found.cells_unreached, found.suppressed_cells, found.rows_with_cells) == (True, 0, None)


@pytest.mark.slow
@pytest.mark.usefixtures("on_cpu")
def test_any_kind_of_table_has_the_same_plan(tmp_path):
    import polars as pl
    import pyarrow as pa
    from dask import dataframe as dd

    table, hierarchies = people(0)
    table.loc[::7, "job"] = None
    table.to_parquet(tmp_path / "people.parquet")
    arguments = {"hierarchies": given(hierarchies), "sensitive": "ill", "suppress": 0.05}
    criteria = ["k>=2", "pif90<=3.5"]
    first = gpupif.protect(table, criteria, **arguments)
    kinds = [pa.Table.from_pandas(table), pl.from_pandas(table), dd.from_pandas(table, npartitions=3)]
    for other in (*kinds, tmp_path / "people.parquet", table.sample(frac=1, random_state=1)):
        found = gpupif.protect(other, criteria, **arguments)
        assert found.plan.to_dict() == first.plan.to_dict()
        assert (found.loss, found.checks, found.frontier) == (first.loss, first.checks, first.frontier)
        assert [one.value for one in found.risk] == [one.value for one in first.risk]
    for threads in (1, 3):
        with gpupif.config(threads=threads):
            assert gpupif.protect(table, criteria, **arguments).plan.to_dict() == first.plan.to_dict()
    with gpupif.config(memory_limit="2GiB"):
        found = gpupif.protect(tmp_path / "people.parquet", criteria, **arguments)
    assert found.plan.to_dict() == first.plan.to_dict()


def test_a_saved_plan_reaches_the_same_risk_again(tmp_path):
    table, hierarchies = people(0)
    found = gpupif.protect(table[NAMES], "k>=3", hierarchies=given(hierarchies))
    found.plan.save(tmp_path / "plan.toml")
    again = gpupif.treat(table[NAMES], tmp_path / "plan.toml").table
    assert gpupif.risk(again, NAMES).k == {str(one.criterion): one.value for one in found.risk}["k>=3"]
    document = json.loads(found.to_json())
    assert document["risk"][0] == {"criterion": "k>=3", "value": found.risk[0].value, "is_met": True, "column": None}
    assert "Levels" in str(found)
    assert "optimal" in repr(found)


def test_missing_hierarchies_are_proposed():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.integers(18, 90, 300), "zip": [f"{n:05}" for n in rng.integers(10, 900, 300)]})
    found = gpupif.protect(table, "k>=3", hierarchies={"age": {"widths": [10, 30]}})
    assert found.proposed == ["zip"]
    assert found.optimal
    assert gpupif.risk(gpupif.treat(table, found.plan).table, ["age", "zip"]).k >= 3


def test_a_search_without_time_for_a_check_is_an_error():
    table, hierarchies = people(0)
    with pytest.raises(gpupif.errors.UnmetError, match=r"time_limit: no treatment was found.*0 checks"):
        gpupif.protect(table[NAMES], "k>=3", hierarchies=given(hierarchies), time_limit=1e-9)


def test_a_table_that_meets_the_criteria_needs_no_treatment():
    table, hierarchies = people(0)
    found = gpupif.protect(table[NAMES], "k>=1", hierarchies=given(hierarchies))
    assert found.loss == 0
    assert found.plan.treatments == ()
    assert found.optimal


UNREACHABLE = [
    ({"require": "k>=100"}, "'k>=100' is not even met .* top level: it is 60. The table has 60 rows"),
    (
        {"require": "alpha<=0.1", "sensitive": "ill"},
        r"column 'ill'\. The column is sensitive .* 3 different values, 'a' in \d+",
    ),
    (
        {"require": "nb: k>=50", "attackers": {"nb": ["age", "ill"]}, "sensitive": "ill"},
        "The attacker knows column 'ill', which the plan does not change",
    ),
    (
        {"require": "mean cohort_size(ill)>=61", "sensitive": "ill"},
        "top level: it is 60. The table has 60 rows",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), UNREACHABLE)
def test_an_error_says_why_criteria_cannot_be_met(arguments, message):
    table, hierarchies = people(0)
    with pytest.raises(gpupif.errors.UnmetError, match=message):
        gpupif.protect(table, hierarchies=given(hierarchies), **arguments)


def test_an_unreachable_criterion_in_a_large_lattice_is_not_blamed_on_time(monkeypatch):
    monkeypatch.setattr(lattice_search, "MOST_NODES", 10)
    table, hierarchies = people(0)
    for criterion in ("k>=100", "min prior(ill)>=0.99"):
        with pytest.raises(gpupif.errors.UnmetError, match="require: no treatment meets the criteria") as error:
            gpupif.protect(table, criterion, hierarchies=given(hierarchies), sensitive="ill")
        assert repr(criterion) in str(error.value)


def test_known_attributes_do_not_count_as_learnt():
    table, hierarchies = people(0)
    arguments = {"hierarchies": given(hierarchies), "quasi_identifiers": NAMES, "sensitive": ["ill", "pay"]}
    table = table.assign(pay=np.arange(len(table)) % 30)
    found = gpupif.protect(table, "known=sex,ill: alpha<=0.4", **arguments)
    assert found.is_met
    assert found.risk[0].column == "pay"
    node = next(one for one in found.frontier if one.levels == found.levels)
    assert found.risk[0].value == node.values["known=sex,ill: alpha<=0.4"]


def test_columns_may_have_numbers_as_names():
    table, hierarchies = people(0)
    numbered = table[NAMES].rename(columns={"age": 7})
    other = given({7 if name == "age" else name: one for name, one in hierarchies.items()})
    known = [7, *NAMES[1:]]
    found = gpupif.protect(numbered, "known=7,sex: k>=5", hierarchies=other, quasi_identifiers=known)
    same = gpupif.protect(table[NAMES], "known=age,sex: k>=5", hierarchies=given(hierarchies))
    assert list(found.levels.values()) == list(same.levels.values())


BAD = [
    ({"require": []}, "require: expected at least one"),
    ({"require": 5}, "require: expected limits as text"),
    ({"require": "k<=5"}, "k is safer if it is higher: write k>=5"),
    ({"require": "t<=0.1"}, "t is of a sensitive attribute: name one"),
    ({"require": "nb: k>=2"}, "no attacker 'nb'"),
    ({"require": "known=ill: alpha<=0.9", "sensitive": "ill"}, "the attacker knows column 'ill' and has nothing"),
    ({"require": "known=9: k>=2"}, "known=9: k>=2.*at most 5"),
    ({"require": "known=agee: k>=2"}, "no column 'agee'.*'age'"),
    ({"require": "mean cig(agee)<=1"}, "'agee' is no column that is scored.*'age'"),
    ({"require": "k>=2", "sensitive": "illl"}, "sensitive: no column 'illl'.*'ill'"),
    ({"require": "k>=2", "sensitive": "ill", "quasi_identifiers": ["ill"]}, "column 'ill' is a quasi-identifier too"),
    ({"require": "k>=2", "sensitive": "illl", "quasi_identifiers": ["age"]}, "sensitive: no column 'illl'.*'ill'"),
    ({"require": "nb: k>=2", "attackers": {"nb": ["agee"]}}, "attackers: 'nb': no column 'agee'.*'age'"),
    (
        {"require": "nb: k>=2", "attackers": {"nb": ["agee"]}, "quasi_identifiers": ["age"]},
        "attackers: 'nb': no column 'agee'.*'age'",
    ),
    ({"require": "k>=2", "attackers": {"nb": ["age"]}}, "attackers: 'nb': no criterion is on this attacker"),
    ({"require": "k>=2", "quasi_identifiers": ["agee"]}, "no column 'agee'"),
    (
        {"require": "known=age,hair: k>=5", "quasi_identifiers": ["age", "sex"]},
        "^criterion 'known=age,hair: k>=5': no column 'hair' in the table",
    ),
    (
        {"require": "nb: k>=5", "quasi_identifiers": ["age", "sex"], "attackers": {"nb": ["hair"]}},
        "^attackers: 'nb': no column 'hair' in the table",
    ),
    (
        {"require": "k>=5", "quasi_identifiers": ["age", "sex"], "sensitive": "illl"},
        "^sensitive: no column 'illl' in the table. Did you mean 'ill'",
    ),
    ({"require": "k>=2", "suppress": 1.0}, "suppress: expected a share"),
    ({"require": "k>=2", "suppress": 4}, "Divide percentages by 100"),
    ({"require": "pif95<=2", "suppress": 0.1}, "suppress: expected with a criterion on each equivalence class"),
    ({"require": "k>=2", "cells": True}, "cells: expected with suppress="),
    ({"require": "k>=2", "importance": {"agee": 1}}, "importance: column 'agee' is no quasi-identifier.*'age'"),
    ({"require": "k>=2", "importance": {"age": 0}}, "importance: column 'age': expected a number above 0"),
    ({"require": "k>=2", "importance": [1]}, "importance: expected {column: importance}"),
    ({"require": "k>=2", "time_limit": 0}, "time_limit: expected seconds above 0"),
    ({"require": "k>=2", "hierarchies": {"agee": {"widths": [5]}}}, "hierarchies: column 'agee'.*'age'"),
    (
        {"require": "k>=2", "hierarchies": {"age": {"values": {"age0": ["*"]}}}},
        "column 'age'.*have no place .* a place there[.]$",
    ),
    ({"require": "k>=2", "distances": {"age": "ordered"}}, "distances: column 'age' is not sensitive"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(gpupif.InputError, match=message):
        gpupif.protect(people(0)[0], **arguments)


@pytest.mark.parametrize(("share", "rows"), [(0.29, 29), (0.07, 7), (0.001, 0)])
def test_the_share_of_suppressed_rows_is_exact(share, rows):
    assert math.floor(as_share_of_rows(share) * 100) == rows
