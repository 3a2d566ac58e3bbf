"""Minimal sets of columns on which a row is unique, found from the sets of columns on which it agrees with other rows.

The *agreement* of two rows is the set of all columns on which they have the same value. The rows agree on each subset
of their agreement as well. A row is therefore unique on a set of columns exactly if the set is a subset of none of the
row's agreements.

For one row, every set of columns is a bit. The row's columns are sorted by how common the row's value is. The columns
with the commonest values, at most `LOW` of them, number the bits of a block of bits. The sets of the other columns
number the blocks. A block exists only if an agreement contains all columns of its number, so rare values make few
blocks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import int64, uint32, uint64

from gpupif.kernels.jit import kernel, subroutine

# Number of columns that number the bits of a block, and number of columns that number the bits of a 64-bit word.
LOW, WORD = 11, 6
# Largest number of columns of a table: a set of columns is a number of 32 bits.
MOST_COLUMNS = 32
# Number of rows that are compared at once, so that their agreements stay in the cache.
ROWS = 2048
# For each of the columns that number the bits of a word: the bits of the sets that contain the column.
HAS = tuple(np.uint64(sum(1 << bit for bit in range(64) if bit >> column & 1)) for column in range(WORD))


class ComparedRows(NamedTuple):
    """Distinct rows, and how common their values are.

    codes: (columns, rows). The codes of the values.
    support: uint32 (values of all columns). The number of rows that have each value, column after column.
    first: int64 (columns). The place in `support` at which the values of each column begin.
    missing: int64 (columns). The code of missing values, -1 if the column has none.
    match: bool. Whether a missing value matches every value.
    """

    codes: npt.NDArray[np.unsignedinteger]
    support: npt.NDArray[np.uint32]
    first: npt.NDArray[np.int64]
    missing: npt.NDArray[np.int64]
    match: bool


class SearchMemory(NamedTuple):
    """Working memory of one thread.

    columns: int64 (columns). The columns of a row, sorted by `sort_columns`.
    agreements: uint32 (`ROWS`). The agreements of a row with a chunk of rows.
    blocks: int32 (sets of the rarer columns). The block of each set, -1 for a set without a block.
    numbers: int32 (1 + blocks). The number of blocks, then the set of the rarer columns of each block.
    words: uint64 (blocks, words). The bits of each block.
    minimal: uint64 (words). The minimal sets of one block.
    level: int64 (sizes, columns + 1). The row's minimal sets by size: those with each column, then all of them.
    """

    columns: npt.NDArray[np.int64]
    agreements: npt.NDArray[np.uint32]
    blocks: npt.NDArray[np.int32]
    numbers: npt.NDArray[np.int32]
    words: npt.NDArray[np.uint64]
    minimal: npt.NDArray[np.uint64]
    level: npt.NDArray[np.int64]


class MinimalSets(NamedTuple):
    """Results of the search. The index of a size is the size less 1.

    counts: uint32 (sizes, rows). The number of minimal unique sets of each row, by size.
    shares: float64 (rows, columns). The sum of the weights of the row's minimal unique sets with each column; empty if
        it is not requested.
    by_column: int64 (sizes, columns). The number of minimal unique sets of all rows, by size and column.
    """

    counts: npt.NDArray[np.uint32]
    shares: npt.NDArray[np.float64]
    by_column: npt.NDArray[np.int64]


@subroutine
def sort_columns(table, row, columns):
    """Sort the columns of a row by how many rows have the row's value, and return how many are shared and how many not.

    `columns` gets, from its start, the columns whose value other rows have too, the commonest first; from its end, the
    columns whose value no other row has. Columns in which the row's value is missing are left out.
    """
    codes, support, first = table.codes, table.support, table.first
    shared = 0
    alone = 0
    for column in range(first.size):
        code = int64(codes[column, row])
        lacking = table.missing[column]
        if code == lacking:
            continue
        there = support[first[column] + code]
        if there < 2 and not (table.match and lacking >= 0):
            alone += 1
            columns[columns.size - alone] = column
            continue
        place = shared
        while place and support[first[columns[place - 1]] + int64(codes[columns[place - 1], row])] < there:
            columns[place] = columns[place - 1]
            place -= 1
        columns[place] = column
        shared += 1
    return shared, alone


@subroutine
def find_agreements(table, row, start, columns, agreements):
    """Set agreements[i] to the agreement of `row` with row start + i: bit b is set if they agree on columns[b]."""
    for i in range(agreements.size):
        agreements[i] = 0
    for bit in range(columns.size):
        column = columns[bit]
        code = table.codes[column, row]
        other = table.codes[column, start : start + agreements.size]
        agreed = uint32(1) << uint32(bit)
        lacking = table.missing[column]
        if table.match and lacking >= 0:
            for i in range(agreements.size):
                agreements[i] |= agreed if other[i] == code or int64(other[i]) == lacking else uint32(0)
        else:
            for i in range(agreements.size):
                agreements[i] |= agreed if other[i] == code else uint32(0)
    if start <= row < start + agreements.size:
        agreements[row - start] = 0


@subroutine
def block_of(number, blocks, numbers, words, width):
    """Return the block of a set of the rarer columns, an empty new block if needed; -1 if there is no memory for it."""
    block = blocks[number]
    if block >= 0:
        return block
    block = numbers[0]
    if block + 1 >= numbers.size:
        return int64(-1)
    numbers[0] = block + 1
    numbers[block + 1] = number
    blocks[number] = block
    for w in range(width):
        words[block, w] = 0
    return block


@subroutine
def add_agreements(agreements, low, blocks, numbers, words, width):
    """Set the bits of the agreements in their blocks. Return whether there was memory for all blocks."""
    inner = (uint32(1) << uint32(low)) - uint32(1)
    for i in range(agreements.size):
        there = agreements[i]
        block = block_of(int64(there >> uint32(low)), blocks, numbers, words, width)
        if block < 0:
            return False
        bit = there & inner
        words[block, bit >> uint32(WORD)] |= uint64(1) << uint64(bit & uint32(63))
    return True


@subroutine
def close_block(words, width, low):
    """Set the bits of all subsets of the sets in a block."""
    for w in range(width):
        word = words[w]
        word |= (word & HAS[0]) >> uint64(1)
        word |= (word & HAS[1]) >> uint64(2)
        word |= (word & HAS[2]) >> uint64(4)
        word |= (word & HAS[3]) >> uint64(8)
        word |= (word & HAS[4]) >> uint64(16)
        word |= (word & HAS[5]) >> uint64(32)
        words[w] = word
    step = 1
    while step < width:
        for start in range(0, width, 2 * step):
            for w in range(start, start + step):
                words[w] |= words[w + step]
        step *= 2


@subroutine
def close_blocks(upper, low, blocks, numbers, words, width):
    """Set the bits of all subsets of the sets in all blocks. Return whether there was memory for all blocks."""
    for number in range((1 << upper) - 1, -1, -1):
        block = blocks[number]
        if block < 0:
            continue
        for column in range(upper):
            if number >> column & 1:
                below = block_of(number ^ (1 << column), blocks, numbers, words, width)
                if below < 0:
                    return False
                for w in range(width):
                    words[below, w] |= words[block, w]
    for block in range(numbers[0]):
        close_block(words[block], width, low)
    return True


@subroutine
def bits_in(number):
    """Return how many bits of a number of up to 64 bits are set."""
    number = uint64(number)
    number -= (number >> uint64(1)) & uint64(0x5555555555555555)
    number = (number & uint64(0x3333333333333333)) + ((number >> uint64(2)) & uint64(0x3333333333333333))
    number = (number + (number >> uint64(4))) & uint64(0x0F0F0F0F0F0F0F0F)
    return int64((number * uint64(0x0101010101010101)) >> uint64(56))


@subroutine
def minimal_in_block(number, upper, blocks, words, width, minimal):
    """Find the minimal unique sets of one block, as bits in `minimal`.

    A set is minimal and unique if it is a subset of no agreement, and each set with one column less is a subset of one.
    """
    own = words[blocks[number]]
    for w in range(width):
        word = own[w]
        subsets = (word << uint64(1)) | ~HAS[0]
        subsets &= (word << uint64(2)) | ~HAS[1]
        subsets &= (word << uint64(4)) | ~HAS[2]
        subsets &= (word << uint64(8)) | ~HAS[3]
        subsets &= (word << uint64(16)) | ~HAS[4]
        subsets &= (word << uint64(32)) | ~HAS[5]
        minimal[w] = subsets & ~word
    step = 1
    while step < width:
        for start in range(0, width, 2 * step):
            for w in range(start, start + step):
                minimal[w + step] &= own[w]
        step *= 2
    for column in range(upper):
        if number >> column & 1:
            fewer = words[blocks[number ^ (1 << column)]]
            for w in range(width):
                minimal[w] &= fewer[w]


@subroutine
def count_set(set_, size, columns, level):
    """Count a minimal set in `level`: in level[size - 1, -1], and in level[size - 1, column] for each of its columns.

    set_: bit b is set if the set contains columns[b].
    """
    level[size - 1, level.shape[1] - 1] += 1
    while set_:
        level[size - 1, columns[bits_in((set_ & -set_) - 1)]] += 1
        set_ &= set_ - 1


@subroutine
def count_minimal(shared, low, largest, memory, width):
    """Count in memory.level the minimal unique sets of up to `largest` shared columns."""
    upper = shared - low
    for number in range(1 << upper):
        many = bits_in(number)
        if many > largest:
            continue
        if memory.blocks[number] < 0:
            left = number
            while left and memory.blocks[number ^ (left & -left)] >= 0:
                left &= left - 1
            if not left:
                count_set(number << low, many, memory.columns, memory.level)
        elif many < largest:
            minimal_in_block(number, upper, memory.blocks, memory.words, width, memory.minimal)
            for w in range(width):
                word = memory.minimal[w]
                while word:
                    bit = (w << WORD) + bits_in((word & (~word + uint64(1))) - uint64(1))
                    word &= word - uint64(1)
                    size = many + bits_in(bit)
                    if size <= largest and bit < 1 << low:
                        count_set(number << low | bit, size, memory.columns, memory.level)


@subroutine
def find_minimal(table, row, largest, memory):
    """Count in memory.level the minimal unique sets of a row, of up to `largest` columns.

    Return whether there was memory for all blocks.
    """
    rows = table.codes.shape[1]
    shared, alone = sort_columns(table, row, memory.columns)
    low = min(shared, LOW)
    width = 1 << max(0, low - WORD)
    for start in range(0, rows, ROWS):
        agreements = memory.agreements[: min(ROWS, rows - start)]
        find_agreements(table, row, start, memory.columns[:shared], agreements)
        if not add_agreements(agreements, low, memory.blocks, memory.numbers, memory.words, width):
            return False
    if not close_blocks(shared - low, low, memory.blocks, memory.numbers, memory.words, width):
        return False
    memory.level[:] = 0
    for place in range(alone):
        count_set(1, 1, memory.columns[memory.columns.size - 1 - place :], memory.level)
    count_minimal(shared, low, largest, memory, width)
    return True


@kernel
def search_rows(table, rows, places, weights, memory, minimal_sets):
    """Find the minimal unique sets of some rows; stop at a row that needs more blocks than there is memory for.

    rows: the rows to search. places: the place of each in `minimal_sets`. weights: the weight of a set, by its size
    less 1. Return how many rows were searched.
    """
    columns = table.first.size
    for done in range(rows.size):
        whole = find_minimal(table, rows[done], weights.size, memory)
        for block in range(memory.numbers[0]):
            memory.blocks[memory.numbers[block + 1]] = -1
        memory.numbers[0] = 0
        if not whole:
            return done
        for size in range(weights.size):
            minimal_sets.counts[size, places[done]] = memory.level[size, columns]
            for column in range(columns):
                minimal_sets.by_column[size, column] += memory.level[size, column]
                if minimal_sets.shares.size:
                    minimal_sets.shares[places[done], column] += weights[size] * memory.level[size, column]
    return rows.size
