"""Statistics of a cohort that are sums, or largest terms, over its values: scalar bodies for CPU and CUDA alike.

p is the posterior of a value, q its prior, d = 1 - a the doubt that an accuracy a leaves. A value that does not occur
in the cohort has posterior d q; what all of these add follows from their prior mass together (`absent`).
"""

from __future__ import annotations

import math

from .formulas import LN2, log2_ratio
from .jit import kernel

# Kinds. The last two walk over a cohort's values in an order, see `walks.py`.
(
    DIVERGENCE,
    RENYI,
    RENYI_NEAR_ONE,
    RENYI_HIGH,
    RENYI_ZERO,
    RENYI_MOST,
    TOTAL_VARIATION,
    JENSEN_SHANNON,
    HELLINGER,
    ENTROPY,
    VALUES,
    MOVER,
    RECURSIVE,
) = range(13)


@kernel
def is_walk(kind):
    """Whether a statistic needs the cohort's values in order."""
    return kind >= MOVER


@kernel
def power(base, exponent):
    """Base ** exponent; common exponents by functions that are faster."""
    if exponent == 1.0:
        return base
    if exponent == -0.5:
        return 1.0 / math.sqrt(base)
    return base**exponent


@kernel
def term(kind, order, p, share, log2_share, q, log2_q, accuracy):
    """What one value of the cohort adds, `share` being c/C. order: of the Rényi divergence."""
    if kind == DIVERGENCE:
        # Kullback-Leibler: p log2(p / q).
        return p * log2_ratio(p, log2_share, q, log2_q, accuracy)
    if kind == RENYI:
        return p * power(p / q, order - 1.0)
    if kind == RENYI_NEAR_ONE:
        # The same less p, which sums to 1: what is left is not lost to rounding.
        return p * math.expm1((order - 1.0) * LN2 * log2_ratio(p, log2_share, q, log2_q, accuracy))
    if kind == RENYI_HIGH:
        # The logarithm of it, which does not grow out of the range of numbers.
        log2_p = log2_share if accuracy == 1.0 else math.log2(p)
        return log2_p + (order - 1.0) * log2_ratio(p, log2_share, q, log2_q, accuracy)
    if kind == RENYI_ZERO:
        return q
    if kind == RENYI_MOST:
        return p / q
    if kind == TOTAL_VARIATION:
        # Half of the absolute differences: the same as all that rise, and absent values do not.
        return max(0.0, p - q)
    if kind == JENSEN_SHANNON:
        # Half of p log2(p / m) + q log2(q / m), m being halfway between them.
        middle = 0.5 * (p + q)
        log2_p = log2_share if accuracy == 1.0 else math.log2(p)
        return 0.5 * (p * log2_p + q * log2_q) - middle * math.log2(middle)
    if kind == HELLINGER:
        difference = math.sqrt(p) - math.sqrt(q)
        return difference * difference
    if kind == ENTROPY:
        # Of the cohort itself, however accurate the attacker's knowledge is.
        return -share * log2_share
    return 1.0


@kernel
def absent(kind, order, mass, accuracy):
    """What the values add that do not occur in the cohort, of prior mass `mass` together."""
    doubt = 1.0 - accuracy
    if kind == RENYI_HIGH:
        return math.log2(mass) + order * math.log2(doubt) if mass > 0.0 and doubt > 0.0 else -math.inf
    if mass <= 0.0:
        return 0.0
    if kind == JENSEN_SHANNON:
        # Each is d q against q, with (1 + d) q / 2 between them.
        if doubt <= 0.0:
            return 0.5 * mass
        own = doubt * math.log2(2.0 * doubt / (1.0 + doubt))
        return 0.5 * mass * (own + math.log2(2.0 / (1.0 + doubt)))
    if kind == HELLINGER:
        difference = 1.0 - math.sqrt(doubt)
        return mass * difference * difference
    if doubt <= 0.0:
        return 0.0
    if kind == DIVERGENCE:
        return doubt * math.log2(doubt) * mass
    if kind == RENYI:
        return doubt**order * mass
    if kind == RENYI_NEAR_ONE:
        return doubt * math.expm1((order - 1.0) * math.log(doubt)) * mass
    if kind == RENYI_ZERO:
        return mass
    return 0.0


@kernel
def begin(kind):
    """A statistic before its first term."""
    return -math.inf if kind == RENYI_HIGH else 0.0


@kernel
def combine(kind, total, more):
    """A statistic with one more term: the largest, or the sum; of logarithms that of what they are of."""
    if kind == RENYI_MOST:
        return max(total, more)
    if kind == RENYI_HIGH:
        high, low = max(total, more), min(total, more)
        return high if math.isinf(high) else high + math.log2(1.0 + 2.0 ** (low - high))
    return total + more


@kernel
def finish(kind, order, total):
    """The statistic, from what all values add; rounding may not take it out of its range."""
    if kind == RENYI:
        return max(0.0, math.log2(total) / (order - 1.0))
    if kind == RENYI_NEAR_ONE:
        return max(0.0, math.log1p(total) / ((order - 1.0) * LN2))
    if kind == RENYI_HIGH:
        return max(0.0, total / (order - 1.0))
    if kind == RENYI_ZERO:
        return max(0.0, -math.log2(total))
    if kind == RENYI_MOST:
        return max(0.0, math.log2(total))
    if kind == HELLINGER:
        return min(1.0, math.sqrt(0.5 * total))
    if kind in (TOTAL_VARIATION, JENSEN_SHANNON):
        return min(1.0, max(0.0, total))
    return max(0.0, total)


@kernel
def absent_mass(values, present, all_values, all_mass):
    """Prior mass of the values that do not occur in a cohort of so many values, of prior mass `present` together.

    all_values: how many occur in the table; all_mass: their prior mass.
    """
    if values == all_values:
        return 1.0 - all_mass
    return max(0.0, 1.0 - present)
