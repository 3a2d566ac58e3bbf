"""The oracle of attacks: which rows make up a cohort, how much each counts, what is believed before. No short cuts.

Tables are dictionaries of lists, missing values None. Arguments are those of `gpupif.score`; a population is such a
table too, or a `gpupif.Population` of one. Sums of weights are exact. `outcome` knows every kind of attacker, `score`
one who knows some columns.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

from tests.helpers import naive

# The riskiest cells are those with the lowest of these.
SIZES = ("cohort_size", "class_size", "population_size")
LOW_IS_RISKY = (*SIZES, "prior", "entropy", "distinct_values")


def rows_of(table, names):
    """The rows of a table over some columns, each as a tuple."""
    if not names:
        return [()] * len(next(iter(table.values())))
    return list(zip(*(table[name] for name in names), strict=True))


def agreeing(row, rows, wild):
    """Which of the rows agree with one in all columns; wild: missing values agree with every value."""
    return [
        place
        for place, other in enumerate(rows)
        if all(a == b or (wild and (a is None or b is None)) for a, b in zip(row, other, strict=True))
    ]


def cohort_rows(table, row, names, wild=False):
    """Rows of a table that agree with one of them on the columns `names`."""
    rows = rows_of(table, names)
    return agreeing(rows[row], rows, wild)


class Facts(NamedTuple):
    """What is the same whoever attacks.

    weights: what each row counts. wild: missing values are wildcards. priors: probabilities by column and value.
    population: its rows, with those of the table that it lacks; None for none.
    """

    table: dict
    weights: list
    wild: bool
    priors: dict
    accuracies: dict
    distances: dict
    population: dict | None


def facts_of(
    table,
    used,
    priors=None,
    accuracies=None,
    distances=None,
    weights=None,
    population=None,
    missing="category",
):
    """The facts about a table of which the columns `used` are scored or known by anybody."""
    rows = len(table[used[0]])
    counted = [Fraction(1)] * rows if weights is None else [Fraction(weight) for weight in table[weights]]
    wild = missing == "wildcard"
    people = None
    if population is not None:
        population = getattr(population, "table", population)
        some_missing = any(None in side[name] for side in (table, population) for name in used)
        people = {name: list(population[name]) for name in used}
        # No row is known to be lacking where its missing values match others.
        if not (wild and some_missing):
            people = with_lacking(table, people, used)
    given = {name: normal(prior) for name, prior in (priors or {}).items()}
    own = {name: own_prior(table, name, counted, wild, people) for name in used if name not in given}
    return Facts(table, counted, wild, own | given, accuracies or {}, distances or {}, people)


def with_lacking(table, population, names):
    """The population with as many rows of each kind as the table has, by columns."""
    have, need = Counter(rows_of(population, names)), Counter(rows_of(table, names))
    rows = list((have | need).elements())
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def normal(prior):
    """A given prior, as exact numbers that sum to 1."""
    total = sum(map(Fraction, prior.values()))
    return {value: Fraction(share) / total for value, share in prior.items()}


def own_prior(table, name, weights, wild, population):
    """The distribution of a column in the population, or else the table; all 0 where nobody has a known value."""
    counts = known_amounts(table[name], weights, wild)
    if population is not None:
        of_rows = known_amounts(table[name], [1] * len(table[name]), wild)
        there = known_amounts(population[name], [1] * len(population[name]), wild)
        # Values that the population has nowhere, which only wildcards let pass, are counted as in the table.
        counts = of_rows | there
    total = sum(counts.values())
    return {value: Fraction(count) / total if total else Fraction(0) for value, count in counts.items()}


def known_amounts(values, weights, wild):
    """As `naive.amounts`, without missing values where these are unknown."""
    found = naive.amounts(values, weights)
    if wild:
        found.pop(None, None)
    return found


class Against(NamedTuple):
    """Scores against one attacker: measure to column to a list, and by column the weight of wCIG."""

    cells: dict
    weights: dict


def against(facts, columns, known):
    """Scores against an attacker who knows the columns `known`, but never the one that is scored."""
    cells, weights = defaultdict(dict), {}
    for name in columns:
        others, cohorts = meet(facts, name, known)
        found = [score_cell(facts, row, name, others, known, *one) for row, one in enumerate(cohorts)]
        weights[name] = column_weight(facts, name, [counts for _, counts in cohorts])
        for cell in found:
            cell["wcig"] = weights[name] * cell["cig"]
        for measure in found[0]:
            cells[measure][name] = [cell[measure] for cell in found]
    return Against(dict(cells), weights)


def meet(facts, name, known):
    """What is known where a column is scored, and by row of the table the `cohort`."""
    others = [other for other in known if other != name]
    return others, [cohort(facts, row, name, others) for row in range(len(facts.weights))]


def cohort(facts, row, name, others):
    """How much the rows that agree with one count, and by known value of a column how much those that have it do."""
    there = cohort_rows(facts.table, row, others, facts.wild)
    weights = [facts.weights[other] for other in there]
    return sum(weights), known_amounts([facts.table[name][other] for other in there], weights, facts.wild)


def score_cell(facts, row, name, others, known, size, counts):
    """All measures of one cell but wCIG, by name, against who knows the columns `others`, of the row all `known`.

    size, counts: of its cohort.
    """
    value, certain = facts.table[name][row], sum(counts.values())
    rows_in_class = cohort_rows(facts.table, row, known, facts.wild)
    in_class = sum(facts.weights[other] for other in rows_in_class)
    prior, accuracy = facts.priors[name], Fraction(facts.accuracies.get(name, 1))
    believed = posterior = {one: float(share) for one, share in prior.items()}
    found = naive.of_size(float(size), float(in_class))
    found["individual_risk"] = naive.individual_risk(len(rows_in_class), float(in_class))
    if certain:
        posterior = {
            one: float(accuracy * counts.get(one, 0) / certain + (1 - accuracy) * share) for one, share in prior.items()
        }
        present = {one: count for one, count in counts.items() if count > 0}
        found |= naive.of_cohort(present, posterior, believed, facts.distances.get(name))
    else:
        found |= naive.of_nothing()
    if facts.wild and value is None:
        found |= dict.fromkeys(naive.OF_VALUE, math.nan)
    else:
        found |= naive.of_value(posterior[value], believed[value])
    if facts.population is not None:
        row_known, rows = rows_of(facts.table, others)[row], rows_of(facts.population, others)
        # Who agrees with no row of the population counts for one.
        found["population_size"] = max(1, len(agreeing(row_known, rows, facts.wild)))
    return found


def column_weight(facts, name, cohorts):
    """H(X | known) / H(X), at most 1, and 0 where H(X) is 0. cohorts: by row how much each value of its cohort counts.

    H(X | known) is the mean of -log2 of the share that a row's value has in the row's cohort.
    """
    counts = known_amounts(facts.table[name], facts.weights, facts.wild)
    if sum(count > 0 for count in counts.values()) < 2:
        return 0.0
    losses = [
        -math.log2(there[value] / sum(there.values())) * weight
        for value, weight, there in zip(facts.table[name], facts.weights, cohorts, strict=True)
        if weight and value in counts
    ]
    return min(1.0, math.fsum(losses) / float(sum(counts.values())) / naive.entropy_of(counts))


def score(table, columns=None, known=None, **arguments):
    """Measure to column to the list of its scores, against an attacker who knows the columns `known`."""
    return against(*question(table, columns, known, arguments)).cells


def column_weights(table, columns=None, known=None, **arguments):
    """The weight of wCIG by column, against an attacker who knows the columns `known`."""
    facts, columns, known = question(table, columns, known, arguments)
    met = {name: meet(facts, name, known)[1] for name in columns}
    return {name: column_weight(facts, name, [counts for _, counts in cohorts]) for name, cohorts in met.items()}


def question(table, columns, known, arguments):
    """The facts, the columns that are scored and those that are known, as they are by default."""
    columns = default_columns(table, arguments) if columns is None else columns
    known = columns if known is None else known
    used = [name for name in table if name in {*columns, *known}]
    return facts_of(table, used, **arguments), columns, known


def default_columns(table, arguments):
    """The columns that are scored where none are named."""
    return [name for name in table if name != arguments.get("weights")]


class Aggregates(NamedTuple):
    """Worst and mean over attackers: measure to column to a list; and by column the weights against each."""

    worst: dict
    mean: dict
    weights: dict


def aggregate(facts, subsets):
    """Worst and mean scores over attackers each of whom knows one of the subsets of columns, by scored column."""
    worst, mean, weights = defaultdict(dict), defaultdict(dict), {}
    for name, several in subsets.items():
        each = [against(facts, [name], list(known)) for known in several]
        weights[name] = [one.weights[name] for one in each]
        for measure in each[0].cells:
            cells = list(zip(*(one.cells[measure][name] for one in each), strict=True))
            worst[measure][name] = [worst_of(measure, cell) for cell in cells]
            mean[measure][name] = [mean_of(cell) for cell in cells]
    return Aggregates(dict(worst), dict(mean), weights)


def worst_of(measure, scores):
    """The riskiest of the scores that are known, NaN for none; 0, of a cohort of nobody, where there is no other."""
    known = [one for one in scores if not math.isnan(one)]
    if measure in (*SIZES, "distinct_values") and any(known):
        known = [size for size in known if size > 0]
    return (min if measure in LOW_IS_RISKY else max)(known, default=math.nan)


def mean_of(scores):
    """The mean of the scores that are known, NaN for none."""
    known = [one for one in scores if not math.isnan(one)]
    return sum(known) / len(known) if known else math.nan


def all_subsets(columns, pool, number):
    """By scored column all subsets of so many of the other columns."""
    return {name: list(combinations([other for other in pool if other != name], number)) for name in columns}


class Outcome(NamedTuple):
    """All that is said of a table, as of `ways.Outcome`.

    cells: scores by the names that files have for them, [<attacker>_]<measure>[_worst or _mean]_<column>. weights,
    priors: by attacker ("" for one without a name) and by aggregate ("" or "mean").
    """

    cells: dict
    weights: dict
    priors: dict


class AnyOf(NamedTuple):
    """What an attacker may know who knows any few columns of a pool: by scored column, which subsets of it."""

    pool: list
    subsets: dict


def outcome(table, columns=None, known=None, attackers=None, **arguments):
    """Scores against attackers of every kind.

    Those who know any few columns, by a number or a `gpupif.AnyKnown`, may know any subset of these, or those of an
    `AnyOf`.
    """
    columns = default_columns(table, arguments) if columns is None else columns
    named = {"": known} if attackers is None else attackers
    asked = {name: known_sets(theirs, columns) for name, theirs in named.items()}
    reach = set(columns).union(*(one.pool if isinstance(one, AnyOf) else one for one in asked.values()))
    facts = facts_of(table, [name for name in table if name in reach], **arguments)
    priors = {name: {value: float(share) for value, share in facts.priors[name].items()} for name in columns}
    found = Outcome({}, {}, {})
    for attacker, theirs in asked.items():
        if isinstance(theirs, AnyOf):
            worst, mean, each = aggregate(facts, theirs.subsets)
            aggregates = {"": ("_worst", worst), "mean": ("_mean", mean)}
            found.weights[attacker, ""] = {name: min(weights) for name, weights in each.items()}
            found.weights[attacker, "mean"] = {name: sum(weights) / len(weights) for name, weights in each.items()}
        else:
            cells, found.weights[attacker, ""] = against(facts, columns, theirs)
            aggregates = {"": ("", cells)}
        for what, (suffix, cells) in aggregates.items():
            found.priors[attacker, what] = priors
            for measure, by_column in cells.items():
                for name, scores in by_column.items():
                    found.cells[f"{attacker}_{measure}{suffix}_{name}".removeprefix("_")] = scores
    return found


def known_sets(known, columns):
    """The columns that an attacker knows, or `AnyOf` of those who know any few."""
    if known is None or isinstance(known, list | AnyOf):
        return columns if known is None else known
    number, pool = (known, None) if isinstance(known, int) else (known.known, known.among)
    pool = [] if number == 0 else columns if pool is None else pool
    return AnyOf(pool, all_subsets(columns, pool, number))
