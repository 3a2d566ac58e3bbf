"""The search for the node of a lattice that costs least of all nodes that meet the criteria.

Some criteria *prune*: coarser values never break them. If a node fails such a criterion, all nodes below it fail too.
If a node meets all criteria, all nodes that cost as much or more are ruled out. So the search always checks the node
that best halves what is left (Kohlmayer et al., Flash (2012), tag nodes along paths in a like way). If it is known why
a node fails, all nodes that fail for the same reason are ruled out too: the class of one row has a known size at every
node.

Other criteria *select*: coarser values may break them. The search first treats them as if they pruned, to find a good
node soon. Then it looks at the nodes that it passed over, in the order of their cost, so that the first one that meets
all criteria is the best.

If the costs of nodes are not sums over levels, the levels give lower bounds. Each node that holds is then priced. Its
price may raise the bounds of all nodes above it. Nodes are ruled out whose bound is above the best price.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .lattice import COUNTED, MOST_NODES, TIE, Levels, Nodes, Window, count_nodes, levels_around, spread_levels


class SearchResult(NamedTuple):
    """The result of a search.

    node: the best node, None if none was found. loss: its cost. bound: no node that meets all criteria costs less.
    complete: whether every node has been checked or ruled out.
    """

    node: Levels | None
    loss: float
    bound: float
    complete: bool


class Price(NamedTuple):
    """The price of a node. cost: its cost. floor: no node above it costs less."""

    cost: float
    floor: float


class LatticeSearch:
    """A search.

    costs: by axis and level. Their sum is the cost of a node, or with `price` a lower bound on it.
    holds: returns whether a node meets the criteria that prune; None without such criteria.
    failing: after `holds` returned False, returns by node of a window whether the node fails for the same reason; None
        if the reason says nothing of nodes that are not below the last one.
    is_met: returns whether a node meets the criteria that select; None without such criteria.
    deadline: the time, as of `time.monotonic`, after which no node is checked.
    on_check: is called after each check with the number of nodes that are left, and the lowest cost so far.
    price: returns the price of a node; None if costs are sums. floors: by axis and level a lower bound by itself.
    is_interrupted: returns whether the user has asked to end the search. After that no node is checked either.
    """

    def __init__(
        self,
        costs: Sequence[Sequence[float]],
        holds: Callable[[Levels], bool] | None,
        failing: Callable[[Window], npt.NDArray[np.bool_] | None],
        is_met: Callable[[Levels], bool] | None,
        deadline: float = math.inf,
        on_check: Callable[[int, float], None] = lambda left, loss: None,
        price: Callable[[Levels], Price] | None = None,
        floors: Sequence[Sequence[float]] | None = None,
        is_interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        self.costs, self.deadline, self.is_interrupted = costs, deadline, is_interrupted
        self._check_holds, self._failing, self._check_is_met, self._on_check = holds, failing, is_met, on_check
        self._find_price, self._floors = price, floors
        self.prices: dict[Levels, Price] = {}
        self.checked = 0
        self._heights = [len(cost) - 1 for cost in costs]
        self._best: tuple[float, Levels] | None = None
        self._dived: list[Levels] = []
        self._held: dict[Levels, bool] = {}
        self._met: dict[Levels, bool] = {}

    def run(self) -> SearchResult:
        """Search until no node is left, the time is over, or the user asks to end the search."""
        heights = self._heights
        if self._check_is_met is not None or count_nodes(heights) > COUNTED:
            self._dive()
        if self.is_over:
            # Laying out a window may take longer than the time that is left.
            return self._result(0.0, False)
        if count_nodes(heights) <= MOST_NODES:
            return self._search(self._window([range(height + 1) for height in heights]))
        if not self._holds(tuple(heights)):
            # No node below the top holds either.
            return self._result(math.inf, True)
        lowest = self._lowest_levels()
        bound = max(
            self._cost(lowest), *(own[level] for own, level in zip(self._floors or (), lowest, strict=False)), 0.0
        )
        while True:
            best = self._best
            chosen = spread_levels(self.costs, lowest) if best is None else levels_around(self.costs, lowest, best[1])
            self._search(self._window(chosen))
            if self._best is None or self._best == best or self.is_over:
                bound = max(bound, self._bound_by_parts())
                return self._result(bound, self._best is not None and self._best[0] <= bound * (1 + TIE))

    @property
    def is_over(self) -> bool:
        """Return whether the time is over, or the user has asked to end the search."""
        return self.is_interrupted() or time.monotonic() >= self.deadline

    def _cost(self, node: Sequence[int]) -> float:
        total = 0.0
        for axis, level in enumerate(node):
            total += self.costs[axis][level]
        return total

    def _window(self, chosen: Sequence[Sequence[int]]) -> Window:
        return Window.from_levels(self.costs, chosen, self._floors)

    def price(self, node: Levels) -> Price:
        """Return the price of a node."""
        if self._find_price is None:
            cost = self._cost(node)
            return Price(cost, cost)
        if node not in self.prices:
            self.prices[node] = self._find_price(node)
        return self.prices[node]

    def _result(self, bound: float, complete: bool) -> SearchResult:
        if self._best is None:
            return SearchResult(None, math.inf, bound, complete)
        # A window gives equal losses (see `TIE`) one number, which may differ from this node's loss by rounding.
        loss = self.price(self._best[1]).cost
        return SearchResult(self._best[1], loss, loss if complete else min(bound, loss), complete)

    def _lowest_levels(self) -> list[int]:
        """Return by axis the lowest level of any node that holds."""
        if self._check_holds is None:
            return [0] * len(self._heights)

        def holds(axis: int, level: int) -> bool:
            # When the time is over, no level is proved to be too low.
            node = tuple(level if other == axis else top for other, top in enumerate(self._heights))
            return self.is_over or self._holds(node)

        return [_lowest_that_meets(0, height, partial(holds, axis)) for axis, height in enumerate(self._heights)]

    def _bound_by_parts(self) -> float:
        """Return a cost that no node which holds is below.

        A node that holds still holds with all other axes at their top. So the least costs of parts of the axes add up.
        """
        if self._check_holds is None or self._best is None:
            return 0.0
        total = 0.0
        for axes in _parts_of_axes(self.costs):
            costs = [cost if axis in axes else [0.0] * len(cost) for axis, cost in enumerate(self.costs)]
            chosen = [range(height + 1) if axis in axes else [height] for axis, height in enumerate(self._heights)]
            if not self.is_over:
                part = LatticeSearch(
                    costs, self._holds, self._failing, None, self.deadline, is_interrupted=self.is_interrupted
                )
                total += part._search(Window.from_levels(costs, chosen)).bound
        return total

    def _holds(self, node: Levels) -> bool:
        if self._check_holds is None:
            return True
        if node not in self._held:
            self._count(node)
            self._held[node] = self._check_holds(node)
        return self._held[node]

    def _is_met(self, node: Levels) -> bool:
        if self._check_is_met is None:
            return True
        if node not in self._met:
            self._count(node)
            self._met[node] = self._check_is_met(node)
        return self._met[node]

    def _count(self, node: Levels) -> None:
        self.checked += node not in self._held and node not in self._met

    def _search(self, window: Window) -> SearchResult:
        """Search the nodes of a window."""
        likely = np.arange(len(window.losses))
        if self._best is not None:
            likely = likely[: int((window.losses <= self._best[0] * (1 + TIE)).sum())]
        open_nodes = _OpenNodes(window, likely, likely, window.losses)
        for node in self._dived:
            place = None if self.is_over else window.find(node)
            if place is not None:
                self._check(open_nodes, place)
        while len(open_nodes.likely) and not self.is_over:
            self._check(open_nodes, window.halving(open_nodes.likely, by_cost=True))
        left = open_nodes.likely if self._check_is_met is None else self._check_in_order(open_nodes)
        bound = math.inf if self._best is None else self._best[0]
        return self._result(min(bound, float(open_nodes.bounds[left].min())) if len(left) else bound, not len(left))

    def _check(self, open_nodes: _OpenNodes, place: int) -> None:
        """Check the node at a place of the window, and rule out what follows from the result."""
        window = open_nodes.window
        node = window.node(place)
        known = node in self._held
        held = self._holds(node)
        likely, left = open_nodes.likely, open_nodes.left
        if held and self._find_price is not None:
            self._check_price(open_nodes, place, node)
        elif held and self._is_met(node):
            self._keep_if_best(float(window.losses[place]), node)
            open_nodes.likely, open_nodes.left = likely[likely < place], left[left < place]
        else:
            likely = window.not_below(likely, place)
            if self._check_is_met is not None:
                left = left[left != place] if held else window.not_below(left, place)
            failing = None if held or known else self._failing(window)
            if failing is not None:
                likely, left = likely[~failing[likely]], left[~failing[left]]
            open_nodes.likely, open_nodes.left = likely, left
        self._tell(len(open_nodes.likely))

    def _check_price(self, open_nodes: _OpenNodes, place: int, node: Levels) -> None:
        """Price a node that holds, and rule out the nodes whose bounds are then above the best price."""
        window, likely, left = open_nodes.window, open_nodes.likely, open_nodes.left
        cost, floor = self.price(node)
        may_be_best = self._best is None or cost <= self._best[0] * (1 + TIE)
        met = may_be_best and self._is_met(node)
        if met:
            self._keep_if_best(cost, node)
        likely, left = likely[likely != place], left[left != place]
        if may_be_best and not met:
            likely = window.not_below(likely, place)
        if floor > open_nodes.bounds[place]:
            open_nodes.raise_bounds(place, floor)
        if self._best is not None:
            best, lowest = self._best
            likely, left = (nodes[open_nodes.bounds[nodes] <= best * (1 + TIE)] for nodes in (likely, left))
            if floor * (1 + TIE) >= best and node >= lowest:
                # Nodes above cost as much or more, and of equal costs the lowest levels win.
                likely, left = window.not_above(likely, place), window.not_above(left, place)
        open_nodes.likely, open_nodes.left = likely, left

    def _dive(self) -> None:
        """Find a good node soon: make all columns about equally coarse, then each as fine as it can be alone."""
        heights = self._heights

        def meets(levels: Sequence[int]) -> bool:
            node = tuple(levels)
            if self.is_over:
                return False
            self._dived.append(node)
            met = self._holds(node) and self._is_met(node)
            if met:
                self._keep_if_best(self.price(node).cost, node)
            self._tell(0)
            return met

        def meets_at(node: Sequence[int], axis: int, level: int) -> bool:
            return meets([*node[:axis], level, *node[axis + 1 :]])

        def levels_at(step: int) -> list[int]:
            return [round(step * height / steps) for height in heights]

        steps = max(heights)
        if not meets(heights) or not steps:
            return
        node = levels_at(_lowest_that_meets(0, steps, lambda step: meets(levels_at(step))))
        for axis in sorted(range(len(node)), key=lambda axis: (-self.costs[axis][-1], axis)):
            node[axis] = _lowest_that_meets(0, node[axis], partial(meets_at, node, axis))

    def _keep_if_best(self, loss: float, node: Levels) -> None:
        """Remember a node that meets all criteria if it is the best so far. Of equal costs the lowest levels win."""
        if self._best is not None:
            best, lowest = self._best
            if loss > best * (1 + TIE) or (loss * (1 + TIE) >= best and node > lowest):
                return
        self._best = loss, node

    def _tell(self, left: int) -> None:
        self._on_check(left, math.inf if self._best is None else self._best[0])

    def _check_in_order(self, open_nodes: _OpenNodes) -> Nodes:
        """Check nodes in the order of their cost until one meets all criteria. Return the nodes that are left then."""
        window, left = open_nodes.window, open_nodes.left
        unknown = left if self._check_holds is not None else left[:0]
        while len(unknown) and not self.is_over:
            place = window.halving(unknown, by_cost=False)
            if self._holds(window.node(place)):
                unknown = window.not_above(unknown, place)
            else:
                unknown, left = window.not_below(unknown, place), window.not_below(left, place)
            self._tell(len(left))
        if self._find_price is not None:
            open_nodes.likely, open_nodes.left = left[:0], left
            while len(open_nodes.left) and not self.is_over:
                place = int(open_nodes.left[open_nodes.bounds[open_nodes.left].argmin()])
                self._check(open_nodes, place)
            return open_nodes.left
        for number, place in enumerate(left):
            if self.is_over:
                return left[number:]
            node = window.node(int(place))
            if self._holds(node) and self._is_met(node):
                self._keep_if_best(float(window.losses[place]), node)
                return left[:0]
            self._tell(len(left) - number - 1)
        return left[:0]


@dataclass
class _OpenNodes:
    """The nodes of a window that are not ruled out.

    likely: the nodes that may be better if selecting criteria are assumed to prune. left: the nodes that may be better
    by proof alone. bounds: float64 array (nodes of the window). A lower bound on the cost of each node.
    """

    window: Window
    likely: Nodes
    left: Nodes
    bounds: npt.NDArray[np.float64]

    def raise_bounds(self, place: int, floor: float) -> None:
        """Raise the bounds of all nodes that are not ruled out and that are above the node at a place."""
        if self.bounds is self.window.losses:
            self.bounds = self.window.losses.copy()
        raised = np.zeros(len(self.bounds), bool)
        for nodes in (self.likely, self.left):
            raised[nodes] = True
            raised[self.window.not_above(nodes, place)] = False
        np.maximum(self.bounds, floor, out=self.bounds, where=raised)


def _lowest_that_meets(low: int, high: int, meets: Callable[[int], bool]) -> int:
    """Return the lowest number from `low` to `high` that meets, by bisection. `high` is known to meet."""
    while low < high:
        middle = (low + high) // 2
        if meets(middle):
            high = middle
        else:
            low = middle + 1
    return high


def _parts_of_axes(costs: Sequence[Sequence[float]]) -> list[list[int]]:
    """Return all axes in parts of at most `COUNTED` nodes, or of one axis. Axes that cost the most are together."""
    parts: list[list[int]] = [[]]
    for axis in sorted(range(len(costs)), key=lambda axis: (-costs[axis][-1], axis)):
        if parts[-1] and count_nodes([len(costs[other]) - 1 for other in [*parts[-1], axis]]) > COUNTED:
            parts.append([])
        parts[-1].append(axis)
    return parts
