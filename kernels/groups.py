"""Grouping of the rows of one block by their key with one field cleared: an open-addressing table, exact."""

from __future__ import annotations

import numpy as np
from numba import int64, uint64

from .hashing import hash_row, mix_word, spread_word
from .jit import kernel

# Slots that a table starts with at most; larger blocks grow it when they turn out to have so many groups.
LARGEST_START = 65536
GROUP_BITS = 32
GROUP_MASK = (1 << GROUP_BITS) - 1


@kernel
def table_size(rows):
    """Slots for a block of `rows` rows: a power of two, at most a quarter full."""
    size = 16
    while size < 4 * rows and size < LARGEST_START:
        size *= 2
    return size


@kernel
def new_table(largest):
    """An empty table (slots, hashes) for `group_rows` on blocks of at most `largest` rows.

    A slot holds the number of the block that filled it, from 1, and below it the group: what an earlier block left
    counts as free, so nothing is cleared between blocks.
    """
    size = table_size(largest)
    return np.zeros(size, np.int64), np.empty(size, np.uint64)


@kernel
def same_key(keys, a, b, word, keep):
    """Whether rows a and b have the same key where `word` is seen through the mask `keep`."""
    for w in range(keys.shape[1]):
        difference = keys[a, w] ^ keys[b, w]
        if w == word:
            difference &= keep
        if difference != uint64(0):
            return False
    return True


@kernel
def grown(slots, slot_hashes, stamp):
    """The table with twice the slots and what block `stamp` put there."""
    size = 2 * slots.size
    new_slots = np.zeros(size, np.int64)
    new_hashes = np.empty(size, np.uint64)
    for old in range(slots.size):
        if slots[old] >> GROUP_BITS == stamp:
            slot = int64(slot_hashes[old] & uint64(size - 1))
            while new_slots[slot] != 0:
                slot = (slot + 1) & (size - 1)
            new_slots[slot] = slots[old]
            new_hashes[slot] = slot_hashes[old]
    return new_slots, new_hashes


@kernel
def insert_rows(rows, span, word, keep, slots, slot_hashes, stamp, groups, found):
    """Number the groups of rows span[1] to span[2] - 1, `groups` being there already, until the table is half full.

    span: (first row of the block, next row, row after the last). Returns the row it stopped at and the groups. No array
    changes hands inside the loop: that would cost a reference count each time.
    """
    keys, counts, hashes = rows
    heads, sizes, group_of = found
    start, begin, stop = span
    size = slots.size
    one_word = keys.shape[1] == 1
    counted = counts.size > 0
    for row in range(begin, stop):
        if 2 * groups >= size:
            return row, groups
        value = keys[row, word]
        if one_word:
            h = spread_word(value & keep)
        else:
            h = hashes[row] - mix_word(value, word) + mix_word(value & keep, word)
        slot = int64(h & uint64(size - 1))
        entry = slots[slot]
        while entry >> GROUP_BITS == stamp:
            if slot_hashes[slot] == h and (one_word or same_key(keys, heads[entry & GROUP_MASK], row, word, keep)):
                break
            slot = (slot + 1) & (size - 1)
            entry = slots[slot]
        if entry >> GROUP_BITS != stamp:
            entry = (stamp << GROUP_BITS) | groups
            slots[slot] = entry
            slot_hashes[slot] = h
            heads[groups] = row
            sizes[groups] = 0
            groups += 1
        group = entry & GROUP_MASK
        sizes[group] += counts[row] if counted else 1
        group_of[row - start] = group
    return stop, groups


@kernel
def group_rows(rows, start, stop, word, keep, table, stamp, found):
    """Number the groups of rows start to stop in order of first appearance.

    rows: (keys, counts, hashes); two rows are one group where all words of their keys agree, `word` seen through the
    mask `keep`. Empty counts: each row counts once. hashes are the rows' full hashes, used with keys of several words;
    one word is its own hash, `spread_word` being a bijection. stamp: from 1, another one for each block that uses the
    table. found: (heads, sizes, group_of) gets the first row and the sum of the counts of each group, and the group of
    row r at r - start. Returns the number of groups and the table, which may have grown.
    """
    slots, slot_hashes = table
    size = min(slots.size, table_size(stop - start))
    part, part_hashes = slots[:size], slot_hashes[:size]
    row, groups = insert_rows(rows, (start, start, stop), word, keep, part, part_hashes, stamp, 0, found)
    while row < stop:
        slots, slot_hashes = grown(slots[:size], slot_hashes[:size], stamp)
        size = slots.size
        row, groups = insert_rows(rows, (start, row, stop), word, keep, slots, slot_hashes, stamp, groups, found)
    return groups, (slots, slot_hashes)


@kernel
def room_for(offsets, blocks):
    """Empty (heads, sizes, group_of) for the largest of the blocks blocks[0] to blocks[1] - 1."""
    most = 0
    for block in range(blocks[0], blocks[1]):
        most = max(most, offsets[block + 1] - offsets[block])
    return np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)


@kernel
def full_hashes(keys, start, stop, masks, hashes):
    """Full hashes of rows start to stop, for `group_rows` with keys of several words."""
    for row in range(start, stop):
        hashes[row] = hash_row(keys, row, masks)
