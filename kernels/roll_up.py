"""Equivalence classes over coarser values, counted from the keys of rows or of finer equivalence classes."""

from __future__ import annotations

from numba import uint64

from gpupif.kernels.hashing import mix
from gpupif.kernels.jit import kernel, subroutine


@subroutine
def coarser_word(keys, row, word, digits, tables):
    """Return a word of a row's key with coarser values in its fields; see `roll_up`."""
    found = uint64(0)
    for digit in range(digits.shape[0]):
        if digits[digit, 0] == word:
            place = (keys[row, word] >> uint64(digits[digit, 1])) & uint64(digits[digit, 2])
            found |= tables[digits[digit, 3] + int(place)]
    return found


@kernel
def coarsen(keys, digits, tables, out):
    """Fill `out` with the keys of rows over coarser values; other arguments: see `roll_up`."""
    for row in range(keys.shape[0]):
        for word in range(keys.shape[1]):
            out[row, word] = coarser_word(keys, row, word, digits, tables)


@kernel
def roll_up(keys, counts, digits, tables, slots, most, out_keys, out_counts):
    """Find the equivalence classes of rows over coarser values. Return how many there are, -1 for more than `most`.

    keys: (rows, words), of distinct rows. counts: their multiplicities.
    digits: (digits, 4). The word, shift and mask of bits that are looked up together, and the place of their table.
    tables: the coarser value for each value of the bits, shifted to its place in the word.
    slots: zeros, their number a power of two; they get the numbers of classes, counted from 1.
    out_keys, out_counts: get the keys and sizes of the classes, in order of first appearance.
    """
    words = keys.shape[1]
    last = uint64(slots.size - 1)
    classes = 0
    for row in range(keys.shape[0]):
        # The key is written to the place of the next new class, so that it is there if the class is new.
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
    """Return the first row whose key over coarser values is `wanted`, -1 if there is none; see `roll_up`."""
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
    """Add up the rows by the first node of a lattice at which the row agrees with another row.

    digits: see `roll_up`. tables: for each value of the bits an offset; the offsets of all digits add up to the place
    of the node in `out`, or to out.size or more if the row never agrees with another one.
    """
    for row in range(keys.shape[0]):
        place = 0
        for digit in range(digits.shape[0]):
            bits = (keys[row, digits[digit, 0]] >> uint64(digits[digit, 1])) & uint64(digits[digit, 2])
            place += tables[digits[digit, 3] + int(bits)]
        if place < out.size:
            out[place] += counts[row]
