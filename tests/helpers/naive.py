"""The oracle of measures: each from its definition, with dictionaries and loops. Slow and obvious on purpose.

`naive_attack` is that of attacks: which rows make up a cohort, and how much each counts.
"""

from __future__ import annotations

import datetime
import decimal
import math
from collections import Counter, defaultdict
from fractions import Fraction

RECURSIVE = (1, 2, 3)
# Of the measures of a cohort, those that are unknown, not 0, where its rows have no known value.
UNKNOWN_OF_NOTHING = ("entropy", *(f"recursive_{least}" for least in RECURSIVE))
# Measures of a value of which there is the highest of a cohort.
HIGHEST = ("relative_gain", "enhanced_gain", "log_ratio")
OF_VALUE = (
    "csf",
    "posterior",
    "prior",
    "pointwise_information",
    "information_content",
    "relative_gain",
    "enhanced_gain",
    "log_ratio",
)


def amounts(values, weights):
    """How much the rows with each value count together, exactly; a value of rows that count 0 is there too."""
    found = defaultdict(Fraction)
    for value, weight in zip(values, weights, strict=True):
        found[value] += Fraction(weight)
    return dict(found)


def shares_of(counts):
    """Share of each value. counts: how many have it, or how much they count together."""
    total = sum(counts.values())
    return {value: float(count / total) for value, count in counts.items()}


def distribution(values):
    """Share of each value in a list."""
    return shares_of(Counter(values))


def entropy_of(counts):
    """Entropy of values, in bits. counts: as of `shares_of`."""
    return -sum(share * math.log2(share) for share in shares_of(counts).values() if share > 0)


def entropy(values):
    """Entropy of a list of values, in bits."""
    return entropy_of(Counter(values))


def conditional_entropy(table, name, known):
    """H(X | known) = H(X, known) - H(known), in bits."""
    size = len(table[name])
    rows = [tuple(table[other][row] for other in known) for row in range(size)]
    return entropy([(table[name][row], *rows[row]) for row in range(size)]) - entropy(rows)


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
    if not isinstance(given, list):
        return None
    return [*(value for value in given if value in values), *([None] if None in values and None not in given else [])]


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
    return float(ordered[0] / sum(ordered[least - 1 :])) if len(ordered) >= least else math.inf


def of_cohort(counts, posterior, prior, distance=None):
    """The measures that all cells of a cohort share, by name. counts: of the values that somebody there has."""
    pairs = [(posterior[value], prior[value]) for value in prior]
    middle = {value: (posterior[value] + prior[value]) / 2 for value in prior}
    own = [of_value(posterior[value], prior[value]) for value in counts]
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
        # A value that nobody has adds no step.
        "emd": earth_movers_distance(posterior, {value: share for value, share in prior.items() if share}, distance),
        "entropy": entropy_of(counts),
        "distinct_values": len(counts),
        **{f"highest_{name}": max(0.0, *(one[name] for one in own)) for name in HIGHEST},
        **{f"recursive_{least}": recursive(counts.values(), least) for least in RECURSIVE},
    }


def of_nothing():
    """The same where the cohort has no known value, or no row at all, so that nothing is learnt."""
    found = dict.fromkeys(of_cohort({0: 1}, {0: 1.0}, {0: 1.0}), 0.0)
    return found | dict.fromkeys(UNKNOWN_OF_NOTHING, math.nan)


def of_value(posterior, prior):
    """The measures of a cell's own value, by name."""
    if prior == 0:
        # Of a value that nobody has, 0 stays 0.
        found = dict.fromkeys(OF_VALUE, 0.0)
        return found | {"posterior": posterior, "information_content": math.inf}
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
    risk = float(min(1, 1 / people)) if people else 0.0
    unique = float(0 < people <= 1)
    return {"cohort_size": cohort, "class_size": people, "reidentification_risk": risk, "unique": unique}


def individual_risk(rows, people):
    """The expected value of 1 / F where F - f is negative binomial: by recurrence, in as many digits as it takes."""
    if people <= rows:
        return 1 / rows if people > 0 else 0.0
    with decimal.localcontext() as context:
        context.prec = 400
        fraction = decimal.Decimal(rows) / decimal.Decimal(people)
        odds = fraction / (1 - fraction)
        risk = -odds * fraction.ln()
        for before in range(1, rows):
            risk = odds * (decimal.Decimal(1) / before - risk)
        return float(risk)
