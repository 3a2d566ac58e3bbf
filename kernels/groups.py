"""Grouping of the rows of one block by their keys with one field cleared: exact, and without a branch on the data.

The hash of a row's key names a slot. Each row writes its number into its slot, the last row first, so that the number
of the slot's first row remains: the *head* of the slot's rows. If two groups share a slot, the rows whose key differs
from the key of their head go to the next round, which uses another hash. Rounds end when no row is left. Rows with
equal keys share every slot, so they stay together, and each round settles at least the group of each head. No slot is
cleared between rounds or blocks, because a slot is read only after it was written.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import uint64

from gpupif.kernels.hashing import hash_row, mix, mix_word, spread_word
from gpupif.kernels.jit import kernel, subroutine

# Largest number of bits of a slot in the first round: many rows are often few groups, and a larger table would not fit
# into the cache.
MOST_FIRST_BITS = 16

# Number of rounds after which keys are hashed anew; random keys hardly ever need more than four.
EASY_ROUNDS = 4


class Room(NamedTuple):
    """Working memory of `group_rows` for one block, and its result.

    seen: uint64 (rows). The masked key of each row, or its hash.
    slots: unsigned (rows). The slot of each row in `table`.
    table: unsigned (slots). The head of each slot. Most blocks use only the beginning of it.
    heads: unsigned (rows). The result: the first row of each row's group, counted from the start of the block.
    left: unsigned (rows + 1). The rows that a later round has to settle.
    """

    seen: npt.NDArray[np.uint64]
    slots: npt.NDArray[Any]
    table: npt.NDArray[Any]
    heads: npt.NDArray[Any]
    left: npt.NDArray[Any]

    @classmethod
    def for_rows(cls, rows: int) -> Room:
        """Allocate memory for blocks of up to `rows` rows."""
        dtype = np.uint32 if rows < 2**32 else np.uint64
        seen, table = np.empty(rows, np.uint64), np.empty(1 << slot_bits.py_func(rows), dtype)
        # `left` has one place more, because each row is written before it is known whether it is left.
        return cls(seen, np.empty(rows, dtype), table, np.empty(rows, dtype), np.empty(rows + 1, dtype))


@subroutine
def slot_bits(rows):
    """Return the base-2 logarithm of the number of slots for `rows` rows, of which at most a quarter is used."""
    bits = 4
    while (1 << bits) < 4 * rows:
        bits += 1
    return bits


@subroutine
def same_key(keys, a, b, word, keep):
    """Return whether rows a and b have the same key, of which `word` is seen through the mask `keep`."""
    for w in range(keys.shape[1]):
        difference = keys[a, w] ^ keys[b, w]
        if w == word:
            difference &= keep
        if difference != uint64(0):
            return False
    return True


@subroutine
def see_keys(keys, hashes, word, keep, seen):
    """Set seen[row] to the masked key of a row, or to the hash of a masked key of several words."""
    if keys.shape[1] == 1:
        for row in range(len(keys)):
            seen[row] = keys[row, 0] & keep
    else:
        for row in range(len(keys)):
            value = keys[row, word]
            seen[row] = hashes[row] - mix_word(value, word) + mix_word(value & keep, word)


@subroutine
def see_left(keys, word, keep, turn, left, seen):
    """Hash anew the rows that are left after many rounds: somebody may have chosen keys with equal first hashes."""
    for j in range(left.size):
        i = left[j]
        h = turn
        for w in range(keys.shape[1]):
            value = keys[i, w]
            if w == word:
                value &= keep
            h = mix(h ^ value)
        seen[i] = h


@subroutine
def settle(keys, word, keep, room):
    """Set the heads of the block's rows after the first round. Return how many rows are left for the next round."""
    seen, slots, table, heads, left = room
    count = 0
    if keys.shape[1] == 1:
        for i in range(len(keys)):
            head = table[slots[i]]
            heads[i] = head
            left[count] = i
            count += seen[head] != seen[i]
    else:
        for i in range(len(keys)):
            head = table[slots[i]]
            heads[i] = head
            left[count] = i
            count += seen[head] != seen[i] or not same_key(keys, head, i, word, keep)
    return count


@subroutine
def settle_left(keys, word, keep, count, room):
    """Set the heads of the `count` rows that the last round left. Return how many rows are left for the next round."""
    seen, slots, table, heads, left = room
    still = 0
    for j in range(count):
        i = left[j]
        head = table[slots[j]]
        heads[i] = head
        left[still] = i
        still += seen[head] != seen[i] or not same_key(keys, head, i, word, keep)
    return still


@subroutine
def group_rows(keys, hashes, word, keep, room):
    """Set room.heads[row] to the first row of the row's group, for each row of a block.

    Rows of a group agree on all words of their keys, of which `word` is seen through the mask `keep`. hashes: the full
    hashes of the rows, used for keys of several words.
    """
    seen, slots, table, _, left = room
    size = len(keys)
    see_keys(keys, hashes, word, keep, seen)
    bits = min(slot_bits(size), MOST_FIRST_BITS)
    shift = uint64(64 - bits)
    for i in range(size):
        slots[i] = spread_word(seen[i]) >> shift
    for i in range(size - 1, -1, -1):
        table[slots[i]] = i
    count = settle(keys, word, keep, room)
    turn = uint64(0)
    rounds = 0
    while count > 0:
        turn += uint64(0x9E3779B97F4A7C15)
        rounds += 1
        if rounds > EASY_ROUNDS and keys.shape[1] > 1:
            see_left(keys, word, keep, turn, left[:count], seen)
        shift = uint64(64 - slot_bits(count))
        for j in range(count):
            slots[j] = mix(seen[left[j]] + turn) >> shift
        for j in range(count - 1, -1, -1):
            table[slots[j]] = left[j]
        count = settle_left(keys, word, keep, count, room)


@subroutine
def sum_groups(counts, size, heads, sizes):
    """Set sizes[head] to the sum of the counts of a group, and sizes[row] to 0 for all other rows.

    counts: empty if each row counts once.
    """
    for i in range(size):
        sizes[i] = 0
    if counts.size:
        for i in range(size):
            sizes[heads[i]] += counts[i]
    else:
        for i in range(size):
            sizes[heads[i]] += 1


@kernel
def full_hashes(keys, masks, hashes):
    """Compute the full hashes of rows, for `group_rows` with keys of several words."""
    for row in range(len(keys)):
        hashes[row] = hash_row(keys, row, masks)
