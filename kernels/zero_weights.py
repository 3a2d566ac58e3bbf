"""Cells of rows that count 0, whose value no row of their cohort has."""

from __future__ import annotations

from gpupif.kernels.formulas import absent_measure
from gpupif.kernels.jit import kernel


@kernel
def score_absent(values, learnt, prior, accuracy, measure, out):
    """out[i] = a measure of the cell's own value, for a row with code values[i].

    learnt[i]: whether its cohort has any row that counts. prior: (by code, its logarithms, the unit of these), see
    `cohorts.Values`.
    """
    priors, log2_priors, unit_bits = prior
    for i in range(values.size):
        value = values[i]
        out[i] = absent_measure(measure, learnt[i], priors[value], log2_priors[value], accuracy, unit_bits)
