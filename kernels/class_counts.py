"""Rows counted by their key seen through masks, in tables that change as cells are suppressed and restored.

One table of slots for each mask, all in the same arrays: those of mask m are slots bounds[m] to bounds[m + 1] - 1, a
power of two of them. A slot has the number of an entry, from 1 on, or 0; an entry a masked key and how many rows have
it. An entry stays when no row has it any more.
"""

from __future__ import annotations

from numba import int64, uint64

from gpupif.kernels.hashing import hash_row
from gpupif.kernels.jit import kernel, subroutine


@subroutine
def find_slot(key, row, masks, bounds, slots, entry_keys, m):
    """The slot of a masked key: with its entry, or the empty one where that would stand."""
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
    """Count a row at its entry, made where there is none; returns how many entries there are then."""
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
    """Count all rows in all tables; returns how many entries there are."""
    entries = 0
    for m in range(len(masks)):
        for row in range(len(keys)):
            entries = add_row(keys, row, masks, bounds, slots, entry_keys, counts, entries, m)
    return entries


@kernel
def restore_cells(cells, fields, keys, limits, tables, entries, restored, changed):
    """Put values back, in the order of the cells, where no class falls below its limit for it.

    cells: (rows, columns, codes): of each cell its row, column and value; fields: (columns, 3), where keys have it
    (word, shift, mask). limits: by mask the fewest rows of a class. tables: (masks, bounds, slots, entry_keys, counts).
    restored: of each cell whether it is, before and after. changed: a key to work in. Returns how many entries there
    are, and how many values were put back.
    """
    rows, columns, codes = cells
    masks, bounds, slots, entry_keys, counts = tables
    found = 0
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
            found += 1
    return entries, found
