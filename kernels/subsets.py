"""Counts of the combinations of values of sets of columns, the counts expected of independent columns, and sums.

Each small set has a table of counters in mixed radix.
"""

from __future__ import annotations

from numba import float64, int64, uint32, uint64

from gpupif.kernels.codes import add_multiplicities
from gpupif.kernels.equal_rows import find_equal_rows, sum_equal_rows
from gpupif.kernels.jit import kernel, subroutine
from gpupif.kernels.sizes import log2_count
from gpupif.kernels.whole_sums import add_wide, multiply_wide


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
            add_multiplicities(index, multiplicities, counts)


@kernel
def collect_counters(table, places, counts):
    """List the counters of a table that are above 0: their places, ascending, and counts. Return how many there are.

    places, counts: have room for one more than there are.
    """
    listed = int64(0)
    for i in range(table.size):
        places[listed] = i
        counts[listed] = table[i]
        listed += table[i] > 0
    return listed


@kernel
def take_digits(numbers, radix, digits):
    """Take the lowest digit off each number."""
    for i in range(numbers.size):
        rest = numbers[i] // uint32(radix)
        digits[i] = numbers[i] - rest * uint32(radix)
        numbers[i] = rest


@kernel
def count_equal_keys(keys, multiplicities, hashes, memory, sizes, rows, counts):
    """Count rows by their keys. Return how many keys have a count above 0.

    keys: (rows, words). multiplicities: how much each row counts; empty: 1. hashes, memory: see `find_equal_rows`.
    sizes: working
    memory, a number for each row. rows, counts: get, for each key with a count above 0 in order of first appearance,
    the first row with the key and the count; they have room for one more.
    """
    find_equal_rows(keys, hashes, uint64(0), ~uint64(0), memory)
    sum_equal_rows(multiplicities, len(keys), memory.heads, sizes)
    listed = int64(0)
    for i in range(len(keys)):
        rows[listed] = i
        counts[listed] = sizes[i]
        listed += sizes[i] > 0
    return listed


@kernel
def expect_more(codes, shares, total, expected):
    """Multiply expected[i] by shares[codes[i]] / total: one more column of each combination.

    shares: how much the rows with each value count together, of `total` for all rows.
    """
    for i in range(codes.size):
        expected[i] = expected[i] * float64(shares[codes[i]]) / float64(total)


@kernel
def find_rare(expected, counts, near, least, multiplicities, rare):
    """Set multiplicities[i] to expected[i] / counts[i], and list in `rare` the places at which it is at least `least`.

    counts: 1 or more. rare: has room for one more place than it gets. Return how many places are listed, and how many
    ratios are within `near` of 1.
    """
    listed, as_expected = int64(0), int64(0)
    for i in range(counts.size):
        multiplicities[i] = expected[i] / float64(counts[i])
        rare[listed] = i
        listed += multiplicities[i] >= least
        as_expected += abs(multiplicities[i] - 1.0) < near
    return listed, as_expected


@kernel
def sum_counts(counts, logs, most):
    """Return sums over counts c, each 0 or more.

    The result is (high, low) of the sum of c log2 c in units of logarithms, (high, low) of the sum of c (c - 1), the
    sum of the counts of at most `most`, and the lowest count (0 without counts). (high, low): see `whole_sums.py`.
    logs: see `log2_count`.
    """
    logs_high, logs_low, pairs_high, pairs_low = int64(0), uint64(0), int64(0), uint64(0)
    sum_low, lowest = int64(0), int64(0)
    for i in range(counts.size):
        count = int64(counts[i])
        if i == 0 or count < lowest:
            lowest = count
        if count <= most:
            sum_low += count
        if count > 1:
            high, low = multiply_wide(count, log2_count(count, logs))
            logs_high, logs_low = add_wide(logs_high, logs_low, high, low)
            high, low = multiply_wide(count, count - 1)
            pairs_high, pairs_low = add_wide(pairs_high, pairs_low, high, low)
    return logs_high, logs_low, pairs_high, pairs_low, sum_low, lowest
