"""Values to dense codes: count what occurs, then renumber."""

from __future__ import annotations

from numba import int64, uint64

from gpupif.kernels.jit import kernel


@kernel
def count_values(values, low, counts):
    """counts[v - low, k] += 1 for each value v, integers from `low` on.

    Where there are four counters for a value they are used in turn: equal values need not wait for each other.
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
    """first[c] = the first row with code c."""
    for i in range(codes.size):
        row = codes.size - 1 - i
        first[codes[row]] = row


@kernel
def recode(values, low, new_codes, codes):
    """codes[i] = new_codes[values[i] - low]."""
    for i in range(values.size):
        codes[i] = new_codes[uint64(int64(values[i]) - low)]


@kernel
def add_times(codes, times, sums):
    """sums[c] += times[i] for each row i with code c."""
    for i in range(codes.size):
        sums[codes[i]] += times[i]
