"""Distinct rows with their multiplicities, in order of first appearance in the table."""

from __future__ import annotations

from numba import uint64

from gpupif.kernels.groups import group_rows, sum_groups
from gpupif.kernels.jit import kernel


@kernel
def find_first_rows(order, rows, offsets, blocks, room, sizes, first, counts):
    """Find equal rows in the blocks blocks[0] to blocks[1] - 1 of a partition.

    order: the place of each row in the table. rows: (keys, counts, hashes). room, sizes: working memory, see
    `group_rows` and `sum_groups`. first[i] gets the place of the first row equal to row i. counts[f] gets the
    multiplicity of row f, if f is the first of its equal rows.
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
    """Return how many of the rows start to stop - 1 are the first of their equal rows."""
    total = 0
    for row in range(start, stop):
        total += first[row] == row
    return total


@kernel
def collect_first_rows(first, start, stop, keys, count_then_number, number, end, distinct):
    """Copy the first of equal rows, among rows start to stop - 1, to rows `number` to end - 1 of `distinct`.

    distinct: (keys, counts). count_then_number[row]: the multiplicity of a first row before the call, the number of its
    distinct row after it. Other rows are written as well and then overwritten, because no processor can predict the
    branch that would skip them.
    """
    distinct_keys, distinct_counts = distinct
    for row in range(start, stop):
        if number < end:
            for word in range(keys.shape[1]):
                distinct_keys[number, word] = keys[row, word]
            distinct_counts[number] = count_then_number[row]
            count_then_number[row] = number
            number += first[row] == row
