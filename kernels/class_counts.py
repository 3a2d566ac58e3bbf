"""Sizes of classes of rows that agree on some columns, in hash tables that follow cells suppressed and restored.

A mask selects the bits of some columns in the keys of rows. Rows with the same masked key are one class. The table of a
mask counts the rows of each class or, if `parts[m]` is not -1, the classes of table `parts[m]` within each class. That
table has one column more: its classes within a class are the different values of the column.

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
def add_row(key, row, tables, entries, m):
    """Count a row in the class of its masked key; make a new entry if needed. Return the number of entries."""
    masks, bounds, slots, entry_keys, counts, parts, places = tables
    part = parts[m]
    if part >= 0 and counts[slots[find_slot(key, row, masks, bounds, slots, entry_keys, part)] - 1] > 1:
        # The value of the row was there already.
        return entries
    slot = find_slot(key, row, masks, bounds, slots, entry_keys, m)
    if slots[slot] == 0:
        for word in range(key.shape[1]):
            entry_keys[entries, word] = key[row, word] & masks[m, word]
        counts[entries] = 0
        places[entries] = slot
        entries += 1
        slots[slot] = entries
    counts[slots[slot] - 1] += 1
    return entries


@subroutine
def count_of(key, row, tables, m):
    """Return the count of the class of a masked key, 0 for a class without an entry."""
    masks, bounds, slots, entry_keys, counts = tables[:5]
    entry = slots[find_slot(key, row, masks, bounds, slots, entry_keys, m)]
    return counts[entry - 1] if entry > 0 else int64(0)


@subroutine
def remove_row(key, row, tables, m):
    """Count a row no more in the class of its masked key. Its entry stays."""
    masks, bounds, slots, entry_keys, counts, parts = tables[:6]
    if parts[m] < 0 or count_of(key, row, tables, parts[m]) == 0:
        counts[slots[find_slot(key, row, masks, bounds, slots, entry_keys, m)] - 1] -= 1


@subroutine
def set_cell(keys, row, field, code):
    """Write the code of a cell into the key of its row. field: word, shift and mask of the column."""
    word, shift = int64(field[0]), field[1]
    keys[row, word] = (keys[row, word] & ~(field[2] << shift)) | (code << shift)


@subroutine
def move_cell(keys, row, field, code, tables, touched, entries):
    """Write a code into a cell, and count its row in the classes that it is in then. Return the number of entries.

    touched: bool (masks). Whether the table depends on the column of the cell.
    """
    # A table comes after the table that it counts classes of, so that both are counted in turn.
    for m in range(touched.size):
        if touched[m]:
            remove_row(keys, row, tables, m)
    set_cell(keys, row, field, code)
    for m in range(touched.size):
        if touched[m]:
            entries = add_row(keys, row, tables, entries, m)
    return entries


@kernel
def count_rows(keys, tables):
    """Count all rows in all tables. Return the number of entries."""
    parts, entries = tables[5], 0
    for m in range(parts.size):
        # The table that counts classes of table m, if there is one, follows table m.
        both = m + 1 < parts.size and parts[m + 1] == m
        if parts[m] < 0:
            for row in range(len(keys)):
                entries = add_row(keys, row, tables, entries, m)
                if both:
                    entries = add_row(keys, row, tables, entries, m + 1)
    return entries


@subroutine
def reaches_limits(key, row, touched, limits, tables, may_be_empty):
    """Return whether each class of a row reaches its limit, or if that is allowed, is empty."""
    for m in range(touched.size):
        if touched[m]:
            count = count_of(key, row, tables, m)
            if count < limits[m] and not (may_be_empty and count == 0):
                return False
    return True


@kernel
def restore_cells(cells, layout, keys, limits, tables, stack, refused, state, asks, changed):
    """Restore suppressed cells span by span, unless a class would become smaller than its limit.

    If a span of several cells is not restored, its first half is tried next, and then its second half. Restoring goes
    on until no span is left or, if `asks`, until a span reaches all limits: the caller may refuse it.

    cells: (rows, columns, codes, holes), by cell. codes: the original value. holes: the code of a missing value.
    layout: (fields, touched). fields: (columns, 3). The word, shift and mask of each column in keys. touched: bool
        (columns, masks). Whether a table depends on a column.
    limits: (masks). The smallest allowed count of a class.
    tables: (masks, bounds, slots, entry_keys, counts, parts, places), see the module. places: by entry, its slot.
    stack: (spans, 2). First and last cell + 1 of the spans to try, the next one last.
    refused: int64 (cells + 1), zeros. Working memory.
    state: [number of spans, number of entries, first cell and last cell + 1 of a span, number of entries before it]. If
        a call found a span, it restored this span. The caller makes both ends equal to accept it; otherwise the next
        call suppresses its cells again.
    asks: bool. Whether the caller decides on spans.
    changed: working memory for one key.
    Return how many cells were restored without asking.
    """
    rows, columns, codes, holes = cells
    fields, touched = layout
    slots, places = tables[2], tables[6]
    number = 0
    while state[0] > 0 or state[2] < state[3]:
        start, stop = state[2], state[3]
        if start == stop:
            state[0] -= 1
            start, stop = stack[state[0], 0], stack[state[0], 1]
            state[4] = state[1]
            moved = refused[start] == refused[stop]
            fits = moved
            if moved:
                for i in range(start, stop):
                    column = columns[i]
                    state[1] = move_cell(keys, rows[i], fields[column], codes[i], tables, touched[column], state[1])
                for i in range(start, stop):
                    column = columns[i]
                    reaches = reaches_limits(keys, rows[i], touched[column], limits, tables, False)
                    if stop - start == rows.size:
                        # Too small with all cells of the column restored, the class is too small with some of them.
                        refused[i + 1] = refused[i] + int64(not reaches)
                    for word in range(keys.shape[1]):
                        changed[0, word] = keys[rows[i], word]
                    set_cell(changed, 0, fields[column], holes[i])
                    fits = fits and reaches and reaches_limits(changed, 0, touched[column], limits, tables, True)
            if fits and asks:
                state[2], state[3] = start, stop
                return number
            if fits:
                number += stop - start
                continue
        else:
            moved = True
            state[2] = stop
        if moved:
            for i in range(start, stop):
                column = columns[i]
                state[1] = move_cell(keys, rows[i], fields[column], holes[i], tables, touched[column], state[1])
            # The newest entries go first: no older entry was put behind them.
            while state[1] > state[4]:
                state[1] -= 1
                slots[places[state[1]]] = 0
        if stop - start > 1:
            half = start + (stop - start) // 2
            stack[state[0], 0], stack[state[0], 1] = half, stop
            stack[state[0] + 1, 0], stack[state[0] + 1, 1] = start, half
            state[0] += 2
    return number
