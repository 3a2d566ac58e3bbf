"""Nodes of a lattice of levels: their order, and equivalence classes over the coarser values of a node.

A node has one level for each axis. Node a is *below* node b, or equal to it, if no level of a is above that of b.
"""

from __future__ import annotations

from numba import uint64

from gpupif.kernels.hashing import mix
from gpupif.kernels.intrinsics import trailing_zeros
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
def fill_masks(points, higher, masks):
    """Set the bits of points at each level of each axis, for `weight_of`.

    points: (points, axes). masks: zeros (axes, levels, words), 64 points a word. A point gets its bit at its own level
    and all higher ones; with higher=False at its own and all lower ones.
    """
    for point in range(points.shape[0]):
        bit = uint64(1) << uint64(point & 63)
        for axis in range(points.shape[1]):
            own = int(points[point, axis])
            for level in range(own if higher else 0, masks.shape[1] if higher else own + 1):
                masks[axis, level, point >> 6] |= bit


@subroutine
def weight_of(masks, weights, first, last, least, node):
    """Add up the weights of the points that have bits at all levels of a node, until they reach `least`.

    masks: see `fill_masks`. weights: 64 a word. first, last: the words that are looked at.
    """
    total = 0
    for word in range(first, last):
        bits = masks[0, node[0], word]
        axis = 1
        while bits and axis < node.size:
            bits &= masks[axis, node[axis], word]
            axis += 1
        while bits:
            total += weights[(word << 6) + int(trailing_zeros(bits))]
            if total >= least:
                return total
            bits &= bits - uint64(1)
    return total


@kernel
def keep_nodes(levels, nodes, masks, weights, least, wanted, out):
    """Copy to `out` the nodes that have points of weight `least`, in their order. Return how many they are.

    nodes: rows of `levels`. masks, weights: see `weight_of`. wanted: False to copy the nodes that have less instead.
    """
    kept = 0
    for node in nodes:
        out[kept] = node
        kept += (weight_of(masks, weights, 0, masks.shape[2], least, levels[node]) >= least) == wanted
    return kept


@subroutine
def step_up(node, heights, axis):
    """Go to the next node in the order of levels whose levels up to `axis` differ from those of `node`.

    If there is none, the first level becomes higher than its height.
    """
    node[axis + 1 :] = 0
    while axis >= 0 and node[axis] == heights[axis]:
        node[axis] = 0
        axis -= 1
    if axis < 0:
        node[0] = heights[0]
    node[max(axis, 0)] += 1


@kernel
def walk(node, heights, costs, floors, limit, masks, weights, ends, least, wanted, visits, out):
    """Copy to `out` the nodes that are not ruled out, from `node` on in the order of levels. Return how many they are.

    node: becomes the node to go on from; its first level is above its height if no node is left.
    costs, floors: (axes, levels). A node is ruled out if the sum of its costs or any floor is above `limit`.
    masks, weights: of sets of points one after another; see `weight_of`. ends: by set the word after its last.
    least, wanted: by set. A node is kept if it has points of the least weight, or with wanted=False if it has less.
    The first set must rule out all nodes above a node that it rules out. The others must rule out all nodes below.
    visits: at most this number of nodes is looked at.
    """
    axes = heights.size
    found = 0
    for _ in range(visits):
        if found == out.shape[0] or node[0] > heights[0]:
            break
        total, floor = 0.0, 0.0
        for axis in range(axes):
            total += costs[axis, node[axis]]
            floor = max(floor, floors[axis, node[axis]])
        last = axes - 1
        if (
            max(total, floor) > limit
            or (weight_of(masks, weights, 0, ends[0], least[0], node) >= least[0]) != wanted[0]
        ):
            while last >= 0 and node[last] == 0:
                last -= 1
            step_up(node, heights, last - 1)
            continue
        number = 1
        while number < ends.size:
            first, end, enough = ends[number - 1], ends[number], least[number]
            if (weight_of(masks, weights, first, end, enough, node) >= enough) != wanted[number]:
                break
            number += 1
        if number == ends.size:
            for axis in range(axes):
                out[found, axis] = node[axis]
            found += 1
            step_up(node, heights, last)
            continue
        # Nodes with higher levels on the last axes that are ruled out by the same set are skipped.
        while last >= 0:
            if node[last] == heights[last]:
                last -= 1
                continue
            node[last] += 1
            if (weight_of(masks, weights, first, end, enough, node) >= enough) == wanted[number]:
                break
        if last < 0:
            node[0] = heights[0] + 1
        else:
            node[last + 1 :] = 0
    return found


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
