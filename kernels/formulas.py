"""The formulas of cells: scalar bodies, written once, called by the CPU loops and by CUDA kernels alike.

Notation (piflib manual, sections 1.4 to 1.6): a *cohort* is the set of rows that agree on everything the attacker
knows; C is its size, c the number of its rows that hold one value, q the prior of that value, a the accuracy of the
attacker's knowledge. Logarithms are to base 2, so information is in bits, but where a measure is defined otherwise.
log2_share is log2 c - log2 C in units of 2^-LOG_BITS bits, log2_prior that of the prior in units of 2^-unit_bits (see
`logarithms.py`): whole numbers, so that what must be 0 is, and all processors agree.
What is summed over a cohort stands in `statistics.py` and `walks.py`.
"""

from __future__ import annotations

import math

from numba import int64

from gpupif.kernels.jit import subroutine
from gpupif.kernels.log_units import LOG_BITS
from gpupif.kernels.logarithms import LN2, bits_of_units, log2

# What a cell can be given: what its cohort has, or what its own value has there, without a logarithm or with one.
OF_COHORT, SURPRISE, POSTERIOR, PRIOR, RELATIVE_GAIN, POINTWISE, CONTENT, ENHANCED_GAIN, LOG_RATIO = range(9)
# What follows from how many people are in the cohort, or the equivalence class.
COHORT_SIZE, CLASS_SIZE, REIDENTIFICATION, UNIQUE = range(9, 13)


@subroutine
def posterior(count, cohort_size, prior, accuracy):
    """Probability of the value for an attacker who knows the cohort: a c/C + (1 - a) q."""
    share = count / cohort_size
    if accuracy == 1.0:
        return share
    return accuracy * share + (1.0 - accuracy) * prior


@subroutine
def surprise(posterior, prior):
    """Cell surprise factor: how far the probability of the cell's value moves, in [0, 1]."""
    return min(1.0, abs(posterior - prior))


@subroutine
def log2_gain(log2_share, log2_prior, unit_bits):
    """log2(c/C / prior) in units of 2^-unit_bits bits."""
    cut = LOG_BITS - unit_bits
    return ((log2_share + ((int64(1) << cut) >> 1)) >> cut) - log2_prior


@subroutine
def log2_ratio(posterior, log2_share, prior, log2_prior, accuracy, unit_bits):
    """log2(posterior / prior), in bits.

    Where the cohort is the whole table and the prior its distribution, log2_prior being log2 c - log2 n too, exactly 0.
    """
    if accuracy == 1.0:
        return bits_of_units(log2_gain(log2_share, log2_prior, unit_bits), unit_bits)
    return log2(posterior / prior)


@subroutine
def relative_gain(posterior, prior):
    """By what share of itself the probability of the cell's value rises (below 0: falls); 0 where it stays."""
    return 0.0 if posterior == prior else (posterior - prior) / prior


@subroutine
def enhanced_gain(posterior, prior, content):
    """`relative_gain` where it is at most -ln q, else infinite: no bound allows it. content: -log2 q, in bits."""
    gain = relative_gain(posterior, prior)
    # 1 / q - 1 is more than -ln q for every q below 1, though for one near 1 rounding hides by how little.
    return math.inf if (posterior >= 1.0 > prior) or gain > content * LN2 else gain


@subroutine
def is_of_size(measure):
    """Whether a measure follows from how many people are in the cohort, or the class."""
    return COHORT_SIZE <= measure <= UNIQUE


@subroutine
def size_measure(measure, cohort_size, class_size, unit):
    """Value of a measure that is of the size of the cohort, or the class, in units of so many people.

    A row's class: the rows that agree on all columns of the attacker's, the scored one too where it is known.
    """
    people = unit * (cohort_size if measure == COHORT_SIZE else class_size)
    if measure <= CLASS_SIZE:
        return people
    # A row of weight 0 matches none; less than one person, by sampling weights, is one who is picked out.
    if people <= 1.0:
        return 1.0 if people > 0.0 else 0.0
    return 1.0 / people if measure == REIDENTIFICATION else 0.0


@subroutine
def content(prior, log2_prior, unit_bits):
    """Information content of a value, -log2 of its prior, in bits."""
    return bits_of_units(-log2_prior, unit_bits) if prior > 0.0 else math.inf


@subroutine
def is_of_probabilities(measure):
    """Whether a measure follows from the posterior and the prior of the cell's value, without a logarithm."""
    return SURPRISE <= measure <= RELATIVE_GAIN


@subroutine
def probability_measure(measure, posterior, prior):
    """Value of such a measure."""
    if measure == SURPRISE:
        return surprise(posterior, prior)
    if measure == POSTERIOR:
        return posterior
    if measure == PRIOR:
        return prior
    return relative_gain(posterior, prior)


@subroutine
def needs_logarithm(measure):
    """Whether a measure of the cell's own value needs a logarithm."""
    return POINTWISE <= measure <= LOG_RATIO


@subroutine
def logarithm_measure(measure, posterior, log2_share, prior, log2_prior, accuracy, unit_bits):
    """Value of such a measure."""
    if measure == POINTWISE:
        return log2_ratio(posterior, log2_share, prior, log2_prior, accuracy, unit_bits)
    if measure == CONTENT:
        return content(prior, log2_prior, unit_bits)
    if measure == ENHANCED_GAIN:
        return enhanced_gain(posterior, prior, content(prior, log2_prior, unit_bits))
    return abs(log2_ratio(posterior, log2_share, prior, log2_prior, accuracy, unit_bits)) * LN2


@subroutine
def cell_measure(measure, statistic, posterior, log2_share, prior, log2_prior, accuracy, unit_bits):
    """Value of one measure (one of the constants above, but those of sizes) for one cell, before any weighting.

    posterior: of the cell's value; statistic: of its cohort, where the measure is of one.
    """
    if measure == OF_COHORT:
        return statistic
    if is_of_probabilities(measure):
        return probability_measure(measure, posterior, prior)
    return logarithm_measure(measure, posterior, log2_share, prior, log2_prior, accuracy, unit_bits)


@subroutine
def absent_measure(measure, learnt, prior, log2_prior, accuracy, unit_bits):
    """Value of a measure of the cell's own value, where no row of the cohort has that value: its row counts 0.

    learnt: whether the cohort says anything; where it does not, the posterior is the prior.
    """
    probability = posterior(0, 1, prior, accuracy) if learnt else prior
    if measure in (POINTWISE, LOG_RATIO):
        if probability == prior:
            # Also where no row that counts has the value: 0 stays 0.
            return 0.0
        if probability == 0.0:
            return -math.inf if measure == POINTWISE else math.inf
    return cell_measure(measure, 0.0, probability, int64(0), prior, log2_prior, accuracy, unit_bits)
