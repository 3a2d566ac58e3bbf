"""Cells of rows that stand for nobody, whose value nobody in their cohort has."""

from __future__ import annotations

import math

from gpupif.kernels.formulas import LOG_RATIO, POINTWISE, cell_measure, posterior
from gpupif.kernels.jit import kernel


@kernel
def score_absent(values, somebody, prior, accuracy, measure, out):
    """out[i] = a measure of the cell's own value, for a row with code values[i].

    prior: (by code, its logarithms, the unit of these), see `cohorts.Values`.

    somebody[i]: whether the cohort has anybody; where not, nothing is learnt, and the posterior is the prior.
    """
    priors, log2_priors, unit_bits = prior
    for i in range(values.size):
        share, log2_share = priors[values[i]], log2_priors[values[i]]
        probability = posterior(0, 1, share, accuracy) if somebody[i] else share
        if probability == share and measure in (POINTWISE, LOG_RATIO):
            # Also where nobody has the value at all: 0 stays 0.
            out[i] = 0.0
        elif probability == 0.0 and measure in (POINTWISE, LOG_RATIO):
            out[i] = -math.inf if measure == POINTWISE else math.inf
        else:
            out[i] = cell_measure(measure, 0.0, probability, 0, share, log2_share, accuracy, unit_bits)
