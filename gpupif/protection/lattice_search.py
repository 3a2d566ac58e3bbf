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
from functools import partial
from typing import NamedTuple

import numpy as np

from .lattice import COUNTED, MOST_NODES, TIE, Lattice, Levels, OpenNodes, Reason, count_nodes

# Nodes of a large lattice that are listed at once. Drawn at random, ENOUGH of them have to be open to draw again.
LISTED, ENOUGH = 1 << 17, 1 << 10


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
    failing: after `holds` returned False, returns the reason; None if the reason says nothing of nodes that are not
        below the last one.
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
        failing: Callable[[], Reason | None],
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
        self._lattice = Lattice(costs, floors)
        self.prices: dict[Levels, Price] = {}
        self.checked = 0
        # Whether the nodes that are left are checked one by one, in the order of their bounds.
        self.in_order = False
        self._heights = [len(cost) - 1 for cost in costs]
        self._best: tuple[float, Levels] | None = None
        self._nodes = OpenNodes(self._lattice, np.zeros((0, len(costs)), np.uint16))
        # The reasons why nodes fail; nodes that fail, with all nodes below them; nodes that fail, with all nodes below
        # them, if selecting criteria pruned; nodes that hold, with all nodes above them.
        self._reasons: list[Reason] = []
        self._failed: list[Levels] = []
        self._unproved: list[Levels] = []
        self._holding: list[Levels] = []
        # By node that was priced, a cost that no node above it is below.
        self._floors_above: dict[Levels, float] = {}
        self._held: dict[Levels, bool] = {}
        self._met: dict[Levels, bool] = {}

    def run(self) -> SearchResult:
        """Search until no node is left, the time is over, or the user asks to end the search."""
        selects, unproved = self._check_is_met is not None, self._unproved
        if selects or self._lattice.count > COUNTED:
            self._dive()
        complete = self._go_through(self._check_halving, unproved)
        if complete and selects:
            complete = self._check_holds is None or self._go_through(self._find_holding, above=self._holding)
            self.in_order = complete
            complete = complete and self._go_through(self._check_cheapest)
        return self._result(0.0 if complete else self._least_bound(), complete)

    @property
    def is_over(self) -> bool:
        """Return whether the time is over, or the user has asked to end the search."""
        return self.is_interrupted() or time.monotonic() >= self.deadline

    @property
    def _limit(self) -> float:
        """The highest bound of a node that may be better than the best so far."""
        return math.inf if self._best is None else self._best[0] * (1 + TIE)

    def _cost(self, node: Sequence[int]) -> float:
        total = 0.0
        for axis, level in enumerate(node):
            total += self.costs[axis][level]
        return total

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
        loss = self.price(self._best[1]).cost
        return SearchResult(self._best[1], loss, loss if complete else min(bound, loss), complete)

    def _go_through(
        self,
        check_one: Callable[[], None],
        below: Sequence[Levels] = (),
        above: Sequence[Levels] = (),
    ) -> bool:
        """Check nodes until all are ruled out or checked. Return False if the search is over before.

        check_one: checks one of the open nodes. below, above: rule out the nodes below or above them; they grow.

        Of a lattice of more than `MOST_NODES` nodes, nodes are drawn at random first, as long as many are open. Then
        the open nodes are listed in the order of their levels. A node that is once ruled out or checked stays so.
        """
        draws = self._lattice.count > MOST_NODES and check_one != self._check_cheapest
        random = np.random.default_rng(0) if draws else None
        start = np.zeros(len(self._heights), np.int64)
        while start[0] <= self._heights[0]:
            if self.is_over:
                return False
            whole, checked = self._lattice.count <= MOST_NODES, self.checked
            failed, dear = [*self._failed, *below], [*above, *self._dear()]
            if random is not None:
                levels = self._lattice.draw(random, LISTED)
            elif whole:
                levels = self._lattice.walk(start, self._limit, MOST_NODES)
            else:
                levels = self._lattice.walk(start, self._limit, LISTED, dear, failed, self._reasons)
            self._nodes = nodes = OpenNodes(self._lattice, levels)
            if self._best is not None:
                nodes.rule_out_worse(*self._best)
            if whole or random is not None:
                nodes.rule_out_above(dear)
                nodes.rule_out_below(failed)
                for reason in self._reasons:
                    nodes.rule_out_failing(reason)
            for node, floor in self._floors_above.items():
                nodes.raise_bounds(node, floor)
            if random is not None and len(nodes.open) < ENOUGH:
                random = None
                continue
            while len(nodes.open):
                if self.is_over:
                    return False
                check_one()
                self._tell(len(nodes.open))
            if self.checked == checked:
                random = None
        return True

    def _dear(self) -> list[Levels]:
        """Return nodes above which all nodes cost too much."""
        return [node for node, floor in self._floors_above.items() if floor > self._limit]

    def _check_halving(self) -> None:
        """Check the node that best halves the open nodes, as if all criteria pruned."""
        self._check(self._nodes.pop(self._nodes.halving(by_cost=True)))

    def _find_holding(self) -> None:
        """Find out whether the node that best halves the open nodes holds."""
        node = self._nodes.pop(self._nodes.halving(by_cost=False))
        if self._holds(node):
            self._holding.append(node)
            self._nodes.rule_out_above([node])

    def _check_cheapest(self) -> None:
        """Check the open node with the lowest bound."""
        nodes = self._nodes
        self._check(nodes.pop(0 if self._find_price is None else int(nodes.bounds[nodes.open].argmin())), False)

    def _check(self, node: Levels, assume: bool = True) -> None:
        """Check a node, and rule out what follows. assume: whether to treat selecting criteria as if they pruned."""
        if not self._holds(node):
            return
        cost, floor = self.price(node)
        if self._find_price is not None:
            self._floors_above[node] = floor
            self._nodes.raise_bounds(node, floor)
        if self._is_better(cost, node):
            if self._is_met(node):
                self._best = cost, node
            elif assume:
                self._unproved.append(node)
                self._nodes.rule_out_below([node])
        if self._best is not None:
            self._nodes.rule_out_worse(*self._best)

    def _is_better(self, cost: float, node: Levels) -> bool:
        """Return whether a node is better than the best so far. Of equal costs the lowest levels win."""
        if self._best is None:
            return True
        best, lowest = self._best
        return cost * (1 + TIE) < best or (cost <= best * (1 + TIE) and node < lowest)

    def _least_bound(self) -> float:
        """Return a cost that no node which may be better is below.

        A node that does not fail does not fail either with some axes at their top. So parts of the axes have bounds by
        themselves, which add up if they are sums.
        """
        bounds = []
        parts = _parts_of_axes(self.costs)
        for axes in parts:
            floors = None if self._floors is None else [self._floors[axis] for axis in axes]
            part = Lattice([self.costs[axis] for axis in axes], floors)
            nodes = OpenNodes(part, part.walk(np.zeros(len(axes), np.int64), self._limit, MOST_NODES))
            others = [axis for axis in range(len(self._heights)) if axis not in axes]
            at_top = [node for node in self._failed if all(node[axis] == self._heights[axis] for axis in others)]
            nodes.rule_out_below([tuple(node[axis] for axis in axes) for node in at_top])
            for reason in self._reasons:
                nodes.rule_out_failing(reason._replace(points=reason.points[:, axes].copy()))
            if len(parts) == 1:
                nodes.rule_out_nodes(list(self._held if self._check_is_met is None else self._met))
                for node, floor in self._floors_above.items():
                    nodes.raise_bounds(node, floor)
            bounds.append(min(nodes.bounds[nodes.open], default=self._limit))
        return float((sum if self._floors is None else max)(bounds))

    def _holds(self, node: Levels) -> bool:
        if self._check_holds is None:
            return True
        if node not in self._held:
            self._count(node)
            self._held[node] = self._check_holds(node)
            if not self._held[node]:
                reason = self._failing()
                if reason is None:
                    self._failed.append(node)
                    self._nodes.rule_out_below([node])
                else:
                    large = self._lattice.count > MOST_NODES
                    self._reasons.append(self._lattice.needed(reason, self._limit) if large else reason)
                    self._nodes.rule_out_failing(self._reasons[-1])
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

    def _dive(self) -> None:
        """Find a good node soon: make all columns about equally coarse, then each as fine as it can be alone."""
        heights = self._heights

        def meets(levels: Sequence[int]) -> bool:
            node = tuple(levels)
            if self.is_over:
                return False
            met = self._holds(node) and self._is_met(node)
            self._check(node)
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

    def _tell(self, left: int) -> None:
        self._on_check(left, math.inf if self._best is None else self._best[0])


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
    """Return all axes in parts of at most `MOST_NODES` nodes, or of one axis. Axes that cost the most are together."""
    parts: list[list[int]] = [[]]
    for axis in sorted(range(len(costs)), key=lambda axis: (-costs[axis][-1], axis)):
        if parts[-1] and count_nodes([len(costs[other]) - 1 for other in [*parts[-1], axis]]) > MOST_NODES:
            parts.append([])
        parts[-1].append(axis)
    return [sorted(part) for part in parts]
