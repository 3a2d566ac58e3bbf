"""Logarithms and powers of 2 that are equal on every processor, on CPU and GPU.

A logarithm is a whole number in units of 2^-LOG_BITS bits, with an error of at most 0.51 units; logarithms of powers of
two are exact. For m in [1, 2), a table of 256 numbers r near 1 / m brings m r into [1, 1 + 2^-8). There, nine terms of
the series of log2(1 + z) are enough, and log2 m = log2(m r) - log2 r.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
from numba import float64, int64, uint64

from gpupif.kernels.jit import kernel, subroutine
from gpupif.kernels.log_units import LOG_BITS
from gpupif.kernels.whole_sums import (
    EXPONENT_BIAS,
    FRACTION,
    FRACTION_BITS,
    HALF,
    LEADING,
    multiply_words,
    power_of_two,
    upper_word,
)

# It stands for log2 0; nothing is computed with it.
LOG_OF_NOTHING = -(1 << 62)
TABLE_BITS = 8
TERMS = 9
# The argument z of the series is in units of 2^-(64 + Z_BITS).
Z_BITS = uint64(7)


def _tables() -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Return the tables of r (in units of 2^-63) and -log2 r (2^-64) by the upper bits of m, and the series' terms.

    The terms are 1 / (k ln 2), for k from 1, in units of 2^-62.
    """
    size = 1 << TABLE_BITS
    with localcontext(prec=50):
        ln2 = Decimal(2).ln()
        # Rounded up, so that m r is never below 1.
        factors = [-(-(size << 63) // (size + place)) for place in range(size)]
        logs = [int((-(Decimal(r) / (1 << 63)).ln() / ln2 * (1 << 64)).to_integral_value()) for r in factors]
        terms = [int((Decimal(1 << 62) / (k * ln2)).to_integral_value()) for k in range(1, TERMS + 1)]
    return np.array(factors, np.uint64), np.array(logs, np.uint64), terms


# Coefficients of the series of e^z, enough of them for |z| up to half of ln 2.
EXP_TERMS = np.array([1.0 / math.factorial(k) for k in range(15)])
LN2 = math.log(2.0)
FACTORS, FACTOR_LOGS, _terms = _tables()
TERM_1, TERM_2, TERM_3, TERM_4, TERM_5, TERM_6, TERM_7, TERM_8, TERM_9 = map(uint64, _terms)


@subroutine
def _log2_of_fraction(digits):
    """Return log2 of digits / 2^63, a number in [1, 2), in units of 2^-LOG_BITS."""
    place = int64((digits >> uint64(63 - TABLE_BITS)) & uint64((1 << TABLE_BITS) - 1))
    # m r - 1 in units of 2^-71, below 2^64.
    high, low = multiply_words(digits, FACTORS[place])
    z = ((high - uint64(1 << 62)) << uint64(9)) | (low >> uint64(55))
    # The high terms are at most z^4 of the sum, so half of their digits are enough. The terms are written one by one:
    # the compiler would copy a short function with a loop into each caller, and most of them rarely need a logarithm.
    short = z >> HALF
    total = TERM_8 - ((TERM_9 >> HALF) * short >> Z_BITS)
    total = TERM_7 - ((total >> HALF) * short >> Z_BITS)
    total = TERM_6 - ((total >> HALF) * short >> Z_BITS)
    total = TERM_5 - ((total >> HALF) * short >> Z_BITS)
    total = TERM_4 - (upper_word(total, z) >> Z_BITS)
    total = TERM_3 - (upper_word(total, z) >> Z_BITS)
    total = TERM_2 - (upper_word(total, z) >> Z_BITS)
    total = TERM_1 - (upper_word(total, z) >> Z_BITS)
    # total is log2(1 + z) / z in units of 2^-62, so the product with z is in units of 2^-69 after the shift.
    exact = FACTOR_LOGS[place] + (upper_word(total, z) >> uint64(5))
    return int64((exact >> uint64(64 - LOG_BITS)) + ((exact >> uint64(63 - LOG_BITS)) & uint64(1)))


@subroutine
def log2_of_count(count):
    """Return log2 of a whole number from 1 to 2^63 - 1, in units of 2^-LOG_BITS; `LOG_OF_NOTHING` for 0."""
    if count <= 0:
        return int64(LOG_OF_NOTHING)
    digits = uint64(count)
    # The float may be rounded up to the next power of two, never down: its exponent is right or one too large.
    bits = int64(np.float64(count).view(np.int64) >> int64(52)) - EXPONENT_BIAS
    if (digits >> uint64(bits)) == uint64(0):
        bits -= 1
    return (int64(bits) << int64(LOG_BITS)) + _log2_of_fraction(digits << uint64(63 - bits))


@subroutine
def _split(x):
    """Return the whole part of log2 of a positive float, and the rest in units of 2^-LOG_BITS."""
    whole = int64(0)
    if x < 2.0**-1022:
        x *= 2.0**54
        whole = int64(-54)
    bits = np.float64(x).view(np.uint64)
    whole += int64(bits >> FRACTION_BITS) - EXPONENT_BIAS
    return whole, _log2_of_fraction(((bits & FRACTION) | LEADING) << uint64(11))


@subroutine
def log2_scaled(x, exponent):
    """Return log2(x 2^exponent) for a float x, 0 or more."""
    if not 0.0 < x < math.inf:
        return -math.inf if x == 0.0 else x
    whole, rest = _split(x)
    whole += exponent
    if -62 < whole < 62:
        return float64((whole << int64(LOG_BITS)) + rest) * power_of_two(-LOG_BITS)
    return float64(whole) + float64(rest) * power_of_two(-LOG_BITS)


@subroutine
def log2(x):
    """Return log2 of a float, 0 or more."""
    return log2_scaled(x, int64(0))


@subroutine
def exp2(x):
    """Return 2^x, to an ulp or two, for x up to 1,000; 0 for x below -200, which vanishes beside 1.

    It uses additions and multiplications, which every processor rounds alike.
    """
    if x < -200.0:
        return 0.0
    whole = math.floor(x + 0.5)
    z, total = (x - whole) * LN2, EXP_TERMS[EXP_TERMS.size - 1]
    for k in range(EXP_TERMS.size - 2, -1, -1):
        total = EXP_TERMS[k] + z * total
    return total * power_of_two(int64(whole))


@subroutine
def log2_in_units(x, bits):
    """Return log2 of a positive float in units of 2^-bits; bits: LOG_BITS or COARSE_LOG_BITS."""
    whole, rest = _split(x)
    if bits < LOG_BITS:
        cut = int64(LOG_BITS - bits)
        rest = (rest + (int64(1) << (cut - int64(1)))) >> cut
    return (whole << int64(bits)) + rest


@subroutine
def bits_of_units(units, bits):
    """Return a number of units of 2^-bits as the nearest float, in bits of information."""
    return float64(units) * power_of_two(-bits)


@kernel
def log2_of_counts(counts, out):
    """Set out[i] to log2 of counts[i], see `log2_of_count`."""
    for i in range(counts.size):
        out[i] = log2_of_count(counts[i])


@kernel
def log2_of_probabilities(probabilities, bits, out):
    """Set out[i] to log2 of probabilities[i], see `log2_in_units`."""
    for i in range(probabilities.size):
        out[i] = log2_in_units(probabilities[i], bits)


@kernel
def log2_of_floats(values, out):
    """Set out[i] to log2 of values[i]."""
    for i in range(values.size):
        out[i] = log2(values[i])
