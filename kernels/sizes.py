"""Cohorts counted by their size, and the logarithms of counts."""

from __future__ import annotations

from numba import int64, uint64

from gpupif.kernels.jit import kernel, subroutine
from gpupif.kernels.logarithms import log2_of_count
from gpupif.kernels.whole_sums import add_wide, multiply_wide


@subroutine
def log2_count(count, logs):
    """log2 of a count >= 1 in units, from the table `logs` (see `log2_of_counts`) as far as it goes."""
    if count < logs.size:
        return logs[count]
    return log2_of_count(int64(count))


@kernel
def sum_log_counts(counts, times):
    """The sum of c log2 c over counts c, each taken so many times: (high, low) in units, see `whole_sums.py`."""
    high, low = int64(0), uint64(0)
    for i in range(counts.size):
        if counts[i] > 1 and times[i] > 0:
            more_high, more_low = multiply_wide(counts[i] * times[i], log2_of_count(counts[i]))
            high, low = add_wide(high, low, more_high, more_low)
    return high, low


@kernel
def count_sizes(sizes, number, small, large, listed):
    """Count cohorts by size in `small`, list the sizes too large for it in `large`; returns how many are listed."""
    for i in range(number):
        size = sizes[i]
        if size < small.size:
            small[size] += 1
        else:
            large[listed] = size
            listed += 1
    return listed


@subroutine
def count_heads(sizes, several, size, small, large, listed):
    """`count_sizes` of the cohorts of a block; most are of one row, so the others are picked out first."""
    ones = 0
    for i in range(size):
        ones += sizes[i] == 1
    small[1] += ones
    number = int64(0)
    for i in range(size):
        several[number] = sizes[i]
        number += sizes[i] > 1
    return count_sizes(several, number, small, large, listed)
