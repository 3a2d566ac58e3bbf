"""Rows of classes that break any criterion on classes are suppressed: every node of small lattices by definition."""

from __future__ import annotations

import io
import itertools
import math

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import gpupif
from gpupif.criteria.class_criteria import ClassCriteria
from gpupif.criteria.criterion_set import CriterionSet
from gpupif.kernels import class_bounds
from tests.helpers import naive_protection as naive
from tests.helpers.class_criteria import (
    CRITERIA,
    NAMES,
    best,
    example,
    excess,
    excess_of_class,
    is_broken,
    left_classes,
    suppressed_rows,
)

each_share = pytest.mark.parametrize(
    ("seed", "share"),
    [(0, 0.1), *(pytest.param(*own, marks=pytest.mark.slow) for own in [(0, 0.0), (1, 0.03)])],
)


@pytest.mark.sampled(5)
@each_share
@pytest.mark.parametrize("criteria", CRITERIA, ids=" and ".join)
def test_the_plan_is_the_best_of_all_nodes(criteria, share, seed):
    table, hierarchies = example(seed)
    rows = table.to_dict("records")
    given = {name: {"values": dict(groups)} for name, groups in hierarchies.items()}
    found = gpupif.protect(table, criteria, hierarchies=given, sensitive="ill", suppress=share)
    (node, suppressed), loss = best(rows, hierarchies, criteria, math.floor(share * len(rows) + 1e-9))
    assert tuple(found.levels.values()) == node
    assert found.loss == pytest.approx(loss, rel=1e-12)
    assert found.suppressed_rows == suppressed
    assert found.optimal
    assert all(value.is_met for value in found.searched)


@pytest.mark.parametrize("require", ["t<=0.2", "distinct_l>=3", "basic_beta<=1.0"])
def test_rows_of_weight_zero_decide_about_no_other_row(require):
    """Whatever values they have: their classes are judged without them, on the scale of the values of people."""
    table, hierarchies = with_pay(0)
    table["pay"] *= 2
    nobody = table.sample(30, random_state=1).assign(weight=0)
    # Values that only they have: one between two others, one beyond.
    nobody.loc[nobody.index[::2], "pay"] = [5, 99] * 7 + [5]
    table = table.assign(weight=np.arange(len(table)) % 3 + 1, row=range(len(table)))
    more = pd.concat([nobody.assign(row=-1), table], ignore_index=True)
    known = {"quasi_identifiers": ["a", "b"], "sensitive": ["pay"], "weights": "weight"}
    plan = [gpupif.treatments.SuppressRows(require=require, **known)]
    kept, expected = (gpupif.treat(own, plan).table for own in (more, table))
    assert 0 < len(expected) < len(table)
    assert kept.loc[kept["weight"] > 0, "row"].tolist() == expected["row"].tolist()
    given = {name: {"values": dict(hierarchies[name])} for name in ("a", "b")}
    found, alone = (gpupif.protect(own, require, hierarchies=given, **known) for own in (more, table))
    assert [own.value for own in found.before] == [own.value for own in alone.before]
    assert [own.value for own in found.risk] == [own.value for own in alone.risk]
    assert found.levels == alone.levels


def with_pay(seed):
    """A table with a second sensitive attribute, of numbers: a distance between its values counts the steps."""
    table, hierarchies = example(seed)
    table["pay"] = np.random.default_rng(seed).choice(range(1, 5), len(table), p=[0.4, 0.3, 0.2, 0.1])
    return table, hierarchies


def steps_apart(rows, whole, values):
    """The distance of two distributions of numbers, counted in steps between the values, as a share of all steps."""
    there = [value for value in values if any(row["pay"] == value for row in whole)]
    apart = [
        abs(np.mean([row["pay"] <= step for row in rows]) - np.mean([row["pay"] <= step for row in whole]))
        for step in there[:-1]
    ]
    return sum(apart) / max(1, len(apart))


def worst_excess(rows, whole, criteria, values=range(1, 5)):
    """By how much a class breaks any of some criteria, on one attribute or on the worst of both."""
    worst = 0.0
    for criterion in criteria:
        for column in [own for own in ("ill", "pay") if f"({own})" in criterion] or ["ill", "pay"]:
            plain = criterion.replace(f"({column})", "")
            if plain.startswith("t") and column == "pay":
                worst = max(worst, excess(steps_apart(rows, whole, values), plain))
            else:
                own = [[{"ill": row[column]} for row in some] for some in (rows, whole)]
                worst = max(worst, excess_of_class(*own, [plain]))
    return worst


@pytest.mark.sampled(5)
@each_share
@pytest.mark.parametrize(
    "criteria",
    [
        ["distinct_l(ill)>=2", "distinct_l(pay)>=3"],
        ["t<=0.35"],
        ["t(pay)<=0.15", "entropy_l(ill)>=1.9", "k>=3"],
        ["alpha(pay)<=0.7", "delta(ill)<=1.4"],
        ["basic_beta<=1.8", "distinct_l(pay)>=2"],
    ],
    ids=" and ".join,
)
def test_criteria_on_two_attributes_are_met_at_the_best_of_all_nodes(criteria, share, seed):
    table, hierarchies = with_pay(seed)
    rows = table.to_dict("records")
    given = {name: {"values": dict(groups)} for name, groups in hierarchies.items()}
    good = []
    for node in naive.nodes(hierarchies):
        treated = naive.treated(rows, hierarchies, node)
        classes = naive.classes(treated, NAMES).values()
        left = left_classes(classes, lambda own, left: worst_excess(own, left, criteria))
        suppressed = len(rows) - sum(map(len, left))
        if suppressed <= math.floor(share * len(rows) + 1e-9):
            good.append((naive.loss(rows, hierarchies, node, {}), node, suppressed))
    found = gpupif.protect(table, criteria, hierarchies=given, sensitive=["ill", "pay"], suppress=share)
    least = min(loss for loss, _, _ in good)
    node, suppressed = min((node, suppressed) for loss, node, suppressed in good if loss <= least * (1 + 1e-12))
    assert (tuple(found.levels.values()), found.suppressed_rows) == (node, suppressed)
    assert found.loss == pytest.approx(least, rel=1e-12)
    assert found.optimal


@pytest.mark.sampled(5)
@pytest.mark.parametrize("criterion", [own[0] for own in CRITERIA if own[0][0] not in "ku"])
def test_no_rows_that_meet_a_criterion_are_more_than_the_bound_of_their_class(criterion):
    """All parts of small classes by definition."""
    rng = np.random.default_rng(7)
    prior = {"p": 14, "q": 8, "r": 5, "s": 2, "u": 1}
    whole = [value for value, count in prior.items() for _ in range(count)]
    parts = rng.integers(0, [6, 5, 4, 3, 2], (60, 5))
    parts = parts[parts.sum(axis=1) > 0]
    classes = np.repeat(np.arange(len(parts)), 5)
    codes, counts = np.tile(np.arange(5), len(parts)), parts.ravel()
    there = counts > 0
    keys = (classes[there] * 8 + codes[there]).astype(np.uint64)[:, None]
    first, following, sizes, numbers = np.empty((4, len(keys)), np.int64)
    counts, slots, masks = counts[there], np.zeros(1024, np.uint32), np.array([~np.uint64(7)])
    number = class_bounds.number_classes(keys, counts, masks, slots, first, following, sizes, numbers)
    assert sizes[:number].tolist() == parts.sum(axis=1).tolist()
    on_classes = ClassCriteria.from_set(CriterionSet.from_arguments(criterion, ["a"], ["ill"]))
    bounds = on_classes.bounds("ill", np.array(list(prior.values())), len(whole), 0, 1)
    kept, (failing, left_open) = sizes[:number].copy(), np.zeros((2, number), bool)
    rows, working = (first, following, counts), np.zeros((4, 5), np.int64)
    class_bounds.bound_classes(
        rows, codes[there].astype(np.uint8), bounds, working, sizes[:number], kept, failing, left_open
    )
    assert numbers.tolist() == np.unique(classes[there], return_inverse=True)[1].tolist()

    def is_met(numbers):
        values = [{"ill": value} for value, count in zip(prior, numbers, strict=True) for _ in range(count)]
        return not is_broken(values, [{"ill": value} for value in whole], criterion)

    for part, most, fails, is_open in zip(
        parts.tolist(), kept.tolist(), failing.tolist(), left_open.tolist(), strict=True
    ):
        smaller = list(itertools.product(*(range(count + 1) for count in part)))
        assert most >= max([sum(own) for own in smaller if sum(own) and is_met(own)], default=0)
        assert fails == (not is_met(part))
        assert is_open >= fails
        assert most == sum(part) or fails


@pytest.mark.usefixtures("on_cpu")
def test_rows_of_broken_classes_are_suppressed_in_every_kind_of_table(tmp_path):
    from dask import dataframe as dd

    table, _ = example(3, 200)
    table["pay"] = np.random.default_rng(3).integers(1, 6, len(table))
    whole = table.to_dict("records")
    criteria = ["k>=2", "distinct_l(ill)>=2", "t(pay)<=0.3", "delta(ill)<=1.5"]
    treatment = gpupif.treatments.SuppressRows(require=criteria, quasi_identifiers=["b", "c"], sensitive=["ill", "pay"])
    plan = gpupif.Plan([treatment])
    plan.save(tmp_path / "plan.toml")
    own = [*criteria[1:], "k(ill)>=2"]
    left = left_classes(
        naive.classes(whole, ["b", "c"]).values(), lambda rows, left: worst_excess(rows, left, own, range(1, 6))
    )
    kept = [row for rows in left for row in rows]
    expected = sorted(map(tuple, pd.DataFrame(kept, columns=list(table)).to_numpy().tolist()))
    assert 0 < len(expected) < len(table)
    table.to_parquet(tmp_path / "t.parquet")
    frames = [
        gpupif.treat(table, plan).table,
        gpupif.treat(dd.from_pandas(table, npartitions=3), plan).table.compute(),
    ]
    gpupif.treat_files(tmp_path / "t.parquet", tmp_path / "out.parquet", tmp_path / "plan.toml")
    frames.append(pd.read_parquet(tmp_path / "out.parquet"))
    for frame in frames:
        assert sorted(map(tuple, frame.to_numpy().tolist())) == expected


def test_the_result_says_where_the_treated_table_differs_from_the_search():
    table = pd.DataFrame({"a": list("xxxxyyyyzz"), "S": list("pqpqpqpqrr")})
    hierarchies = {"a": {"values": dict.fromkeys("xyz", "*")}}
    given = {"hierarchies": hierarchies, "sensitive": "S", "suppress": 0.2}
    found = gpupif.protect(table, "t(S)<=0.2", reference="original", **given)
    assert (found.levels, found.suppressed_rows) == ({"a": 0}, 2)
    assert found.searched[0].value == pytest.approx(0.2)
    assert found.risk[0].value == 0
    said = " ".join(str(found).split())
    assert "Risk left: t(S)<=0.2 is met: 0 (before: 0.8); " in said
    assert "t(S)<=0.2: 0.2 if classes are compared with all rows, suppressed rows among them, as in the search." in said
    assert found.to_dict()["searched"][0]["is_met"]


def test_the_result_says_so_if_the_treated_table_breaks_a_criterion():
    """The class z holds the table near both other classes: without z one of them is far from the rest."""
    values = "p" * 8 + "q" * 2 + "p" * 8 + "q" * 32 + "p" * 18
    table = pd.DataFrame({"a": list("x" * 10 + "y" * 40 + "z" * 18), "S": list(values)})
    hierarchies = {"a": {"values": dict.fromkeys("xyz", "*")}}
    given = {"hierarchies": hierarchies, "sensitive": "S", "suppress": 0.3}
    with pytest.raises(gpupif.errors.UnmetError, match=r"'t\(S\)<=0.35' is 0.48 in column 'S'. Its") as unmet:
        gpupif.protect(table, "t(S)<=0.35", reference="original", **given)
    found = unmet.value.nearest
    assert (found.levels, found.suppressed_rows) == ({"a": 0}, 18)
    assert found.searched[0].value == pytest.approx(0.3)
    assert found.risk[0].value == pytest.approx(0.48)
    assert (found.searched[0].is_met, found.is_met) == (True, False)
    assert found.verdict()[0].startswith("NOT MET: the treated table does not meet the criteria: 't(S)<=0.35' is 0.48")
    assert found.verdict()[2].startswith("Risk left: t(S)<=0.35 is NOT MET: 0.48 (before: ")
    # The plan says so, and no table that is treated by it goes out unless it is asked for.
    with pytest.raises(
        gpupif.errors.UnmetError, match=r"plan: the treated table does not meet the criteria: 't\(S\)<="
    ):
        gpupif.treat(table, found.plan)
    assert not gpupif.treat(table, found.plan, keep_unmet=True).is_met
    # Classes that are compared with the rows that are left meet the limit in the table that is released.
    released = gpupif.protect(table, "t(S)<=0.35", **given)
    assert released.is_met
    assert gpupif.treat(table, released.plan).is_met


@pytest.mark.sampled(2)
@pytest.mark.parametrize("criteria", [["distinct_l(ill)>=2"], ["distinct_l(ill)>=2", "distinct_l(pay)>=2"]])
@pytest.mark.parametrize("seed", [3, pytest.param(0, marks=pytest.mark.slow)])
def test_cells_are_suppressed_without_k(criteria, seed):
    table, hierarchies = with_pay(seed)
    given = {name: {"values": dict(groups)} for name, groups in hierarchies.items()}
    sensitive = ["ill", "pay"]
    found = gpupif.protect(table, criteria, hierarchies=given, sensitive=sensitive, suppress=0.3, cells=True)
    assert (found.rows_with_cells, found.cells_unreached) == (None, False)
    treated = gpupif.treat(table, found.plan).table
    missing = treated[NAMES].isna()
    assert (missing.sum().sum(), missing.any(axis=1).sum()) == (found.suppressed_cells, found.suppressed_rows)
    assert 0 < found.suppressed_cells < 3 * found.suppressed_rows
    pd.testing.assert_frame_equal(treated[sensitive], table[sensitive])
    rows = treated.astype(object).where(treated.notna(), None).to_dict("records")
    for row in rows:
        # A missing value is a value of its own, or matches every value.
        same = [own for own in rows if all(own[name] == row[name] for name in NAMES)]
        matching = [
            own for own in rows if all(None in (own[name], row[name]) or own[name] == row[name] for name in NAMES)
        ]
        for some in (same, matching):
            assert not worst_excess(some, rows, criteria)


def test_rows_are_suppressed_only_by_criteria_on_classes():
    table, _ = example(0)
    for criterion in ("known=2: uniques<=3", "max csf<=0.9", "uniques<=3"):
        with pytest.raises(gpupif.InputError, match=r"^suppress: expected with a criterion on each equivalence class"):
            gpupif.protect(table, criterion, sensitive="ill", suppress=0.1)
        with pytest.raises(gpupif.InputError, match="is not on each equivalence class"):
            gpupif.Plan([gpupif.treatments.SuppressRows(require=criterion, quasi_identifiers=["a"])])


@pytest.mark.parametrize("criteria", [["k>=3"], ["t<=0.45", "k>=2"], ["entropy_l>=1.9"]], ids=" and ".join)
def test_the_frontier_has_the_rows_that_its_nodes_suppress(criteria):
    table, hierarchies = example(0)
    given = {name: {"values": dict(groups)} for name, groups in hierarchies.items()}
    found = gpupif.protect(table, criteria, hierarchies=given, sensitive="ill", suppress=0.1)
    rows = table.to_dict("records")
    assert len(found.frontier) > 1
    for node in found.frontier:
        assert node.suppressed_rows == suppressed_rows(rows, hierarchies, tuple(node.levels.values()), criteria) <= 7
        assert node.is_met
        assert node.loss >= found.loss
    assert found.levels in [node.levels for node in found.frontier]


def test_the_frontier_fits_the_width_of_the_terminal():
    table, hierarchies = example(1)
    given = {name: {"values": dict(groups)} for name, groups in hierarchies.items()}
    criteria = ["k>=3", "entropy_l(ill)>=2", "max csf(ill)<=0.9"]
    found = gpupif.protect(table, criteria, hierarchies=given, sensitive="ill", suppress=0.1)
    plan = ", ".join(f"{name} {level}" for name, level in found.levels.items() if level)
    for width in (60, 80, 100, 200):
        out = io.StringIO()
        found.print(Console(file=out, width=width))
        lines = out.getvalue().split("Loss against risk")[1].splitlines()
        assert max(map(len, lines)) <= width
        assert any("suppressed rows" in line for line in lines)
        # A table that is too wide is cut; each part has a line of the plan, and the last part has its levels.
        place = max(number for number, line in enumerate(lines) if line.startswith("│ plan"))
        ends = [place + 1 + number for number, line in enumerate(lines[place + 1 :]) if line[2:6].strip()]
        texts = [line.split("│")[-2].strip() for line in lines[place : next(iter(ends), len(lines))] if "│" in line]
        assert " ".join(texts).startswith(plan)
        for node in found.frontier:
            assert f"{100 * node.loss / found.highest_loss:.4g} %" in out.getvalue()


# Tables whose criterion is met exactly as they are, with a value that is rounded.
EXACTLY = {
    "t<=0.1": ("aaaabbbbbb", [1, 2, 1, 0, 0, 2, 0, 1, 1, 0]),
    "basic_beta(s)<=0.5": ("aabbcc", list("pqqqpq")),
}


@pytest.mark.parametrize("criterion", EXACTLY)
@pytest.mark.parametrize("suppress", [0, 0.5])
def test_limits_that_are_met_exactly_are_met_whatever_the_rounding(criterion, suppress):
    groups, values = EXACTLY[criterion]
    table = pd.DataFrame({"g": list(groups), "s": values})
    hierarchies = {"g": {"values": dict.fromkeys(set(groups), "*")}}
    arguments = {"quasi_identifiers": ["g"], "sensitive": ["s"], "hierarchies": hierarchies}
    found = gpupif.protect(table, criterion, suppress=suppress, **arguments)
    assert (found.levels, found.suppressed_rows, found.is_met) == ({"g": 0}, 0, True)
    assert found.before[0].value > found.before[0].criterion.limit
