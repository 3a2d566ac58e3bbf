"""The oracle: every measure from its definition, with dictionaries and loops. Slow and obvious on purpose."""

from __future__ import annotations

import datetime
import math
from collections import Counter, defaultdict


def distribution(values):
    """Share of each value."""
    return {value: count / len(values) for value, count in Counter(values).items()}


def entropy(values):
    """Entropy of the values, in bits."""
    return -sum(share * math.log2(share) for share in distribution(values).values())


def knowledge(target, columns, known):
    """What the attacker knows when `target` is the unknown column."""
    return [name for name in (columns if known is None else known) if name != target]


def cohort_rows(table, row, names):
    """Rows that agree with `row` on the columns `names`."""
    size = len(next(iter(table.values())))
    return [other for other in range(size) if all(table[name][other] == table[name][row] for name in names)]


def posterior_of(cohort_values, prior, accuracy):
    """Value to probability for an attacker who knows the cohort, over all values of the prior."""
    share = distribution(cohort_values)
    return {value: accuracy * share.get(value, 0) + (1 - accuracy) * prior[value] for value in prior}


def renyi(posterior, prior, order):
    """Rényi divergence of posterior from prior, in bits, by its definition and its limits (article 001)."""
    ratios = [(posterior[value], prior[value]) for value in prior if prior[value] > 0]
    if order == 0:
        return -math.log2(sum(q for p, q in ratios if p > 0))
    if order == 1:
        return sum(p * math.log2(p / q) for p, q in ratios if p > 0)
    if order == math.inf:
        return math.log2(max(p / q for p, q in ratios))
    # The largest term is taken out, which may be more than a float can be.
    logs = [order * math.log2(p) + (1 - order) * math.log2(q) for p, q in ratios if p > 0]
    return (max(logs) + math.log2(sum(2 ** (log - max(logs)) for log in logs))) / (order - 1)


def value_order(values, given=None):
    """The values of a column in order: as given, or numbers and dates with missing values last; None without any."""
    plain = [value for value in values if value is not None]
    if given is None and all(isinstance(value, int | float | datetime.date) for value in plain):
        return [*sorted(plain), *([None] if None in values else [])]
    return [value for value in given if value in values] if isinstance(given, list) else None


def earth_movers_distance(posterior, prior, given=None):
    """Least work that makes one distribution the other (t-Closeness, section 5): see tests/attack/test_distances.py."""
    moved = {value: posterior[value] - prior[value] for value in prior}
    order = value_order(list(prior), given)
    if order is not None:
        return sum(abs(sum(moved[value] for value in order[: place + 1])) for place in range(len(order) - 1))
    paths = {value: (value, *given[value]) for value in prior} if isinstance(given, dict) else {v: (v,) for v in prior}
    levels = range(len(next(iter(paths.values()))))
    nodes = {path[level:] for path in paths.values() for level in levels}
    return sum(abs(sum(moved[value] for value in prior if paths[value][-len(node) :] == node)) / 2 for node in nodes)


def recursive(counts, least):
    """r_1 / (r_l + ... + r_m), the counts in descending order."""
    ordered = sorted(counts, reverse=True)
    return ordered[0] / sum(ordered[least - 1 :]) if len(ordered) >= least else math.inf


def divergences(posterior, prior, cohort_values, distance=None):
    """The measures that all cells of a cohort share, by name."""
    counts = Counter(cohort_values)
    pairs = [(posterior[value], prior[value]) for value in prior]
    middle = {value: (posterior[value] + prior[value]) / 2 for value in prior}
    return {
        "cig": renyi(posterior, prior, 1),
        "renyi_0": renyi(posterior, prior, 0),
        "renyi_0.5": renyi(posterior, prior, 0.5),
        "renyi_1": renyi(posterior, prior, 1),
        "renyi_3.7": renyi(posterior, prior, 3.7),
        "renyi_inf": renyi(posterior, prior, math.inf),
        "total_variation": sum(abs(p - q) for p, q in pairs) / 2,
        "jensen_shannon": (renyi(posterior, middle, 1) + renyi(prior, middle, 1)) / 2,
        "hellinger": math.sqrt(sum((math.sqrt(p) - math.sqrt(q)) ** 2 for p, q in pairs) / 2),
        "emd": earth_movers_distance(posterior, prior, distance),
        "entropy": entropy(cohort_values),
        "distinct_values": len(counts),
        "recursive_1": recursive(counts.values(), 1),
        "recursive_2": recursive(counts.values(), 2),
        "recursive_3": recursive(counts.values(), 3),
    }


def of_value(posterior, prior):
    """The measures of a cell's own value, by name."""
    if prior == 0:
        # With sampling weights, of a value that nobody has: 0 stays 0.
        same = dict.fromkeys(("pointwise_information", "relative_gain", "enhanced_gain", "log_ratio"), 0.0)
        return {"csf": 0.0, "posterior": posterior, "prior": 0.0, "information_content": math.inf, **same}
    gain = (posterior - prior) / prior
    return {
        "csf": abs(posterior - prior),
        "posterior": posterior,
        "prior": prior,
        "pointwise_information": math.log2(posterior / prior) if posterior > 0 else -math.inf,
        "information_content": -math.log2(prior),
        "relative_gain": gain,
        "enhanced_gain": gain if gain <= -math.log(prior) else math.inf,
        "log_ratio": abs(math.log(posterior / prior)) if posterior > 0 else math.inf,
    }


def of_size(cohort, people):
    """The measures that follow from how many people are in the cohort, and in the class, by name."""
    risk = min(1.0, 1 / people) if people else 0.0
    unique = float(0 < people <= 1)
    return {"cohort_size": cohort, "class_size": people, "reidentification_risk": risk, "unique": unique}


def class_rows(table, row, columns, known):
    """Rows that agree with `row` on all columns of the attacker, the target too where it is one of them."""
    return cohort_rows(table, row, columns if known is None else known)


def score(table, columns=None, known=None, priors=None, accuracies=None, distances=None):
    """Measure to column to the list of its scores.

    table: column name to a list of values (None: missing). columns: to score, default all.
    """
    columns = list(table) if columns is None else columns
    scores = defaultdict(lambda: {name: [] for name in columns})
    for name in columns:
        values = table[name]
        prior = (priors or {}).get(name) or distribution(values)
        accuracy = (accuracies or {}).get(name, 1.0)
        weight = column_weight(table, name, knowledge(name, columns, known))
        for row, value in enumerate(values):
            cohort = cohort_rows(table, row, knowledge(name, columns, known))
            posterior = posterior_of([values[other] for other in cohort], prior, accuracy)
            found = divergences(posterior, prior, [values[other] for other in cohort], (distances or {}).get(name))
            found |= of_value(posterior[value], prior[value])
            same = class_rows(table, row, columns, known)
            found |= {"wcig": weight * found["cig"], **of_size(len(cohort), len(same))}
            for measure, score in found.items():
                scores[measure][name].append(score)
    return scores


def conditional_entropy(table, name, known):
    """H(X | known) = H(X, known) - H(known), in bits."""
    size = len(table[name])
    rows = [tuple(table[other][row] for other in known) for row in range(size)]
    return entropy([(table[name][row], *rows[row]) for row in range(size)]) - entropy(rows)


def column_weight(table, name, known):
    """H(X | known) / H(X), 0 for a column with a single value."""
    own = entropy(table[name])
    return conditional_entropy(table, name, known) / own if len(set(table[name])) > 1 else 0.0
