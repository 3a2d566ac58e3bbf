"""Scores of cells of rows with weight 0 whose value no counted row of their cohort has."""

from __future__ import annotations

from gpupif.kernels.formulas import absent_measure
from gpupif.kernels.jit import kernel


@kernel
def score_absent(values, learnt, prior, accuracy, measure, out):
    """Set out[i] to a measure of the cell of row i.

    values: the code of each row's value. learnt[i]: whether the row's cohort has any row that counts. prior: (priors by
    code, their logarithms, the unit of the logarithms), see `cohorts.Values`.
    """
    priors, log2_priors, unit_bits = prior
    for i in range(values.size):
        value = values[i]
        out[i] = absent_measure(measure, learnt[i], priors[value], log2_priors[value], accuracy, unit_bits)
