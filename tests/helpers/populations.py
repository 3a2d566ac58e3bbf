"""Samples of populations."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from tests.helpers.command_line import FRAME
from tests.helpers.tables import frame_of, jobs


@st.composite
def samples(draw):
    """A population, rows drawn from it, arguments, and perhaps rows that it lacks."""
    population, arguments = draw(jobs())
    names = list(population)
    rows = len(population[names[0]])
    drawn = draw(st.lists(st.integers(0, rows - 1), min_size=1, max_size=rows, unique=True))
    mixed = draw(st.booleans())
    # Each column's values from rows of their own: combinations that the population may lack.
    other = {name: draw(st.permutations(drawn)) if mixed else drawn for name in names}
    sample = {name: [population[name][row] for row in other[name]] for name in names}
    return sample, population, arguments


def frames_of(sample, population):
    """Both as pandas would hold them, in columns of the same types."""
    both = frame_of({name: [*sample[name], *population[name]] for name in sample})
    rows = len(next(iter(sample.values())))
    return both.iloc[:rows], both.iloc[rows:]


POPULATION = pd.concat([FRAME, FRAME, pd.DataFrame({"age": [50], "sex": ["x"], "a=b": [np.nan]})], ignore_index=True)
