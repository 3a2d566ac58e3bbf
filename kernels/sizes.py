"""Cohorts counted by their size, and the logarithms of counts."""

from __future__ import annotations

import math

from .jit import kernel


@kernel
def log2_of(counts, out):
    """out[i] = log2 counts[i], by the same function in all places, so that equal logarithms cancel."""
    for i in range(counts.size):
        out[i] = math.log2(counts[i])


@kernel
def log2_count(count, logs):
    """log2 of a count >= 1, from the table `logs` (logs[c] = log2 c) as far as it goes."""
    if count < logs.size:
        return logs[count]
    return math.log2(count)


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


@kernel
def count_heads(sizes, several, size, small, large, listed):
    """`count_sizes` of the cohorts of a block; most are of one row, so the others are picked out first."""
    ones = 0
    for i in range(size):
        ones += sizes[i] == 1
    small[1] += ones
    number = 0
    for i in range(size):
        several[number] = sizes[i]
        number += sizes[i] > 1
    return count_sizes(several, number, small, large, listed)
