"""Sums that do not depend on the order of their terms: whole numbers of 128 bits, on CPU and GPU.

A number of 128 bits is (high, low) and stands for high x 2^64 + low. high is signed; low is from 0 to 2^64 - 1. Sums of
such numbers are exact, so they do not depend on the order of rows, threads, blocks, partitions or workers. A sum is
rounded once, when it becomes a float.
"""

from __future__ import annotations

import numpy as np
from numba import float64, int64, uint64

from gpupif.kernels.jit import subroutine

HALF = uint64(32)
LOW_HALF = uint64(0xFFFFFFFF)
MOST = int64((1 << 63) - 1)
# Format of float64: the bits of its fraction, the implied bit above them, and the bias of its exponent.
FRACTION_BITS = uint64(52)
FRACTION = uint64((1 << 52) - 1)
LEADING = uint64(1 << 52)
EXPONENT_BIAS = 1023
# Terms of sums that are not whole numbers are cut to multiples of 2^-FIXED_BITS and split into two digits. The upper
# digit is in units of 2^-UPPER_BITS.
UPPER_BITS, FIXED_BITS = 50, 80


@subroutine
def multiply_words(a, b):
    """Return the product of two 64-bit words: (upper word, lower word)."""
    a, b = uint64(a), uint64(b)
    a_high, a_low, b_high, b_low = a >> HALF, a & LOW_HALF, b >> HALF, b & LOW_HALF
    low = a_low * b_low
    middle = a_high * b_low + (low >> HALF)
    other = a_low * b_high + (middle & LOW_HALF)
    return a_high * b_high + (middle >> HALF) + (other >> HALF), a * b


@subroutine
def upper_word(a, b):
    """Return the upper word of the product of two 64-bit words."""
    upper, _ = multiply_words(a, b)
    return upper


@subroutine
def add_wide(high, low, more_high, more_low):
    """Return the sum of two numbers of 128 bits."""
    total = uint64(low) + uint64(more_low)
    return int64(high) + int64(more_high) + int64(total < uint64(low)), total


@subroutine
def multiply_wide(count, factor):
    """Return the product, of 128 bits, of a count of 0 or more and a whole number of either sign."""
    high, low = multiply_words(uint64(count), uint64(factor))
    signed = int64(high)
    if factor < 0:
        signed -= int64(count)
    return signed, low


@subroutine
def parts_of_wide(high, low):
    """Split a number of 128 bits into three numbers that are added up separately: high, and two below 2^32.

    The sums of each of the three fit into 64 bits for up to 2^31 numbers.
    """
    return int64(high), int64(uint64(low) >> HALF), int64(uint64(low) & LOW_HALF)


@subroutine
def wide_of_parts(high, middle, low):
    """Return the sum of the numbers that `parts_of_wide` split, from the sums of their parts."""
    high, upper = add_wide(high, uint64(0), middle >> int64(32), uint64(middle) << HALF)
    return add_wide(high, upper, int64(0), uint64(low))


@subroutine
def rank_of_float(x):
    """Return a whole number that is the larger, the larger the float is."""
    bits = np.float64(x).view(np.int64)
    return bits if bits >= 0 else bits ^ MOST


@subroutine
def float_of_rank(rank):
    """Return the float of which `rank_of_float` makes this number."""
    bits = int64(rank) if rank >= 0 else int64(rank) ^ MOST
    return np.uint64(uint64(bits)).view(np.float64)


@subroutine
def power_of_two(exponent):
    """Return 2^exponent as a float, for exponents from -1022 to 1023."""
    return np.uint64(uint64(exponent + EXPONENT_BIAS) << FRACTION_BITS).view(np.float64)


@subroutine
def float_of_wide(high, low):
    """Return a number of 128 bits as the nearest float."""
    sign, high, low = 1.0, int64(high), uint64(low)
    if high < 0:
        sign = -1.0
        low = uint64(0) - low
        high = -high - int64(low != uint64(0))
    if high == 0:
        return sign * float64(low)
    # Take the upper 64 bits, and set the last of them if any lower bit is set: the float is rounded as if all bits were
    # there.
    bits = int64(np.float64(high).view(np.int64) >> int64(52)) - EXPONENT_BIAS + 1
    shift = uint64(bits)
    left = uint64(64) - shift
    top = (uint64(high) << left) | (low >> shift)
    if (low << left) != uint64(0):
        top |= uint64(1)
    return sign * float64(top) * power_of_two(bits)


@subroutine
def digits_of_float(x):
    """Split a float into two digits that are added up separately: units of 2^-UPPER_BITS, and units of 2^-FIXED_BITS.

    The sum of upper digits fits into 64 bits if the sum of the floats is below 2^12. The sum of lower digits fits for
    up to 2^32 floats. The part of the float below 2^-FIXED_BITS is cut off.
    """
    scaled = x * power_of_two(UPPER_BITS)
    upper = int64(scaled)
    return upper, int64((scaled - float64(upper)) * power_of_two(FIXED_BITS - UPPER_BITS))


@subroutine
def wide_of_digits(upper, lower):
    """Return the sum of floats, as a number of 128 bits in units of 2^-FIXED_BITS, from the sums of both digits."""
    shift = int64(FIXED_BITS - UPPER_BITS)
    return add_wide(upper >> (int64(64) - shift), uint64(upper) << uint64(shift), lower >> int64(63), uint64(lower))


@subroutine
def wide_of_float(x):
    """Return a float as a number of 128 bits in units of 2^-FIXED_BITS; see `digits_of_float`."""
    upper, lower = digits_of_float(x)
    return wide_of_digits(upper, lower)


@subroutine
def float_of_digits(high, low):
    """Return the sum of floats that `wide_of_digits` returned as the nearest float."""
    return float_of_wide(high, low) * power_of_two(-FIXED_BITS)
