"""The oracle: every measure from its definition, with dictionaries and loops. Slow and obvious on purpose."""

from __future__ import annotations

import math
from collections import Counter


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


def score(table, columns=None, known=None, priors=None, accuracies=None):
    """Measure to column to the list of its scores.

    table: column name to a list of values (None: missing). columns: to score, default all.
    """
    columns = list(table) if columns is None else columns
    measures = ("cig", "wcig", "csf", "posterior", "prior", "cohort_size")
    scores = {measure: {name: [] for name in columns} for measure in measures}
    for name in columns:
        values = table[name]
        prior = (priors or {}).get(name) or distribution(values)
        accuracy = (accuracies or {}).get(name, 1.0)
        weight = column_weight(table, name, knowledge(name, columns, known))
        for row, value in enumerate(values):
            cohort = cohort_rows(table, row, knowledge(name, columns, known))
            posterior = posterior_of([values[other] for other in cohort], prior, accuracy)
            gain = sum(p * math.log2(p / prior[v]) for v, p in posterior.items() if p > 0)
            scores["cig"][name].append(gain)
            scores["wcig"][name].append(weight * gain)
            scores["csf"][name].append(abs(posterior[value] - prior[value]))
            scores["posterior"][name].append(posterior[value])
            scores["prior"][name].append(prior[value])
            scores["cohort_size"][name].append(len(cohort))
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
