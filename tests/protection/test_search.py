"""The search over lattices of any size, and the classes of their nodes from those of finer ones."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpupif.criteria.counted_table import CountedTable
from gpupif.hierarchies.open import open_hierarchies
from gpupif.protection import class_roll_up, lattice, lattice_search
from gpupif.protection.class_roll_up import ClassRollUp
from gpupif.protection.column_levels import column_levels
from gpupif.protection.lattice_search import LatticeSearch
from gpupif.rows.threads import Workers


class Checks:
    """Nodes that hold are those above one of some nodes; nodes that are met are any that a function says."""

    def __init__(self, least, met=None):
        self._least, self._met = least, met
        self.selects = met is not None

    def holds(self, node):
        return any(all(map(int.__le__, one, node)) for one in self._least)

    def failing(self, window):
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


@settings(max_examples=60, deadline=None)
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


@settings(max_examples=60, deadline=None)
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


def test_large_lattices_are_searched_in_windows(monkeypatch):
    monkeypatch.setattr(lattice, "MOST_NODES", 300)
    monkeypatch.setattr(lattice_search, "MOST_NODES", 300)
    rng = np.random.default_rng(3)
    heights = [4, 4, 3, 4, 3]
    costs, least = costs_of(rng, heights), [(2, 1, 3, 0, 2), (1, 4, 0, 2, 1)]
    checks = Checks(least)
    found = search_of(costs, checks).run()
    _, loss = brute(costs, checks)
    assert checks.holds(found.node)
    assert found.bound <= loss <= found.loss
    # By column alone both have to be above the lower of the two.
    floor = [min(levels) for levels in zip(*least, strict=True)]
    assert found.bound >= sum(one[level] for one, level in zip(costs, floor, strict=True))
    # Together they have to be above one of both.
    assert found.bound == found.loss == loss
    assert found.complete


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_the_bound_of_large_lattices_holds(seed, selects):
    rng = np.random.default_rng(seed)
    heights = rng.integers(2, 4, 5).tolist()
    costs = costs_of(rng, heights)
    least = [tuple(int(rng.integers(0, height + 1)) for height in heights) for _ in range(3)]
    checks = Checks(least, (lambda node: hash(node) % 3 == 0 or node == tuple(heights)) if selects else None)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lattice_search, "MOST_NODES", 60)
        patched.setattr(lattice, "MOST_NODES", 60)
        patched.setattr(lattice_search, "COUNTED", 30)
        found = search_of(costs, checks).run()
    _, loss = brute(costs, checks)
    lowest = sum(
        brute([costs[axis] if axis in part else [0.0] * len(costs[axis]) for axis in range(5)], Checks(least))[1]
        for part in searching_parts(costs)
    )
    assert lowest <= loss
    assert min(lowest, found.loss) <= found.bound <= loss <= found.loss


def searching_parts(costs):
    """Axes in parts of at most 30 nodes, the most costly first."""
    parts, size = [[]], 1
    for axis in sorted(range(len(costs)), key=lambda axis: -costs[axis][-1]):
        size *= len(costs[axis])
        if parts[-1] and size > 30:
            parts, size = [*parts, []], len(costs[axis])
        parts[-1].append(axis)
    return parts


def test_a_large_lattice_without_a_solution_is_decided_at_the_top(monkeypatch):
    monkeypatch.setattr(lattice_search, "MOST_NODES", 300)
    found = search_of([[0.0, 1.0, 2.0, 3.0]] * 6, Checks([(9,) * 6])).run()
    assert found.node is None
    assert found.complete


def test_windows_keep_within_their_size(monkeypatch):
    monkeypatch.setattr(lattice, "MOST_NODES", 64)
    costs = [[0.0, 1.0, 2.0, 5.0 + axis] for axis in range(10)]
    for chosen in (lattice.spread_levels(costs, [0] * 10), lattice.levels_around(costs, [0] * 10, (1,) * 10)):
        assert np.prod([len(one) for one in chosen]) <= 64
        assert all(one == sorted(set(one)) for one in chosen)
    assert lattice.spread_levels([[0.0, 1.0, 2.0]], [1]) == [[1, 2]]


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


def test_no_window_is_built_after_the_time_limit(monkeypatch):
    class Slow(Checks):
        def is_met(self, node):
            search.deadline = 0
            return super().is_met(node)

    monkeypatch.setattr(lattice.Window, "from_levels", None)
    search = search_of([[0.0, 1.0, 2.0]] * 12, Slow([(0,) * 12], lambda node: True))
    found = search.run()
    assert found.node == (2,) * 12
    assert (found.bound, found.complete) == (0, False)


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


def test_an_interrupted_search_of_parts_ends(monkeypatch):
    monkeypatch.setattr(lattice, "MOST_NODES", 100)
    monkeypatch.setattr(lattice_search, "MOST_NODES", 100)
    monkeypatch.setattr(lattice_search, "COUNTED", 20)

    def checked(most):
        search = search_of([[0.0, 1.0, 2.0, 3.0]] * 5, Checks([(1, 1, 1, 1, 1)]))
        search.is_interrupted = lambda: search.checked >= most
        search.run()
        return search.checked

    every = checked(10_000)
    assert all(checked(most) == most for most in range(1, every))


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


@pytest.mark.parametrize("chosen", [[range(4)] * 3, [[0, 3], [1, 2], [0, 1, 3]], [[2], [0, 1, 2, 3], [1]]])
@pytest.mark.parametrize("threads", [1, 3])
def test_class_sizes_are_right_at_every_node(monkeypatch, chosen, threads):
    monkeypatch.setattr(class_roll_up, "THREAD_ROWS", 20)
    rng = np.random.default_rng(8)
    table = pd.DataFrame({f"c{place}": rng.integers(0, 30, 150) for place in range(4)})
    counted = CountedTable.from_table(table)
    # The last column stays as it is.
    levels = column_levels(counted, open_hierarchies({f"c{place}": {"widths": [3, 15]} for place in range(3)}))
    window = lattice.Window.from_levels([[0.0, 1.0, 3.0, 7.0 + place] for place in range(3)], list(map(list, chosen)))
    widths = {0: 1, 1: 3, 2: 15, 3: 1000}
    with Workers(threads) as workers:
        rolled = ClassRollUp(counted, range(4), levels, workers)
        rows = table.to_numpy()
        sizes = np.stack(
            [sizes_at(rows, [widths[one] for one in window.node(place)]) for place in range(len(window.losses))], axis=1
        )
        for node in [(0, 0, 0), (1, 2, 1), (3, 3, 3)]:
            classes = rolled.classes(node)
            found = rolled.sizes_of_smallest(node, classes, window)
            own = sizes_at(rows, [widths[one] for one in node])
            assert found.tolist() in sizes[own == own.min()].tolist()


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
