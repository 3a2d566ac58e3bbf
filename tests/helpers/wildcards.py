"""Tables with many missing values, and what is asked of them, drawn by Hypothesis."""

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


@st.composite
def questions(draw):
    table = draw(sparse())
    names = list(table)
    arguments = {}
    if draw(st.booleans()):
        arguments["columns"] = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    if draw(st.booleans()):
        arguments["known"] = draw(st.lists(st.sampled_from(names), unique=True))
    used = {*arguments.get("columns", names), *arguments.get("known", [])}
    arguments["accuracies"] = {name: 0.7 for name in used if draw(st.booleans())}
    priors = {}
    for name in used:
        values = sorted({value for value in table[name] if value is not None}, key=str)
        if values and draw(st.booleans()):
            total = len(values) * (len(values) + 1) / 2
            priors[name] = {value: (place + 1) / total for place, value in enumerate(values)}
    return table, arguments | {"priors": priors}
