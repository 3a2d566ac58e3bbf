"""Exact sums of floats: their mantissas added up as whole numbers, those of each sign and exponent apart."""

from __future__ import annotations

import numpy as np
from numba import float64, int64, uint64

from gpupif.kernels.jit import kernel
from gpupif.kernels.whole_sums import FRACTION, FRACTION_BITS, LEADING

# Signs and exponents of float64: 12 bits.
SIGNED_EXPONENTS = 1 << 12
# What stands for the exponent of numbers that are not finite.
NOT_FINITE = uint64(0x7FF)
# A mantissa is added up in two halves: of at most 2^36 terms the sums of these fit into 64 bits.
LOW_BITS = 27
LOW = uint64((1 << LOW_BITS) - 1)


@kernel
def add_up(numbers, times, sums):
    """Add to sums[s, 0] and sums[s, 1] the upper and the lower halves of the mantissas of the finite numbers whose sign
    and exponent are s. Returns how many numbers there are, but NaN, and the sum of the infinite ones.

    numbers: floats, or whole numbers below 2^53. times: how often each occurs; empty: once.
    """
    terms, infinite = int64(0), 0.0
    for i in range(numbers.size):
        number = float64(numbers[i])
        often = int64(times[i]) if times.size else int64(1)
        bits = np.float64(number).view(np.uint64)
        signed_exponent = bits >> FRACTION_BITS
        exponent = signed_exponent & NOT_FINITE
        if exponent == NOT_FINITE:
            if number == number:
                terms += often
                infinite += number
            continue
        terms += often
        mantissa = bits & FRACTION
        if exponent != uint64(0):
            mantissa |= LEADING
        sums[signed_exponent, 0] += often * int64(mantissa >> uint64(LOW_BITS))
        sums[signed_exponent, 1] += often * int64(mantissa & LOW)
    return terms, infinite
