"""Exact sums of floats: mantissas are added up as whole numbers, separately for each sign and exponent."""

from __future__ import annotations

import numpy as np
from numba import float64, int64, uint64

from gpupif.kernels.jit import kernel
from gpupif.kernels.whole_sums import FRACTION, FRACTION_BITS, LEADING

# Number of exponents of float64, and the exponent of infinities and NaN.
EXPONENTS = 1 << 11
NOT_FINITE = EXPONENTS - 1
# A mantissa is added up in two halves: the sums of up to 2^36 halves fit into 64 bits.
LOW_BITS = 27
LOW = uint64((1 << LOW_BITS) - 1)


@kernel
def add_up(numbers, multiplicities, sums):
    """Add the upper halves of the numbers' mantissas to sums[s, 0], and the lower halves to sums[s, 1].

    s: the exponent of the number; EXPONENTS more for a number below 0. numbers: floats, or whole numbers below 2^53.
    multiplicities: how often each number occurs; empty: once.
    """
    for i in range(numbers.size):
        bits = np.float64(float64(numbers[i])).view(np.uint64)
        place = bits >> FRACTION_BITS
        mantissa = bits & FRACTION
        if place & uint64(NOT_FINITE) != uint64(0):
            mantissa |= LEADING
        often = multiplicities[i] if multiplicities.size else int64(1)
        sums[place, 0] += often * int64(mantissa >> uint64(LOW_BITS))
        sums[place, 1] += often * int64(mantissa & LOW)
