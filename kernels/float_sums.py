"""Exact sums of floats: their mantissas added up as whole numbers, those of each sign and exponent apart."""

from __future__ import annotations

import numpy as np
from numba import float64, int64, uint64

from gpupif.kernels.jit import kernel
from gpupif.kernels.whole_sums import FRACTION, FRACTION_BITS, LEADING

# Exponents of float64, and the one of what is not finite.
EXPONENTS = 1 << 11
NOT_FINITE = EXPONENTS - 1
# A mantissa is added up in two halves: of at most 2^36 terms the sums of these fit into 64 bits.
LOW_BITS = 27
LOW = uint64((1 << LOW_BITS) - 1)


@kernel
def add_up(numbers, times, sums):
    """Add to sums[s, 0] and sums[s, 1] the upper and the lower halves of the mantissas of the numbers with the exponent
    s, or, those below 0, EXPONENTS + s.

    numbers: floats, or whole numbers below 2^53. times: how often each occurs; empty: once.
    """
    for i in range(numbers.size):
        bits = np.float64(float64(numbers[i])).view(np.uint64)
        place = bits >> FRACTION_BITS
        mantissa = bits & FRACTION
        if place & uint64(NOT_FINITE) != uint64(0):
            mantissa |= LEADING
        often = times[i] if times.size else int64(1)
        sums[place, 0] += often * int64(mantissa >> uint64(LOW_BITS))
        sums[place, 1] += often * int64(mantissa & LOW)
