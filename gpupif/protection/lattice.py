"""The nodes of a lattice of levels, or of a window of it, in the order of their cost.

A node has one level for each axis; an axis is a column. Its cost is the sum of the costs of its levels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels import lattice as kernels

# Among at most COUNTED nodes the nodes below each node are counted exactly. Among more, SAMPLE nodes are drawn, and the
# nodes of the sample below CANDIDATES of them are counted.
COUNTED = 1 << 17
SAMPLE, CANDIDATES = 1 << 10, 1 << 7
# If there are at most PAIRS pairs of nodes for each node of the lattice, comparing pairs is faster than counting all.
PAIRS = 4
# Nodes that are held at once; a larger lattice is searched in windows.
MOST_NODES = 1 << 20
# Losses that differ by at most this share are equal: equal sums of logarithms may differ in their last bits.
TIE = 1e-12

Levels = tuple[int, ...]
Nodes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Window:
    """All combinations of some chosen levels of each axis.

    levels: uint8 array (nodes, axes). Nodes are in the order of their cost; of equal cost, the lowest levels are first.
    losses: float64 array (nodes). Equal losses (see `TIE`) are one number, the least of them. They are lower bounds on
        the losses if the costs of nodes are not sums over the levels.
    place: int64 array (nodes). The place of each node among the combinations in the order of their levels.
    shape: int64 array (axes). How many levels are chosen.
    chosen: by axis, the chosen levels, ascending.
    """

    levels: npt.NDArray[np.uint8]
    losses: npt.NDArray[np.float64]
    place: Nodes
    shape: npt.NDArray[np.int64]
    chosen: Sequence[Sequence[int]]

    @classmethod
    def from_levels(
        cls,
        costs: Sequence[Sequence[float]],
        chosen: Sequence[Sequence[int]],
        floors: Sequence[Sequence[float]] | None = None,
    ) -> Window:
        """Lay out the nodes of chosen levels. costs: by axis and level. chosen: by axis, ascending.

        floors: by axis and level a loss that no node at the level is below.
        """
        shape = [len(levels) for levels in chosen]
        total = np.zeros(shape)
        for numbers, combine in ((costs, np.add), (floors or [[0.0] * len(own) for own in costs], np.maximum)):
            for axis, some in enumerate(chosen):
                view = [1] * len(shape)
                view[axis] = -1
                combine(total, np.array([numbers[axis][level] for level in some]).reshape(view), out=total)
        losses = with_ties(total.ravel())
        order = np.argsort(losses, kind="stable")
        grid = np.unravel_index(order, shape)
        levels = np.stack([np.array(one, np.uint8)[own] for one, own in zip(chosen, grid, strict=True)], axis=1)
        return cls(levels, losses[order], order, np.array(shape), chosen)

    @cached_property
    def strides(self) -> Nodes:
        """The number of places to the node with the next level of each axis, for nodes in the order of their levels."""
        return np.append(np.cumprod(self.shape[:0:-1])[::-1], 1)

    def node(self, place: int) -> Levels:
        """Return the levels of a node."""
        return tuple(map(int, self.levels[place]))

    def find(self, node: Levels) -> int | None:
        """Return the place of a node in the order of cost, None if the node is not in the window."""
        if any(level not in some for level, some in zip(node, self.chosen, strict=True)):
            return None
        places = [np.array(some.index(level)) for level, some in zip(node, self.chosen, strict=True)]
        own_place = np.ravel_multi_index(places, self.shape.tolist())
        return int(np.flatnonzero(self.place == own_place)[0])

    def not_below(self, nodes: Nodes, node: int) -> Nodes:
        """Return the nodes that are higher than `node` on at least one axis."""
        out = np.empty(len(nodes) + 1, np.int64)
        return out[: kernels.keep_others(self.levels, nodes, node, False, out)].copy()

    def not_above(self, nodes: Nodes, node: int) -> Nodes:
        """Return the nodes that are lower than `node` on at least one axis."""
        out = np.empty(len(nodes) + 1, np.int64)
        return out[: kernels.keep_others(self.levels, nodes, node, True, out)].copy()

    def halving(self, nodes: Nodes, by_cost: bool) -> int:
        """Return the node whose check rules out about half of the nodes, whatever its result.

        If the node fails, the nodes below it are ruled out. If it holds, the nodes above it are, or with `by_cost` all
        nodes that cost as much. Most nodes that are left fail, so nodes that are ruled out by holding count more; of
        these the nodes above count most, because nodes above a node that holds tend to hold too.
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
            kernels.count_sample(self.levels, sample[places], sample, below, above)
        share = 0.25 if by_cost else 0.0
        holding = above ** (1 - share) * (len(sample) - places) ** share
        return int(sample[places[np.argmax(np.minimum(below / 2, holding))]])

    def sums_below(self, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return for each node the sum of numbers over all nodes that are nowhere above it.

        numbers: array (nodes), in the order of their levels.
        """
        sums = numbers.copy()
        kernels.sum_below(self.shape, self.strides, sums)
        return sums

    def sums_above(self, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return for each node the sum of numbers over all nodes that are nowhere below it."""
        return self.sums_below(numbers[::-1])[::-1]


def with_ties(losses: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the losses, equal ones (see `TIE`) replaced by the least of them. losses: not negative."""
    order = np.argsort(losses, kind="stable")
    ascending = losses[order]
    first = np.append(ascending[:1] >= 0, ascending[1:] > ascending[:-1] * (1 + TIE))
    tied = np.empty_like(losses)
    tied[order] = ascending[first][np.cumsum(first) - 1]
    return tied


def count_nodes(heights: Sequence[int]) -> int:
    """Return how many nodes a lattice has. heights: the highest level of each axis."""
    return math.prod(height + 1 for height in heights)


def spread_levels(costs: Sequence[Sequence[float]], lowest: Sequence[int]) -> list[list[int]]:
    """Return levels of each axis, evenly spread from its lowest level up, of at most `MOST_NODES` nodes together.

    Axes that cost the most get levels first.
    """
    heights = [len(one) - 1 for one in costs]
    chosen = [[height] for height in heights]
    order = sorted(range(len(costs)), key=lambda axis: (-costs[axis][-1], axis))
    grown = True
    while grown:
        grown = False
        for axis in order:
            more = len(chosen[axis]) + 1
            span = heights[axis] - lowest[axis]
            if more <= span + 1 and _nodes(chosen) // len(chosen[axis]) * more <= MOST_NODES:
                levels = {lowest[axis] + round(place * span / (more - 1)) for place in range(more)}
                chosen[axis] = sorted(levels)
                grown = True
    return chosen


def levels_around(costs: Sequence[Sequence[float]], lowest: Sequence[int], node: Levels) -> list[list[int]]:
    """Return levels near the levels of a node, of at most `MOST_NODES` nodes. The costliest axes get levels first."""
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
    """Return how many nodes some chosen levels make."""
    return math.prod(len(levels) for levels in chosen)
