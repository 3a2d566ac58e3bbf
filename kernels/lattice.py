"""Nodes of a lattice of levels: their order, and equivalence classes over the coarser values of a node.

A node has one level for each axis. Node a is *below* node b, or equal to it, if no level of a is above that of b.
"""

from __future__ import annotations

from numba import uint64

from gpupif.kernels.hashing import mix
from gpupif.kernels.jit import kernel, subroutine


@subroutine
def is_below(levels, lower, higher):
    """Return whether node `lower` is below node `higher` or equal to it."""
    above = 0
    for axis in range(levels.shape[1]):
        above += levels[lower, axis] > levels[higher, axis]
    return above == 0


@kernel
def count_sample(levels, candidates, sample, below, above):
    """Count for each candidate how many nodes of a sample are below it, and how many above it, equal ones included.

    levels: (nodes, axes). candidates, sample: rows of `levels`.
    """
    for place in range(candidates.size):
        below[place], above[place] = 0, 0
        for other in range(sample.size):
            below[place] += is_below(levels, sample[other], candidates[place])
            above[place] += is_below(levels, candidates[place], sample[other])


@kernel
def count_pairs(levels, nodes, below, above):
    """Count for each of `nodes` how many of them are below it, and how many above it, itself included.

    nodes: rows of `levels`, ordered so that no node is below a node before it in the list.
    """
    below[:] = 1
    above[:] = 1
    for place in range(nodes.size):
        for other in range(place):
            if is_below(levels, nodes[other], nodes[place]):
                below[place] += 1
                above[other] += 1


@kernel
def sum_below(shape, strides, numbers):
    """Replace the number of each node of a whole lattice by the sum over all nodes that are below it or equal to it.

    shape: the number of levels of each axis. strides: the distance in `numbers` between neighbouring levels of an axis.
    """
    for axis in range(shape.size):
        stride = strides[axis]
        run = stride * shape[axis]
        for start in range(0, numbers.size, run):
            for level in range(start + stride, start + run, stride):
                for node in range(level, level + stride):
                    numbers[node] += numbers[node - stride]


@kernel
def keep_others(levels, nodes, node, above, out):
    """Copy to `out` the nodes that are not below `node`, in their order. Return how many they are.

    above: whether to copy the nodes that are not above `node` instead.
    """
    kept = 0
    for place in range(nodes.size):
        out[kept] = nodes[place]
        lower, higher = (node, nodes[place]) if above else (nodes[place], node)
        kept += not is_below(levels, lower, higher)
    return kept


@subroutine
def coarser_word(keys, row, word, digits, tables):
    """Return a word of a row's key with coarser values in its fields; see `roll_up`."""
    coarser = uint64(0)
    for digit in range(digits.shape[0]):
        if digits[digit, 0] == word:
            place = (keys[row, word] >> uint64(digits[digit, 1])) & uint64(digits[digit, 2])
            coarser |= tables[digits[digit, 3] + int(place)]
    return coarser


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
            coarser = coarser_word(keys, row, word, digits, tables)
            out_keys[classes, word] = coarser
            hashed = mix(hashed ^ coarser)
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
