"""Numbers in groups of at least k rows, with the least sum of squares within."""

from __future__ import annotations

from numba import float64, int64

from gpupif.kernels.jit import kernel


@kernel
def best_groups(numbers, counts, k, costs, firsts):
    """costs[j] becomes the least sum of squares of groups of all numbers before j, firsts[j] where the last one begins.

    numbers: ascending, all different; counts: rows of each. costs, firsts: one longer. costs[0] is 0, and all others
    infinite to begin with: they stay so where the numbers before are in fewer than k rows.

    The shortest path of Hansen and Mukherjee (2003), numbers in place of rows. A group that can be cut in two of k rows
    or more is never better than these are, so that only few are looked at.
    """
    for stop in range(1, numbers.size + 1):
        rows = int64(0)
        enough = int64(0)
        mean = 0.0
        squares = 0.0
        for back in range(stop):
            first = stop - 1 - back
            rows += counts[first]
            if enough > 0 and rows - enough >= k:
                break
            if enough == 0 and rows >= k:
                enough = rows
            off = numbers[first] - mean
            step = off * (float64(counts[first]) / float64(rows))
            mean += step
            squares += off * (float64(rows - counts[first]) * step)
            if enough > 0 and costs[first] + squares < costs[stop]:
                costs[stop] = costs[first] + squares
                firsts[stop] = first
