"""All combinations of features of an attack, for each way to run, against the oracle.

In memory scores are the oracle's, on every engine. Files beyond memory, Dask and a device give the bits of the table in
memory. A new feature of an attack is a line in one of the dictionaries below, and its meaning one in
`tests/helpers/naive_attack.py`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif import AnyKnown, Population
from tests.helpers import naive_attack
from tests.helpers.attacks import any_pieces, attacks, frames_of, known_by, with_drawn
from tests.helpers.covering import covering
from tests.helpers.scores import ALL
from tests.helpers.tables import SHARED_FIXTURES, SIMULATED
from tests.helpers.ways import DEVICE, FILE, MEMORY, OTHERS, assert_same_outcomes, outcome

pytestmark = pytest.mark.every_engine

# Rows that repeat, cohorts of one and of many, and values that only rows have that "some" counts 0.
TABLE = {
    "sex": ["f", "f", "m", "m", None, "m", "f", "f", "m", "f", "m", None, "f", "m", "x", "f", "m", "f"],
    "age": [30, 30, 40, 40, 30, 40, 50, 30, 40, 50, 30, 40, 30, None, 60, 50, None, 30],
    "town": ["A", "B", "A", "A", "B", "B", None, "A", "A", "B", "A", "B", "A", None, "C", "B", "A", "A"],
    "job": [*"abaabb", *"cabcab", *"abdbab"],
    "people": [1.5, 2.0, 1.0, 1.0, 0.5, 3.0, 2.0, 1.5, 1.0, 2.0, 4.0, 1.0, 1.5, 2.5, 0.25, 2.0, 1.0, 0.1],
    "some": [1, 0, 2, 0, 1, 3, 0, 1, 2, 0, 4, 1, 1, 2, 0, 0, 0, 1],
}
NAMES = ["sex", "age", "town", "job"]
NEW = {"sex": ["m", "x", None], "age": [30, 20, 70], "town": ["D", "A", "B"], "job": ["a", "e", "b"]}
VALUES = {"sex": "f", "age": 40, "town": "B", "job": "a"}


def taken(start, stop, step=1):
    """Return some rows of the table."""
    return {name: TABLE[name][start:stop:step] for name in NAMES}


def stacked(*tables):
    """Return the rows of several tables, one table after the other."""
    return {name: [value for table in tables for value in table[name]] for name in NAMES}


def filled(table):
    """Return the table with a value in place of each missing value."""
    return table | {name: [VALUES[name] if value is None else value for value in table[name]] for name in NAMES}


ATTACKERS = {
    "all columns": {"columns": NAMES},
    "columns": {"columns": ["job", "age", "sex"], "known": ["sex", "age", "town"]},
    "named": {"columns": ["age", "job"], "attackers": {"neighbour": ["sex", "town", "age"], "nobody": []}},
    "any 2": {"columns": NAMES, "known": 2},
    "any 2, drawn": {"columns": ["town", "job"], "known": AnyKnown(2, among=NAMES, subsets=2, seed=3)},
    "any, named": {
        "columns": ["job", "town"],
        "attackers": {"friend": ["sex", "job"], "anybody": AnyKnown(1, among=["sex", "age", "town"])},
    },
}
WEIGHTS = {"rows": {}, "weights": {"weights": "people"}, "zeros": {"weights": "some"}}
POPULATIONS = {
    "alone": {},
    "population": {"population": stacked(taken(4, 18), NEW, taken(0, 9), NEW)},
    "lacking": {"population": Population(stacked(NEW, taken(0, 12, 2)), lacks="count")},
    "lacking, filled": {"population": Population(filled(stacked(taken(0, 15), NEW)), lacks="count")},
}
MISSING = {
    "categories": {},
    "wildcards": {"missing": "wildcard"},
    # Nothing is missing in the table, but perhaps in the population.
    "filled": {"missing": "wildcard"},
}
TOWNS = {"A": 0.25, "B": 0.375, "C": 0.125, None: 0.25}
GIVEN = {
    "own": {},
    "given": {
        "priors": {"job": {"a": 0.3, "b": 0.25, "c": 0.2, "d": 0.125, "z": 0.125}, "town": TOWNS},
        "accuracies": {"job": 0.75, "age": 0.9},
        "distances": {
            "job": [*"zdcbae"],
            "town": {town: ["south" if town == "A" else "north"] for town in [*"ABCD", None]},
        },
    },
}
FEATURES = (ATTACKERS, WEIGHTS, POPULATIONS, MISSING, GIVEN)
DTYPES = ("float64", "float32")


class Case(NamedTuple):
    """A combination of features, by their names."""

    attackers: str
    weights: str
    population: str
    missing: str
    given: str

    @property
    def table(self):
        return filled(TABLE) if self.missing == "filled" else TABLE

    @property
    def options(self):
        """Arguments of `gpupif.score`, but that a population is a dictionary as the table is."""
        parts = [feature[name] for feature, name in zip(FEATURES, self, strict=True)]
        options = {key: value for part in parts for key, value in part.items()}
        columns = used_columns(options)
        for key in ("priors", "accuracies", "distances"):
            options[key] = {name: value for name, value in options.get(key, {}).items() if name in columns}
        if self.missing != "categories" and "town" in options["priors"]:
            # A missing value is no value of its own then.
            some = {town: share / 0.75 for town, share in TOWNS.items() if town is not None}
            options["priors"] = options["priors"] | {"town": some}
        return options


def used_columns(options):
    """Return the columns that are scored, or that an attacker may know."""
    known = options["attackers"].values() if "attackers" in options else [options.get("known")]
    return {*options["columns"], *(name for one in known for name in known_by(one, options["columns"]))}


def params_of(names, *values, quick=False, marks=()):
    """Return a parameter of a test: a combination of features, the type of scores, and further values."""
    # All tests of a case run in one process, which computes what they share once.
    marks = [pytest.mark.xdist_group(f"case {'-'.join(names)}"), *([] if quick else [pytest.mark.slow]), *marks]
    ids = [*names, *(value.name for value in values)]
    return pytest.param(Case(*names[:-1]), names[-1], *values, id="-".join(ids), marks=marks)


# Each feature once, and as slow ones any two features together; then those for any three together.
EACH = covering(1, *FEATURES, DTYPES)
PAIRS = covering(2, *FEATURES, DTYPES, chosen=EACH)
MORE = covering(3, *FEATURES, DTYPES, chosen=PAIRS)[len(PAIRS) :]
CASES = [params_of(names, quick=names in EACH) for names in PAIRS]
TRIPLES = [params_of(names) for names in MORE]
# The ways that cut tables share these, and each way has any two features together.
CUTTING = [way for way in OTHERS if way.values[0] not in (FILE, DEVICE)]
BY_WAY = [
    params_of(names, *way.values, quick=names in EACH and way.values[0] is not FILE, marks=way.marks)
    for way in OTHERS
    for names in (EACH if way in CUTTING else PAIRS)
]
BY_TURNS = [
    params_of(names, *way.values, marks=way.marks)
    for turn, way in enumerate(CUTTING)
    for names in covering(2, *FEATURES, DTYPES, chosen=[*EACH, *MORE[turn :: len(CUTTING)]])[len(EACH) :]
]


@cache
def expected(case):
    """Return the scores as the oracle defines them."""
    return naive_attack.outcome(case.table, **with_drawn(case.table, case.options))


@cache
def in_memory(case, dtype):
    """Return the scores of the table in memory."""
    table, options = frames_of(case.table, case.options)
    return MEMORY.score(table, ALL, dtype=dtype, **options)


def scored(table, options):
    """Return the scores of a table in memory, on the engine of a test."""
    scores = gpupif.score(table, ALL, **options)
    return outcome(scores.to_arrow().to_pandas(ignore_metadata=True), scores)


def assert_as_defined(found, wanted):
    """Assert that a run gives the oracle's scores."""
    assert set(found.frame) == set(wanted.cells)
    for name, scores in wanted.cells.items():
        np.testing.assert_allclose(found.frame[name].to_numpy(float), scores, rtol=1e-11, atol=1e-12, err_msg=name)
    assert_near(found.weights, wanted.weights)
    assert_near(found.priors, wanted.priors)


def assert_near(found, wanted):
    """Assert that dictionaries of dictionaries have nearly equal numbers."""
    if not isinstance(wanted, dict):
        assert found == pytest.approx(wanted, rel=1e-11, abs=1e-12)
        return
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        assert_near(found[key], value)


def check_definition(case, dtype):
    """Check scores in 64 bits; narrower scores are these rounded."""
    table, options = frames_of(case.table, case.options)
    found = scored(table, options)
    assert_as_defined(found, expected(case))
    if dtype == "float32":
        short = scored(table, options | {"dtype": dtype}).frame
        for name, numbers in found.frame.items():
            assert short[name].equals(numbers.astype(short[name].dtype)), name


@pytest.mark.sampled(5)
@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(("case", "dtype"), CASES)
def test_scores_against_any_attack_follow_their_definition(case, dtype):
    check_definition(case, dtype)


@pytest.mark.thorough
@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("engine", ["cpu-3-threads-tiny-blocks"], indirect=True)
@pytest.mark.parametrize(("case", "dtype"), TRIPLES)
def test_scores_by_any_three_features_follow_their_definition(case, dtype):
    check_definition(case, dtype)


def check_bits(way, case, dtype):
    """Check that a way to run gives the bits of the table in memory."""
    table, options = frames_of(case.table, case.options)
    assert_same_outcomes(way.score(table, ALL, dtype=dtype, **options), in_memory(case, dtype))


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("case", "dtype", "way"), BY_WAY, indirect=["way"])
def test_every_way_gives_the_bits_of_the_table_in_memory(way, case, dtype):
    check_bits(way, case, dtype)


@pytest.mark.thorough
@pytest.mark.parametrize(("case", "dtype", "way"), BY_TURNS, indirect=["way"])
def test_every_way_that_cuts_tables_gives_the_bits_by_any_two_features_and_more(way, case, dtype):
    check_bits(way, case, dtype)


@pytest.mark.slow
@pytest.mark.usefixtures("engine")
@given(attack=attacks())
@settings(SHARED_FIXTURES, max_examples=3 if SIMULATED else 10)
def test_scores_of_any_table_follow_their_definition(attack):
    table, arguments = attack
    frame, options = frames_of(table, arguments)
    assert_as_defined(scored(frame, options), naive_attack.outcome(table, **with_drawn(table, arguments)))


@pytest.mark.slow
@given(attack=attacks(lacks=["count", "error"]), pieces=any_pieces(), dtype=st.sampled_from(["float64", "float32"]))
@settings(SHARED_FIXTURES, max_examples=15)
def test_every_way_gives_any_table_the_bits_of_memory(way, attack, pieces, dtype):
    frame, options = frames_of(*attack)
    try:
        wanted = MEMORY.score(frame, ALL, dtype=dtype, **options)
    except gpupif.InputError as error:
        with pytest.raises(gpupif.InputError, match=f"^{re.escape(str(error))}$"):
            way.score(frame, ALL, pieces, dtype=dtype, **options)
        return
    assert_same_outcomes(way.score(frame, ALL, pieces, dtype=dtype, **options), wanted)
