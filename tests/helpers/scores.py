"""Measures that tests score, and scores beside those of the oracle."""

from __future__ import annotations

import numpy as np

from gpupif.measures import MEASURES

ALL = [
    *MEASURES,
    "renyi_0",
    "renyi_0.5",
    "renyi_1",
    "renyi_3.7",
    "renyi_inf",
    "recursive_1",
    "recursive_2",
    "recursive_3",
]
# Those that know people only, and no rows, where rows have weights.
OF_PEOPLE = [measure for measure in ALL if measure != "individual_risk"]
INTEGERS = ("cohort_size", "class_size", "distinct_values")


def job_of(scores):
    """The job of scores in memory, of one attacker."""
    return scores._backing.explainer(scores._attackers[0]).job


def where_they_lie(scores, measure):
    """The array of a measure's scores in memory, of the host or a device, where it is."""
    return scores._backing._scores(scores._score(measure))


def assert_scores(scores, expected):
    for measure in scores.measures:
        frame = scores[measure]
        for name, values in expected[measure].items():
            np.testing.assert_allclose(frame[name], values, rtol=1e-11, atol=1e-12, err_msg=f"{measure} of {name}")
