"""Dense codes of values: count the values that occur, then renumber them."""

from __future__ import annotations

from numba import int64, uint64

from gpupif.kernels.jit import kernel


@kernel
def count_values(values, low, counts):
    """Add 1 to a counter counts[v - low, k] for each value v.

    values: integers, `low` or more. counts: (values, 1) or (values, 4). Four counters of a value are used in turn, so
    that the processor need not wait for the counter that it increased last.
    """
    first = 0
    if counts.shape[1] == 4:
        for i in range(0, values.size - 3, 4):
            counts[uint64(int64(values[i]) - low), 0] += 1
            counts[uint64(int64(values[i + 1]) - low), 1] += 1
            counts[uint64(int64(values[i + 2]) - low), 2] += 1
            counts[uint64(int64(values[i + 3]) - low), 3] += 1
            first = i + 4
    for i in range(first, values.size):
        counts[uint64(int64(values[i]) - low), 0] += 1


@kernel
def first_rows(codes, first):
    """Set first[c] to the first row with code c."""
    for i in range(codes.size):
        row = codes.size - 1 - i
        first[codes[row]] = row


@kernel
def recode(values, low, new_codes, codes):
    """Set codes[i] to new_codes[values[i] - low]."""
    for i in range(values.size):
        codes[i] = new_codes[uint64(int64(values[i]) - low)]


@kernel
def add_multiplicities(codes, multiplicities, sums):
    """Add to sums[c] multiplicities[i] of each row i with code c."""
    for i in range(codes.size):
        sums[codes[i]] += multiplicities[i]
