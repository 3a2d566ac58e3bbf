"""Grouping of the rows of one block by their key with one field cleared: exact, and without a branch on the data.

Each row writes its number into the slot that a hash of its key names, the last row first, so that the first row of a
slot is what stays there: the *head* of the slot's rows. Rows whose key is not their head's, because two groups met in
one slot, go to the next round with another hash, until no row is left. Equal rows share every slot, so they stay
together, and each round settles at least the head's group. Nothing is cleared between rounds or blocks: only slots just
written are read.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import uint64

from gpupif.kernels.hashing import hash_row, mix, mix_word, spread_word
from gpupif.kernels.jit import kernel, subroutine

# Bits of the slots of the first round at most: many rows often are few groups, and a larger table leaves the cache.
MOST_FIRST_BITS = 16

# Rounds after which keys are hashed anew: by chance four are hardly ever needed.
EASY_ROUNDS = 4


class Room(NamedTuple):
    """What `group_rows` works in, for blocks of at most so many rows.

    seen: the masked key of a row, or its hash. slots: where a row looks in `table`, of which blocks hardly ever touch
    more than the beginning. heads: for each row the first row of its group, both counted from the start of the block.
    left: rows that a later round decides.
    """

    seen: npt.NDArray[np.uint64]
    slots: npt.NDArray[Any]
    table: npt.NDArray[Any]
    heads: npt.NDArray[Any]
    left: npt.NDArray[Any]

    @classmethod
    def of(cls, rows: int) -> Room:
        """Room for blocks of at most `rows` rows."""
        dtype = np.uint32 if rows < 2**32 else np.uint64
        seen, table = np.empty(rows, np.uint64), np.empty(1 << slot_bits.py_func(rows), dtype)
        # One row more, for the number that is written before it is known whether the row is left.
        return cls(seen, np.empty(rows, dtype), table, np.empty(rows, dtype), np.empty(rows + 1, dtype))


@subroutine
def slot_bits(rows):
    """Base-2 logarithm of the slots for so many rows, such that at most a quarter of them is used."""
    bits = 4
    while (1 << bits) < 4 * rows:
        bits += 1
    return bits


@subroutine
def same_key(keys, a, b, word, keep):
    """Whether rows a and b have the same key where `word` is seen through the mask `keep`."""
    for w in range(keys.shape[1]):
        difference = keys[a, w] ^ keys[b, w]
        if w == word:
            difference &= keep
        if difference != uint64(0):
            return False
    return True


@subroutine
def see_keys(keys, hashes, word, keep, seen):
    """What tells the rows' groups apart: their one masked word, or the hash of several."""
    if keys.shape[1] == 1:
        for row in range(len(keys)):
            seen[row] = keys[row, 0] & keep
    else:
        for row in range(len(keys)):
            value = keys[row, word]
            seen[row] = hashes[row] - mix_word(value, word) + mix_word(value & keep, word)


@subroutine
def see_left(keys, word, keep, turn, left, seen):
    """Another hash for rows that are left after many rounds: someone may have chosen keys that share the first."""
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
    """Heads of the block's rows after the first round; returns how many are left for the next."""
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
    """The same for the `count` rows left by the round before."""
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
    """Find for each row of a block the first row of its group: room.heads[row].

    Two rows of the block are one group where all words of their keys agree, `word` seen through the mask `keep`.
    hashes: the rows' full hashes, used with keys of several words.
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
    """Sum of the counts of each group, at its head; 0 at all other rows. Empty counts: each row counts once."""
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
    """Full hashes of rows, for `group_rows` with keys of several words."""
    for row in range(len(keys)):
        hashes[row] = hash_row(keys, row, masks)
