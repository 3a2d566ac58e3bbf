"""Whole attacks drawn by Hypothesis: tables of every kind, and everything that can be asked of them together."""

from __future__ import annotations

from hypothesis import strategies as st

import gpupif
from gpupif import AnyKnown, Population
from tests.helpers import naive_attack
from tests.helpers.tables import SIMULATED, frame_of, tables
from tests.helpers.ways import Pieces, with_population
from tests.helpers.weights import some_weights
from tests.helpers.wildcards import sparse

WEIGHTS = ("whole", "whole, nobody", "halves", "any", "any, nobody")


@st.composite
def attacks(draw, most_rows=8 if SIMULATED else 14, lacks=("count",)):
    """A table, perhaps with a column "people of" of weights, and arguments of `gpupif.score`: any that go together.

    lacks: what may be said of populations that lack rows.
    """
    wild = draw(st.booleans())
    table = draw((sparse if wild else tables)(3 if SIMULATED else 4, most_rows))
    names, rows = list(table), len(next(iter(table.values())))
    arguments = {"missing": "wildcard" if wild else "category"}
    if draw(st.booleans()):
        arguments["columns"] = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    scored_columns = arguments.get("columns", names)
    one = st.one_of(st.lists(st.sampled_from(names), unique=True), any_few(names, scored_columns))
    if draw(st.booleans()):
        arguments["attackers"] = draw(st.dictionaries(st.sampled_from(["a", "b c"]), one, min_size=1, max_size=2))
        asked = list(arguments["attackers"].values())
    else:
        arguments["known"] = draw(st.none() | one)
        asked = [arguments["known"]]
    used = [
        name for name in names if any(name in {*scored_columns, *known_by(known, scored_columns)} for known in asked)
    ]
    if draw(st.booleans()):
        table["people of"] = some_weights(draw, rows, WEIGHTS)
        arguments["weights"] = "people of"
    if draw(st.booleans()):
        arguments["population"] = Population(draw(populations(table, names)), lacks=draw(st.sampled_from(lacks)))
    values = {name: values_of(name, table, arguments.get("population"), wild) for name in used}
    arguments["priors"] = {
        name: prior for name, some in values.items() if (prior := draw(st.none() | given_priors(some))) is not None
    }
    arguments["accuracies"] = {
        name: draw(st.sampled_from([0.0, 0.25, 0.9, 1.0])) for name in used if draw(st.booleans())
    }
    distances = {
        name: draw(st.none() | st.just("nominal") | st.permutations([*some, "elsewhere"]).map(list))
        for name, some in values.items()
    }
    for name, prior in arguments["priors"].items():
        if "elsewhere" in prior and distances[name] is None:
            distances[name] = "nominal"
    arguments["distances"] = {name: distance for name, distance in distances.items() if distance is not None}
    return table, arguments


def any_few(names, scored_columns):
    """Attackers who know any few columns, of some of them or of those that are scored."""
    pools = st.none() | st.lists(st.sampled_from(names), min_size=1, unique=True)

    def few(pool):
        there = scored_columns if pool is None else pool
        most = min(len(there) - (name in there) for name in scored_columns)
        return st.builds(
            AnyKnown, st.integers(0, min(most, 2)), among=st.just(pool), subsets=st.sampled_from([None, None, 1, 2])
        )

    return pools.flatmap(few)


def known_by(known, scored_columns):
    """The columns that an attacker knows, or any few of."""
    if isinstance(known, int):
        known = AnyKnown(known)
    if isinstance(known, AnyKnown):
        return scored_columns if known.pool is None else known.pool
    return scored_columns if known is None else known


def with_drawn(table, arguments):
    """The arguments with the subsets that were drawn, by scored column, in place of how many: for `naive_attack`."""
    scored_columns = arguments.get("columns", naive_attack.default_columns(table, arguments))

    def drawn(known):
        if not isinstance(known, AnyKnown) or known.subsets is None:
            return known
        subsets = gpupif.score(frame_of(table), "cohort_size", scored_columns, known=known).subsets
        return naive_attack.AnyOf(
            known_by(known, scored_columns), {name: subsets.for_column(name) for name in scored_columns}
        )

    if "attackers" in arguments:
        return arguments | {"attackers": {name: drawn(known) for name, known in arguments["attackers"].items()}}
    return arguments | {"known": drawn(arguments.get("known"))}


@st.composite
def any_pieces(draw):
    """Tables cut up anywhere."""
    edges = draw(st.lists(st.floats(0, 1), max_size=3))
    return Pieces(
        tuple(edges), draw(st.integers(1, 14)), draw(st.integers(1, 14)), draw(st.sampled_from([0.0, 0.5, 10.0]))
    )


@st.composite
def populations(draw, table, names):
    """Rows that mix the values of a table, many or few of its own among them, and values that it has nowhere."""
    rows = len(table[names[0]])
    picks = draw(st.lists(st.integers(0, rows - 1), min_size=1, max_size=rows + 4))
    own = draw(st.booleans())
    return {name: [table[name][pick] for pick in (picks if own else draw(st.permutations(picks)))] for name in names}


def values_of(name, table, population, wild):
    """The values of a column of a table and its population, missing ones too unless they are wildcards."""
    values = dict.fromkeys([*table[name], *(() if population is None else population.table[name])])
    return [value for value in values if value is not None or not wild]


@st.composite
def given_priors(draw, values):
    """Probabilities of all values, and perhaps of one that occurs nowhere."""
    everything = [*values, *(["elsewhere"] if not values or draw(st.booleans()) else [])]
    parts = draw(st.lists(st.integers(1, 9), min_size=len(everything), max_size=len(everything)))
    return {value: part / sum(parts) for value, part in zip(everything, parts, strict=True)}


def frames_of(table, arguments):
    """The table as pandas would hold it, and the arguments with the population so, in columns of the same types."""
    rows, types = len(next(iter(table.values()))), {}

    def as_frame(people):
        both = frame_of({name: [*table[name], *values] for name, values in people.items()})
        types.update(both.dtypes)
        return both.iloc[rows:]

    options = with_population(arguments, as_frame)
    return frame_of(table).astype(types), options
