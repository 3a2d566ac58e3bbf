"""The oracle for disclosure measures of tables."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from fractions import Fraction

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
    return 1 if order is None else max(1, len(order) - 1)


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


def matches(a, b, wildcard):
    return a == b or (wildcard and (a is None or b is None))


def classes_of_rows(table, known, wildcard):
    """For each row the rows of its class: those that agree with it, or match it."""
    rows = range(len(next(iter(table.values()))))
    return [[j for j in rows if all(matches(table[name][i], table[name][j], wildcard) for name in known)] for i in rows]


def people_by_value(values, weights, rows, wildcard):
    """Of some rows, the people of each value that somebody has; a missing one is none where it is a wildcard."""
    found = defaultdict(float)
    for row in rows:
        if weights[row] > 0 and not (wildcard and values[row] is None):
            found[values[row]] += weights[row]
    return found


def expected_of_people(table, known, name, least, weights, wildcard, distance=None):
    """Every disclosure measure of one attribute, where rows have weights, or missing values match every value."""
    values, classes = table[name], classes_of_rows(table, known, wildcard)
    prior = people_by_value(values, weights, range(len(values)), wildcard)
    total = sum(prior.values())
    prior = {value: people / total for value, people in prior.items()}
    counted = [people_by_value(values, weights, classes[i], wildcard) for i in range(len(values)) if weights[i] > 0]
    counted = [people for people in counted if people]
    shares = [{value: one / sum(people.values()) for value, one in people.items()} for people in counted]
    gains = [(share[value] - prior[value]) / prior[value] for share in shares for value in share]
    bounds = [-math.log(prior[value]) for share in shares for value in share]
    given = "nominal" if distance == "nominal" else distance
    moved = [naive.earth_movers_distance({**dict.fromkeys(prior, 0), **share}, prior, given) for share in shares]
    return {
        "k": min(map(len, classes)),
        "alpha": max(max(share.values()) for share in shares),
        "distinct_l": min(map(len, shares)),
        "entropy_l": min(math.exp(-sum(p * math.log(p) for p in share.values())) for share in shares),
        "recursive_c": max(naive.recursive(people.values(), least) for people in counted),
        "t": max(moved) / longest(prior, distance),
        "basic_beta": max(gains),
        "enhanced_beta": max(gains)
        if all(g <= b * (1 + 1e-12) for g, b in zip(gains, bounds, strict=True))
        else math.inf,
        "delta": max(abs(math.log(share[value] / prior[value])) for share in shares for value in share),
    }


def worst_classes_of(table, known, sensitive, weights, wildcard, distances):
    """By measure and attribute the worst class, its values and rows, and how many are as bad; the lowest values win."""
    candidates = defaultdict(list)
    for row, rows in enumerate(classes_of_rows(table, known, wildcard)):
        of_class = {name: table[name][row] for name in known}
        found = (of_class, len(rows))
        candidates["k", None].append((len(rows), found))
        for name in sensitive if weights[row] > 0 else ():
            people = people_by_value(table[name], weights, rows, wildcard)
            if people:
                candidates["distinct_l", name].append((len(people), found))
                values = table[name]
                prior = people_by_value(values, weights, range(len(values)), wildcard)
                prior = {value: own / sum(prior.values()) for value, own in prior.items()}
                share = {value: own / sum(people.values()) for value, own in people.items()}
                moved = naive.earth_movers_distance({**dict.fromkeys(prior, 0), **share}, prior, distances.get(name))
                candidates["t", name].append((-round(moved, 9), found))
    worst = {}
    for which, own in candidates.items():
        least = min(figure for figure, _ in own)
        equal = [found for figure, found in own if figure == least]
        first = min(equal, key=lambda found: [(v is None, 0 if v is None else v) for v in found[0].values()])
        worst[which] = (*first, len({tuple(of_class.values()) for of_class, _ in equal}))
    return worst


def estimated_of(table, known, weights, wildcard):
    """Rows and people of the class of each row, the naive and the individual risk."""
    sizes = [(len(rows), math.fsum(weights[row] for row in rows)) for rows in classes_of_rows(table, known, wildcard)]
    naively = [min(1.0, 1 / people) if people > 0 else 0.0 for _, people in sizes]
    return sizes, naively, [naive.individual_risk(*both) for both in sizes]


def people_there(sample, population, known):
    """For each row of a sample how many of a population match it where missing values are wildcards; itself if none."""
    rows, others = (range(len(next(iter(table.values())))) for table in (sample, population))

    def match(i, j):
        return all(matches(sample[name][i], population[name][j], True) for name in known)

    return [max(1, sum(match(i, j) for j in others)) for i in rows]


def presence_of(sample, population, known):
    """Of each class of both tables together: the values that it agrees on, its rows, its people, its presence.

    People are at least the rows. The highest presence comes first, then the most rows, then the lowest values.
    """
    rows, people = (
        {values: len(of) for values, of in classes_of(table, known).items()} for table in (sample, population)
    )
    found = []
    for values in {**rows, **people}:
        several = rows.get(values, 0)
        everybody = max(several, people.get(values, 0))
        order = [(value is None, 0 if value is None else value) for value in values]
        delta = Fraction(several, everybody)
        found.append(((-delta, -several, order), (values, several, everybody, delta)))
    return [one for _, one in sorted(found, key=lambda both: both[0])]


def moves_of(sizes, benefit, loss, gain, cost, information=1):
    """Of each row, whose class has so many people, what an adversary and a publisher do, and what that brings them."""
    found = []
    for size in sizes:
        success = 1 / Fraction(size)
        attack = gain * success - cost
        payout = benefit * information - (loss * success if attack > 0 else 0)
        found.append((attack > 0, attack < 0 or gain == 0, payout > 0, attack, payout))
    return found


def groups_of_people(table, known, sensitive, weights, wildcard):
    """All classes of several rows in which somebody has a value of an attribute, the most homogeneous first."""
    found = {}
    for row, rows in enumerate(classes_of_rows(table, known, wildcard)):
        of_class = tuple(table[name][row] for name in known)
        for place, name in enumerate(sensitive):
            people = people_by_value(table[name], weights, rows, wildcard)
            if len(rows) < 2 or not people or weights[row] == 0:
                continue
            top, total = max(people.values()), math.fsum(people.values())
            value = min((v for v in people if people[v] == top), key=lambda v: (v is None, v))
            bits = -sum(one / total * math.log2(one / total) for one in people.values())
            order = [(v is None, 0 if v is None else v) for v in of_class]
            key = (-round(top / total, 12), round(bits, 11) + 0.0, -len(rows), place, order)
            group = (dict(zip(known, of_class, strict=True)), len(rows), name, value, top / total, bits)
            found[name, of_class] = (key, group)
    return [group for _, group in sorted(found.values(), key=lambda one: one[0])]
