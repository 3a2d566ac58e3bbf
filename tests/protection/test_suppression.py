"""Rows of classes that break any criterion on classes are suppressed: every node of small lattices by definition."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import gpupif
from tests.helpers import naive_protection as naive

NAMES = ["a", "b", "c"]
CRITERIA = [
    ["k>=3"],
    ["uniques<=0"],
    ["distinct_l>=2"],
    ["distinct_l>=3", "k>=4"],
    ["t<=0.35"],
    ["t<=0.45", "k>=2"],
    ["entropy_l>=2.2"],
    ["entropy_l>=1.9", "k>=3"],
    ["recursive_c(l=2)<=2"],
    ["recursive_c(l=3)<=4", "distinct_l>=2"],
    ["alpha<=0.6"],
    ["basic_beta<=1.2"],
    ["enhanced_beta<=1.2"],
    ["delta<=0.9"],
    ["delta<=1.1", "alpha<=0.7", "k>=2"],
]


def example(seed, rows=70):
    """A table with a sensitive attribute, and hierarchies by column by value: groups, the narrowest first."""
    rng = np.random.default_rng(seed)
    table, hierarchies = {}, {}
    for name, values, height in (("a", 8, 3), ("b", 4, 2), ("c", 3, 1)):
        weights = rng.random(values) ** 2 + 0.05
        texts = [f"{name}{number}" for number in range(values)]
        table[name] = rng.choice(texts, rows, p=weights / weights.sum())
        groups = rng.permutation(values)
        hierarchies[name] = {
            text: (*(f"{name}-{level}-{group // 2**level}" for level in range(1, height)), "*")
            for text, group in zip(texts, groups.tolist(), strict=True)
        }
    table["ill"] = rng.choice(list("pqrst"), rows, p=[0.35, 0.25, 0.2, 0.15, 0.05])
    return pd.DataFrame(table), hierarchies


def figure(values, whole, name):
    """The figure of one class by its definition. values, whole: the sensitive values of the class and of the table."""
    counts, size = Counter(values), len(values)
    share = {value: count / size for value, count in counts.items()}
    prior = {value: count / len(whole) for value, count in Counter(whole).items()}
    highest_first = sorted(counts.values(), reverse=True)
    if name.startswith("recursive"):
        tail = sum(highest_first[int(name[name.index("=") + 1 : -1]) - 1 :])
        return highest_first[0] / tail if tail else math.inf
    rises = {value: (own - prior[value]) / prior[value] for value, own in share.items()}
    return {
        "k": lambda: size,
        "uniques": lambda: int(size == 1),
        "distinct_l": lambda: len(counts),
        "entropy_l": lambda: 2 ** -sum(own * math.log2(own) for own in share.values()),
        "alpha": lambda: max(share.values()),
        "t": lambda: sum(abs(share.get(value, 0) - own) for value, own in prior.items()) / 2,
        "basic_beta": lambda: max(rises.values()),
        "enhanced_beta": lambda: (
            math.inf
            if any(rise > -math.log(prior[value]) + 1e-12 for value, rise in rises.items())
            else max(rises.values())
        ),
        "delta": lambda: max(abs(math.log(own / prior[value])) for value, own in share.items()),
    }[name]()


def is_broken(rows, table, criterion):
    name = criterion[: criterion.rindex("=") - 1]
    return not naive.is_met(figure([row["ill"] for row in rows], [row["ill"] for row in table], name), criterion)


def suppressed_rows(table, hierarchies, node, criteria):
    """The rows of all classes at a node that break a criterion."""
    rows = naive.treated(table, hierarchies, node)
    classes = naive.classes(rows, NAMES).values()
    return sum(len(own) for own in classes if any(is_broken(own, rows, criterion) for criterion in criteria))


def best(table, hierarchies, criteria, most):
    """The node with the least loss that suppresses at most `most` rows, its loss and the rows that it suppresses."""
    good = []
    for node in naive.nodes(hierarchies):
        suppressed = suppressed_rows(table, hierarchies, node, criteria)
        if suppressed <= most and suppressed < len(table):
            good.append((naive.loss(table, hierarchies, node, {}), node, suppressed))
    least = min(loss for loss, _, _ in good)
    return min((node, suppressed) for loss, node, suppressed in good if loss <= least * (1 + 1e-12)), least


@pytest.mark.parametrize("share", [0.0, 0.03, 0.1])
@pytest.mark.parametrize("criteria", CRITERIA, ids=" and ".join)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
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
    kept = []
    for own in naive.classes(whole, ["b", "c"]).values():
        pay = [sum(row["pay"] <= step for row in own) / len(own) for step in range(1, 5)]
        prior = [sum(row["pay"] <= step for row in whole) / len(whole) for step in range(1, 5)]
        distance = sum(abs(x - y) for x, y in zip(pay, prior, strict=True)) / 4
        broken = any(
            is_broken(own, whole, criterion.replace("(ill)", "")) for criterion in criteria if "pay" not in criterion
        )
        kept += [] if broken or distance > 0.3 else own
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
    found = gpupif.protect(table, "t(S)<=0.2", hierarchies=hierarchies, sensitive="S", suppress=0.2)
    assert (found.levels, found.suppressed_rows) == ({"a": 0}, 2)
    assert found.searched[0].value == pytest.approx(0.2)
    assert found.risk[0].value == 0
    said = " ".join(str(found).split())
    assert "0.2 if classes are compared with all rows" in said
    assert "0 in the treated table alone, which meets it too" in said
    assert found.to_dict()["searched"][0]["is_met"]


def test_the_result_says_so_if_the_treated_table_breaks_a_criterion():
    """The class z holds the table near both other classes: without z one of them is far from the rest."""
    values = "p" * 8 + "q" * 2 + "p" * 8 + "q" * 32 + "p" * 18
    table = pd.DataFrame({"a": list("x" * 10 + "y" * 40 + "z" * 18), "S": list(values)})
    hierarchies = {"a": {"values": dict.fromkeys("xyz", "*")}}
    found = gpupif.protect(table, "t(S)<=0.35", hierarchies=hierarchies, sensitive="S", suppress=0.3)
    assert (found.levels, found.suppressed_rows) == ({"a": 0}, 18)
    assert found.searched[0].value == pytest.approx(0.3)
    assert found.risk[0].value == pytest.approx(0.48)
    assert (found.searched[0].is_met, found.is_met) == (True, False)
    assert "0.48 in the treated table alone, which does NOT meet it" in " ".join(str(found).split())


def test_a_criterion_against_an_attacker_of_its_own_needs_one_on_classes():
    table, _ = example(0)
    for criterion in ("known=2: k>=3", "max csf<=0.9", "uniques<=3"):
        with pytest.raises(gpupif.InputError, match=r"^suppress: expected with a criterion on each equivalence class"):
            gpupif.protect(table, criterion, sensitive="ill", suppress=0.1)
        with pytest.raises(gpupif.InputError, match="is not on each equivalence class"):
            gpupif.Plan([gpupif.treatments.SuppressRows(require=criterion, quasi_identifiers=["a"])])


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
