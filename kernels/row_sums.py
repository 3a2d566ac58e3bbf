"""Sums of rows over columns, to twice the precision of a float."""

from __future__ import annotations

from numba import float64

from gpupif.kernels.jit import kernel


@kernel
def add_column(numbers, high, low):
    """Add a number to each sum, which is high + low: what a high one loses by rounding goes into the low one.

    The loss is found without a further one (Knuth, The Art of Computer Programming, volume 2, section 4.2.2).
    """
    for i in range(numbers.size):
        number, before = float64(numbers[i]), high[i]
        after = before + number
        added = after - before
        lost = (before - (after - added)) + (number - added)
        high[i] = after
        # Of what is not finite nothing is lost.
        if lost == lost:
            low[i] += lost
