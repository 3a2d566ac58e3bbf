"""Small tables of every type of column, and what is asked of them, drawn by Hypothesis."""

from __future__ import annotations

import os

import pandas as pd
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

# In the simulator kernels are Python.
SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
SHARED_FIXTURES = settings(
    deadline=None,
    max_examples=20 if SIMULATED else 25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
VALUES = {
    "text": st.sampled_from(["a", "b", "c", "dd", "é", ""]),
    "integer": st.integers(-2, 3),
    "wide": st.sampled_from([-(2**62), -1, 0, 7, 2**62]),
    "float": st.sampled_from([0.5, -1.25, 0.0, 1e300]),
    "boolean": st.booleans(),
    "date": st.sampled_from(list(pd.date_range("1999-12-31", periods=4))),
    "single": st.just("x"),
}


@st.composite
def tables(draw, most_columns=5, most_rows=24):
    """A small table: columns of any type, some with missing values, often with equal rows."""
    kinds = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=most_columns))
    rows = draw(st.integers(1, most_rows))
    pool = draw(st.integers(1, rows))
    picks = draw(st.lists(st.integers(0, pool - 1), min_size=rows, max_size=rows))
    table = {}
    for number, kind in enumerate(kinds):
        values = VALUES[kind] if draw(st.booleans()) else st.one_of(st.none(), VALUES[kind])
        distinct = draw(st.lists(values, min_size=pool, max_size=pool))
        table[f"{kind}{number}"] = [distinct[pick] for pick in picks]
    return table


@st.composite
def jobs(draw):
    """A table with columns to score, columns known, priors and accuracies."""
    table = draw(tables())
    names = list(table)

    def some(least):
        return [name for name in names if draw(st.booleans())] or names[:least]

    arguments = {}
    if draw(st.booleans()):
        arguments["columns"] = some(1)
    if draw(st.booleans()):
        arguments["known"] = some(0)
    used = {*arguments.get("columns", names), *arguments.get("known", [])}
    arguments["accuracies"] = {
        name: draw(st.sampled_from([0.0, 0.25, 0.9, 1.0])) for name in names if name in used and draw(st.booleans())
    }
    arguments["priors"] = {}
    arguments["distances"] = {}
    for name in names:
        if name in used and draw(st.booleans()):
            values = list(dict.fromkeys([*table[name], *(["elsewhere"] if draw(st.booleans()) else [])]))
            if "elsewhere" in values:
                arguments["distances"][name] = "nominal"
            weights = draw(st.lists(st.integers(1, 9), min_size=len(values), max_size=len(values)))
            arguments["priors"][name] = {v: w / sum(weights) for v, w in zip(values, weights, strict=True)}
    return table, arguments


def frame_of(table):
    """The table as pandas would hold it: missing values as each type has them."""
    return pd.DataFrame({name: pd.Series(values) for name, values in table.items()})
