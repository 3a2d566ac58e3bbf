"""Formulas of the measures of cells: scalar functions, written once, for CPU loops and CUDA kernels.

Notation (piflib manual, sections 1.4 to 1.6): a *cohort* is the set of rows that agree on everything that the attacker
knows. C is the size of the cohort, c the number of its rows with one value, q the prior of the value, a the accuracy of
the attacker's knowledge. Logarithms are to base 2, so information is in bits, unless a measure is defined otherwise.

log2_share is log2 c - log2 C in units of 2^-LOG_BITS bits. log2_prior is log2 q in units of 2^-unit_bits bits. Both are
whole numbers (see `logarithms.py`), so that all processors agree, and a gain that must be 0 is exactly 0.

Sums over a cohort are in `statistics.py` and `walks.py`.
"""

from __future__ import annotations

import math

from numba import int64

from gpupif.kernels.jit import kernel, subroutine
from gpupif.kernels.log_units import LOG_BITS
from gpupif.kernels.logarithms import LN2, bits_of_units, log2

# Measures of a cell: a statistic of its cohort, then measures of its own value, without a logarithm and with one.
OF_COHORT, SURPRISE, POSTERIOR, PRIOR, RELATIVE_GAIN, POINTWISE, CONTENT, ENHANCED_GAIN, LOG_RATIO = range(9)
# Measures that follow from the number of people in the cohort or the equivalence class.
COHORT_SIZE, CLASS_SIZE, REIDENTIFICATION, UNIQUE = range(9, 13)


@subroutine
def posterior(count, cohort_size, prior, accuracy):
    """Return the probability of the value for an attacker who knows the cohort: a c / C + (1 - a) q."""
    share = count / cohort_size
    if accuracy == 1.0:
        return share
    return accuracy * share + (1.0 - accuracy) * prior


@subroutine
def surprise(posterior, prior):
    """Return the cell surprise factor (CSF), |posterior - prior|, in [0, 1]."""
    return min(1.0, abs(posterior - prior))


@subroutine
def log2_gain(log2_share, log2_prior, unit_bits):
    """Return log2((c / C) / q) in units of 2^-unit_bits bits."""
    cut = LOG_BITS - unit_bits
    return ((log2_share + ((int64(1) << cut) >> 1)) >> cut) - log2_prior


@subroutine
def log2_ratio(posterior, log2_share, prior, log2_prior, accuracy, unit_bits):
    """Return log2(posterior / prior), in bits.

    It is exactly 0 if the cohort is the whole table of n rows and the prior is the table's own distribution: then
    log2_share and log2_prior are both log2 c - log2 n.
    """
    if accuracy == 1.0:
        return bits_of_units(log2_gain(log2_share, log2_prior, unit_bits), unit_bits)
    return log2(posterior / prior)


@subroutine
def relative_gain(posterior, prior):
    """Return (posterior - prior) / prior, the relative gain of the value's probability; 0 if both are equal."""
    return 0.0 if posterior == prior else (posterior - prior) / prior


@subroutine
def enhanced_gain(posterior, prior, content):
    """Return the relative gain if it is at most -ln q, else infinity, which no bound allows.

    content: -log2 q, in bits.
    """
    gain = relative_gain(posterior, prior)
    # For a posterior of 1, the gain 1 / q - 1 is above -ln q for every q below 1; rounding hides it for q near 1.
    return math.inf if (posterior >= 1.0 > prior) or gain > content * LN2 else gain


@subroutine
def is_of_size(measure):
    """Return whether a measure follows from the number of people in the cohort or the equivalence class."""
    return COHORT_SIZE <= measure <= UNIQUE


@subroutine
def size_measure(measure, cohort_size, class_size, unit):
    """Return a measure that follows from the size of the cohort or the equivalence class.

    cohort_size, class_size: in units of `unit` people. A row's equivalence class is the rows that agree on all known
    columns, the scored column included if it is a known column.
    """
    people = unit * (cohort_size if measure == COHORT_SIZE else class_size)
    if measure <= CLASS_SIZE:
        return people
    # A row with sampling weight 0 matches nobody. A class of one person or less is re-identified with certainty.
    if people <= 1.0:
        return 1.0 if people > 0.0 else 0.0
    return 1.0 / people if measure == REIDENTIFICATION else 0.0


@subroutine
def content(prior, log2_prior, unit_bits):
    """Return the information content of a value, -log2 of its prior, in bits."""
    return bits_of_units(-log2_prior, unit_bits) if prior > 0.0 else math.inf


@subroutine
def is_of_probabilities(measure):
    """Return whether a measure follows from the posterior and the prior of the cell's value, without a logarithm."""
    return SURPRISE <= measure <= RELATIVE_GAIN


@subroutine
def probability_measure(measure, posterior, prior):
    """Return a measure that follows from the posterior and the prior, without a logarithm."""
    if measure == SURPRISE:
        return surprise(posterior, prior)
    if measure == POSTERIOR:
        return posterior
    if measure == PRIOR:
        return prior
    return relative_gain(posterior, prior)


@subroutine
def needs_logarithm(measure):
    """Return whether a measure of the cell's own value needs a logarithm."""
    return POINTWISE <= measure <= LOG_RATIO


@subroutine
def logarithm_measure(measure, posterior, log2_share, prior, log2_prior, accuracy, unit_bits):
    """Return a measure of the cell's own value that needs a logarithm."""
    if measure == POINTWISE:
        return log2_ratio(posterior, log2_share, prior, log2_prior, accuracy, unit_bits)
    if measure == CONTENT:
        return content(prior, log2_prior, unit_bits)
    if measure == ENHANCED_GAIN:
        return enhanced_gain(posterior, prior, content(prior, log2_prior, unit_bits))
    return abs(log2_ratio(posterior, log2_share, prior, log2_prior, accuracy, unit_bits)) * LN2


@subroutine
def cell_measure(measure, statistic, posterior, log2_share, prior, log2_prior, accuracy, unit_bits):
    """Return one measure of one cell, before weighting; any measure except the measures of sizes.

    posterior: the posterior of the cell's value. statistic: the statistic of the cell's cohort, for `OF_COHORT`.
    """
    if measure == OF_COHORT:
        return statistic
    if is_of_probabilities(measure):
        return probability_measure(measure, posterior, prior)
    return logarithm_measure(measure, posterior, log2_share, prior, log2_prior, accuracy, unit_bits)


@subroutine
def matched_measure(
    measure, statistic, value_known, count, learnt, posterior, log2_share, prior, log2_prior, accuracy, unit_bits
):
    """Return a measure of a cell, before weighting, if missing values match every value; no measure of sizes.

    value_known: whether the cell's value is not missing; if it is, a measure of the value is NaN. count: the cohort's
    rows with that value. learnt: see `absent_measure`. Other arguments: see `cell_measure`.
    """
    if measure == OF_COHORT:
        return statistic
    if not value_known:
        return math.nan
    if count == 0:
        return absent_measure(measure, learnt, prior, log2_prior, accuracy, unit_bits)
    return cell_measure(measure, statistic, posterior, log2_share, prior, log2_prior, accuracy, unit_bits)


@subroutine
def absent_measure(measure, learnt, prior, log2_prior, accuracy, unit_bits):
    """Return a measure of the cell's own value if no counted row of the cohort has that value: the cell's row counts 0.

    learnt: whether the cohort has any counted row with a known value; if not, the posterior is the prior.
    """
    probability = posterior(0, 1, prior, accuracy) if learnt else prior
    if measure in (POINTWISE, LOG_RATIO):
        if probability == prior:
            # Nothing is learnt; this holds also if both are 0, because no counted row of the table has the value.
            return 0.0
        if probability == 0.0:
            return -math.inf if measure == POINTWISE else math.inf
    return cell_measure(measure, 0.0, probability, int64(0), prior, log2_prior, accuracy, unit_bits)


@kernel
def score_absent(values, learnt, prior, accuracy, measure, out):
    """Set out[i] to a measure of the cell of row i.

    values: the code of each row's value. learnt[i]: whether the row's cohort has any row that counts. prior: (priors by
    code, their logarithms, the unit of the logarithms), see `cohorts.ScoredValues`.
    """
    priors, log2_priors, unit_bits = prior
    for i in range(values.size):
        value = values[i]
        out[i] = absent_measure(measure, learnt[i], priors[value], log2_priors[value], accuracy, unit_bits)
