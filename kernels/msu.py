"""Rows that are unique on a set of columns, as bits; and what is counted of them."""

from __future__ import annotations

from numba import uint64

from gpupif.kernels.jit import kernel, subroutine
from gpupif.kernels.subsets import combine

# Rows at once, so that their places in the table of counters stay in the cache.
BLOCK = 8192


@subroutine
def saturate(index, times, table):
    """Add times[i] to table[index[i]], which stays at 2: several are as good as many."""
    for i in range(index.size):
        table[index[i]] = min(table[index[i]] + times[i], 2)


@subroutine
def mark_ones(index, table, words):
    """Bit i of words: whether table[index[i]] is 1."""
    for w in range(words.size):
        part = index[64 * w : 64 * w + 64]
        bits = uint64(0)
        for i in range(part.size):
            bits |= uint64(table[part[i]] == 1) << uint64(i)
        words[w] = bits


@kernel
def mark_unique(codes, columns, radices, times, table, index, words):
    """Bit i of words: whether row i differs from all others on these columns.

    codes: (columns, rows). radices: their cardinalities, below 2^32 when multiplied. times: how often a row occurs, 2
    for more. table: zeros, one for each combination of codes. index: BLOCK numbers, to work in.
    """
    rows = times.size
    block = index.size
    for start in range(0, rows, block):
        part = index[: min(block, rows - start)]
        combine(codes, start, columns, radices, part)
        saturate(part, times[start : start + part.size], table)
    for start in range(0, rows, block):
        part = index[: min(block, rows - start)]
        combine(codes, start, columns, radices, part)
        mark_ones(part, table, words[start // 64 : (start + part.size + 63) // 64])


@kernel
def list_bits(words, rows):
    """The numbers of the bits that are set, ascending, as far as `rows` has room; returns how many they are."""
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
    """Set the bits with these numbers."""
    for i in range(rows.size):
        words[rows[i] >> 6] |= uint64(1) << uint64(rows[i] & 63)


@kernel
def count_found(rows, columns, counts, shares):
    """counts[r] += 1 for these rows, and shares[r, c] += 1 for these columns where `shares` is not empty."""
    for i in range(rows.size):
        counts[rows[i]] += 1
    if shares.size:
        for i in range(rows.size):
            for c in range(columns.size):
                shares[rows[i], columns[c]] += 1


@kernel
def add_weighted(counts, weight, totals):
    """totals[i] += weight * counts[i]."""
    for i in range(counts.size):
        totals[i] += weight * counts[i]
