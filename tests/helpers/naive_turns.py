"""Rows are suppressed in turns by their definition: attacker by attacker, until no class of any row fails."""

from __future__ import annotations

import itertools
import re
from functools import cache

import numpy as np

import gpupif
from tests.helpers import naive_protection as naive
from tests.helpers.class_criteria import NAMES, excess, figure, go_first

ATTACKERS = {"neighbour": ["a", "zip"], "anyone": gpupif.AnyKnown(2, among=["a", "b", "zip"]), "all": None}


def named_attackers(criteria):
    """The argument `attackers` for criteria, None for none."""
    return {name: own for name, own in ATTACKERS.items() if f"{name}:" in " ".join(criteria)} or None


def with_gaps(table, hierarchies, seed):
    """The table with missing values, which stay missing below the top of a hierarchy, and with fewer columns."""
    rng = np.random.default_rng(seed + 2000)
    for name in [*NAMES, "zip", "ill"]:
        table[name] = table[name].astype(object).where(rng.random(len(table)) > 0.06, None)
    for groups in hierarchies.values():
        groups[None] = (*[None] * (len(next(iter(groups.values()))) - 1), "*")


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


def values(rows, weighted, matching):
    """The sensitive values of rows, each as often as the row's weight; missing ones only as a value of their own."""
    times = [(row["ill"], row["w"] if weighted else 1) for row in rows]
    return [value for value, number in times for _ in range(number) if value is not None or not matching]


def excess_of(rows, whole, criterion, weighted, matching=False):
    """By how much a class breaks a criterion, 0 if it does not."""
    name = criterion[: criterion.rindex("=") - 1]
    if name == "k":
        return excess(len(rows), criterion)
    own = values(rows, weighted, matching)
    return excess(figure(own, values(whole, weighted, matching), name), criterion) if own else 0.0


def classes(rows, known, matching):
    """By row its class: the rows that agree with it, or match it."""
    if not matching:
        return [(row, own) for own in naive.classes(rows, known).values() for row in own]

    cells = [tuple(row[name] for name in known) for row in rows]
    # Rows with the same cells match the same rows.
    matched = {own: [row for row, other in zip(rows, cells, strict=True) if match(own, other)] for own in {*cells}}
    return [(row, matched[own]) for row, own in zip(rows, cells, strict=True)]


@cache
def match(cells, others):
    """Whether cells are the same but for those that are missing in either."""
    return all(own is None or other is None or own == other for own, other in zip(cells, others, strict=True))


def left_rows(rows, criteria, weighted=False, matching=False, whole=None):
    """The rows that stay: attackers take turns until no row goes.

    whole: the rows with which classes are compared; None for the rows that are left, of which the worst go first.
    """
    left, before = list(rows), None
    while before != len(left):
        before = len(left)
        for sets, limits in attackers_of(criteria):
            worst = {row["row"]: 0.0 for row in left}
            for known in sets:
                judged = {}
                for row, own in classes(left, sorted(known), matching):
                    key = tuple(map(id, own))
                    if key not in judged:
                        given = whole or left, weighted, matching
                        judged[key] = max(excess_of(own, given[0], limit, *given[1:]) for limit in limits)
                    worst[row["row"]] = max(worst[row["row"]], judged[key])
            goes = go_first(worst.values()) if whole is None else [own > 0 for own in worst.values()]
            left = [row for row, gone in zip(left, goes, strict=True) if not gone]
            of_values = any(not limit.startswith("k") for limit in limits)
            if weighted and of_values and not any(row["w"] for row in left):
                left = []
    return left
