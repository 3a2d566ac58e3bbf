"""Codes of values: numbered, counted, replaced by other codes, and compared before and after a treatment."""

from __future__ import annotations

from numba import int64, uint64

from gpupif.kernels.hashing import spread_word
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
    """Add to sums[c] multiplicities[i] of each row i with code c; add 1 if `multiplicities` is empty."""
    if multiplicities.size:
        for i in range(codes.size):
            sums[codes[i]] += multiplicities[i]
    else:
        for i in range(codes.size):
            sums[codes[i]] += 1


@kernel
def number_values(values, shift, slots, numbers, distinct):
    """Assign numbers to the distinct values in order of first appearance: values[i] is distinct[numbers[i]].

    values: bit patterns, unsigned integers. slots: 2^(64 - shift) zeros, more than there are distinct values; a slot
    gets the number of a value, counted from 1. Return the number of distinct values, -1 if `distinct` is too small.
    """
    made, last = int64(0), slots.size - 1
    for i in range(values.size):
        value = values[i]
        slot = int64(spread_word(value) >> uint64(shift))
        while True:
            number = slots[slot]
            if number == 0:
                if made == distinct.size:
                    return -1
                distinct[made] = value
                made += 1
                slots[slot] = made
                number = made
                break
            if distinct[number - 1] == value:
                break
            slot = (slot + 1) & last
        numbers[i] = number - 1
    return made


@kernel
def count_changes(before, after, same, missing_before, missing_after, counts):
    """Add to counts[0] the rows whose value changed, and to counts[1] the rows whose value became missing.

    same[a]: for each code a after the treatment, the code of the same value before it; -1 for a new value.
    """
    changed = 0
    suppressed = 0
    for i in range(before.size):
        old = before[i]
        new = after[i]
        if new == missing_after:
            if old != missing_before:
                changed += 1
                suppressed += 1
        elif same[new] != old:
            changed += 1
    counts[0] += changed
    counts[1] += suppressed
