"""Criteria on classes by their definitions, and small tables with a sensitive attribute."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pandas as pd

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


def excess(value, criterion):
    """By how much the value of a class breaks a criterion, 0 if it does not: its share of the limit.

    It is infinite if the criterion compares the class with no other rows.
    """
    name, _, limit = criterion.replace("<", ">").partition(">=")
    if naive.is_met(value, criterion):
        return 0.0
    compares = name.split("(")[0] in ("t", "basic_beta", "enhanced_beta", "delta")
    return value / float(limit) if compares and float(limit) else math.inf


def go_first(excesses):
    """Which go first, by their excesses: the worse half of the different excesses, or those that are infinite."""
    different = sorted({round(own, 9) for own in excesses if own})
    least = different[len(different) // 2] if different and different[-1] < math.inf else math.inf
    return [own > 0 and round(own, 9) >= least for own in excesses]


def left_classes(classes, excess_of):
    """The classes that stay. excess_of: of a class and the rows left, by how much it breaks a criterion."""
    left, gone = list(classes), [True]
    while any(gone):
        rows = [row for own in left for row in own]
        gone = go_first([excess_of(own, rows) for own in left])
        left = [own for own, goes in zip(left, gone, strict=True) if not goes]
    return left


def excess_of_class(rows, left, criteria):
    """By how much a class breaks any of some criteria, compared with the rows that are left."""
    own, whole = ([row["ill"] for row in some] for some in (rows, left))
    return max(excess(figure(own, whole, one[: one.rindex("=") - 1]), one) for one in criteria)


def suppressed_rows(table, hierarchies, node, criteria):
    """How many rows go at a node until no class breaks a criterion, compared with the rows that are left."""
    rows = naive.treated(table, hierarchies, node)
    left = left_classes(naive.classes(rows, NAMES).values(), lambda own, left: excess_of_class(own, left, criteria))
    return len(rows) - sum(map(len, left))


def best(table, hierarchies, criteria, most):
    """The node with the least loss that suppresses at most `most` rows, its loss and the rows that it suppresses."""
    good = []
    for node in naive.nodes(hierarchies):
        suppressed = suppressed_rows(table, hierarchies, node, criteria)
        if suppressed <= most and suppressed < len(table):
            good.append((naive.loss(table, hierarchies, node, {}), node, suppressed))
    least = min(loss for loss, _, _ in good)
    return min((node, suppressed) for loss, node, suppressed in good if loss <= least * (1 + 1e-12)), least
