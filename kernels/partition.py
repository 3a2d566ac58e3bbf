"""Stable partition of rows by a hash of some of their columns."""

from __future__ import annotations

from numba import uint32, uint64

from gpupif.kernels.hashing import hash_row, mix_word
from gpupif.kernels.jit import kernel, subroutine


@subroutine
def part_of(hashed, parts):
    """Which of so many partitions a hash belongs to."""
    return uint32(((hashed >> uint64(32)) * uint64(parts)) >> uint64(32))


@kernel
def partition_ids(keys, masks, parts, ids):
    """Partition (0 to `parts` - 1, below 2^32) of each row by the upper half of the hash of its masked key."""
    if keys.shape[1] == 1:
        # Without a loop in the loop, several rows are done at once.
        for row in range(len(keys)):
            ids[row] = part_of(mix_word(keys[row, 0] & masks[0], 0), parts)
    else:
        for row in range(len(keys)):
            ids[row] = part_of(hash_row(keys, row, masks), parts)


@kernel
def count_digits(ids, shift, digit_mask, histogram):
    """Add to histogram[d] how many of the rows have digit d: bits of their partition id."""
    for row in range(ids.size):
        histogram[(ids[row] >> uint32(shift)) & uint32(digit_mask)] += 1


@kernel
def scatter_rows(source, start, stop, shift, digit_mask, position, scored_column):
    """Move each row from start to stop to the next free `position` of its digit.

    source and scored column: (ids, order, keys, counts). Empty `order` in the source: rows are numbered as they stand.
    Empty `ids` in the scored column, or empty `counts`: there are none to move.
    """
    ids, order, keys, counts = source
    new_ids, new_order, new_keys, new_counts = scored_column
    words = keys.shape[1]
    for row in range(start, stop):
        digit = (ids[row] >> uint32(shift)) & uint32(digit_mask)
        place = position[digit]
        position[digit] = place + 1
        if new_ids.size:
            new_ids[place] = ids[row]
        new_order[place] = order[row] if order.size else row
        for word in range(words):
            new_keys[place, word] = keys[row, word]
        if counts.size:
            new_counts[place] = counts[row]
