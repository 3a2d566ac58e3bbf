"""Rows are suppressed by criteria against any attacker, with sampling weights too: every node by the definition."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pandas as pd
import pytest

import gpupif
from tests.helpers import naive_protection as naive
from tests.helpers.class_criteria import NAMES, example, figure

ATTACKERS = {"neighbour": ["a", "zip"], "anyone": gpupif.AnyKnown(2, among=["a", "b", "zip"]), "all": None}
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


def sample(seed, rows=60):
    table, hierarchies = example(seed, rows)
    rng = np.random.default_rng(seed + 1000)
    table["zip"] = rng.choice([1, 2, 3], rows)
    table["w"] = rng.choice([0, 1, 2, 5], rows, p=[0.15, 0.4, 0.3, 0.15])
    return table, hierarchies


def attackers_of(criteria):
    """The sets of columns that each attacker may know, and the criteria, the default attacker first."""
    found = {}
    for criterion in criteria:
        said, _, limit = criterion.rpartition(":")
        number = re.fullmatch(r"known=(\d+)", said)
        if said == "anyone" or number:
            pool, size = (["a", "b", "zip"], 2) if said == "anyone" else (NAMES, int(number[1]))
            sets = tuple(map(frozenset, itertools.combinations(pool, size)))
        else:
            names = {"": NAMES, "all": NAMES, "neighbour": ["a", "zip"]}.get(said) or said[6:].split(",")
            sets = (frozenset(names),)
        found.setdefault(sets, []).append(limit.strip())
    return sorted(found.items(), key=lambda item: item[0] != (frozenset(NAMES),))


def values(rows, weighted):
    """The sensitive values of rows, each as often as the row's weight."""
    return [row["ill"] for row in rows for _ in range(row["w"] if weighted else 1)]


def breaks(rows, whole, criterion, weighted):
    name = criterion[: criterion.rindex("=") - 1]
    if name == "k":
        return len(rows) < int(criterion[3:])
    own = values(rows, weighted)
    return bool(own) and not naive.is_met(figure(own, values(whole, weighted), name), criterion)


def left_rows(whole, criteria, weighted=False):
    """The rows that stay: attackers take turns until no row goes."""
    left, before = list(whole), None
    while before != len(left):
        before = len(left)
        for sets, limits in attackers_of(criteria):
            gone = set()
            for known in sets:
                for rows in naive.classes(left, sorted(known)).values():
                    for criterion in limits:
                        if breaks(rows, whole, criterion, weighted):
                            people_only = weighted and len(sets) > 1 and not criterion.startswith("k")
                            gone |= {row["row"] for row in rows if row["w"] or not people_only}
            left = [row for row in left if row["row"] not in gone]
            of_values = any(not limit.startswith("k") for limit in limits)
            if weighted and of_values and not any(row["w"] for row in left):
                left = []
    return left


def best(rows, hierarchies, criteria, most, weighted=False):
    """The node with the least loss that suppresses at most `most` rows, its loss, and the rows that stay there."""
    good = []
    for node in naive.nodes(hierarchies):
        left = left_rows(naive.treated(rows, hierarchies, node), criteria, weighted)
        if len(rows) - len(left) <= most and left:
            good.append((naive.loss(rows, hierarchies, node, {}), node, [row["row"] for row in left]))
    least = min((loss for loss, _, _ in good), default=None)
    return least and min((node, left) for loss, node, left in good if loss <= least * (1 + 1e-12)), least


def check(seed, criteria, share, weighted=False):
    table, hierarchies = sample(seed)
    rows = [{**row, "row": number} for number, row in enumerate(table.to_dict("records"))]
    given = {name: {"values": dict(groups)} for name, groups in hierarchies.items()}
    arguments = {
        "hierarchies": given,
        "quasi_identifiers": NAMES,
        "sensitive": ["ill"] if any("k>" not in criterion for criterion in criteria) else None,
        "attackers": {name: own for name, own in ATTACKERS.items() if f"{name}:" in " ".join(criteria)} or None,
        "weights": "w" if weighted else None,
        "suppress": share,
    }
    node, loss = best(rows, hierarchies, criteria, math.floor(share * len(rows) + 1e-9), weighted)
    if node is None:
        with pytest.raises(gpupif.InputError, match="no treatment meets the criteria"):
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


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("criteria", CASES.values(), ids=CASES)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 9))])
def test_the_plan_is_the_best_of_all_nodes(criteria, share, seed):
    check(seed, criteria, share)


@pytest.mark.parametrize("share", [0.1, 0.3])
@pytest.mark.parametrize("criteria", [*WEIGHTED, *(own for own in CASES.values() if "k>" not in own[0])], ids=" and ".join)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 9))])
def test_shares_of_weights_decide(criteria, share, seed):
    check(seed, criteria, share, weighted=True)
