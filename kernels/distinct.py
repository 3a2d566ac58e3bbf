"""Equal rows to one distinct row with a count, in order of first appearance in the table."""

from __future__ import annotations

from numba import uint64

from gpupif.kernels.groups import group_rows, sum_groups
from gpupif.kernels.jit import kernel


@kernel
def find_first_rows(order, rows, offsets, blocks, room, sizes, first, counts):
    """Find equal rows in the blocks blocks[0] to blocks[1] - 1 of a partition.

    order gives a row's place in the table; rows: (keys, counts, hashes), room and sizes: see `group_rows` and
    `sum_groups`. first[i] gets the place of the first row equal to row i; counts[f] of such a first row how often it
    occurs.
    """
    heads = room.heads
    for block in range(blocks[0], blocks[1]):
        start, stop = offsets[block], offsets[block + 1]
        # Loops over a block begin at 0: from another row on, compilers do not see that no index is negative.
        keys, own, hashes, places = rows[0][start:stop], rows[1][start:stop], rows[2][start:stop], order[start:stop]
        group_rows(keys, hashes, uint64(0), ~uint64(0), room)
        sum_groups(own, places.size, heads, sizes)
        for i in range(places.size):
            place = places[i]
            first[place] = places[heads[i]]
            counts[place] = sizes[i]


@kernel
def count_first_rows(first, start, stop):
    """How many of the rows start to stop are the first of their kind."""
    total = 0
    for row in range(start, stop):
        total += first[row] == row
    return total


@kernel
def collect_first_rows(first, start, stop, keys, count_then_number, number, end, distinct):
    """Copy the first rows of their kind among start to stop to rows `number` to end - 1 of `distinct` (keys, counts).

    count_then_number[row] has the count of such a row; afterwards it has the number of the distinct row. Other rows are
    written too and then overwritten: cheaper than a branch that no processor foresees.
    """
    distinct_keys, distinct_counts = distinct
    for row in range(start, stop):
        if number < end:
            for word in range(keys.shape[1]):
                distinct_keys[number, word] = keys[row, word]
            distinct_counts[number] = count_then_number[row]
            count_then_number[row] = number
            number += first[row] == row
