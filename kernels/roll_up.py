"""Rows counted over coarser values, from keys of rows or of classes that were found before."""

from __future__ import annotations

from numba import uint64

from gpupif.kernels.hashing import mix
from gpupif.kernels.jit import kernel, subroutine


@subroutine
def coarser_word(keys, row, word, digits, tables):
    """A word of a row's key with coarser values in its fields; see `roll_up`."""
    found = uint64(0)
    for digit in range(digits.shape[0]):
        if digits[digit, 0] == word:
            place = (keys[row, word] >> uint64(digits[digit, 1])) & uint64(digits[digit, 2])
            found |= tables[digits[digit, 3] + int(place)]
    return found


@kernel
def coarsen(keys, digits, tables, out):
    """The keys of rows over coarser values; arguments as of `roll_up`."""
    for row in range(keys.shape[0]):
        for word in range(keys.shape[1]):
            out[row, word] = coarser_word(keys, row, word, digits, tables)


@kernel
def roll_up(keys, counts, digits, tables, slots, most, out_keys, out_counts):
    """Classes of rows over coarser values, with how many rows each has; returns how many there are, or -1 for more than
    `most`.

    keys (rows, words), counts: of rows that differ. digits (digits, 4): which bits of which word are looked up
    together, as word, shift, mask and the place of their table; tables: by these bits what stands for them, in its
    place of the word. slots: as many as a power of two, all 0; class numbers from 1 are put into them. out_keys,
    out_counts: of the classes, in order of first appearance.
    """
    words = keys.shape[1]
    last = uint64(slots.size - 1)
    classes = 0
    for row in range(keys.shape[0]):
        # The next key is put where a new class would stand, so that it is there if it is one.
        hashed = uint64(0)
        for word in range(words):
            found = coarser_word(keys, row, word, digits, tables)
            out_keys[classes, word] = found
            hashed = mix(hashed ^ found)
        slot = hashed & last
        while True:
            at = int(slots[slot]) - 1
            if at < 0:
                if classes == most:
                    return -1
                slots[slot] = classes + 1
                out_counts[classes] = counts[row]
                classes += 1
                break
            same = True
            for word in range(words):
                same &= out_keys[at, word] == out_keys[classes, word]
            if same:
                out_counts[at] += counts[row]
                break
            slot = (slot + uint64(1)) & last
    return classes


@kernel
def find_row(keys, digits, tables, wanted):
    """The first row whose key over coarser values is the wanted one, -1 for none; arguments as of `roll_up`."""
    for row in range(keys.shape[0]):
        same = True
        for word in range(keys.shape[1]):
            if coarser_word(keys, row, word, digits, tables) != wanted[word]:
                same = False
                break
        if same:
            return row
    return -1


@kernel
def count_agreeing(keys, counts, digits, tables, out):
    """Rows counted by the node of a lattice from which on each agrees with another row.

    digits: as of `roll_up`; tables: by these bits how far on that node is, so that those of all digits add up to its
    place; out.size or more where they never agree.
    """
    for row in range(keys.shape[0]):
        place = 0
        for digit in range(digits.shape[0]):
            bits = (keys[row, digits[digit, 0]] >> uint64(digits[digit, 1])) & uint64(digits[digit, 2])
            place += tables[digits[digit, 3] + int(bits)]
        if place < out.size:
            out[place] += counts[row]
