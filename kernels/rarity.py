"""Combinations of values looked at one by one: how rare each is for its parts, and sums over all of them."""

from __future__ import annotations

from numba import float64, int64, uint64

from gpupif.kernels.jit import kernel
from gpupif.kernels.sizes import log2_count
from gpupif.kernels.whole_sums import add_wide, multiply_wide


@kernel
def expect_more(codes, shares, total, expected):
    """expected[i] = expected[i] * shares[codes[i]] / total: a further part of each combination.

    shares: what the rows of each value count, of `total`.
    """
    for i in range(codes.size):
        expected[i] = expected[i] * float64(shares[codes[i]]) / float64(total)


@kernel
def find_rare(expected, counts, near, least, times, rare):
    """times[i] = expected[i] / counts[i], counts being 1 or more. rare: the places of times of at least `least`, with
    room for one more. Returns how many these are, and how many times are within `near` of 1.
    """
    found, as_expected = int64(0), int64(0)
    for i in range(counts.size):
        times[i] = expected[i] / float64(counts[i])
        rare[found] = i
        found += times[i] >= least
        as_expected += abs(times[i] - 1.0) < near
    return found, as_expected


@kernel
def sum_counts(counts, logs, most):
    """Sums over counts c of 0 or more, as (high, low), see `whole_sums.py`: of c log2 c, in units, and of c (c - 1).

    And the sum of those that are at most `most`, and the lowest (0 if there are none). logs: see `log2_count`.
    """
    logs_high, logs_low, pairs_high, pairs_low = int64(0), uint64(0), int64(0), uint64(0)
    sum_low, lowest = int64(0), int64(0)
    for i in range(counts.size):
        count = int64(counts[i])
        if i == 0 or count < lowest:
            lowest = count
        if count <= most:
            sum_low += count
        if count > 1:
            high, low = multiply_wide(count, log2_count(count, logs))
            logs_high, logs_low = add_wide(logs_high, logs_low, high, low)
            high, low = multiply_wide(count, count - 1)
            pairs_high, pairs_low = add_wide(pairs_high, pairs_low, high, low)
    return logs_high, logs_low, pairs_high, pairs_low, sum_low, lowest
