"""The least treatment by definition: every node of the lattice treated, measured and compared, by plain Python."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np

from tests.helpers import naive


def treated(table, hierarchies, node):
    """Rows (dictionaries) at a node. hierarchies: by column by value its groups, the narrowest first."""
    rows = [dict(row) for row in table]
    for (name, groups), level in zip(hierarchies.items(), node, strict=True):
        for row in rows:
            if level:
                row[name] = groups[row[name]][level - 1]
    return rows


def loss(table, hierarchies, node, importance):
    """The sum over columns of n H(X|X'), in bits, weighted."""
    total = 0.0
    after = treated(table, hierarchies, node)
    for name in hierarchies:
        pairs = Counter((old[name], new[name]) for old, new in zip(table, after, strict=True))
        sizes = Counter(new[name] for new in after)
        total += importance.get(name, 1) * math.fsum(n * math.log2(sizes[new] / n) for (_, new), n in pairs.items())
    return total


def classes(rows, known):
    """Rows by what is known of them."""
    found = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in known), []).append(row)
    return found


def smallest(rows, known):
    return min(map(len, classes(rows, known).values()))


def cell_scores(rows, name, known):
    """By row the scores of its cell in a column, against who knows others."""
    others = [other for other in known if other != name]
    prior = naive.distribution([row[name] for row in rows])
    found = classes(rows, others)
    scores = []
    for row in rows:
        cohort = found[tuple(row[other] for other in others)]
        share = Counter(one[name] for one in cohort)
        posterior = {value: share[value] / len(cohort) for value in prior}
        scores.append(
            {
                "csf": abs(posterior[row[name]] - prior[row[name]]),
                "cig": naive.renyi(posterior, prior, 1),
                "posterior": max(posterior.values()),
                "distinct": len(share),
                "total_variation": sum(abs(posterior[value] - prior[value]) for value in prior) / 2,
                "renyi_2": naive.renyi(posterior, prior, 2),
            }
        )
    return scores


def scores_of(rows, name, known, measure):
    return [one[measure] for one in cell_scores(rows, name, known)]


def value(rows, criterion, known, sensitive):
    """What rows have of a criterion."""
    scored = [*known, *sensitive]
    figure = criterion.partition(":")[2].strip() or criterion
    if criterion.startswith("known="):
        number = int(criterion[6 : criterion.index(":")])
        if figure.startswith("k>"):
            return min(smallest(rows, some) for some in itertools.combinations(known, number))
        raise NotImplementedError(criterion)
    if figure.startswith("k>"):
        return smallest(rows, known)
    if figure.startswith("uniques"):
        return sum(len(one) == 1 for one in classes(rows, known).values())
    if figure.startswith("distinct_l"):
        return min(min(scores_of(rows, name, known, "distinct")) for name in sensitive)
    if figure.startswith("alpha"):
        return max(max(scores_of(rows, name, known, "posterior")) for name in sensitive)
    each = {name: scores_of(rows, name, known, _measure(figure)) for name in scored}
    if figure.startswith("pif"):
        percent = float(figure[3 : figure.index("<")])
        return float(np.percentile([math.fsum(gains) for gains in zip(*each.values(), strict=True)], percent))
    named = [figure[figure.index("(") + 1 : figure.index(")")]] if "(" in figure else scored
    take = max if figure.startswith("max") else lambda scores: math.fsum(scores) / len(scores)
    return max(take(each[name]) for name in named)


def _measure(figure):
    return next((name for name in ("csf", "total_variation", "renyi_2") if name in figure), "cig")


def is_met(found, criterion):
    """Whether a value is within a limit, but for rounding."""
    number = float(criterion.rpartition("=")[2])
    return found <= number + 1e-9 if "<=" in criterion else found >= number - 1e-9


def nodes(hierarchies):
    return itertools.product(*(range(len(next(iter(one.values()))) + 1) for one in hierarchies.values()))


def best(table, hierarchies, criteria, known, sensitive=(), importance=None, k=None, most=0):
    """Return the node that costs least of those that meet all criteria, and its loss; None if there is none.

    Of nodes that cost the same but for rounding it is that with the lowest levels. k, most: so many rows in classes of
    fewer than k may be suppressed.
    """
    found = None
    order = sorted((loss(table, hierarchies, node, importance or {}), node) for node in nodes(hierarchies))
    for cost, node in order:
        if found is not None and cost > found[1] * (1 + 1e-12):
            return found
        if found is not None and node > found[0]:
            continue
        rows = treated(table, hierarchies, node)
        if most:
            left = [row for one in classes(rows, known).values() if len(one) >= k for row in one]
            if not left or len(rows) - len(left) > most:
                continue
            rows = left
        if all(is_met(value(rows, criterion, known, sensitive), criterion) for criterion in criteria):
            found = node, cost
    return found
