"""Rows that are unique on a set of columns, as bits, and counts of minimal special uniques by row and column."""

from __future__ import annotations

from numba import uint64

from gpupif.kernels.jit import kernel, subroutine
from gpupif.kernels.subsets import combine

# Number of rows in a block: the indices of their counters stay in the cache.
BLOCK = 8192


@subroutine
def saturate(index, multiplicities, table):
    """Add multiplicities[i] to table[index[i]]; a counter stops at 2: only "one row" and "more" count."""
    for i in range(index.size):
        table[index[i]] = min(table[index[i]] + multiplicities[i], 2)


@subroutine
def mark_ones(index, table, words):
    """Set bit i of `words` if table[index[i]] is 1."""
    for w in range(words.size):
        part = index[64 * w : 64 * w + 64]
        bits = uint64(0)
        for i in range(part.size):
            bits |= uint64(table[part[i]] == 1) << uint64(i)
        words[w] = bits


@kernel
def mark_unique(codes, columns, radices, multiplicities, table, index, words):
    """Set bit i of `words` if row i is unique on some columns: no other row has the same values there.

    codes: (columns, rows). radices: the cardinalities of the columns; their product is below 2^32. multiplicities: the
    multiplicities of the rows, 2 for more than 1. table: zeros, one for each combination of codes. index: working
    memory of BLOCK numbers.
    """
    rows = multiplicities.size
    block = index.size
    for start in range(0, rows, block):
        part = index[: min(block, rows - start)]
        combine(codes, start, columns, radices, part)
        saturate(part, multiplicities[start : start + part.size], table)
    for start in range(0, rows, block):
        part = index[: min(block, rows - start)]
        combine(codes, start, columns, radices, part)
        mark_ones(part, table, words[start // 64 : (start + part.size + 63) // 64])


@kernel
def list_bits(words, rows):
    """List the numbers of the set bits, ascending, as far as `rows` has room. Return how many bits are set."""
    found = 0
    for w in range(words.size):
        if words[w] != uint64(0):
            for bit in range(64):
                if (words[w] >> uint64(bit)) & uint64(1):
                    if found < rows.size:
                        rows[found] = 64 * w + bit
                    found += 1
    return found


@kernel
def set_bits(rows, words):
    """Set the bits with the numbers `rows`."""
    for i in range(rows.size):
        words[rows[i] >> 6] |= uint64(1) << uint64(rows[i] & 63)


@kernel
def count_found(rows, columns, counts, shares):
    """Add 1 to counts[r] for each row r, and to shares[r, c] for each row and column c unless `shares` is empty."""
    for i in range(rows.size):
        counts[rows[i]] += 1
    if shares.size:
        for i in range(rows.size):
            for c in range(columns.size):
                shares[rows[i], columns[c]] += 1


@kernel
def add_weighted(counts, weight, totals):
    """Add weight * counts[i] to totals[i]."""
    for i in range(counts.size):
        totals[i] += weight * counts[i]
