"""Optimal microaggregation of one column: groups of at least k rows with the least sum of squares within groups."""

from __future__ import annotations

from numba import float64, int64

from gpupif.kernels.jit import kernel


@kernel
def best_groups(numbers, counts, k, costs, firsts):
    """Find the cheapest groups of the numbers before j, for each j.

    costs[j] gets their sum of squares, firsts[j] the first number of their last group. numbers: ascending and distinct.
    counts: the rows with each number. costs, firsts: one longer than `numbers`. Before the call, costs[0] is 0 and all
    other costs are infinite; they stay infinite if fewer than k rows have the numbers before.

    The method is the shortest path of Hansen and Mukherjee (2003), with distinct numbers for rows. A group that can be
    split into two groups of k rows or more is never better than the two, so only short groups are tried.
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
