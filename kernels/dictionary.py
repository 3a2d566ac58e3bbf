"""Dictionary encoding of columns of numbers: the distinct values, and the index of each row's value among them."""

from __future__ import annotations

from numba import int64, uint64

from gpupif.kernels.hashing import spread_word
from gpupif.kernels.jit import kernel


@kernel
def number_values(values, shift, slots, numbers, distinct):
    """Assign numbers to the distinct values in order of first appearance: values[i] is distinct[numbers[i]].

    values: bit patterns, unsigned integers. slots: 2^(64 - shift) zeros, more than there are distinct values; a slot
    gets the number of a value, counted from 1. Return the number of distinct values, -1 if `distinct` is too small.
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
def count_numbers(numbers, multiplicities):
    """Add to times[k] how often k occurs in `numbers`."""
    for i in range(numbers.size):
        multiplicities[numbers[i]] += 1
