"""Number of cohorts by size, and logarithms of counts."""

from __future__ import annotations

from numba import int64, uint64

from gpupif.kernels.jit import kernel, subroutine
from gpupif.kernels.logarithms import log2_of_count
from gpupif.kernels.whole_sums import add_wide, multiply_wide


@subroutine
def log2_count(count, logs):
    """Return log2 of a count of at least 1, in units of logarithms; from the table `logs` of small counts if possible.

    logs: see `log2_of_counts`.
    """
    if count < logs.size:
        return logs[count]
    return log2_of_count(int64(count))


@kernel
def sum_log_counts(counts, multiplicities):
    """Return the sum of multiplicities[i] c log2 c over counts c: (high, low), see `whole_sums.py`."""
    high, low = int64(0), uint64(0)
    for i in range(counts.size):
        if counts[i] > 1 and multiplicities[i] > 0:
            more_high, more_low = multiply_wide(counts[i] * multiplicities[i], log2_of_count(counts[i]))
            high, low = add_wide(high, low, more_high, more_low)
    return high, low


@kernel
def count_sizes(sizes, number, small, large, listed):
    """Count cohorts by size in `small`, and list sizes that are too large for it in `large`.

    sizes: the sizes of `number` cohorts. listed: how many sizes are listed before. Return how many are listed after.
    """
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
    """Count the cohorts of a block as `count_sizes` does. Most have one row, so larger ones are picked out first.

    sizes: the size of each cohort at its first row, 0 at other rows. several: working memory for the larger sizes.
    """
    ones = 0
    for i in range(size):
        ones += sizes[i] == 1
    small[1] += ones
    number = int64(0)
    for i in range(size):
        several[number] = sizes[i]
        number += sizes[i] > 1
    return count_sizes(several, number, small, large, listed)
