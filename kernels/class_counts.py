"""Sizes of classes of rows that agree on some columns, in hash tables that follow cells suppressed and restored.

A mask selects the bits of some columns in the keys of rows. Rows with the same masked key are one class.

There is one hash table for each mask, and all are in the same arrays. The slots of mask m are slots bounds[m] to
bounds[m + 1] - 1; their number is a power of two. A slot holds 0 if it is free, else the number of an entry, counted
from 1. An entry holds a masked key and how many rows have it. An entry stays if no row has its key any more.
"""

from __future__ import annotations

from numba import int64, uint64

from gpupif.kernels.hashing import hash_row
from gpupif.kernels.jit import kernel, subroutine


@subroutine
def find_slot(key, row, masks, bounds, slots, entry_keys, m):
    """Return the slot of a masked key: the slot of its entry, or the free slot in which a new entry belongs."""
    first = bounds[m]
    last = uint64(bounds[m + 1] - first - 1)
    slot = hash_row(key, row, masks[m]) & last
    while True:
        entry = slots[first + int64(slot)]
        if entry == 0:
            return first + int64(slot)
        same = True
        for word in range(key.shape[1]):
            same = same and entry_keys[entry - 1, word] == key[row, word] & masks[m, word]
        if same:
            return first + int64(slot)
        slot = (slot + uint64(1)) & last


@subroutine
def add_row(key, row, masks, bounds, slots, entry_keys, counts, entries, m):
    """Count a row in the class of its masked key; make a new entry if needed. Return the number of entries."""
    slot = find_slot(key, row, masks, bounds, slots, entry_keys, m)
    if slots[slot] == 0:
        for word in range(key.shape[1]):
            entry_keys[entries, word] = key[row, word] & masks[m, word]
        counts[entries] = 0
        entries += 1
        slots[slot] = entries
    counts[slots[slot] - 1] += 1
    return entries


@kernel
def count_rows(keys, masks, bounds, slots, entry_keys, counts):
    """Count all rows in the tables of all masks. Return the number of entries."""
    entries = 0
    for m in range(len(masks)):
        for row in range(len(keys)):
            entries = add_row(keys, row, masks, bounds, slots, entry_keys, counts, entries, m)
    return entries


@kernel
def restore_cells(cells, fields, keys, limits, tables, entries, restored, changed):
    """Restore suppressed cells, in their order; skip a cell if a class would become smaller than its limit.

    cells: (rows, columns, codes). The row, the column and the original value of each suppressed cell.
    fields: (columns, 3). The word, shift and mask of each column in keys.
    limits: (masks). The smallest allowed size of a class.
    tables: (masks, bounds, slots, entry_keys, counts), see the module.
    entries: the number of entries before.
    restored: bool (cells). Whether each cell is restored, before and after the call.
    changed: working memory for one key.
    Return the number of entries, and how many cells were restored.
    """
    rows, columns, codes = cells
    masks, bounds, slots, entry_keys, counts = tables
    number = 0
    for i in range(rows.size):
        if restored[i]:
            continue
        row, column = rows[i], columns[i]
        word, shift, mask = int64(fields[column, 0]), fields[column, 1], fields[column, 2]
        field = mask << shift
        for w in range(keys.shape[1]):
            changed[0, w] = keys[row, w]
        changed[0, word] = (keys[row, word] & ~field) | (uint64(codes[i]) << shift)
        allowed = True
        for m in range(len(masks)):
            if allowed and masks[m, word] & field != uint64(0):
                left = counts[slots[find_slot(keys, row, masks, bounds, slots, entry_keys, m)] - 1] - 1
                slot = find_slot(changed, 0, masks, bounds, slots, entry_keys, m)
                there = counts[slots[slot] - 1] if slots[slot] > 0 else 0
                allowed = (left == 0 or left >= limits[m]) and there + 1 >= limits[m]
        if allowed:
            for m in range(len(masks)):
                if masks[m, word] & field != uint64(0):
                    counts[slots[find_slot(keys, row, masks, bounds, slots, entry_keys, m)] - 1] -= 1
                    entries = add_row(changed, 0, masks, bounds, slots, entry_keys, counts, entries, m)
            keys[row, word] = changed[0, word]
            restored[i] = True
            number += 1
    return entries, number
