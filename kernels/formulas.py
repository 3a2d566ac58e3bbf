"""The formulas: scalar bodies, written once, called by the CPU loops and by CUDA kernels alike.

Notation (piflib manual, sections 1.4 to 1.6): a *cohort* is the set of rows that agree on everything the attacker
knows; C is its size, c the number of its rows that hold one value, q the prior of that value, a the accuracy of the
attacker's knowledge. All logarithms are to base 2, so information is in bits.
"""

from __future__ import annotations

import math

from .jit import kernel

# What a cell can be given. The numbers are positions in `gpupif.measures.MEASURES`.
CIG, WCIG, CSF, POSTERIOR, PRIOR, COHORT_SIZE = range(6)


@kernel
def posterior(count, cohort_size, prior, accuracy):
    """Probability of the value for an attacker who knows the cohort: a c/C + (1 - a) q."""
    share = count / cohort_size
    if accuracy == 1.0:
        return share
    return accuracy * share + (1.0 - accuracy) * prior


@kernel
def divergence_term(posterior, log2_share, prior, log2_prior, accuracy):
    """What one value adds to the Kullback-Leibler divergence of the posterior from the prior, in bits.

    log2_share is log2 c - log2 C. With accuracy 1 the term is c/C (log2 c - log2 C - log2 q): where the cohort is the
    whole table and the prior its distribution, log2 q being log2 c - log2 n too, exactly 0.
    """
    if accuracy == 1.0:
        return posterior * (log2_share - log2_prior)
    return posterior * math.log2(posterior / prior)


@kernel
def divergence_absent(present_prior, accuracy):
    """What the values that do not occur in the cohort add to the divergence, in bits.

    Each has posterior (1 - a) q, so together they add (1 - a) log2(1 - a) (1 - P), where P (`present_prior`) is the
    prior mass of the values that do occur.
    """
    doubt = 1.0 - accuracy
    if doubt <= 0.0:
        return 0.0
    return doubt * math.log2(doubt) * max(0.0, 1.0 - present_prior)


@kernel
def information_gain(divergence):
    """Cell information gain: the cohort's divergence, in bits; rounding may not take it below zero."""
    return max(0.0, divergence)


@kernel
def surprise(posterior, prior):
    """Cell surprise factor: how far the probability of the cell's value moves, in [0, 1]."""
    return min(1.0, abs(posterior - prior))


@kernel
def cell_measure(measure, probability, prior, cohort_size, gain):
    """Value of one measure (one of the constants above) for one cell; wCIG before its column's weight is known.

    probability: the posterior of the cell's value; gain: the information gain of its cohort.
    """
    if measure in (CIG, WCIG):
        return gain
    if measure == CSF:
        return surprise(probability, prior)
    if measure == POSTERIOR:
        return probability
    if measure == PRIOR:
        return prior
    return float(cohort_size)
