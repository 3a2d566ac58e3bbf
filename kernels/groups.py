"""Grouping of the rows of one block by their key with one field cleared: an open-addressing table, exact."""

from __future__ import annotations

import numpy as np
from numba import int64, uint64

from .hashing import hash_row, mix_word
from .jit import kernel

LARGEST_START = 32768


@kernel
def table_size(rows):
    """Slots for a block of `rows` rows: a power of two, at most half full; large blocks start small and grow."""
    size = 16
    while size <= 2 * rows and size < LARGEST_START:
        size *= 2
    return size


@kernel
def new_table():
    """An empty table (slots, hashes) for `group_rows`."""
    return np.full(LARGEST_START, -1, np.int64), np.empty(LARGEST_START, np.uint64)


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
def grown(slots, slot_hashes):
    """The table with twice the slots."""
    size = 2 * slots.size
    new_slots = np.full(size, -1, slots.dtype)
    new_hashes = np.empty(size, np.uint64)
    for old in range(slots.size):
        if slots[old] >= 0:
            slot = int64(slot_hashes[old] & uint64(size - 1))
            while new_slots[slot] >= 0:
                slot = (slot + 1) & (size - 1)
            new_slots[slot] = slots[old]
            new_hashes[slot] = slot_hashes[old]
    return new_slots, new_hashes


@kernel
def insert_rows(keys, hashes, rows, word, keep, slots, slot_hashes, groups, heads, group_of):
    """Number the groups of rows[1] to rows[2] - 1, `groups` being there already, until the table is half full.

    rows: (first row of the block, next row, row after the last). Returns the row it stopped at and the groups. No array
    changes hands inside the loop: that would cost a reference count each time.
    """
    start, begin, stop = rows
    size = slots.size
    one_word = keys.shape[1] == 1
    for row in range(begin, stop):
        if 2 * groups >= size:
            return row, groups
        value = keys[row, word]
        h = mix_word(value & keep, word)
        if not one_word:
            h += hashes[row] - mix_word(value, word)
        slot = int64(h & uint64(size - 1))
        group = slots[slot]
        while group >= 0:
            if slot_hashes[slot] == h and (one_word or same_key(keys, heads[group], row, word, keep)):
                break
            slot = (slot + 1) & (size - 1)
            group = slots[slot]
        if group < 0:
            group = groups
            groups += 1
            heads[group] = row
            slots[slot] = group
            slot_hashes[slot] = h
        group_of[row - start] = group
    return stop, groups


@kernel
def group_rows(keys, hashes, start, stop, word, keep, table, heads, group_of):
    """Number the groups of rows start to stop in order of first appearance.

    Two rows are one group where all words agree, `word` seen through the mask `keep`. `hashes` are the rows' full
    hashes (used with keys of several words; one word is its own hash, `mix_word` being a bijection). `heads[g]` gets
    the first row of group g, `group_of[r - start]` the group of row r. Returns the number of groups and the table,
    which may have grown.
    """
    slots, slot_hashes = table
    size = min(slots.size, table_size(stop - start))
    slots[:size] = -1
    row, groups = insert_rows(
        keys, hashes, (start, start, stop), word, keep, slots[:size], slot_hashes[:size], 0, heads, group_of
    )
    while row < stop:
        slots, slot_hashes = grown(slots[:size], slot_hashes[:size])
        size = slots.size
        row, groups = insert_rows(
            keys, hashes, (start, row, stop), word, keep, slots, slot_hashes, groups, heads, group_of
        )
    return groups, (slots, slot_hashes)


@kernel
def full_hashes(keys, start, stop, masks, hashes):
    """Full hashes of rows start to stop, for `group_rows` with keys of several words."""
    for row in range(start, stop):
        hashes[row] = hash_row(keys, row, masks)
