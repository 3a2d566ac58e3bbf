"""The oracle for sampling weights: as `naive`, with sums of weights in place of counts of rows."""

from __future__ import annotations

import math
from collections import defaultdict

from tests.helpers import naive


def shares(values, weights):
    """Share of each value in the people that the rows stand for; None where they stand for nobody."""
    total = math.fsum(weights)
    if total == 0:
        return None
    found = defaultdict(list)
    for value, weight in zip(values, weights, strict=True):
        found[value].append(weight)
    return {value: math.fsum(parts) / total for value, parts in found.items()}


def entropy(values, weights):
    return -sum(share * math.log2(share) for share in shares(values, weights).values() if share > 0)


def posterior_of(values, weights, prior, accuracy):
    """Value to probability, for an attacker who knows the cohort; the prior where nobody is in it."""
    share = shares(values, weights)
    if share is None:
        return dict(prior)
    return {value: accuracy * share.get(value, 0) + (1 - accuracy) * prior[value] for value in prior}


def of_cohort(values, weights, posterior, prior, distance):
    """The measures that all cells of a cohort share, by name; all 0 where it is empty."""
    share = shares(values, weights)
    found = naive.divergences(posterior, prior, list(prior), distance)
    present = {value: part for value, part in (share or {}).items() if part > 0}
    found["entropy"] = -sum(part * math.log2(part) for part in present.values())
    found["distinct_values"] = len(present)
    for least in (1, 2, 3):
        found[f"recursive_{least}"] = naive.recursive(present.values(), least) if share else math.inf
    return found


def score(table, weights, columns=None, known=None, priors=None, accuracies=None, distances=None):
    """Measure to column to the list of its scores."""
    columns = list(table) if columns is None else columns
    scores = defaultdict(lambda: {name: [] for name in columns})
    for name in columns:
        values = table[name]
        prior = (priors or {}).get(name) or shares(values, weights)
        accuracy = (accuracies or {}).get(name, 1.0)
        knows = naive.knowledge(name, columns, known)
        weight = column_weight(table, weights, name, knows)
        for row, value in enumerate(values):
            cohort = naive.cohort_rows(table, row, knows)
            people, theirs = [weights[other] for other in cohort], [values[other] for other in cohort]
            posterior = posterior_of(theirs, people, prior, accuracy)
            found = of_cohort(theirs, people, posterior, prior, (distances or {}).get(name))
            found |= naive.of_value(posterior[value], prior[value])
            same = [weights[other] for other in naive.class_rows(table, row, columns, known)]
            found |= {"wcig": weight * found["cig"], **naive.of_size(math.fsum(people), math.fsum(same))}
            for measure, score in found.items():
                scores[measure][name].append(score)
    return scores


def column_weight(table, weights, name, known):
    """H(X | known) / H(X), 0 where H(X) is 0."""
    values = table[name]
    rows = [tuple(table[other][row] for other in known) for row in range(len(values))]
    joint = [(value, *row) for value, row in zip(values, rows, strict=True)]
    own = entropy(values, weights)
    return (entropy(joint, weights) - entropy(rows, weights)) / own if own > 0 else 0.0
