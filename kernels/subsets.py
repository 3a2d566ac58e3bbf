"""Counts of the combinations of values of small sets of columns: a table of counters for each set, in mixed radix."""

from __future__ import annotations

from numba import int64, uint32, uint64

from gpupif.kernels.groups import group_rows, sum_groups
from gpupif.kernels.jit import kernel, subroutine


@kernel
def combine(codes, start, columns, radices, index):
    """Set index[i] to the codes of row start + i as the digits of one number; the last column is the lowest digit.

    codes: (columns, rows), or more rows. columns: the columns of the set. radices: the cardinality of each of them. A
    set without columns gives 0.
    """
    if columns.size == 0:
        for i in range(index.size):
            index[i] = 0
        return
    first = codes[columns[0]][start : start + index.size]
    for i in range(index.size):
        index[i] = first[i]
    for place in range(1, columns.size):
        digits, radix = codes[columns[place]][start : start + index.size], uint64(radices[place])
        for i in range(index.size):
            index[i] = index[i] * radix + digits[i]


@subroutine
def count_index(index, multiplicities, counts):
    """Add multiplicities[i] to counts[index[i]]; 1 if `multiplicities` is empty."""
    if multiplicities.size:
        for i in range(index.size):
            counts[index[i]] += multiplicities[i]
    else:
        for i in range(index.size):
            counts[index[i]] += 1


@subroutine
def count_pair(high, low, radix, counts):
    """Add 1 to counts[high[i] * radix + low[i]] for each i."""
    for i in range(high.size):
        counts[uint64(high[i]) * uint64(radix) + uint64(low[i])] += 1


@kernel
def count_subsets(codes, multiplicities, subsets, sizes, radices, offsets, index, tables):
    """Count the combinations of values of several sets of columns, in a block of rows that stays in the cache.

    codes: (columns, rows), or more rows. subsets, sizes: set s has the columns subsets[s, : sizes[s]]. radices: their
    cardinalities. tables, offsets: the counters of set s are tables[offsets[s] : offsets[s + 1]]. index: working
    memory, a number for each row. multiplicities: the multiplicities of the rows; empty: 1.
    """
    for s in range(sizes.size):
        size = sizes[s]
        counts = tables[offsets[s] : offsets[s + 1]]
        if size == 2 and multiplicities.size == 0:
            high, low = codes[subsets[s, 0]][: index.size], codes[subsets[s, 1]][: index.size]
            count_pair(high, low, radices[s, 1], counts)
        else:
            combine(codes, int64(0), subsets[s, :size], radices[s, :size], index)
            count_index(index, multiplicities, counts)


@kernel
def collect_counters(table, places, counts):
    """List the counters of a table that are above 0: their places, ascending, and counts. Return how many there are.

    places, counts: have room for one more than there are.
    """
    found = int64(0)
    for i in range(table.size):
        places[found] = i
        counts[found] = table[i]
        found += table[i] > 0
    return found


@kernel
def take_digits(numbers, radix, digits):
    """Take the lowest digit off each number."""
    for i in range(numbers.size):
        rest = numbers[i] // uint32(radix)
        digits[i] = numbers[i] - rest * uint32(radix)
        numbers[i] = rest


@kernel
def count_in_groups(keys, multiplicities, hashes, room, sizes, rows, counts):
    """Count rows by their keys. Return how many keys have a count above 0.

    keys: (rows, words). multiplicities: how much each row counts; empty: 1. hashes, room: see `group_rows`. sizes:
    working
    memory, a number for each row. rows, counts: get, for each key with a count above 0 in order of first appearance,
    the first row with the key and the count; they have room for one more.
    """
    group_rows(keys, hashes, uint64(0), ~uint64(0), room)
    sum_groups(multiplicities, len(keys), room.heads, sizes)
    found = int64(0)
    for i in range(len(keys)):
        rows[found] = i
        counts[found] = sizes[i]
        found += sizes[i] > 0
    return found
