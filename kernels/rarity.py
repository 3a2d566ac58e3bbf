"""Counts of combinations of values beside the counts expected of independent columns, and sums over counts."""

from __future__ import annotations

from numba import float64, int64, uint64

from gpupif.kernels.jit import kernel
from gpupif.kernels.sizes import log2_count
from gpupif.kernels.whole_sums import add_wide, multiply_wide


@kernel
def expect_more(codes, shares, total, expected):
    """Multiply expected[i] by shares[codes[i]] / total: one more column of each combination.

    shares: how much the rows with each value count together, of `total` for all rows.
    """
    for i in range(codes.size):
        expected[i] = expected[i] * float64(shares[codes[i]]) / float64(total)


@kernel
def find_rare(expected, counts, near, least, times, rare):
    """Set times[i] to expected[i] / counts[i], and list in `rare` the places at which it is at least `least`.

    counts: 1 or more. rare: has room for one more place than it gets. Return how many places are listed, and how many
    ratios are within `near` of 1.
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
    """Return sums over counts c, each 0 or more.

    The result is (high, low) of the sum of c log2 c in units of logarithms, (high, low) of the sum of c (c - 1), the
    sum of the counts of at most `most`, and the lowest count (0 without counts). (high, low): see `whole_sums.py`.
    logs: see `log2_count`.
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
