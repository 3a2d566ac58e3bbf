"""Sampling weights of every kind, drawn by Hypothesis."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tests.helpers import naive

WEIGHTS = {
    "whole": st.integers(1, 5),
    "whole, nobody": st.integers(0, 2),
    "halves": st.sampled_from([0.5, 1.25, 3.0]),
    "any": st.floats(1e-3, 1e3),
    "any, nobody": st.one_of(st.just(0.0), st.floats(1e-3, 1e3)),
    "far apart": st.sampled_from([1e-8, 1.0, 1e8]),
    "nearly nobody": st.sampled_from([5e-309, 0.0, 1e-300]),
}


def some_weights(draw, rows, kinds=tuple(WEIGHTS)):
    found = draw(st.lists(WEIGHTS[draw(st.sampled_from(kinds))], min_size=rows, max_size=rows))
    return found if any(found) else [1, *found[1:]]


def of_sizes(scores, times):
    """By name the measures of sizes, where these are so many times what they are in the scores."""
    sizes, classes = (times * scores.array(name) for name in ("cohort_size", "class_size"))
    found = [naive.of_size(*both) for both in zip(sizes.ravel().tolist(), classes.ravel().tolist(), strict=True)]
    return {name: np.array([one[name] for one in found]).reshape(sizes.shape) for name in found[0]}
