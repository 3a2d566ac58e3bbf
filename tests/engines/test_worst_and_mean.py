"""The worst and the mean of scores against several attackers, against the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupif.engines.worst_and_mean import WorstAndMean, mean_of, worst_of, worst_place
from gpupif.measures import as_weighted, find_measure
from tests.helpers import naive_attack

UNKNOWN, NOBODY = float("nan"), 0.0
SCORES = {
    "cig": [0.0, 0.5, 2.0],
    "pointwise_information": [-np.inf, -1.0, 0.0, 1.5],
    "entropy": [0.0, 0.5, UNKNOWN],
    "cohort_size": [NOBODY, 0.25, 1.0, 3.0],
    "population_size": [1, 2, 5],
    "distinct_values": [0, 1, 3],
    "recursive_2": [0.5, np.inf, UNKNOWN],
}


@st.composite
def several(draw):
    """Return a measure, and arrays of scores of some cells, an array for each attacker."""
    name = draw(st.sampled_from(sorted(SCORES)))
    attackers, cells = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    whole = isinstance(SCORES[name][0], int)
    rows = st.lists(st.sampled_from(SCORES[name]), min_size=cells, max_size=cells)
    dtype = "int64" if whole else draw(st.sampled_from(["float64", "float32"]))
    return name, [np.array(draw(rows), dtype) for _ in range(attackers)]


@given(given=several())
def test_the_worst_and_the_mean_follow_their_definition(given):
    name, arrays = given
    measure = find_measure(name) if arrays[0].dtype.kind == "i" else as_weighted(find_measure(name))
    before = [array.copy() for array in arrays]
    worst, mean, aggregate = worst_of(measure, arrays), mean_of(arrays), WorstAndMean(measure, len(arrays[0]))
    for array in arrays:
        for part in (slice(0, 1), slice(1, len(array))):
            aggregate.add(array[part].astype(float), part)
    cells = list(zip(*(array.tolist() for array in arrays), strict=True))
    np.testing.assert_array_equal(worst, [naive_attack.worst_of(name, cell) for cell in cells])
    np.testing.assert_array_equal(mean, [naive_attack.mean_of(cell) for cell in cells])
    np.testing.assert_array_equal(aggregate.worst(), worst)
    np.testing.assert_array_equal(aggregate.mean(len(arrays)), mean)
    assert (worst.dtype, mean.dtype) == (arrays[0].dtype, np.float64)
    assert not (np.signbit(worst) & (worst == 0)).any()
    for cell, most in zip(cells, worst, strict=True):
        place = worst_place(measure, np.array(cell))
        assert place == next((n for n, score in enumerate(cell) if score == most), 0)
    np.testing.assert_array_equal(arrays, before)


@pytest.mark.parametrize(
    ("name", "scores", "worst"),
    [
        ("cohort_size", [NOBODY, 3.0, 2.0], 2),
        ("class_size", [NOBODY, NOBODY], 0),
        ("prior", [0.5, 0.0], 1),
        ("entropy", [UNKNOWN, 2.0, 1.0], 2),
        ("csf", [UNKNOWN, UNKNOWN], 0),
        ("pointwise_information", [UNKNOWN, -np.inf], 1),
    ],
)
def test_the_worst_attacker_has_the_riskiest_score(name, scores, worst):
    assert worst_place(as_weighted(find_measure(name)), np.array(scores)) == worst
