"""Nodes of a lattice of levels: which are not above one another, and how many are below each."""

from __future__ import annotations

from gpupif.kernels.jit import kernel, subroutine


@subroutine
def is_below(levels, one, other):
    """Whether a node is nowhere above another, which may be itself."""
    above = 0
    for axis in range(levels.shape[1]):
        above += levels[one, axis] > levels[other, axis]
    return above == 0


@kernel
def count_below(levels, candidates, sample, out):
    """For each candidate how many nodes of a sample are nowhere above it. levels (nodes, axes); others: their rows."""
    for place in range(candidates.size):
        found = 0
        for other in range(sample.size):
            found += is_below(levels, sample[other], candidates[place])
        out[place] = found


@kernel
def count_above(levels, candidates, sample, out):
    """The same of nodes that are nowhere below it."""
    for place in range(candidates.size):
        found = 0
        for other in range(sample.size):
            found += is_below(levels, candidates[place], sample[other])
        out[place] = found


@kernel
def count_pairs(levels, nodes, below, above):
    """For each of some nodes how many of them are nowhere above it, and nowhere below; none is below one before it."""
    below[:] = 1
    above[:] = 1
    for place in range(nodes.size):
        for other in range(place):
            if is_below(levels, nodes[other], nodes[place]):
                below[place] += 1
                above[other] += 1


@kernel
def sum_below(shape, strides, numbers):
    """Of each node of a whole lattice, in the order of its levels, the sum over all that are nowhere above it.

    numbers: of each node, then the sums.
    """
    for axis in range(shape.size):
        stride = strides[axis]
        run = stride * shape[axis]
        for start in range(0, numbers.size, run):
            for level in range(start + stride, start + run, stride):
                for node in range(level, level + stride):
                    numbers[node] += numbers[node - stride]


@kernel
def keep_not_below(levels, nodes, node, out):
    """Of some nodes those that are above another somewhere, in their order; returns how many."""
    kept = 0
    for place in range(nodes.size):
        out[kept] = nodes[place]
        kept += not is_below(levels, nodes[place], node)
    return kept


@kernel
def keep_not_above(levels, nodes, node, out):
    """Of some nodes those that are below another somewhere, in their order; returns how many."""
    kept = 0
    for place in range(nodes.size):
        out[kept] = nodes[place]
        kept += not is_below(levels, node, nodes[place])
    return kept
