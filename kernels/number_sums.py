"""Exact sums of floats, sums of each row to twice the precision of a float, and order statistics.

Exact sums: mantissas are added up as whole numbers, separately for each sign and exponent. Order statistics of more
numbers than fit into memory: bit patterns are counted by 16 bits at a time.
"""

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


@kernel
def add_column(numbers, high, low):
    """Add numbers[i] to the sum high[i] + low[i]; the rounding error of high[i] is added to low[i].

    The rounding error is computed exactly (Knuth, The Art of Computer Programming, volume 2, section 4.2.2).
    """
    for i in range(numbers.size):
        number, before = float64(numbers[i]), high[i]
        after = before + number
        added = after - before
        lost = (before - (after - added)) + (number - added)
        high[i] = after
        # The rounding error of infinities and NaN is NaN; it is not added.
        if lost == lost:
            low[i] += lost


@kernel
def count_patterns(patterns, multiplicities, prefix, shift, counts):
    """Add to counts[d] how often patterns occur with digit d and, above the digit, the bits `prefix`.

    The digit of a pattern is its 16 bits from `shift` on. multiplicities: how often each pattern occurs; empty: once.
    """
    for i in range(patterns.size):
        upper = patterns[i] >> uint64(shift)
        if shift == 48 or (upper >> uint64(16)) == uint64(prefix):
            counts[upper & uint64(0xFFFF)] += multiplicities[i] if multiplicities.size else 1
