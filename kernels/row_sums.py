"""Sums of each row over several columns, to twice the precision of a float."""

from __future__ import annotations

from numba import float64

from gpupif.kernels.jit import kernel


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
