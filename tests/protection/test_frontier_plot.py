"""The plot of the frontier: each node of it at its loss and its value, whether it is met, the plan and the limit."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from matplotlib import pyplot

import gpupif
from tests.helpers import naive_protection as naive
from tests.helpers.figures import closed_figures, labels, points
from tests.helpers.people import NAMES, given, people, rows_of

__all__ = ["closed_figures"]
CRITERIA = ["k>=3", "distinct_l>=2"]


@pytest.fixture(scope="module")
def protection():
    table, hierarchies = people(0)
    with gpupif.config(device="cpu"):
        return gpupif.protect(table, CRITERIA, hierarchies=given(hierarchies), sensitive=["ill"])


def test_the_plan_is_drawn_where_it_is_by_definition(protection):
    table, hierarchies = people(0)
    node, loss = naive.best(rows_of(table), hierarchies, CRITERIA, NAMES, ["ill"])
    tops = [len(next(iter(groups.values()))) for groups in hierarchies.values()]
    whole = naive.loss(rows_of(table), hierarchies, tops, dict.fromkeys(NAMES, 1.0))
    ax = protection.plot.frontier("k>=3")
    (lost, k), *others = points(ax, "the plan").tolist()
    assert others == []
    assert lost == pytest.approx(100 * loss / whole)
    assert k == naive.smallest(naive.treated(rows_of(table), hierarchies, node), NAMES)
    assert ax.lines[-1].get_ydata()[0] == 3
    assert labels(ax)[-1] == "limit: k>=3"
    assert ("% of all bits" in ax.get_xlabel(), ax.get_ylabel()) == (True, "k (higher is safer)")


def test_every_node_of_the_frontier_is_drawn(protection):
    nodes = [replace(node, is_met=bool(place % 2)) for place, node in enumerate(protection.frontier)]
    nodes += [replace(nodes[-1], levels={}, loss=0.9 * protection.highest_loss, values=dict.fromkeys(CRITERIA, 9.0))]
    ax = replace(protection, frontier=nodes).plot.frontier("distinct_l>=2", alpha=0.5)
    kinds = {"the plan": [], "meets all criteria": [], "does not": []}
    for node in nodes:
        kind = "meets all criteria" if node.is_met else "does not"
        kind = "the plan" if node.levels == protection.levels else kind
        kinds[kind].append([100 * node.loss / protection.highest_loss, node.values["distinct_l>=2"]])
    for kind, expected in kinds.items():
        if expected:
            assert points(ax, kind) == pytest.approx(np.array(expected))
    looks = {(line.get_marker(), line.get_fillstyle()) for line in ax.lines[:-1]}
    assert len(looks) == len(ax.lines) - 1 >= 2
    assert ax.lines[0].get_alpha() == 0.5


def test_suppressed_rows_are_drawn_where_all_nodes_have_the_same_risk(protection):
    table, hierarchies = people(1)
    with gpupif.config(device="cpu"):
        found = gpupif.protect(table[NAMES], ["k>=3"], hierarchies=given(hierarchies), suppress=0.4)
    nodes = [replace(node, values={"k>=3": 3.0}) for node in found.frontier]
    assert len({node.suppressed_rows for node in nodes}) > 1
    ax = replace(found, frontier=nodes).plot.frontier()
    assert ax.get_ylabel() == "suppressed rows"
    shown = [point for line in ax.lines for point in line.get_xydata().tolist()]
    expected = [[100 * node.loss / found.highest_loss, node.suppressed_rows] for node in nodes]
    assert np.array(sorted(shown)) == pytest.approx(np.array(sorted(expected)))
    assert replace(found, frontier=nodes[:1]).plot.frontier().get_ylabel().startswith("k ")


def test_a_wide_range_is_drawn_on_a_logarithmic_scale(protection):
    low, high = (replace(protection.frontier[0], values=dict.fromkeys(CRITERIA, value)) for value in (1.0, 1000.0))
    scales = [replace(protection, frontier=nodes).plot.frontier().get_yscale() for nodes in ([low, high], [low, low])]
    assert scales == ["log", "linear"]


def test_what_cannot_be_drawn_is_one_clear_line(protection):
    with pytest.raises(gpupif.InputError, match=r"^criterion: expected 'k>=3' or .*, got 'k>=4'\. Did you mean 'k>=3'"):
        protection.plot.frontier("k>=4")
    with pytest.raises(gpupif.InputError, match=r"^ax: expected the axes of a plot of Matplotlib, got int"):
        protection.plot.frontier(ax=3)


def test_given_axes_are_drawn_on(protection):
    figure, (ax, current) = pyplot.subplots(1, 2)
    assert protection.plot.frontier(ax=ax) is ax
    assert pyplot.gca() is current
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.canvas.draw()
