"""Any attack, any way to run: everything that can be asked goes with everything else, and means what the oracle says.

In memory scores are the oracle's, on every engine. Files beyond memory, Dask and a device give the bits of the table in
memory. A new feature of an attack is a line in one of the dictionaries below, and its meaning one in
`tests/helpers/naive_attack.py`.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings

import gpupif
from gpupif import AnyKnown, Population
from tests.helpers import naive_attack
from tests.helpers.attacks import attacks, frames_of
from tests.helpers.covering import covering
from tests.helpers.scores import ALL
from tests.helpers.tables import SHARED_FIXTURES, SIMULATED
from tests.helpers.ways import MEMORY, assert_same_frames

pytestmark = pytest.mark.every_engine

# Rows that repeat, cohorts of one and of many, and values that only one row has, the one that "some" counts 0.
TABLE = {
    "sex": ["f", "f", "m", "m", None, "m", "f", "f", "m", "f", "m", None, "f", "m", "x", "f", "m", "f"],
    "age": [30, 30, 40, 40, 30, 40, 50, 30, 40, 50, 30, 40, 30, None, 60, 50, None, 30],
    "town": ["A", "B", "A", "A", "B", "B", None, "A", "A", "B", "A", "B", "A", None, "C", "B", "A", "A"],
    "job": [*"abaabb", *"cabcab", *"abdbab"],
    "people": [1.5, 2.0, 1.0, 1.0, 0.5, 3.0, 2.0, 1.5, 1.0, 2.0, 4.0, 1.0, 1.5, 2.5, 0.25, 2.0, 1.0, 0.1],
    "some": [1, 0, 2, 0, 1, 3, 0, 1, 2, 0, 4, 1, 1, 2, 0, 0, 0, 1],
}
NAMES = ["sex", "age", "town", "job"]


def stacked(*tables):
    """Rows of several tables, one table after the other."""
    return {name: [value for table in tables for value in table[name]] for name in NAMES}


def taken(start, stop, step=1):
    """Some rows of the table."""
    return {name: TABLE[name][start:stop:step] for name in NAMES}


NEW = {"sex": ["m", "x", None], "age": [30, 20, None], "town": ["D", "A", "B"], "job": ["a", "e", "b"]}

ATTACKERS = {
    "columns": {"columns": ["job", "age", "sex"], "known": ["sex", "age", "town"]},
    "named": {"columns": ["age", "job"], "attackers": {"neighbour": ["sex", "town", "age"], "nobody": []}},
    "any 2": {"columns": NAMES, "known": 2},
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
}
MISSING = {"categories": {}, "wildcards": {"missing": "wildcard"}}
GIVEN = {
    "own": {},
    "given": {
        "priors": {"job": {"a": 0.3, "b": 0.25, "c": 0.2, "d": 0.125, "z": 0.125}},
        "accuracies": {"job": 0.75, "age": 0.9},
        "distances": {"job": [*"zdcbae"]},
    },
}
FEATURES = (ATTACKERS, WEIGHTS, POPULATIONS, MISSING, GIVEN)


class Case(NamedTuple):
    """One combination of features, by their names."""

    names: tuple[str, ...]

    @property
    def options(self):
        """As arguments of the oracle."""
        parts = [named[name] for named, name in zip(FEATURES, self.names, strict=True)]
        return {key: value for part in parts for key, value in part.items()}


def cases(together):
    """All combinations of features, those beside what is needed for any so many of them to occur together slow."""
    few = covering(together, *FEATURES)
    return [
        pytest.param(Case(names), id="-".join(names), marks=() if names in few else pytest.mark.slow)
        for names in product(*FEATURES)
    ]


@cache
def expected(case):
    """By name of an output its scores, as defined."""
    return naive_attack.outputs(TABLE, **case.options)


@cache
def in_memory(case):
    """The frame of all scores of the table in memory."""
    table, options = frames_of(TABLE, case.options)
    return MEMORY.score(table, ALL, **options)


def assert_as_defined(found, wanted):
    """A frame of all scores has what the oracle says."""
    assert set(found) == set(wanted)
    for name, scores in wanted.items():
        np.testing.assert_allclose(found[name].to_numpy(float), scores, rtol=1e-11, atol=1e-12, err_msg=name)


def as_frame(scores):
    """All scores in one frame."""
    return scores.to_arrow().to_pandas(ignore_metadata=True)


@pytest.mark.parametrize("case", cases(together=3))
def test_as_defined(engine, case):
    table, options = frames_of(TABLE, case.options)
    assert_as_defined(as_frame(gpupif.score(table, ALL, **options)), expected(case))


@pytest.mark.parametrize("case", cases(together=2))
def test_the_bits_of_the_table_in_memory(way, case):
    table, options = frames_of(TABLE, case.options)
    assert_same_frames(way.score(table, ALL, **options), in_memory(case))


@given(attack=attacks())
@settings(SHARED_FIXTURES, max_examples=3 if SIMULATED else 15)
def test_any_table_as_defined(engine, attack):
    table, arguments = attack
    frame, options = frames_of(table, arguments)
    assert_as_defined(as_frame(gpupif.score(frame, ALL, **options)), naive_attack.outputs(table, **arguments))


@pytest.mark.slow
@given(attack=attacks())
@settings(SHARED_FIXTURES, max_examples=15)
def test_any_table_has_the_bits_of_the_one_in_memory(way, attack):
    frame, options = frames_of(*attack)
    assert_same_frames(way.score(frame, ALL, **options), MEMORY.score(frame, ALL, **options))
