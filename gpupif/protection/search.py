"""The search for the node of a lattice that costs least of those that meet all criteria.

A node that fails a criterion which coarser values never hurt takes all nodes below with it; a node that holds takes all
that cost as much. So of what is open always that node is checked which halves it best (as Kohlmayer et al., Flash
(2012), tag nodes along paths). Where it is known why a node fails, all that fail for the same reason go too: a row
whose class is too small is in a class of known size at every node. Criteria that coarser values may hurt are first
searched in the same way, as if they never were, for a good node soon; what that passed over is then looked at in the
order of cost, so that the first that holds is the best.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt

from .lattice import COUNTED, MOST_NODES, TIE, Levels, Nodes, Window, around, size_of, spread


class NodeChecks(Protocol):
    """What is known of the nodes of a lattice.

    prunes: whether there are criteria that coarser values never hurt; selects: whether there are others.
    """

    prunes: bool
    selects: bool

    def holds(self, node: Levels) -> bool:
        """Whether it meets the criteria that coarser values never hurt."""

    def failing(self, window: Window) -> npt.NDArray[np.bool_] | None:
        """For each node of a window, after one that does not hold, whether it is known not to hold for the same reason;
        None where that is not known of more nodes than those below.
        """

    def is_met(self, node: Levels) -> bool:
        """Whether it meets the others."""


@dataclass(frozen=True)
class Outcome:
    """What a search found. node: None where none was found; loss: of it. bound: no node that meets all criteria costs
    less. complete: whether nothing is left to look at.
    """

    node: Levels | None
    loss: float
    bound: float
    complete: bool


@dataclass
class Search:
    """A search. costs: by axis and level. deadline: of `time.monotonic`, until when nodes are checked. done: hears of
    each check: how many nodes are open, and the best loss.
    """

    costs: Sequence[Sequence[float]]
    checks: NodeChecks
    deadline: float = math.inf
    done: Callable[[int, float], None] = lambda left, loss: None
    checked: int = 0
    _best: tuple[float, Levels] | None = None
    _dived: list[Levels] = field(default_factory=list)
    _held: dict[Levels, bool] = field(default_factory=dict)
    _met: dict[Levels, bool] = field(default_factory=dict)

    def run(self) -> Outcome:
        """Search until nothing is left, the time is over, or the user breaks off (Ctrl-C) and something was found."""
        try:
            return self._run()
        except KeyboardInterrupt:
            if self._best is None:
                raise
            return self._outcome(0.0, False)

    def _run(self) -> Outcome:
        heights = [len(one) - 1 for one in self.costs]
        if self.checks.selects or size_of(heights) > COUNTED:
            self._dive(heights)
        if self.is_over:
            # A window takes longer to lay out than may be left.
            return self._outcome(0.0, False)
        if size_of(heights) <= MOST_NODES:
            window = Window.of(self.costs, [range(height + 1) for height in heights])
            return self._search(window)
        if not self.is_over and not self._holds(tuple(heights)):
            # Nor does any node below the top.
            return self._outcome(math.inf, True)
        lowest = self._lowest_levels(heights)
        bound = self._cost(lowest)
        while True:
            best = self._best
            chosen = spread(self.costs, lowest) if best is None else around(self.costs, lowest, best[1])
            self._search(Window.of(self.costs, chosen))
            if self._best is None or self._best == best or self.is_over:
                bound = max(bound, self._bound_by_parts(heights))
                return self._outcome(bound, self._best is not None and self._best[0] <= bound * (1 + TIE))

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() >= self.deadline

    def _cost(self, node: Sequence[int]) -> float:
        total = 0.0
        for axis, level in enumerate(node):
            total += self.costs[axis][level]
        return total

    def _outcome(self, bound: float, complete: bool) -> Outcome:
        if self._best is None:
            return Outcome(None, math.inf, bound, complete)
        # The loss of the node itself: that of its window may be of another node that costs as much.
        loss = self._cost(self._best[1])
        return Outcome(self._best[1], loss, loss if complete else min(bound, loss), complete)

    def _lowest_levels(self, heights: Sequence[int]) -> list[int]:
        """By axis the lowest level that any node has which meets the criteria that prune."""
        if not self.checks.prunes:
            return [0] * len(heights)

        def holds(axis: int, level: int) -> bool:
            # When the time is over nothing more is proved.
            node = tuple(level if one == axis else top for one, top in enumerate(heights))
            return self.is_over or self._holds(node)

        return [_lowest(0, height, partial(holds, axis)) for axis, height in enumerate(heights)]

    def _bound_by_parts(self, heights: Sequence[int]) -> float:
        """What any node costs at least that meets the criteria that prune.

        Where all other axes are at their top it still meets them, so that the least for some axes, and that for the
        rest, add up.
        """
        if not self.checks.prunes or self._best is None:
            return 0.0
        total = 0.0
        for axes in _parts(self.costs):
            costs = [one if axis in axes else [0.0] * len(one) for axis, one in enumerate(self.costs)]
            chosen = [range(height + 1) if axis in axes else [height] for axis, height in enumerate(heights)]
            if not self.is_over:
                part = Search(costs, _Pruning(self._holds, self.checks.failing), self.deadline)
                total += part._search(Window.of(costs, chosen)).bound
        return total

    def _holds(self, node: Levels) -> bool:
        if not self.checks.prunes:
            return True
        if node not in self._held:
            self._count(node)
            self._held[node] = self.checks.holds(node)
        return self._held[node]

    def _is_met(self, node: Levels) -> bool:
        if not self.checks.selects:
            return True
        if node not in self._met:
            self._count(node)
            self._met[node] = self.checks.is_met(node)
        return self._met[node]

    def _count(self, node: Levels) -> None:
        self.checked += node not in self._held and node not in self._met

    def _search(self, window: Window) -> Outcome:
        """Search a window."""
        nodes = window.nodes
        if self._best is not None:
            nodes = nodes[: int((window.losses <= self._best[0] * (1 + TIE)).sum())]
        still = _Open(window, nodes, nodes)
        for node in self._dived:
            place = None if self.is_over else window.find(node)
            if place is not None:
                self._look(still, place)
        while len(still.likely) and not self.is_over:
            self._look(still, window.halving(still.likely, by_cost=True))
        left = self._in_order(window, still.left) if self.checks.selects else still.likely
        bound = float(window.losses[left[0]]) if len(left) else math.inf if self._best is None else self._best[0]
        return self._outcome(bound, not len(left))

    def _look(self, still: _Open, place: int) -> bool:
        """Check a node, and say what that leaves open; returns whether it meets all criteria."""
        window, node = still.window, still.window.node(place)
        known = node in self._held
        held = self._holds(node)
        met = held and self._is_met(node)
        if met:
            self._found(float(window.losses[place]), node)
            still.likely, still.left = still.likely[still.likely < place], still.left[still.left < place]
        else:
            still.likely = window.not_below(still.likely, place)
            if self.checks.selects:
                still.left = still.left[still.left != place] if held else window.not_below(still.left, place)
            failing = None if held or known else self.checks.failing(window)
            if failing is not None:
                still.likely, still.left = still.likely[~failing[still.likely]], still.left[~failing[still.left]]
        self._tell(len(still.likely))
        return met

    def _dive(self, heights: Sequence[int]) -> None:
        """A good node soon: all columns about as coarse as each other, then each as fine as it can be, alone."""

        def meets(levels: Sequence[int]) -> bool:
            node = tuple(levels)
            if self.is_over:
                return False
            self._dived.append(node)
            met = self._holds(node) and self._is_met(node)
            if met:
                self._found(self._cost(node), node)
            self._tell(0)
            return met

        def meets_at(node: Sequence[int], axis: int, level: int) -> bool:
            return meets([*node[:axis], level, *node[axis + 1 :]])

        def at(step: int) -> list[int]:
            return [round(step * height / steps) for height in heights]

        steps = max(heights)
        if not meets(heights) or not steps:
            return
        node = at(_lowest(0, steps, lambda step: meets(at(step))))
        for axis in sorted(range(len(node)), key=lambda axis: (-self.costs[axis][-1], axis)):
            node[axis] = _lowest(0, node[axis], partial(meets_at, node, axis))

    def _found(self, loss: float, node: Levels) -> None:
        """Remember a node that meets all criteria if it is the best so far: of nodes that cost as much the lowest."""
        if self._best is not None:
            best, lowest = self._best
            if loss > best * (1 + TIE) or (loss * (1 + TIE) >= best and node > lowest):
                return
        self._best = loss, node

    def _tell(self, left: int) -> None:
        self.done(left, math.inf if self._best is None else self._best[0])

    def _in_order(self, window: Window, left: Nodes) -> Nodes:
        """Look at what is left in the order of cost; returns what is left then."""
        unknown = left if self.checks.prunes else left[:0]
        while len(unknown) and not self.is_over:
            place = window.halving(unknown, by_cost=False)
            if self._holds(window.node(place)):
                unknown = window.not_above(unknown, place)
            else:
                unknown, left = window.not_below(unknown, place), window.not_below(left, place)
            self._tell(len(left))
        for number, place in enumerate(left):
            if self.is_over:
                return left[number:]
            node = window.node(int(place))
            if self._holds(node) and self._is_met(node):
                self._found(float(window.losses[place]), node)
                return left[:0]
            self._tell(len(left) - number - 1)
        return left[:0]


@dataclass(frozen=True)
class _Pruning:
    """Of the checks of a search those that prune."""

    holds: Callable[[Levels], bool]
    failing: Callable[[Window], npt.NDArray[np.bool_] | None]
    prunes = True
    selects = False

    def is_met(self, node: Levels) -> bool:
        return True


@dataclass
class _Open:
    """What is left to look at of a window: what is likely to be better, and what is if only what is proved counts."""

    window: Window
    likely: Nodes
    left: Nodes


def _lowest(low: int, high: int, meets: Callable[[int], bool]) -> int:
    """The lowest of some numbers that meets, as if all above it did; the highest is known to."""
    while low < high:
        middle = (low + high) // 2
        if meets(middle):
            high = middle
        else:
            low = middle + 1
    return high


def _parts(costs: Sequence[Sequence[float]]) -> list[list[int]]:
    """All axes in parts of no more than `COUNTED` nodes, or of one axis; those that cost the most together."""
    parts: list[list[int]] = [[]]
    for axis in sorted(range(len(costs)), key=lambda axis: (-costs[axis][-1], axis)):
        if parts[-1] and size_of([len(costs[one]) - 1 for one in [*parts[-1], axis]]) > COUNTED:
            parts.append([])
        parts[-1].append(axis)
    return parts
