"""A small table of people with random hierarchies, for tests of `protect`."""

from __future__ import annotations

import numpy as np
import pandas as pd

HEIGHTS = {"age": (3, 3), "home": (6, 2), "job": (4, 2), "sex": (2, 1)}
NAMES = list(HEIGHTS)


def people(seed, rows=60):
    """A table, and hierarchies by column by value."""
    rng = np.random.default_rng(seed)
    table, hierarchies = {}, {}
    for name, (several, height) in HEIGHTS.items():
        values = [f"{name}{number}" for number in range(several * height)]
        weights = rng.random(len(values)) ** 2 + 0.02
        table[name] = rng.choice(values, rows, p=weights / weights.sum())
        groups = {}
        for number, value in enumerate(values):
            steps = [f"{name}-{level}-{number // 2**level}" for level in range(1, height)]
            groups[value] = (*steps, "*")
        hierarchies[name] = groups
    table["ill"] = rng.choice(["a", "b", "c"], rows, p=[0.5, 0.3, 0.2])
    return pd.DataFrame(table), hierarchies


def given(hierarchies):
    return {name: {"values": dict(groups)} for name, groups in hierarchies.items()}


def rows_of(table):
    return table.to_dict("records")
