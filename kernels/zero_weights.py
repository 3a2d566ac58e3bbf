"""Cells of rows that stand for nobody, whose value nobody in their cohort has."""

from __future__ import annotations

import math

from .formulas import LOG_RATIO, POINTWISE, cell_measure, posterior
from .jit import kernel


@kernel
def score_absent(values, somebody, prior, accuracy, measure, out):
    """out[i] = a measure of the cell's own value, for a row with code values[i]; prior: (by code, log2 of it).

    somebody[i]: whether the cohort has anybody; where not, nothing is learnt, and the posterior is the prior.
    """
    priors, log2_priors = prior
    for i in range(values.size):
        share, log2_share = priors[values[i]], log2_priors[values[i]]
        probability, log2_posterior = share, log2_share
        if somebody[i]:
            probability, log2_posterior = posterior(0, 1, share, accuracy), -math.inf
        if probability == share and measure in (POINTWISE, LOG_RATIO):
            # Also where nobody has the value at all: 0 stays 0.
            out[i] = 0.0
            continue
        out[i] = cell_measure(measure, 0.0, probability, log2_posterior, share, log2_share, accuracy)
