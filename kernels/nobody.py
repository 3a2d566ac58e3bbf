"""Cells of rows that stand for nobody, whose value nobody in their cohort has."""

from __future__ import annotations

from .formulas import cell_measure, posterior
from .jit import kernel


@kernel
def score_absent(values, somebody, priors, accuracy, measure, out):
    """out[i] = a measure that does not need the cohort's sums, for a row with code values[i].

    somebody[i]: whether the cohort has anybody; where not, nothing is learnt, and the posterior is the prior.
    """
    for i in range(values.size):
        prior = priors[values[i]]
        size = 1 if somebody[i] else 0
        probability = posterior(0, size, prior, accuracy) if size else prior
        out[i] = cell_measure(measure, probability, prior, size, 0.0)
