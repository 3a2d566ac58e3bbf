"""The nodes of a lattice of levels: lists of nodes that are not ruled out, and the reasons that rule nodes out.

A node has one level for each axis; an axis is a column. Its cost is the sum of the costs of its levels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels import lattice as kernels

# Among at most COUNTED nodes the nodes below each node are counted exactly. Among more, SAMPLE nodes are drawn, and the
# nodes of the sample below CANDIDATES of them are counted.
COUNTED = 1 << 17
SAMPLE, CANDIDATES = 1 << 10, 1 << 7
# If there are at most PAIRS pairs of nodes for each node of the list, comparing pairs is faster than counting all.
PAIRS = 4
# Nodes that are listed or looked at at once. Of a lattice of more nodes no array has a number for each node.
MOST_NODES = 1 << 20
# If a list has DENSE times as many pairs of a node and a point as its lattice has nodes, adding up the points below all
# nodes is faster than comparing pairs.
DENSE = 128
# Losses that differ by at most this share are equal: equal sums of logarithms may differ in their last bits.
TIE = 1e-12

Levels = tuple[int, ...]
Nodes = npt.NDArray[np.uint16]
Floats = npt.NDArray[np.float64]


class Reason(NamedTuple):
    """A reason why nodes fail: a node fails unless the points below it have together a weight of `least`.

    points: uint16 array (points, axes), nodes of the lattice. weights: int64 array (points).
    """

    points: Nodes
    weights: npt.NDArray[np.int64]
    least: int


class Lattice:
    """The lower bounds of nodes. A bound is the sum of the costs of the levels, or the highest of their floors.

    costs: by axis and level; they never fall. floors: by axis and level a loss that no node at the level is below.
    """

    def __init__(self, costs: Sequence[Sequence[float]], floors: Sequence[Sequence[float]] | None = None) -> None:
        self.heights = np.array([len(own) - 1 for own in costs])
        self.count = count_nodes(self.heights.tolist())
        self.costs, self.floors = (np.zeros((len(costs), 1 + max(self.heights, default=0))) for _ in range(2))
        for array, numbers in ((self.costs, costs), (self.floors, floors or ())):
            for axis, own in enumerate(numbers):
                array[axis, : len(own)] = own

    @cached_property
    def strides(self) -> npt.NDArray[np.int64]:
        """The number of places to the node with the next level of each axis, for nodes in the order of their levels."""
        return np.append(np.cumprod(self.heights[:0:-1] + 1)[::-1], 1)

    def bounds(self, levels: Nodes) -> Floats:
        """Return the lower bounds of nodes."""
        total, floor = np.zeros(len(levels)), np.zeros(len(levels))
        for axis in range(levels.shape[1]):
            total += self.costs[axis, levels[:, axis]]
            np.maximum(floor, self.floors[axis, levels[:, axis]], out=floor)
        return np.maximum(total, floor)

    def sums_below(self, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return for each node of the lattice the sum of numbers over all nodes that are nowhere above it.

        numbers: array (nodes), in the order of their levels.
        """
        sums = numbers.copy()
        kernels.sum_below(self.heights + 1, self.strides, sums)
        return sums

    def needed(self, reason: Reason, limit: float) -> Reason:
        """Return a reason that is the same for nodes with bounds up to `limit`, with the lowest points first."""
        order = np.argsort(reason.points.sum(axis=1), kind="stable")
        order = order[self.bounds(reason.points[order]) <= limit]
        return Reason(reason.points[order], reason.weights[order], reason.least)

    def masks(self, points: Nodes, higher: bool) -> npt.NDArray[np.uint64]:
        """Return the bits of points at the levels as high as their own or higher, or else as low or lower."""
        masks = np.zeros((*self.costs.shape, -(-len(points) // 64)), np.uint64)
        kernels.fill_masks(points, higher, masks)
        return masks

    def draw(self, random: np.random.Generator, number: int) -> Nodes:
        """Draw nodes at random."""
        return random.integers(0, self.heights + 1, (number, len(self.heights)), np.uint16)

    def walk(
        self,
        start: npt.NDArray[np.int64],
        limit: float,
        most: int,
        above: Sequence[Levels] = (),
        below: Sequence[Levels] = (),
        reasons: Sequence[Reason] = (),
    ) -> Nodes:
        """Return nodes that are not ruled out, from `start` on in the order of their levels.

        start: becomes the node to go on from. Its first level is above the height if no node is left.
        limit: no node whose bound is above it is returned. most: at most this number of nodes is returned.
        above, below: no node above or below one of them is returned. reasons: no node that fails for one is returned.
        """
        out = np.empty((min(most, self.count), len(self.heights)), np.uint16)
        masks = [self.masks(self.nodes(above), True), self.masks(self.nodes(below), False)]
        masks += [self.masks(reason.points, True) for reason in reasons]
        ends = np.cumsum([each.shape[2] for each in masks])
        weights = np.ones(64 * ends[-1], np.int64)
        for reason, end in zip(reasons, ends[1:], strict=False):
            weights[64 * end : 64 * end + len(reason.weights)] = reason.weights
        least = np.array([1, 1, *(reason.least for reason in reasons)])
        wanted = np.arange(len(least)) > 1
        every = np.concatenate(masks, axis=2)
        found = kernels.walk(
            start, self.heights, self.costs, self.floors, limit, every, weights, ends, least, wanted, MOST_NODES, out
        )
        return out[:found]

    def nodes(self, nodes: Sequence[Levels]) -> Nodes:
        """Return nodes as an array (nodes, axes)."""
        return np.array(nodes, np.uint16).reshape(-1, len(self.heights))


class OpenNodes:
    """A list of nodes of which some are ruled out.

    levels: uint16 array (nodes, axes). Nodes are in the order of their bounds; of equal bounds, the order stays.
    bounds: float64 array (nodes), lower bounds on the losses. Equal bounds (see `TIE`) are one number, the least.
    open: int64 array, ascending. The nodes that are not ruled out.
    """

    def __init__(self, lattice: Lattice, levels: Nodes) -> None:
        bounds = with_ties(lattice.bounds(levels))
        order = np.argsort(bounds, kind="stable")
        self._lattice = lattice
        self.levels, self.bounds, self.open = levels[order], bounds[order], np.arange(len(levels))

    @cached_property
    def _places(self) -> npt.NDArray[np.int64]:
        """The place of each node of the list among all nodes in the order of their levels."""
        return self.levels @ self._lattice.strides

    def pop(self, place: int) -> Levels:
        """Return the levels of the node at a place among the open ones, and rule the node out."""
        node = tuple(map(int, self.levels[self.open[place]]))
        self.open = self.open[1:] if place == 0 else np.delete(self.open, place)
        return node

    def rule_out_failing(self, reason: Reason) -> None:
        """Rule out the nodes that fail for a reason."""
        lattice = self._lattice
        if lattice.count > MOST_NODES or len(reason.points) * len(self.open) < DENSE * lattice.count:
            self.open = self._with_points(reason, True, True)
        else:
            weights = np.bincount(reason.points @ lattice.strides, reason.weights, lattice.count).astype(np.int64)
            self.open = self.open[lattice.sums_below(weights)[self._places[self.open]] >= reason.least]

    def rule_out_below(self, nodes: Sequence[Levels]) -> None:
        """Rule out the nodes that are below any of some nodes: higher on no axis."""
        self.open = self._with_points(self._any_of(nodes), False, False)

    def rule_out_above(self, nodes: Sequence[Levels]) -> None:
        """Rule out the nodes that are above any of some nodes: lower on no axis."""
        self.open = self._with_points(self._any_of(nodes), True, False)

    def rule_out_nodes(self, nodes: Sequence[Levels]) -> None:
        """Rule out some nodes."""
        places = self._lattice.nodes(nodes) @ self._lattice.strides
        self.open = self.open[~np.isin(self._places[self.open], places)]

    def rule_out_worse(self, loss: float, node: Levels) -> None:
        """Rule out the nodes that are not better than a node of some loss. Of equal losses the lowest levels win."""
        bounds = self.bounds[self.open]
        better = bounds * (1 + TIE) < loss
        ties = np.flatnonzero(~better & (bounds <= loss * (1 + TIE)))
        steps = self.levels[self.open[ties]].astype(np.int64) - node
        first = (steps != 0).argmax(axis=1)
        better[ties] = steps[np.arange(len(ties)), first] < 0
        self.open = self.open[better]

    def raise_bounds(self, node: Levels, floor: float) -> None:
        """Raise the bounds of all open nodes that are above a node."""
        above = self._with_points(self._any_of([node]), True, True)
        self.bounds[above] = np.maximum(self.bounds[above], floor)

    def _any_of(self, nodes: Sequence[Levels]) -> Reason:
        return Reason(self._lattice.nodes(nodes), np.ones(len(nodes), np.int64), 1)

    def _with_points(self, reason: Reason, higher: bool, wanted: bool) -> npt.NDArray[np.int64]:
        """Return the open nodes that have points of the least weight below them, or with wanted=False the others.

        higher: False for points above the nodes instead.
        """
        points, weights, least = reason
        out = np.empty(len(self.open) + 1, np.int64)
        masks = self._lattice.masks(points, higher)
        return out[: kernels.keep_nodes(self.levels, self.open, masks, weights, least, wanted, out)].copy()

    def halving(self, by_cost: bool) -> int:
        """Return the place of the open node whose check rules out about half of the open nodes, whatever its result.

        If the node fails, the nodes below it are ruled out. If it holds, the nodes above it are, or with `by_cost` all
        nodes that cost as much. Most nodes that are left fail, so nodes that are ruled out by holding count more; of
        these the nodes above count most, because nodes above a node that holds tend to hold too.
        """
        step, thin, nodes = 1, 1, self.open
        if len(nodes) ** 2 <= PAIRS * len(self.bounds):
            below, above = np.empty(len(nodes), np.int64), np.empty(len(nodes), np.int64)
            kernels.count_pairs(self.levels, nodes, below, above)
        elif self._lattice.count <= COUNTED:
            places = self._places[nodes]
            there = np.zeros(self._lattice.count, np.int32)
            there[places] = 1
            below = self._lattice.sums_below(there)[places]
            above = self._lattice.sums_below(there[::-1])[::-1][places]
        else:
            step = max(1, len(nodes) // SAMPLE)
            nodes = nodes[::step]
            thin = max(1, len(nodes) // CANDIDATES)
            candidates = nodes[::thin]
            below, above = np.empty(len(candidates), np.int64), np.empty(len(candidates), np.int64)
            kernels.count_sample(self.levels, candidates, nodes, below, above)
        share = 0.25 if by_cost else 0.0
        holding = above ** (1 - share) * (len(nodes) - thin * np.arange(len(below))) ** share
        return int(np.argmax(np.minimum(below / 2, holding))) * thin * step


def with_ties(losses: Floats) -> Floats:
    """Return the losses, equal ones (see `TIE`) replaced by the least of them. losses: not negative."""
    order = np.argsort(losses)
    ascending = losses[order]
    first = np.append(ascending[:1] >= 0, ascending[1:] > ascending[:-1] * (1 + TIE))
    tied = np.empty_like(losses)
    tied[order] = ascending[first][np.cumsum(first) - 1]
    return tied


def count_nodes(heights: Sequence[int]) -> int:
    """Return how many nodes a lattice has. heights: the highest level of each axis."""
    return math.prod(height + 1 for height in heights)
