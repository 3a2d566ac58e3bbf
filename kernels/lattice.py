"""Order of the nodes of a lattice of levels.

A node has one level for each axis. Node a is *below* node b, or equal to it, if no level of a is above that of b.
"""

from __future__ import annotations

from gpupif.kernels.jit import kernel, subroutine


@subroutine
def is_below(levels, one, other):
    """Return whether node `one` is below node `other` or equal to it."""
    above = 0
    for axis in range(levels.shape[1]):
        above += levels[one, axis] > levels[other, axis]
    return above == 0


@kernel
def count_below(levels, candidates, sample, out):
    """Set out[i] to how many nodes of a sample are below candidates[i] or equal to it.

    levels: (nodes, axes). candidates, sample: rows of `levels`.
    """
    for place in range(candidates.size):
        found = 0
        for other in range(sample.size):
            found += is_below(levels, sample[other], candidates[place])
        out[place] = found


@kernel
def count_above(levels, candidates, sample, out):
    """Set out[i] to how many nodes of a sample are above candidates[i] or equal to it; see `count_below`."""
    for place in range(candidates.size):
        found = 0
        for other in range(sample.size):
            found += is_below(levels, candidates[place], sample[other])
        out[place] = found


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
def keep_not_below(levels, nodes, node, out):
    """Copy to `out` the nodes that are not below `node`, in their order. Return how many they are."""
    kept = 0
    for place in range(nodes.size):
        out[kept] = nodes[place]
        kept += not is_below(levels, nodes[place], node)
    return kept


@kernel
def keep_not_above(levels, nodes, node, out):
    """Copy to `out` the nodes that are not above `node`, in their order. Return how many they are."""
    kept = 0
    for place in range(nodes.size):
        out[kept] = nodes[place]
        kept += not is_below(levels, node, nodes[place])
    return kept
