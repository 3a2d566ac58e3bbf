"""The nodes of a lattice of levels, or of a window of it, in the order of what they cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels import lattice as kernels

# Nodes of which is counted how many are below each of the others; of more a sample is.
COUNTED = 1 << 17
SAMPLE, CANDIDATES = 1 << 10, 1 << 7
# So few pairs of nodes for each node of the lattice are compared faster than all nodes are counted.
PAIRS = 4
# Nodes that are held at once; a larger lattice is searched in windows.
MOST_NODES = 1 << 20
# Losses are equal up to this share of them: sums of logarithms that are equal differ in their last bits.
TIE = 1e-12

Levels = tuple[int, ...]
Nodes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Window:
    """Nodes with some levels of each axis, all combinations of them.

    levels (nodes, axes): of the nodes, in the order of what they cost, of equal cost the lowest levels first. losses:
    of the nodes; those that are equal (see `TIE`) are one number, the least of them. place: where each node is among
    the combinations in the order of their levels. shape: how many levels of each axis; chosen: which.
    """

    levels: npt.NDArray[np.uint8]
    losses: npt.NDArray[np.float64]
    place: Nodes
    shape: npt.NDArray[np.int64]
    chosen: Sequence[Sequence[int]]

    @classmethod
    def of(cls, costs: Sequence[Sequence[float]], chosen: Sequence[Sequence[int]]) -> Window:
        """Lay out the nodes of chosen levels, ascending, of axes that cost so much by level."""
        shape = [len(levels) for levels in chosen]
        total = np.zeros(shape)
        for axis, some in enumerate(chosen):
            view = [1] * len(shape)
            view[axis] = -1
            total += np.array([costs[axis][level] for level in some]).reshape(view)
        losses = with_ties(total.ravel())
        order = np.argsort(losses, kind="stable")
        grid = np.unravel_index(order, shape)
        levels = np.stack([np.array(one, np.uint8)[own] for one, own in zip(chosen, grid, strict=True)], axis=1)
        return cls(levels, losses[order], order, np.array(shape), chosen)

    @cached_property
    def strides(self) -> Nodes:
        """By axis how far a node and that with the next level are apart, in the order of their levels."""
        return np.append(np.cumprod(self.shape[:0:-1])[::-1], 1)

    @property
    def nodes(self) -> Nodes:
        """All nodes."""
        return np.arange(len(self.losses))

    def node(self, place: int) -> Levels:
        """The levels of a node."""
        return tuple(map(int, self.levels[place]))

    def find(self, node: Levels) -> int | None:
        """Where a node is; None where it is not in the window."""
        if any(level not in some for level, some in zip(node, self.chosen, strict=True)):
            return None
        places = [np.array(some.index(level)) for level, some in zip(node, self.chosen, strict=True)]
        found = np.ravel_multi_index(places, self.shape.tolist())
        return int(np.flatnonzero(self.place == found)[0])

    def not_below(self, nodes: Nodes, node: int) -> Nodes:
        """Those of some nodes that are above another somewhere."""
        out = np.empty(len(nodes) + 1, np.int64)
        return out[: kernels.keep_not_below(self.levels, nodes, node, out)].copy()

    def not_above(self, nodes: Nodes, node: int) -> Nodes:
        """Those of some nodes that are below another somewhere."""
        out = np.empty(len(nodes) + 1, np.int64)
        return out[: kernels.keep_not_above(self.levels, nodes, node, out)].copy()

    def halving(self, nodes: Nodes, by_cost: bool) -> int:
        """The node that best halves some nodes, whatever it turns out to be: failing, it takes those below with it.

        by_cost: holding, it takes all that cost as much, else those above it. Most nodes that are left to look at fail,
        so that what holding takes counts more; and of that those above, where other nodes tend to hold too.
        """
        if len(nodes) ** 2 <= PAIRS * len(self.losses):
            sample, places = nodes, np.arange(len(nodes))
            below, above = np.empty(len(nodes), np.int64), np.empty(len(nodes), np.int64)
            kernels.count_pairs(self.levels, nodes, below, above)
        elif len(nodes) <= COUNTED and len(self.losses) <= COUNTED:
            there = np.zeros(len(self.losses), np.int32)
            there[self.place[nodes]] = 1
            above = self.sums_above(there)[self.place[nodes]]
            below = self.sums_below(there)[self.place[nodes]]
            sample, places = nodes, np.arange(len(nodes))
        else:
            sample = nodes[:: max(1, len(nodes) // SAMPLE)]
            places = np.arange(0, len(sample), max(1, len(sample) // CANDIDATES))
            below, above = np.empty(len(places), np.int64), np.empty(len(places), np.int64)
            kernels.count_below(self.levels, sample[places], sample, below)
            kernels.count_above(self.levels, sample[places], sample, above)
        share = 0.25 if by_cost else 0.0
        holding = above ** (1 - share) * (len(sample) - places) ** share
        return int(sample[places[np.argmax(np.minimum(below / 2, holding))]])

    def sums_below(self, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """For each node the sum of some numbers over those nowhere above it; nodes are in the order of their levels."""
        sums = numbers.copy()
        kernels.sum_below(self.shape, self.strides, sums)
        return sums

    def sums_above(self, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The same over those nowhere below it."""
        return self.sums_below(numbers[::-1])[::-1]


def with_ties(losses: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return losses with one number, the least, for those that are equal (see `TIE`). losses: not negative."""
    order = np.argsort(losses, kind="stable")
    ascending = losses[order]
    first = np.append(ascending[:1] >= 0, ascending[1:] > ascending[:-1] * (1 + TIE))
    tied = np.empty_like(losses)
    tied[order] = ascending[first][np.cumsum(first) - 1]
    return tied


def size_of(heights: Sequence[int]) -> int:
    """How many nodes a lattice has."""
    return math.prod(height + 1 for height in heights)


def spread(costs: Sequence[Sequence[float]], lowest: Sequence[int]) -> list[list[int]]:
    """Levels of each axis, no more than `MOST_NODES` nodes, evenly spread from the lowest that is needed.

    Axes that cost the most get them first.
    """
    heights = [len(one) - 1 for one in costs]
    chosen = [[height] for height in heights]
    order = sorted(range(len(costs)), key=lambda axis: (-costs[axis][-1], axis))
    grown = True
    while grown:
        grown = False
        for axis in order:
            several = len(chosen[axis]) + 1
            span = heights[axis] - lowest[axis]
            if several <= span + 1 and _nodes(chosen) // len(chosen[axis]) * several <= MOST_NODES:
                levels = {lowest[axis] + round(place * span / (several - 1)) for place in range(several)}
                chosen[axis] = sorted(levels)
                grown = True
    return chosen


def around(costs: Sequence[Sequence[float]], lowest: Sequence[int], node: Levels) -> list[list[int]]:
    """Levels near those of a node, as many as make no more than `MOST_NODES` nodes; axes that cost the most first."""
    chosen = [[level] for level in node]
    order = sorted(range(len(costs)), key=lambda axis: (-costs[axis][node[axis]], axis))
    for step in range(1, max(len(one) for one in costs)):
        for axis in order:
            for level in (node[axis] - step, node[axis] + step):
                fits = _nodes(chosen) // len(chosen[axis]) * (len(chosen[axis]) + 1) <= MOST_NODES
                if lowest[axis] <= level < len(costs[axis]) and fits:
                    chosen[axis] = sorted([*chosen[axis], level])
    return chosen


def _nodes(chosen: Sequence[Sequence[int]]) -> int:
    return math.prod(len(levels) for levels in chosen)
