"""Stable partition of rows by a hash of some of their columns."""

from __future__ import annotations

from numba import uint32, uint64

from gpupif.kernels.hashing import hash_row, mix_word
from gpupif.kernels.jit import kernel, subroutine


@subroutine
def part_of(hashed, parts):
    """Return the partition, from 0 to parts - 1, of a hash."""
    return uint32(((hashed >> uint64(32)) * uint64(parts)) >> uint64(32))


@kernel
def partition_ids(keys, masks, parts, ids):
    """Set ids[row] to the row's partition, from 0 to parts - 1, by the upper half of the hash of its masked key."""
    if keys.shape[1] == 1:
        # Without an inner loop, the compiler makes code that hashes several rows at once.
        for row in range(len(keys)):
            ids[row] = part_of(mix_word(keys[row, 0] & masks[0], 0), parts)
    else:
        for row in range(len(keys)):
            ids[row] = part_of(hash_row(keys, row, masks), parts)


@kernel
def count_digits(ids, shift, digit_mask, histogram):
    """Add to histogram[d] how many of the rows have digit d. A digit is some bits of a row's partition."""
    for row in range(ids.size):
        histogram[(ids[row] >> uint32(shift)) & uint32(digit_mask)] += 1


@kernel
def scatter_rows(source, start, stop, shift, digit_mask, position, destination):
    """Copy each of the rows start to stop - 1 to the next free position of its digit.

    source, destination: (ids, order, keys, counts). If `order` of the source is empty, rows are numbered by their
    places. If `ids` of the destination or `counts` of the source are empty, they are not copied. position: the next
    free position of each digit.
    """
    ids, order, keys, counts = source
    new_ids, new_order, new_keys, new_counts = destination
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
