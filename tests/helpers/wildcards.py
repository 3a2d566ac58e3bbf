"""Tables with many missing values, drawn by Hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.helpers.tables import SIMULATED, VALUES


# In the simulator each launch takes milliseconds.
@st.composite
def sparse(draw, most_columns=3 if SIMULATED else 5, most_rows=8 if SIMULATED else 20):
    """A small table with many missing values, columns of any type, some missing everywhere."""
    kinds = draw(st.lists(st.sampled_from([*sorted(VALUES), "nothing"]), min_size=1, max_size=most_columns))
    rows = draw(st.integers(1, most_rows))
    table = {}
    for number, kind in enumerate(kinds):
        values = st.none() if kind == "nothing" else st.one_of(st.none(), VALUES[kind], VALUES[kind])
        table[f"{kind}{number}"] = draw(st.lists(values, min_size=rows, max_size=rows))
    return table
