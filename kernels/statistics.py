"""Statistics of a cohort that are a sum, or the largest term, over its values: scalar functions for CPU and GPU.

Notation: p is the posterior of a value, q its prior, a the accuracy of the attacker's knowledge, and d = 1 - a. A value
that does not occur in the cohort is *absent*: its posterior is d q. The terms of all absent values together follow from
the sum of their priors, the absent prior mass (`absent`).

All sums are whole numbers (`whole_sums.py`), so that they do not depend on the order of the values.
"""

from __future__ import annotations

import math

from numba import float64, int64

from gpupif.kernels.formulas import content, enhanced_gain, log2_gain, log2_ratio, relative_gain
from gpupif.kernels.jit import subroutine
from gpupif.kernels.log_units import LOG_BITS
from gpupif.kernels.logarithms import LN2, bits_of_units, exp2, log2, log2_in_units, log2_scaled
from gpupif.kernels.whole_sums import float_of_digits, power_of_two

# Kinds of statistics. The last two need a cohort's values in order, see `walks.py`.
(
    DIVERGENCE,
    RENYI,
    RENYI_NEAR_ONE,
    RENYI_ZERO,
    RENYI_MOST,
    TOTAL_VARIATION,
    JENSEN_SHANNON,
    HELLINGER,
    ENTROPY,
    VALUES,
    GAIN_MOST,
    ENHANCED_GAIN_MOST,
    LOG_RATIO_MOST,
    MOVER,
    RECURSIVE,
) = range(15)
# The terms for orders next to 1 are below 2^17; they are divided by this number before they are added up.
NEAR_ONE_SCALE = 2.0**8
# The lowest exponent of the power of two that terms are divided by; a float still holds its reciprocal.
LEAST_SCALE = -1000


@subroutine
def is_walk(kind):
    """Return whether a statistic needs the cohort's values in order."""
    return kind >= MOVER


@subroutine
def is_of_logs(kind, accuracy):
    """Return whether a statistic is a sum of counts times logarithms, divided by the cohort's size."""
    return kind == ENTROPY or (kind == DIVERGENCE and accuracy == 1.0)


@subroutine
def is_of_terms(kind, accuracy):
    """Return whether a statistic is a sum of other terms, or the largest term."""
    if kind == DIVERGENCE:
        return accuracy < 1.0
    return kind < MOVER and kind != ENTROPY and kind != VALUES


@subroutine
def needs_mass(kind, accuracy):
    """Return whether a statistic depends on the absent prior mass."""
    if kind in (JENSEN_SHANNON, HELLINGER):
        return True
    return accuracy < 1.0 and kind in (DIVERGENCE, RENYI, RENYI_NEAR_ONE, RENYI_ZERO)


@subroutine
def is_scaled(kind):
    """Return whether the terms have no bound, so that they are divided by a power of two: see `scale_of_powers`."""
    return kind in (RENYI, RENYI_ZERO)


@subroutine
def is_largest(kind):
    """Return whether a statistic is the largest term."""
    return kind in (RENYI_MOST, GAIN_MOST, ENHANCED_GAIN_MOST, LOG_RATIO_MOST)


@subroutine
def of_value(statistic, p, log2_share, q, log2_q):
    """Return the term of one value of the cohort, for statistics that are the largest term.

    For the scaled statistics (`is_scaled`), return the logarithm of the term. statistic: see `term`.
    """
    kind, _, accuracy, unit_bits = statistic
    if kind == RENYI_MOST:
        return p / q
    if kind == GAIN_MOST:
        return relative_gain(p, q)
    if kind == ENHANCED_GAIN_MOST:
        return enhanced_gain(p, q, content(q, log2_q, unit_bits))
    if kind == LOG_RATIO_MOST:
        return abs(log2_ratio(p, log2_share, q, log2_q, accuracy, unit_bits)) * LN2
    return log2_power(statistic, p, log2_share, q, log2_q)


@subroutine
def finish_largest(kind, largest):
    """Return the statistic from the largest term of its values."""
    if kind == RENYI_MOST:
        largest = log2(largest)
    return max(0.0, largest)


@subroutine
def log2_power(statistic, p, log2_share, q, log2_q):
    """Return log2 of the term of a value in a Rényi divergence, p (p / q)^(order - 1). statistic: see `term`."""
    _, order, accuracy, unit_bits = statistic
    log2_p = bits_of_units(log2_share, LOG_BITS) if accuracy == 1.0 else log2(p)
    return log2_p + (order - 1.0) * log2_ratio(p, log2_share, q, log2_q, accuracy, unit_bits)


@subroutine
def scale_of_powers(largest, values):
    """Return the exponent of the power of two by which the terms of a sum of powers are divided.

    largest: log2 of the largest term. values: number of terms. The sum of the divided terms is below 2^12, and they
    keep as many digits as possible.
    """
    spare, most = int64(max(LEAST_SCALE, math.ceil(largest))), 1 << 12
    while most < values:
        most *= 2
        spare += 1
    return spare


@subroutine
def term(statistic, scale, p, log2_share, q, log2_q):
    """Return the term of one value of the cohort in a statistic that is not a sum of logarithms.

    statistic: (kind, order of a Rényi divergence, accuracy, unit_bits). scale: see `scale_of_powers`. log2_share,
    log2_q, unit_bits: see `formulas.py`.
    """
    kind, order, accuracy, unit_bits = statistic
    if kind == DIVERGENCE:
        # Kullback-Leibler: p log2(p / q).
        return p * log2_ratio(p, log2_share, q, log2_q, accuracy, unit_bits)
    if kind == RENYI:
        # p (p / q)^(order - 1), divided by a power of two, so that it stays in the range of floats.
        return p * exp2((order - 1.0) * log2_ratio(p, log2_share, q, log2_q, accuracy, unit_bits) - scale)
    if kind == RENYI_NEAR_ONE:
        # (p (p / q)^(order - 1) - p) / (order - 1). The p sum to 1; without them, no digits are lost to rounding.
        rest = math.expm1((order - 1.0) * LN2 * log2_ratio(p, log2_share, q, log2_q, accuracy, unit_bits))
        return p * (rest / (order - 1.0)) / NEAR_ONE_SCALE
    if kind == RENYI_ZERO:
        return q * power_of_two(-scale)
    if kind == TOTAL_VARIATION:
        # Half of the sum of absolute differences is the sum of the differences above 0. Absent values have none.
        return max(0.0, p - q)
    if kind == JENSEN_SHANNON:
        # Half of p log2(p / m) + q log2(q / m), with m = (p + q) / 2.
        if p == q:
            return 0.0
        middle = log2_in_units(0.5 * (p + q), LOG_BITS)
        if accuracy < 1.0:
            log2_share = log2_in_units(p, LOG_BITS)
        own = p * bits_of_units(log2_share - middle, LOG_BITS)
        return 0.5 * (own - q * bits_of_units(log2_gain(middle, log2_q, unit_bits), unit_bits))
    difference = math.sqrt(p) - math.sqrt(q)
    return difference * difference


@subroutine
def log2_absent_power(order, mass, accuracy):
    """Return log2 of the absent values' term in a Rényi divergence; see `absent`."""
    doubt = 1.0 - accuracy
    return log2(mass) + order * log2(doubt) if mass > 0.0 and doubt > 0.0 else -math.inf


@subroutine
def absent(kind, order, scale, mass, accuracy):
    """Return the term of all absent values together. mass: their prior mass. scale: see `term`."""
    doubt = 1.0 - accuracy
    if mass <= 0.0:
        return 0.0
    if kind == JENSEN_SHANNON:
        # The posterior is d q, the prior q, their mean (1 + d) q / 2.
        if doubt <= 0.0:
            return 0.5 * mass
        own = doubt * log2(2.0 * doubt / (1.0 + doubt))
        return 0.5 * mass * (own + log2(2.0 / (1.0 + doubt)))
    if kind == HELLINGER:
        difference = 1.0 - math.sqrt(doubt)
        return mass * difference * difference
    if doubt <= 0.0:
        return 0.0
    if kind == DIVERGENCE:
        return doubt * log2(doubt) * mass
    if kind == RENYI:
        return exp2(log2_absent_power(order, mass, accuracy) - scale)
    if kind == RENYI_NEAR_ONE:
        return doubt * (math.expm1((order - 1.0) * math.log(doubt)) / (order - 1.0)) * mass
    if kind == RENYI_ZERO:
        return mass * power_of_two(-scale)
    return 0.0


@subroutine
def finish_logs(kind, total, size, unit_bits):
    """Return the divergence or entropy of a cohort of `size` rows, in bits, from the sum of counts times logarithms."""
    bits = LOG_BITS if kind == ENTROPY else unit_bits
    return max(0.0, total / float64(size) * power_of_two(-bits))


@subroutine
def finish_terms(kind, order, scale, high, low, mass, accuracy):
    """Return the statistic from the sum of its terms (high, low); rounding cannot take it out of its range."""
    total = float_of_digits(high, low)
    if kind == RENYI_NEAR_ONE:
        total *= NEAR_ONE_SCALE
    total += absent(kind, order, scale, mass, accuracy)
    if kind == RENYI:
        return max(0.0, log2_scaled(total, scale) / (order - 1.0))
    if kind == RENYI_NEAR_ONE:
        return max(0.0, math.log1p((order - 1.0) * total) / ((order - 1.0) * LN2))
    if kind == RENYI_ZERO:
        return max(0.0, -log2_scaled(total, scale))
    if kind == HELLINGER:
        return min(1.0, math.sqrt(max(0.0, 0.5 * total)))
    if kind in (TOTAL_VARIATION, JENSEN_SHANNON):
        return min(1.0, max(0.0, total))
    return max(0.0, total)


@subroutine
def absent_mass(values, present, all_values, all_mass):
    """Return the absent prior mass of a cohort.

    values, present: number of values in the cohort, and the sum of their priors. all_values, all_mass: the same for the
    whole table.
    """
    if values == all_values:
        return 1.0 - all_mass
    return max(0.0, 1.0 - present)
