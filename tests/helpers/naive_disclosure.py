"""The oracle for disclosure measures of tables."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

from tests.helpers import naive


def classes_of(table, names):
    """The rows of each equivalence class, by the values that they agree on."""
    classes = defaultdict(list)
    for row in range(len(next(iter(table.values())))):
        classes[tuple(table[name][row] for name in names)].append(row)
    return classes


def longest(prior, distance):
    """The farthest that two values are apart."""
    if isinstance(distance, dict):
        paths = list(distance.values())
        return len(paths[0]) + (len({path[-1] for path in paths}) > 1)
    order = None if distance == "nominal" else naive.value_order(list(prior), distance)
    return 1 if order is None else len(order) - 1


def expected(table, known, name, least, distance=None):
    """Every disclosure measure of one sensitive attribute, from its definition."""
    prior = naive.distribution(table[name])
    classes = [[table[name][row] for row in rows] for rows in classes_of(table, known).values()]
    shares = [naive.distribution(values) for values in classes]
    gains = [(share[value] - prior[value]) / prior[value] for share in shares for value in share]
    bounds = [-math.log(prior[value]) for share in shares for value in share]
    given = "nominal" if distance == "nominal" else distance
    moved = [naive.earth_movers_distance({**dict.fromkeys(prior, 0), **share}, prior, given) for share in shares]
    return {
        "k": min(map(len, classes)),
        "alpha": max(max(share.values()) for share in shares),
        "distinct_l": min(map(len, shares)),
        "entropy_l": min(math.exp(-sum(p * math.log(p) for p in share.values())) for share in shares),
        "recursive_c": max(naive.recursive(Counter(values).values(), least) for values in classes),
        "t": max(moved) / longest(prior, distance),
        "basic_beta": max(gains),
        "enhanced_beta": max(gains) if all(g <= b for g, b in zip(gains, bounds, strict=True)) else math.inf,
        "delta": max(abs(math.log(share[value] / prior[value])) for share in shares for value in share),
    }


def groups_of(table, known, sensitive):
    """All classes of several rows and attributes, the most homogeneous first."""
    found = []
    for values, rows in classes_of(table, known).items():
        for place, name in enumerate(sensitive):
            counts = Counter(table[name][row] for row in rows)
            top = max(counts.values())
            value = min((v for v in counts if counts[v] == top), key=lambda v: (v is None, v))
            share, bits = top / len(rows), naive.entropy([table[name][row] for row in rows])
            order = [(v is None, 0 if v is None else v) for v in values]
            key = (-share, round(bits, 12) + 0.0, -len(rows), place, order)
            if len(rows) > 1:
                found.append((key, (dict(zip(known, values, strict=True)), len(rows), name, value, share, bits)))
    return [group for _, group in sorted(found, key=lambda one: one[0])]
