"""Small tables for tests of suppression, treated and looked at row by row."""

from __future__ import annotations

import numpy as np
import pandas as pd

import gpupif

COLUMNS = ["home", "age", "sex"]


def people(rows=40, seed=3):
    """A table of quasi-identifiers, and a number beside them."""
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "home": random.choice(list("nsew"), rows),
            "age": random.integers(1, 6, rows),
            "sex": random.choice(["f", "m"], rows),
            "pay": random.integers(0, 3, rows).astype(float),
        }
    )


def treat(table, *treatments):
    """The table treated."""
    return gpupif.treat(table, list(treatments)).table


def tuples(frame, columns=COLUMNS):
    """Its rows, with None for a missing value."""
    return [tuple(None if pd.isna(value) else value for value in row) for row in frame[columns].itertuples(index=False)]
