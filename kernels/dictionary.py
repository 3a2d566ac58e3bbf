"""Columns of numbers as dictionary indices: which of those that differ each is."""

from __future__ import annotations

from numba import int64, uint64

from gpupif.kernels.hashing import spread_word
from gpupif.kernels.jit import kernel


@kernel
def number_values(values, shift, slots, numbers, distinct):
    """numbers[i] = which of the `distinct` values values[i] is, in order of first appearance; how many there are.

    values: bit patterns, whole numbers without a sign. slots: zeros, more than values that are distinct, 2^(64 - shift)
    of them: each holds the number of a value, from 1 on. Returns -1 where there are more values than `distinct` holds.
    """
    found, last = int64(0), slots.size - 1
    for i in range(values.size):
        value = values[i]
        slot = int64(spread_word(value) >> uint64(shift))
        while True:
            number = slots[slot]
            if number == 0:
                if found == distinct.size:
                    return -1
                distinct[found] = value
                found += 1
                slots[slot] = found
                number = found
                break
            if distinct[number - 1] == value:
                break
            slot = (slot + 1) & last
        numbers[i] = number - 1
    return found


@kernel
def count_numbers(numbers, times):
    """Add to times[k] how often k is among the numbers."""
    for i in range(numbers.size):
        times[numbers[i]] += 1
