"""The search over lattices of any size, and the classes of their nodes from those of finer ones."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.criteria.counted_table import CountedTable
from gpupif.hierarchies.open import open_hierarchies
from gpupif.protection import class_roll_up, lattice, lattice_search
from gpupif.protection.class_roll_up import ClassRollUp
from gpupif.protection.column_levels import column_levels
from gpupif.protection.lattice import Reason
from gpupif.protection.lattice_search import LatticeSearch
from gpupif.rows.threads import Workers


class Checks:
    """Nodes that hold are those above one of some nodes; nodes that are met are any that a function says."""

    def __init__(self, least, met=None):
        self._least, self._met = least, met
        self.selects = met is not None

    def holds(self, node):
        return any(all(map(int.__le__, one, node)) for one in self._least)

    def failing(self):
        return None

    def is_met(self, node):
        return self._met(node)


def search_of(costs, checks):
    return LatticeSearch(costs, checks.holds, checks.failing, checks.is_met if checks.selects else None)


def costs_of(rng, heights):
    return [np.cumsum([0, *rng.integers(0, 5, height)]).astype(float).tolist() for height in heights]


def brute(costs, checks):
    """The best of all nodes: of those that cost least but for rounding, the one with the lowest levels."""
    every = itertools.product(*(range(len(one)) for one in costs))
    good = [node for node in every if checks.holds(node) and (not checks.selects or checks.is_met(node))]
    if not good:
        return None, None
    losses = {node: sum(one[level] for one, level in zip(costs, node, strict=True)) for node in good}
    least = min(losses.values())
    return min((node, loss) for node, loss in losses.items() if loss <= least * (1 + 1e-12))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_the_search_finds_the_best_of_all_nodes(seed, selects):
    rng = np.random.default_rng(seed)
    heights = rng.integers(1, 5, rng.integers(1, 6)).tolist()
    costs = costs_of(rng, heights)
    least = [tuple(int(rng.integers(0, height + 1)) for height in heights) for _ in range(rng.integers(0, 4))]
    lucky = int(rng.integers(2, 6))
    checks = Checks(least, (lambda node: hash(node) % lucky == 0) if selects else None)
    found = search_of(costs, checks).run()
    node, loss = brute(costs, checks)
    assert found.complete
    assert found.node == node
    if node is not None:
        assert found.loss == found.bound == loss


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_ties_go_to_the_lowest_levels(seed, selects):
    """Sums of tenths that are equal differ in their last bits by the order in which they are added."""
    rng = np.random.default_rng(seed)
    tenths = [np.cumsum([0, *rng.integers(0, 4, height)]).tolist() for height in rng.integers(1, 4, rng.integers(3, 6))]
    least = int(rng.integers(0, sum(one[-1] for one in tenths) + 2))
    checks = Checks([], (lambda node: hash(node) % 2 == 0) if selects else None)
    # Every node of so many tenths is among the best, if it meets the others too.
    checks.holds = lambda node: sum(one[level] for one, level in zip(tenths, node, strict=True)) >= least
    costs = [[tenth / 10 for tenth in one] for one in tenths]
    found = search_of(costs, checks).run()
    node, loss = brute(costs, checks)
    assert found.complete
    assert found.node == node
    if node is not None:
        assert found.loss == found.bound == loss


class Points:
    """Nodes that hold have points of enough weight below them, of each of some groups of points."""

    selects = False

    def __init__(self, rng, heights, groups, points):
        self.reasons = [
            Reason(
                rng.integers(0, np.add(heights, 1), (points, len(heights)), np.uint16), weights, int(weights.sum()) // 3
            )
            for weights in rng.integers(1, 4, (groups, points))
        ]

    def _failing(self, node):
        for reason in self.reasons:
            weight = sum(
                weight
                for point, weight in zip(reason.points.tolist(), reason.weights.tolist(), strict=True)
                if all(map(int.__le__, point, node))
            )
            if weight < reason.least:
                return reason
        return None

    def holds(self, node):
        self.reason = self._failing(node)
        return self.reason is None

    def failing(self):
        return self.reason


def as_large(patched, most_nodes, listed):
    """Treat lattices of more than `most_nodes` nodes as large ones, and list `listed` of their nodes at once."""
    for module in (lattice, lattice_search):
        patched.setattr(module, "MOST_NODES", most_nodes)
    patched.setattr(lattice_search, "LISTED", listed)
    patched.setattr(lattice_search, "ENOUGH", 4)
    patched.setattr(lattice_search, "COUNTED", 30)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([10, 10**6]), st.booleans())
def test_reasons_rule_out_no_node_that_holds(seed, most_nodes, dense):
    rng = np.random.default_rng(seed)
    heights = rng.integers(1, 5, rng.integers(1, 6)).tolist()
    costs, checks = costs_of(rng, heights), Points(rng, heights, groups=3, points=12)
    with pytest.MonkeyPatch.context() as patched:
        as_large(patched, most_nodes, 40)
        patched.setattr(lattice, "DENSE", 0 if dense else 10**9)
        found = search_of(costs, checks).run()
    node, loss = brute(costs, checks)
    assert found.complete
    assert found.node == node
    assert node is None or found.loss == found.bound == loss


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.integers(1, 60))
def test_large_lattices_give_the_best_node(seed, selects, listed):
    rng = np.random.default_rng(seed)
    heights = rng.integers(2, 4, 5).tolist()
    costs = costs_of(rng, heights)
    least = [tuple(int(rng.integers(0, height + 1)) for height in heights) for _ in range(3)]
    checks = Checks(least, (lambda node: hash(node) % 3 == 0) if selects else None)
    with pytest.MonkeyPatch.context() as patched:
        as_large(patched, 60, listed)
        found = search_of(costs, checks).run()
    node, loss = brute(costs, checks)
    assert found.complete
    assert found.node == node
    assert node is None or found.loss == found.bound == loss


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from([10, 60, 10**6]))
def test_the_bound_holds_whenever_the_search_ends(seed, selects, most_nodes):
    rng = np.random.default_rng(seed)
    heights = rng.integers(2, 4, 5).tolist()
    costs = costs_of(rng, heights)
    least = [tuple(int(rng.integers(0, height + 1)) for height in heights) for _ in range(3)]
    checks = Checks(least, (lambda node: hash(node) % 3 == 0 or node == tuple(heights)) if selects else None)
    _, loss = brute(costs, checks)
    with pytest.MonkeyPatch.context() as patched:
        as_large(patched, most_nodes, 20)
        for most in (1, 2, 3, 5, 8, 13, 21, 34, 55, 89):
            search = search_of(costs, checks)
            search.is_interrupted = lambda search=search, most=most: search.checked >= most
            found = search.run()
            assert search.checked <= most
            assert found.bound <= loss <= found.loss
            assert not found.complete or found.loss == loss


@pytest.mark.slow
def test_millions_of_nodes_are_searched_in_little_memory():
    rng = np.random.default_rng(0)
    heights = [6] * 8
    costs, checks = costs_of(rng, heights), Points(rng, heights, groups=20, points=200)
    # The compiled code is loaded before memory is measured.
    search_of(costs, checks).run()
    tracemalloc.start()
    found = search_of(costs, checks).run()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # All nodes laid out: what they weigh by each group of points, and what they cost.
    holds, total = np.ones([7] * 8, bool), np.zeros([7] * 8)
    for reason in checks.reasons:
        weights = np.zeros([7] * 8, np.int32)
        np.add.at(weights, tuple(reason.points.T), reason.weights)
        for axis in range(8):
            weights = weights.cumsum(axis=axis, dtype=np.int32)
        holds &= weights >= reason.least
    for axis, own in enumerate(costs):
        total += np.reshape(own, [-1 if other == axis else 1 for other in range(8)])
    total[~holds] = math.inf
    node = np.unravel_index(total.argmin(), total.shape)
    assert found.complete
    assert (found.node, found.loss) == (tuple(map(int, node)), total[node])
    assert most < 4 * total.size


def test_a_large_lattice_without_a_solution_is_decided_at_the_top(monkeypatch):
    as_large(monkeypatch, 300, 40)
    search = search_of([[0.0, 1.0, 2.0, 3.0]] * 6, Checks([(9,) * 6]))
    found = search.run()
    assert found.node is None
    assert found.complete
    assert search.checked == 1


def test_a_time_limit_ends_the_search_with_a_gap():
    class Slow(Checks):
        seen = 0

        def holds(self, node):
            Slow.seen += 1
            if Slow.seen == 4:
                search.deadline = 0
            return super().holds(node)

    costs = [[0.0, 1.0, 2.0, 3.0]] * 4
    search = search_of(costs, Slow([(3, 3, 0, 0), (1, 2, 3, 3)]))
    found = search.run()
    assert search.checked == 4
    assert not found.complete
    assert found.bound <= 6 <= found.loss


@pytest.mark.parametrize("selects", [False, True])
def test_an_interrupted_search_keeps_the_best_node(selects):
    for checks in range(1, 40):
        search = search_of(
            [[0.0, 1.0, 2.0, 3.0]] * 5, Checks([(1, 1, 1, 1, 1)], (lambda node: True) if selects else None)
        )
        search.is_interrupted = lambda search=search, checks=checks: search.checked >= checks
        found = search.run()
        assert search.checked <= checks
        assert found.complete or found.bound <= 5
        if found.node is not None:
            assert min(found.node) >= 1
            assert found.loss >= 5


@pytest.mark.parametrize("words", [1, 2])
def test_classes_of_a_node_are_derived_from_other_nodes(words):
    rng = np.random.default_rng(words)
    columns = {f"c{place}": rng.integers(0, 40, 400) for place in range(4 if words == 1 else 12)}
    table = pd.DataFrame(columns)
    counted = CountedTable.from_table(table)
    levels = column_levels(counted, open_hierarchies({name: {"widths": [5, 10, 20]} for name in columns}))
    with Workers() as workers:
        some = ClassRollUp(counted, [0, 1, 3], levels, workers)
        every = ClassRollUp(counted, range(len(columns)), levels, workers)
        for _ in range(40):
            node = tuple(int(level) for level in rng.integers(0, 5, len(columns)))
            for rolled, places in ((some, [0, 1, 3]), (every, range(len(columns)))):
                widths = [{0: 1, 1: 5, 2: 10, 3: 20, 4: 1000}[level] for level in node]
                rows = zip(*(table[f"c{place}"] // widths[place] for place in places), strict=True)
                expected = sorted(Counter(rows).values())
                found = rolled.classes(node)
                assert sorted(found.counts.tolist()) == expected
                assert rolled.classes(node, len(expected)) is not None
                assert rolled.classes(node, len(expected) - 1) is None


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("few_points", [4, 1000])
def test_class_sizes_are_right_at_every_node(monkeypatch, threads, few_points):
    monkeypatch.setattr(class_roll_up, "THREAD_ROWS", 20)
    monkeypatch.setattr(class_roll_up, "FEW_POINTS", few_points)
    rng = np.random.default_rng(8)
    table = pd.DataFrame({f"c{place}": rng.integers(0, 30, 150) for place in range(4)})
    counted = CountedTable.from_table(table)
    # The last column stays as it is.
    levels = column_levels(counted, open_hierarchies({f"c{place}": {"widths": [3, 15]} for place in range(3)}))
    every = lattice.Lattice([[0.0, 1.0, 3.0, 7.0 + place] for place in range(3)])
    widths = {0: 1, 1: 3, 2: 15, 3: 1000}
    nodes = list(itertools.product(range(4), repeat=3))
    with Workers(threads) as workers:
        rolled = ClassRollUp(counted, range(4), levels, workers)
        rows = table.to_numpy()
        sizes = np.stack([sizes_at(rows, [widths[level] for level in node]) for node in nodes], axis=1)
        for node in [(0, 0, 0), (1, 2, 1), (3, 3, 3)]:
            own = sizes_at(rows, [widths[level] for level in node])
            for least in (2, 5):
                reason = rolled.why_small(node, rolled.classes(node), least)
                below = (reason.points[None] <= np.array(nodes)[:, None]).all(axis=2)
                assert (below @ reason.weights).tolist() in sizes[own == own.min()].tolist()
                for limit in (math.inf, 6.0):
                    needed = every.needed(reason, limit)
                    assert len(needed.points) <= len(reason.points)
                    smaller = (needed.points[None] <= np.array(nodes)[:, None]).all(axis=2) @ needed.weights
                    cheap = every.bounds(np.array(nodes, np.uint16)) <= limit
                    assert ((smaller < least) == (below @ reason.weights < least))[cheap].all()


def sizes_at(rows, widths):
    """By row how many agree with it over coarser values; the last column stays as it is."""
    coarse = rows // [*widths, 1]
    return (coarse[:, None] == coarse[None]).all(axis=2).sum(axis=1)


def test_classes_of_many_rows_are_right(monkeypatch):
    monkeypatch.setattr(class_roll_up, "THREAD_ROWS", 100)
    rng = np.random.default_rng(5)
    table = pd.DataFrame({f"c{place}": rng.integers(0, 40, 3000) for place in range(3)})
    counted = CountedTable.from_table(table)
    levels = column_levels(counted, open_hierarchies({name: {"widths": [2, 10, 20]} for name in table}))
    with Workers(3) as workers:
        for node, most in itertools.product(
            [(0, 0, 1), (1, 0, 1), (1, 1, 1), (2, 2, 2), (4, 3, 4)], [None, 40, 700, 3000]
        ):
            widths = [{0: 1, 1: 2, 2: 10, 3: 20, 4: 1000}[level] for level in node]
            rows = zip(*(table[name] // width for name, width in zip(table, widths, strict=True)), strict=True)
            expected = sorted(Counter(rows).values())
            found = ClassRollUp(counted, range(3), levels, workers).classes(node, most)
            assert (found is None) == (most is not None and len(expected) > most)
            assert found is None or sorted(found.counts.tolist()) == expected


@pytest.mark.parametrize(("share", "level"), [(0.0, 300), (0.1, 274)])
def test_a_hierarchy_may_have_hundreds_of_levels(share, level):
    values = [f"v{place:03d}" for place in range(305)]
    # Level n makes the values up to the n-th one group. All others have two rows.
    tree = {
        value: ["low" if place <= n else value for n in range(1, 300)] + ["*"] for place, value in enumerate(values)
    }
    table = pd.DataFrame({"a": values * 2, "b": ["x", "y"] * 305})
    found = gpupif.protect(
        table,
        "k>=3",
        quasi_identifiers=["a", "b"],
        hierarchies={"a": tree, "b": {"x": ["*"], "y": ["*"]}},
        suppress=share,
    )
    # Of 610 rows 61 may be suppressed: those of 30 values.
    assert found.levels["a"] == level
    assert found.suppressed_rows == (2 * (304 - level) if share else 0)
