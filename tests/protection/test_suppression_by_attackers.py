"""Rows are suppressed by criteria against any attacker, with sampling weights too: every node by the definition."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif.treatment.kept_rows import find_kept_rows
from gpupif.utils.progress import Reporter
from tests.helpers import naive_protection as naive
from tests.helpers.class_criteria import NAMES, example
from tests.helpers.naive_objectives import cost
from tests.helpers.naive_turns import ATTACKERS, left_rows, named_attackers, with_gaps

CASES = {
    "a list": ["known=a,c: k>=4"],
    "a list and k": ["known=a: k>=9", "k>=2"],
    "any one": ["known=1: k>=12", "k>=2"],
    "any two": ["known=2: k>=3"],
    "any two and k": ["k>=2", "known=2: k>=4", "known=b: k>=20"],
    "values": ["k>=2", "known=a,b: distinct_l>=2"],
    "values of any two": ["known=2: distinct_l>=3"],
    "many values": ["entropy_l>=1.9", "known=a: t<=0.3", "known=2: k>=3"],
    "distances": ["known=1: t<=0.3", "t<=0.6", "known=b,c: alpha<=0.6"],
    "a column that is no quasi-identifier": ["neighbour: k>=3", "k>=2"],
    "its values": ["neighbour: distinct_l>=2", "known=b: entropy_l>=3"],
    "any two of others": ["anyone: k>=2", "neighbour: delta<=1.4", "all: k>=2"],
    "in turns": ["known=c: basic_beta<=0.7", "known=b: basic_beta<=0.7", "known=a: recursive_c(l=2)<=2"],
}
WEIGHTED = [["distinct_l>=2"], ["k>=2", "t<=0.45"], ["entropy_l>=1.9", "k>=3"], ["alpha<=0.6"], ["delta<=1.1"]]


def some_slow(quick, slow):
    """Return the values of a parameter, some for slow tests only."""
    return [*quick, *(pytest.param(own, marks=pytest.mark.slow) for own in slow)]


def sample(seed, rows=50):
    table, hierarchies = example(seed, rows)
    rng = np.random.default_rng(seed + 1000)
    table["zip"] = rng.choice([1, 2, 3], rows)
    table["w"] = rng.choice([0, 1, 2, 5], rows, p=[0.15, 0.4, 0.3, 0.15])
    return table, hierarchies


def best(rows, hierarchies, criteria, most, weighted=False, matching=False):
    """The node with the least loss that suppresses at most `most` rows, its loss, and the rows that stay there."""
    good = []
    for node in naive.nodes(hierarchies):
        left = left_rows(naive.treated(rows, hierarchies, node), criteria, weighted, matching)
        if len(rows) - len(left) <= most and left:
            good.append((naive.loss(rows, hierarchies, node, {}), node, [row["row"] for row in left]))
    if not good:
        return None, None
    least = min(loss for loss, _, _ in good)
    return min((node, left) for loss, node, left in good if loss <= least * (1 + 1e-12)), least


def check(seed, criteria, share, weighted=False, matching=False):
    table, hierarchies = sample(seed)
    given = {name: {"values": dict(groups)} for name, groups in hierarchies.items()}
    if matching:
        with_gaps(table, hierarchies, seed)
    rows = [{**row, "row": number} for number, row in enumerate(table.to_dict("records"))]
    arguments = {
        "hierarchies": given,
        "quasi_identifiers": NAMES,
        "sensitive": ["ill"] if any("k>" not in criterion for criterion in criteria) else None,
        "attackers": named_attackers(criteria),
        "weights": "w" if weighted else None,
        "suppress": share,
        "missing": "wildcard" if matching else "category",
    }
    node, loss = best(rows, hierarchies, criteria, math.floor(share * len(rows) + 1e-9), weighted, matching)
    if node is None:
        with pytest.raises(gpupif.errors.UnmetError, match="no treatment meets the criteria"):
            gpupif.protect(table, criteria, **arguments)
        return table, None
    found = gpupif.protect(table, criteria, **arguments)
    assert (tuple(found.levels.values()), found.optimal) == (node[0], True)
    assert found.loss == pytest.approx(loss, rel=1e-12)
    assert found.suppressed_rows == len(rows) - len(node[1])
    assert all(value.is_met for value in found.searched)
    assert len(found.searched) == (len(criteria) if found.suppressed_rows else 0)
    assert gpupif.treat(table, found.plan).table.index.tolist() == node[1]
    assert all(value.is_met for value in found.risk if value.criterion.quantity.text in ("k", "distinct_l"))
    return table, found


@pytest.mark.sampled(9)
@pytest.mark.parametrize(
    ("seed", "share"), [(0, 0.3), *(pytest.param(*own, marks=pytest.mark.slow) for own in [(1, 0.0), (2, 0.1)])]
)
@pytest.mark.parametrize("criteria", CASES.values(), ids=CASES)
def test_the_plan_is_the_best_of_all_nodes(criteria, share, seed):
    check(seed, criteria, share)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("seed", "share"), [(0, 0.3), pytest.param(1, 0.1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "criteria", [*WEIGHTED, *(own for own in CASES.values() if "k>" not in own[0])], ids=" and ".join
)
def test_shares_of_weights_decide(criteria, share, seed):
    check(seed, criteria, share, weighted=True)


MATCHING = [["k>=6"], ["k>=2", "known=2: k>=4", "known=b: k>=20"], ["k>=2", "known=a,b: distinct_l>=2"]]
SLOWLY = [*WEIGHTED, *(own for own in CASES.values() if own not in MATCHING)]


@pytest.mark.parametrize(
    ("criteria", "seed"),
    [
        *((own, 0) for own in [*MATCHING, SLOWLY[1]]),
        *(pytest.param(own, 1, marks=pytest.mark.slow) for own in [*MATCHING, *SLOWLY]),
    ],
    ids=lambda own: own if isinstance(own, int) else " and ".join(own),
)
def test_rows_that_match_too_few_rows_go_until_none_does(criteria, seed):
    share = 0.1 if seed else 0.2
    check(seed, criteria, share, matching=True)
    if any("k>" not in criterion for criterion in criteria):
        check(seed, criteria, share, weighted=True, matching=True)


OBJECTIVES = [
    "discernibility",
    "utility(ill)",
    "entropy+suppression",
    "loss",
    "average_class_size",
    "utility(ill, classify)",
]


@pytest.mark.parametrize("objective", some_slow(OBJECTIVES[:2], OBJECTIVES[2:]))
@pytest.mark.parametrize("criteria", [["known=2: k>=4"], ["neighbour: k>=3", "k>=2"]], ids=["of classes", "of parts"])
@pytest.mark.parametrize("seed", some_slow([0], [1]))
def test_objectives_count_the_rows_that_are_left_of_classes(objective, criteria, seed):
    table, hierarchies = sample(seed)
    rows = [{**row, "row": number} for number, row in enumerate(table.to_dict("records"))]
    found = gpupif.protect(
        table[[*NAMES, "zip", "ill"]],
        criteria,
        hierarchies={name: {"values": dict(groups)} for name, groups in hierarchies.items()},
        quasi_identifiers=NAMES,
        attackers={"neighbour": ATTACKERS["neighbour"]} if "neighbour" in criteria[0] else None,
        objective=objective,
        suppress=0.2,
    )
    costs = {}
    for node in naive.nodes(hierarchies):
        left = {row["row"] for row in left_rows(naive.treated(rows, hierarchies, node), criteria)}
        if len(left) >= 40:
            costs[node] = cost(objective, rows, hierarchies, node, stays=lambda row, left=left: row["row"] in left)
    assert found.loss == pytest.approx(min(costs.values()), rel=1e-12)
    assert costs[tuple(found.levels.values())] == pytest.approx(found.loss, rel=1e-12)
    assert found.optimal
    for node in found.frontier:
        levels = tuple(node.levels.values())
        assert levels not in costs or node.loss == pytest.approx(costs[levels], rel=1e-12)


def left_by_definition(table, criteria, weighted=False, matching=False):
    table = table.astype(object).where(table.notna(), None)
    rows = [{**row, "row": number} for number, row in enumerate(table.to_dict("records"))]
    return [row["row"] for row in left_rows(rows, criteria, weighted, matching)]


def suppression(criteria, weighted=False, **arguments):
    attackers = named_attackers(criteria) or {}
    return gpupif.treatments.SuppressRows(
        require=criteria,
        quasi_identifiers=NAMES,
        sensitive=["ill"] if any("k>" not in criterion for criterion in criteria) else None,
        attackers={name: NAMES if own is None else own for name, own in attackers.items()} or None,
        weights="w" if weighted else None,
        **arguments,
    )


ALONE = [
    ["known=2: k>=3", "known=2: distinct_l>=3"],
    ["anyone: k>=3", "neighbour: distinct_l>=2", "known=a: k>=30", "all: k>=2"],
    ["known=1: t<=0.25", "known=a,b: t<=0.5", "known=c: basic_beta<=0.6"],
    ["known=c,b: enhanced_beta<=1.2", "neighbour: t<=0.5", "known=1: recursive_c(l=2)<=2"],
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("criteria", ALONE, ids=" and ".join)
@pytest.mark.parametrize("seed", some_slow([0], [1]))
def test_rows_go_until_no_class_of_any_attacker_breaks_a_criterion(criteria, weighted, seed):
    table, _ = sample(seed, 150)
    table["b"] = table["b"].where(np.random.default_rng(seed).random(150) > 0.1)
    weighted = weighted and any("k>" not in criterion for criterion in criteria)
    expected = left_by_definition(table, criteria, weighted)
    treated = gpupif.treat(table, [suppression(criteria, weighted)])
    assert treated.table.index.tolist() == expected
    assert [own.rows_removed for own in treated.record.treatments] == [150 - len(expected)]
    stays = gpupif.treat(table, [suppression(criteria, weighted, remove=False, reference="released")]).table
    assert np.flatnonzero(stays[NAMES].notna().any(axis=1) & stays.index.isin(expected)).tolist() == expected
    assert stays.loc[~stays.index.isin(expected), NAMES].isna().all(axis=None)
    pd.testing.assert_frame_equal(stays[["zip", "ill", "w"]], table[["zip", "ill", "w"]])


@pytest.mark.sampled(3)
@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize(("weighted", "missing"), [(False, None), (True, None), (True, "wildcard")])
def test_the_same_rows_go_in_every_kind_of_table(tmp_path, weighted, missing):
    from dask import dataframe as dd

    criteria = ["k>=2", "anyone: k>=4", "neighbour: t<=0.6", "known=a,b: distinct_l>=2"]
    table, _ = sample(5, 200)
    table["name"] = np.arange(200)
    if missing:
        with_gaps(table, {}, 5)
    plan = gpupif.Plan([suppression(criteria, weighted, missing=missing)])
    plan.save(tmp_path / "plan.toml")
    plan = gpupif.Plan.from_any(tmp_path / "plan.toml")
    assert plan.treatments[0].attackers["anyone"] == {"known": 2, "among": ["a", "b", "zip"]}
    expected = left_by_definition(table, criteria, weighted, bool(missing))
    assert 0 < len(expected) < 200
    frames = [gpupif.treat(table, plan), gpupif.treat(dd.from_pandas(table, npartitions=3), plan)]
    table.iloc[:110].to_parquet(tmp_path / "t1.parquet", index=False)
    table.iloc[110:].to_parquet(tmp_path / "t2.parquet", index=False)
    table.to_csv(tmp_path / "t.csv", index=False)
    frames.append(gpupif.treat_files(tmp_path / "t*.parquet", tmp_path / "out.parquet", plan))
    frames.append(gpupif.treat_files(tmp_path / "t.csv", tmp_path / "out.csv", plan, resume=True))
    for treated in frames:
        frame = treated.table
        if isinstance(frame, type(tmp_path)):
            frame = pd.read_csv(frame) if frame.suffix == ".csv" else pd.read_parquet(frame)
        frame = frame.compute() if hasattr(frame, "compute") else frame
        assert frame["name"].tolist() == expected
        assert treated.record.rows_removed == 200 - len(expected)
    # The columns that attackers know decide too: a treatment of them before is looked at.
    assert {*plan.treatments[0].named()} == {*NAMES, "zip", "ill", *(["w"] if weighted else [])}
    assert np.flatnonzero(find_kept_rows(table, plan, Reporter())).tolist() == expected


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("most", ["class_criteria.MOST_SETS", "counted_table.MOST_COUNTERS"])
def test_the_same_rows_go_however_classes_are_counted(monkeypatch, most, weighted):
    monkeypatch.setattr(f"gpupif.criteria.{most}", 0)
    criteria = ["known=2: k>=4", "anyone: k>=7", "known=b: k>=20", *["anyone: distinct_l>=3"] * weighted]
    table, _ = sample(3, 150)
    expected = left_by_definition(table, criteria, weighted)
    assert 0 < len(expected) < 150
    assert gpupif.treat(table, [suppression(criteria, weighted)]).table.index.tolist() == expected


def test_rows_go_by_the_sets_of_a_sample():
    table, _ = sample(3, 150)
    known = gpupif.AnyKnown(2, among=["a", "b", "zip"], subsets=1, seed=4)
    (chosen,) = gpupif.score(table, "csf", columns=["ill"], known=known).subsets.for_column("ill")
    left = []
    for own, columns in ((known, NAMES), (list(chosen), NAMES)):
        treatment = gpupif.treatments.SuppressRows(
            require="x: distinct_l>=4", quasi_identifiers=columns, sensitive="ill", attackers={"x": own}, weights="w"
        )
        left.append(gpupif.treat(table, [treatment]).table.index.tolist())
    assert 0 < len(left[0]) < 150
    assert left[0] == left[1]


@pytest.mark.parametrize("said", ["", "known=a,b: ", "known=2: "])
def test_a_row_of_weight_0_goes_with_its_class_however_the_attacker_is_named(said):
    table = pd.DataFrame(
        {"a": list("xxyyyyz"), "b": list("uuuuuuu"), "ill": list("pqpqpqp"), "w": [1, 0, 1, 1, 1, 1, 0]}
    )
    treatment = gpupif.treatments.SuppressRows(
        require=[f"{said}distinct_l>=2"], quasi_identifiers=["a", "b"], sensitive="ill", weights="w"
    )
    # Of the last class no shares are made.
    assert gpupif.treat(table, [treatment]).table.index.tolist() == [2, 3, 4, 5, 6]


def test_a_class_of_weight_0_is_whole_in_the_cost():
    rows = [*[("x", "p", 1)] * 3, ("x", "q", 0), *[("y", "p", 1), ("y", "q", 1), ("y", "p", 1)] * 4, ("z", "p", 1)]
    table = pd.DataFrame([*rows, ("z", "q", 2)], columns=["a", "ill", "w"]).assign(b="u")
    found = gpupif.protect(
        table,
        ["known=1: distinct_l>=2"],
        hierarchies={"a": {"values": {"x": ["*"], "y": ["*"], "z": ["*"]}}, "b": {"values": {"u": ["*"]}}},
        quasi_identifiers=["a", "b"],
        sensitive="ill",
        weights="w",
        suppress=0.3,
        objective="discernibility",
    )
    assert (found.suppressed_rows, found.levels, found.loss) == (4, {"a": 0, "b": 0}, 12**2 + 2**2 + 18 * 4)


@pytest.mark.parametrize(("least", "left"), [(3, 4), (5, 0)])
@pytest.mark.parametrize("known", [[], gpupif.AnyKnown(0)])
def test_an_attacker_may_know_nothing(known, least, left):
    table = pd.DataFrame({"a": list("xxyy")})
    treatment = gpupif.treatments.SuppressRows(
        require=f"x: k>={least}", quasi_identifiers=["a"], attackers={"x": known}
    )
    assert len(gpupif.treat(table, [treatment]).table) == left


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_distances_count_the_steps_of_the_whole_table_after_its_ends_have_gone(weighted):
    rng = np.random.default_rng(4)
    went = 0
    for _ in range(12):
        table = pd.DataFrame({name: rng.choice(list("xyz"), 40) for name in ("a", "b")})
        table["pay"], table["w"] = np.where(table["a"] == "x", 9, rng.choice([1, 2, 4], 40)), rng.choice([1, 3], 40)
        weight = table["w"] if weighted else 1 + 0 * table["w"]

        def shares(rows, table=table, weight=weight):
            own = weight[rows].groupby(table["pay"][rows]).sum() / weight[rows].sum()
            return own.reindex([1, 2, 4, 9], fill_value=0).cumsum()[:3]

        left = table.index
        for name in ["a", "b", "a", "b", "a", "b"]:
            whole = shares(table.index)
            classes = [own for _, own in table.loc[left].groupby(name)]
            good = [
                own.index for own in classes if abs(shares(own.index) - whole).sum() / 3 <= 0.45 - 0.25 * (name == "b")
            ]
            left = pd.Index([row for own in good for row in own]).sort_values()
        treatment = gpupif.treatments.SuppressRows(
            require=["known=a: t<=0.45", "known=b: t<=0.2"],
            quasi_identifiers=["a", "b"],
            sensitive="pay",
            weights="w" if weighted else None,
            reference="original",
        )
        assert gpupif.treat(table, [treatment]).table.index.tolist() == left.tolist()
        went += not left.empty and not (table["pay"][left] == 9).any()
    assert went > 2


COMPARING = [["t<=0.3"], ["basic_beta<=0.8"], ["enhanced_beta<=0.9", "k>=2"], ["delta<=0.7"], ["known=2: t<=0.25"]]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("more", [{}, {"weights": "w"}, {"strata": "c"}], ids=["plain", "weights", "strata"])
@pytest.mark.parametrize("criteria", COMPARING, ids=" and ".join)
@pytest.mark.parametrize("seed", range(3))
def test_what_is_released_meets_the_criteria_and_a_larger_allowance_loses_no_more(criteria, seed, more):
    if "strata" in more and "known=2" in criteria[0]:
        more = {}
    table, hierarchies = sample(seed)
    loss = math.inf
    for share in (0, 0.05, 0.1, 0.2, 0.35, 0.5):
        given = {name: {"values": dict(groups)} for name, groups in hierarchies.items()}
        arguments = {"hierarchies": given, "quasi_identifiers": NAMES, "sensitive": "ill", "suppress": share}
        try:
            found = gpupif.protect(table, criteria, **arguments, **more)
        except gpupif.errors.UnmetError:
            assert loss == math.inf
            continue
        assert found.loss <= loss * (1 + 1e-12)
        loss = found.loss
        treated = gpupif.treat(table, found.plan).table
        rows = [{**row, "row": number} for number, row in enumerate(treated.to_dict("records"))]
        assert len(left_rows(rows, criteria, "weights" in more)) == len(rows) == 50 - found.suppressed_rows
        assert found.suppressed_rows <= share * 50 + 1e-9
        assert found.is_met
    assert loss < math.inf or "strata" in more
