"""Every way to run gives the bits of the table in memory."""

from __future__ import annotations

import numpy as np
import pytest

from gpupif.datasets import census
from gpupif.measures import MEASURES
from tests.helpers.ways import MEMORY, assert_same_frames

pytestmark = pytest.mark.every_engine

PEOPLE = census(60, columns=4)
TABLE = PEOPLE.sample(40, random_state=1, ignore_index=True)
ASKED = {
    "all columns known": {},
    "some columns known": {"known": ["age", "sex"], "columns": ["region"]},
    "accuracies": {"accuracies": {"age": 0.75}},
    "several attackers": {"attackers": {"neighbour": ["age", "sex"], "nobody": []}},
    "any two columns": {"known": 2},
    "weights": {"weights": "weight"},
    "a population": {"population": PEOPLE},
    "wildcards": {"missing": "wildcard"},
}


@pytest.mark.slow
@pytest.mark.parametrize("asked", ASKED)
def test_the_bits_of_the_table_in_memory(way, asked):
    table = TABLE.assign(weight=[0.0, 1.5, 2.0, 1.0] * 10) if asked == "weights" else TABLE
    if asked == "wildcards":
        table = table.astype(object).mask(np.random.default_rng(1).random(table.shape) < 0.2)
    options = ASKED[asked]
    assert_same_frames(way.score(table, list(MEASURES), **options), MEMORY.score(table, list(MEASURES), **options))
