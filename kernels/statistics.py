"""Statistics of a cohort that are sums, or largest terms, over its values: scalar bodies for CPU and CUDA alike.

p is the posterior of a value, q its prior, d = 1 - a the doubt that an accuracy a leaves. A value that does not occur
in the cohort has posterior d q; what all of these add follows from their prior mass together (`absent`).

All sums are whole numbers (`whole_sums.py`), so that they are the same in any order of the values.
"""

from __future__ import annotations

import math

from numba import float64, int64

from gpupif.kernels.formulas import content, enhanced_gain, log2_gain, log2_ratio, relative_gain
from gpupif.kernels.jit import subroutine
from gpupif.kernels.log_units import LOG_BITS
from gpupif.kernels.logarithms import LN2, bits_of_units, exp2, log2, log2_in_units, log2_scaled
from gpupif.kernels.whole_sums import float_of_digits, power_of_two

# Kinds. The last two walk over a cohort's values in an order, see `walks.py`.
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
# What is added up for orders next to 1 is below 2^17, and is divided by this.
NEAR_ONE_SCALE = 2.0**8
# Terms are not multiplied by a higher power of two than its reciprocal, which floats still hold.
LEAST_SCALE = -1000


@subroutine
def is_walk(kind):
    """Whether a statistic needs the cohort's values in order."""
    return kind >= MOVER


@subroutine
def is_of_logs(kind, accuracy):
    """Whether it is a sum of counts times logarithms, divided by the cohort's size."""
    return kind == ENTROPY or (kind == DIVERGENCE and accuracy == 1.0)


@subroutine
def is_of_terms(kind, accuracy):
    """Whether it is a sum of other terms, or the largest of what is said of single values."""
    if kind == DIVERGENCE:
        return accuracy < 1.0
    return kind < MOVER and kind != ENTROPY and kind != VALUES


@subroutine
def needs_mass(kind, accuracy):
    """Whether the prior mass of the values that do not occur in the cohort matters."""
    if kind in (JENSEN_SHANNON, HELLINGER):
        return True
    return accuracy < 1.0 and kind in (DIVERGENCE, RENYI, RENYI_NEAR_ONE, RENYI_ZERO)


@subroutine
def is_scaled(kind):
    """Whether terms may be of any size, so that they are divided by a power of two: see `scale_of_powers`."""
    return kind in (RENYI, RENYI_ZERO)


@subroutine
def is_largest(kind):
    """Whether it is the largest of what is said of single values."""
    return kind in (RENYI_MOST, GAIN_MOST, ENHANCED_GAIN_MOST, LOG_RATIO_MOST)


@subroutine
def of_value(statistic, p, log2_share, q, log2_q):
    """What is said of one value of the cohort, where the largest is looked for; of others the logarithm of their term.

    statistic: see `term`.
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
    """The statistic, from the largest of what is said of its values."""
    if kind == RENYI_MOST:
        largest = log2(largest)
    return max(0.0, largest)


@subroutine
def log2_power(statistic, p, log2_share, q, log2_q):
    """The logarithm of what a value adds to a Rényi divergence, p (p / q)^(order - 1). statistic: see `term`."""
    _, order, accuracy, unit_bits = statistic
    log2_p = bits_of_units(log2_share, LOG_BITS) if accuracy == 1.0 else log2(p)
    return log2_p + (order - 1.0) * log2_ratio(p, log2_share, q, log2_q, accuracy, unit_bits)


@subroutine
def scale_of_powers(largest, values):
    """Exponent of the power of two by which the terms of a sum of powers are divided, of so many values.

    largest: logarithm of the largest term. What is added up is below 2^12 then, and as many digits are left as can be.
    """
    spare, most = int64(max(LEAST_SCALE, math.ceil(largest))), 1 << 12
    while most < values:
        most *= 2
        spare += 1
    return spare


@subroutine
def term(statistic, scale, p, log2_share, q, log2_q):
    """What one value of the cohort adds to a sum that is none of logarithms.

    statistic: (kind, order of a Rényi divergence, accuracy, unit_bits); scale: see `scale_of_powers`. log2_share,
    log2_q, unit_bits: see `formulas.py`.
    """
    kind, order, accuracy, unit_bits = statistic
    if kind == DIVERGENCE:
        # Kullback-Leibler: p log2(p / q).
        return p * log2_ratio(p, log2_share, q, log2_q, accuracy, unit_bits)
    if kind == RENYI:
        # p (p / q)^(order - 1), divided by a power of two, so that it does not grow out of the range of numbers.
        return p * exp2((order - 1.0) * log2_ratio(p, log2_share, q, log2_q, accuracy, unit_bits) - scale)
    if kind == RENYI_NEAR_ONE:
        # The same less p, which sums to 1, by order - 1: what is left is lost neither to rounding nor below one unit.
        rest = math.expm1((order - 1.0) * LN2 * log2_ratio(p, log2_share, q, log2_q, accuracy, unit_bits))
        return p * (rest / (order - 1.0)) / NEAR_ONE_SCALE
    if kind == RENYI_ZERO:
        return q * power_of_two(-scale)
    if kind == TOTAL_VARIATION:
        # Half of the absolute differences: the same as all that rise, and absent values do not.
        return max(0.0, p - q)
    if kind == JENSEN_SHANNON:
        # Half of p log2(p / m) + q log2(q / m), m being halfway between them.
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
    """The logarithm of what the values add to a Rényi divergence that do not occur in the cohort; see `absent`."""
    doubt = 1.0 - accuracy
    return log2(mass) + order * log2(doubt) if mass > 0.0 and doubt > 0.0 else -math.inf


@subroutine
def absent(kind, order, scale, mass, accuracy):
    """What the values add that do not occur in the cohort, of prior mass `mass` together. scale: see `term`."""
    doubt = 1.0 - accuracy
    if mass <= 0.0:
        return 0.0
    if kind == JENSEN_SHANNON:
        # Each is d q against q, with (1 + d) q / 2 between them.
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
    """Divergence or entropy of a cohort of so many rows, from the sum of counts times logarithms."""
    bits = LOG_BITS if kind == ENTROPY else unit_bits
    return max(0.0, total / float64(size) * power_of_two(-bits))


@subroutine
def finish_terms(kind, order, scale, high, low, mass, accuracy):
    """The statistic, from the sum of its terms; rounding may not take it out of its range."""
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
    """Prior mass of the values that do not occur in a cohort of so many values, of prior mass `present` together.

    all_values: how many occur in the table; all_mass: their prior mass.
    """
    if values == all_values:
        return 1.0 - all_mass
    return max(0.0, 1.0 - present)
