"""The oracle for missing values that match every value."""

from __future__ import annotations

import math

from tests.helpers import naive

OF_COHORT = [*naive.divergences({0: 1.0}, {0: 1.0}, [0])]
UNKNOWN_OF_NOTHING = ("entropy", "recursive_1", "recursive_2", "recursive_3")


def matches(a, b):
    return a is None or b is None or a == b


def score(table, columns=None, known=None, priors=None, accuracies=None, distances=None):
    """Measure to column to the list of its scores; missing values are None."""
    columns = list(table) if columns is None else columns
    rows = range(len(next(iter(table.values()))))
    scores = {}
    for name in columns:
        values, others = table[name], naive.knowledge(name, columns, known)
        there = [value for value in values if value is not None]
        prior = (priors or {}).get(name) or naive.distribution(there)
        accuracy = (accuracies or {}).get(name, 1.0)
        cohorts = [[j for j in rows if all(matches(table[k][i], table[k][j]) for k in others)] for i in rows]
        whole = columns if known is None else known
        classes = [[j for j in rows if all(matches(table[k][i], table[k][j]) for k in whole)] for i in rows]
        of_values = [[values[j] for j in cohort if values[j] is not None] for cohort in cohorts]
        losses = [-math.log2(of_values[i].count(values[i]) / len(of_values[i])) for i in rows if values[i] is not None]
        entropy = naive.entropy(there)
        weight = min(1.0, sum(losses) / len(losses) / entropy) if len(set(there)) > 1 else 0.0
        for i in rows:
            found = naive.of_size(len(cohorts[i]), len(classes[i]))
            if of_values[i]:
                posterior = naive.posterior_of(of_values[i], prior, accuracy)
                found |= naive.divergences(posterior, prior, of_values[i], (distances or {}).get(name))
            else:
                found |= {measure: math.nan if measure in UNKNOWN_OF_NOTHING else 0.0 for measure in OF_COHORT}
            found["wcig"] = weight * found["cig"]
            if values[i] is None:
                found |= dict.fromkeys(naive.of_value(1.0, 1.0), math.nan)
            else:
                found |= naive.of_value(posterior[values[i]], prior[values[i]])
            for measure, value in found.items():
                scores.setdefault(measure, {}).setdefault(name, []).append(value)
    return scores
