"""The objectives of `protect`: every node of small lattices priced by definition, by plain Python."""

from __future__ import annotations

import itertools
import json
import math
from itertools import cycle

import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif.criteria.class_criteria import ClassCriteria
from gpupif.criteria.counted_table import CountedTable
from gpupif.criteria.criterion_set import CriterionSet
from gpupif.engines.choose import choose_engine, requested_device
from gpupif.hierarchies.open import open_hierarchies
from gpupif.protection import lattice, lattice_search
from gpupif.protection.column_levels import column_levels
from gpupif.protection.lattice_search import LatticeSearch, Price
from gpupif.protection.node_checks import NodeChecks, Suppression
from gpupif.protection.objectives import as_objective
from tests.helpers import naive_protection as naive
from tests.helpers.naive_objectives import cost
from tests.helpers.people import NAMES, given, people, rows_of

OF_COLUMNS = ["entropy", "entropy+suppression", "loss", "loss_gm", "precision", "height"]
OF_CLASSES = [
    "discernibility",
    "average_class_size",
    "utility(ill)",
    "utility(ill, classify)",
]
OBJECTIVES = [*OF_COLUMNS, *OF_CLASSES]
IMPORTANCE = {"age": 3, "sex": 0.5}


def best(objective, table, hierarchies, k, most, importance=None):
    """The node that costs least of those that are k-anonymous after at most so many rows are suppressed, by definition.

    Of equal costs the lowest levels win.
    """
    found = []
    for node in naive.nodes(hierarchies):
        sizes = [len(rows) for rows in naive.classes(naive.treated(table, hierarchies, node), NAMES).values()]
        if sum(size for size in sizes if size < k) <= most and max(sizes) >= k:
            found.append((cost(objective, table, hierarchies, node, importance, k), node))
    least = min(found)[0]
    return min(node for loss, node in found if loss <= least + 1e-9 * abs(least)), least


def found_of(table, hierarchies, objective, criteria="k>=3", **arguments):
    return gpupif.protect(
        table, criteria, hierarchies=given(hierarchies), sensitive=["ill"], objective=objective, **arguments
    )


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("seed", "share"), [(0, 0.1), (1, 0), pytest.param(2, 0.1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_plan_is_the_best_of_all_nodes(objective, share, seed):
    table, hierarchies = people(seed)
    found = found_of(table, hierarchies, objective, suppress=share)
    node, loss = best(objective, rows_of(table), hierarchies, 3, math.floor(share * len(table)))
    assert found.loss == pytest.approx(loss, rel=1e-12)
    assert tuple(found.levels.values()) == node
    assert (found.optimal, found.gap) == (True, 0)
    assert found.objective in (objective, "utility(ill, information)")
    for other in found.frontier:
        assert other.loss == pytest.approx(
            cost(objective, rows_of(table), hierarchies, other.levels.values(), k=3 if share else 1), rel=1e-12
        )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("share", [0, 0.1])
@pytest.mark.parametrize("objective", OF_COLUMNS)
def test_importance_weighs_the_columns(objective, share):
    table, hierarchies = people(7)
    found = found_of(table, hierarchies, objective, suppress=share, importance=IMPORTANCE)
    node, loss = best(objective, rows_of(table), hierarchies, 3, math.floor(share * len(table)), IMPORTANCE)
    assert found.loss == pytest.approx(loss, rel=1e-12)
    assert tuple(found.levels.values()) == node


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("seed", "share"), [(0, 0.1), pytest.param(1, 0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_criteria_that_coarser_values_break_are_met_at_the_least_cost(objective, share, seed):
    table, hierarchies = people(seed)
    criteria = ["k>=3", "max csf(ill)<=0.5"]
    found = found_of(table, hierarchies, objective, criteria, suppress=share)
    rows, losses = rows_of(table), []
    for node in naive.nodes(hierarchies):
        classes = naive.classes(naive.treated(rows, hierarchies, node), NAMES).values()
        left = [row for one in classes if len(one) >= 3 for row in one]
        if not left or len(rows) - len(left) > math.floor(share * len(rows)):
            continue
        if naive.is_met(naive.value(left, criteria[1], NAMES, ["ill"]), criteria[1]):
            losses.append(cost(objective, rows, hierarchies, node, k=3))
    assert found.loss == pytest.approx(min(losses), rel=1e-12)
    assert found.optimal


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("objective", "most"), [*zip(OBJECTIVES, cycle([0, 12, 12]), strict=False)])
def test_no_bound_exceeds_the_cost_of_a_node_above(objective, most):
    table, hierarchies = people(4)
    counted = CountedTable.from_table(table)
    used = open_hierarchies(given(hierarchies))
    levels = column_levels(counted, used)
    criteria = CriterionSet.from_arguments("k>=3", NAMES, ["ill"])
    choice = as_objective(objective)
    suppression = Suppression(ClassCriteria.by_attacker(criteria), most) if most else None
    with NodeChecks(counted, levels, criteria, choose_engine(requested_device(counted.cells)), suppression) as checks:
        predicted = choice.column
        made = choice.kind(levels, {}, list(used.values()), counted.rows, checks, most > 0, predicted, choice.task)
        bounds = made.bounds(lambda: False)
        nodes = list(naive.nodes(hierarchies))
        prices = {node: made.price(node) for node in nodes}
        # Without time the bounds are lower, and hold too.
        hasty = made.bounds(lambda: True)
    for node, price in prices.items():
        true = cost(objective, rows_of(table), hierarchies, node, k=3 if most else 1)
        assert made.value(price.cost) == pytest.approx(true, rel=1e-12, abs=1e-12)
        for known in (bounds, hasty):
            sums = sum(own[level] for own, level in zip(known.sums, node, strict=True))
            floors = [own[level] for own, level in zip(known.floors or (), node, strict=bool(known.floors))]
            assert max(sums, *floors, 0) <= price.cost * (1 + 1e-12)
        if made.pricing is None:
            assert sum(own[level] for own, level in zip(bounds.sums, node, strict=True)) == pytest.approx(price.cost)
    for low, high in itertools.product(nodes, nodes):
        if all(map(int.__le__, low, high)):
            assert prices[low].floor <= prices[high].cost * (1 + 1e-12)


class Prices:
    """Costs that are at least sums over levels, and floors that never exceed the cost of a node above."""

    def __init__(self, rng, heights):
        self.sums = [np.cumsum([0, *rng.integers(0, 3, height)]).astype(float).tolist() for height in heights]
        self.nodes = list(itertools.product(*(range(height + 1) for height in heights)))
        self.cost = {node: self.least(node) + int(rng.integers(0, 6)) for node in self.nodes}
        above = {node: [other for other in self.nodes if all(map(int.__le__, node, other))] for node in self.nodes}
        self.floor = {node: min(self.cost[other] for other in above[node]) for node in self.nodes}

    def least(self, node):
        return sum(own[level] for own, level in zip(self.sums, node, strict=True))

    def price(self, node):
        return Price(self.cost[node], self.floor[node])

    def best(self, is_good):
        return min(((self.cost[node], node) for node in self.nodes if is_good(node)), default=(math.inf, None))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("selects", [False, True])
@pytest.mark.parametrize("most_nodes", [lattice.MOST_NODES, 20])
@pytest.mark.parametrize("seed", range(10))
def test_the_search_finds_the_best_price(monkeypatch, seed, most_nodes, selects):
    for module in (lattice, lattice_search):
        monkeypatch.setattr(module, "MOST_NODES", most_nodes)
    monkeypatch.setattr(lattice_search, "LISTED", 30)
    monkeypatch.setattr(lattice_search, "ENOUGH", 4)
    rng = np.random.default_rng(seed)
    prices = Prices(rng, heights := rng.integers(1, 4, 4).tolist())
    least = tuple(int(rng.integers(0, height + 1)) for height in heights)
    met = {node: bool(rng.integers(0, 2)) or node == tuple(heights) for node in prices.nodes}

    def holds(node):
        return all(map(int.__le__, least, node))

    found = LatticeSearch(prices.sums, holds, lambda: None, met.get if selects else None, price=prices.price).run()
    loss, node = prices.best(lambda node: holds(node) and (met[node] or not selects))
    assert (found.node, found.loss, found.bound, found.complete) == (node, loss, loss, True)


def test_a_time_limit_leaves_a_gap_that_holds(monkeypatch):
    table, hierarchies = people(2)
    loss = best("average_class_size", rows_of(table), hierarchies, 3, 6)[1]
    checked = iter(range(1000))
    monkeypatch.setattr(LatticeSearch, "is_over", property(lambda search: search.checked >= 12 and next(checked) >= 0))
    found = found_of(table, hierarchies, "average_class_size", suppress=0.1)
    assert not found.optimal
    assert 0 < found.gap < 1
    assert found.loss * (1 - found.gap) <= loss <= found.loss


@pytest.mark.slow
def test_the_loss_is_that_of_compare():
    table, hierarchies = people(3)
    for objective, figure in [
        ("entropy+suppression", "nonuniform_entropy_loss"),
        ("discernibility", "discernibility"),
        ("average_class_size", "average_class_size"),
        ("precision", "precision"),
    ]:
        found = found_of(table, hierarchies, objective, suppress=0.1)
        assert found.suppressed_rows
        after = gpupif.treat(table, found.plan).table
        compared = gpupif.compare(table, after, found.plan, quasi_identifiers=NAMES, hierarchies=given(hierarchies))
        columns = compared.columns.loc[NAMES]
        own = {
            "nonuniform_entropy_loss": columns["nonuniform_entropy_loss"].sum(),
            "precision": 1 - columns["precision"].mean(),
        }
        assert found.loss == pytest.approx(own.get(figure, getattr(compared.utility, figure)))


def test_values_that_are_only_in_a_hierarchy_count_in_the_loss():
    table, hierarchies = people(0)
    hierarchies["age"] |= {f"age{number}": ("age-1-0", "age-2-0", "*") for number in range(100, 110)}
    found = found_of(table, hierarchies, "loss")
    assert found.loss == pytest.approx(best("loss", rows_of(table), hierarchies, 3, 0)[1])
    # Widths list no values: the values of the table count.
    ages = table.assign(age=[number % 12 for number in range(60)])[["age"]]
    found = gpupif.protect(ages, "k>=8", hierarchies={"age": {"widths": [3, 6]}}, objective="loss")
    assert (found.levels, found.loss) == ({"age": 1}, pytest.approx(2 / 11))
    # A missing value is a value of its own, alone in its group below the top.
    values = {"a": ("ab", "*"), "b": ("ab", "*"), "c": ("c", "*"), "d": ("d", "*")}
    letters = pd.DataFrame({"letter": [*"aabbbc", "c", None, None, None]})
    found = gpupif.protect(letters, "k>=2", hierarchies={"letter": {"values": values}}, objective="loss")
    assert (found.levels, found.loss) == ({"letter": 0}, 0)
    found = gpupif.protect(letters[1:], "k>=2", hierarchies={"letter": {"values": values}}, objective="loss")
    assert (found.levels, found.loss) == ({"letter": 1}, pytest.approx(4 / 9 * (2 - 1) / (5 - 1)))
    found = gpupif.protect(letters[5:], "k>=4", hierarchies={"letter": {"values": values}}, objective="loss")
    assert (found.levels, found.loss) == ({"letter": 2}, 1)


def test_the_loss_is_the_same_for_files_and_threads(tmp_path):
    table, hierarchies = people(5)
    table.to_csv(tmp_path / "table.csv", index=False)
    for objective in ("loss", "utility(ill)"):
        found = found_of(table, hierarchies, objective, suppress=0.1)
        other = found_of(tmp_path / "table.csv", hierarchies, objective, suppress=0.1)
        assert (found.loss, found.levels, found.checks) == (other.loss, other.levels, other.checks)


def test_the_predicted_column_need_not_be_sensitive():
    table, hierarchies = people(1)
    known = NAMES[:3]
    found = gpupif.protect(
        table,
        "k>=3",
        hierarchies=given({name: hierarchies[name] for name in known}),
        quasi_identifiers=known,
        objective="utility(ill)",
    )
    assert found.objective == "utility(ill, information)"
    assert 0 < found.loss < 1


def test_the_result_says_the_objective_and_its_unit():
    table, hierarchies = people(0)
    found = found_of(table, hierarchies, "discernibility")
    assert (found.objective, found.unit) == ("discernibility", "pairs of rows")
    document = json.loads(found.to_json())
    assert (document["objective"], document["unit"], document["loss"]) == (found.objective, found.unit, found.loss)
    assert f"objective discernibility: {found.loss:,.0f} (pairs of rows)" in " ".join(str(found).split())
    assert "objective" not in str(found_of(table, hierarchies, "entropy"))


BAD = [
    ({"objective": "los"}, "objective: there is no objective 'los'. Did you mean 'loss'.*utility[(]COLUMN[)]"),
    ({"objective": 3}, "objective: expected the name of an objective, got 3"),
    ({"objective": "loss(age)"}, "objective: 'loss' is of all quasi-identifiers"),
    ({"objective": "utility"}, "objective: utility needs the column that is predicted"),
    ({"objective": "utility()"}, "objective: utility needs the column that is predicted"),
    ({"objective": "utility(ill, clasify)"}, "no task 'clasify' of utility. Did you mean 'classify'"),
    ({"objective": "utility(il)"}, "objective: no column 'il' in the table. Did you mean 'ill'"),
    (
        {"objective": "utility(il)", "quasi_identifiers": ["age"], "sensitive": ["ill"]},
        "objective: no column 'il' in the table. Did you mean 'ill'",
    ),
    ({"objective": "utility(age)"}, "objective: column 'age' is a quasi-identifier, which the plan makes coarser"),
    ({"objective": "utility(job)", "identifiers": "job"}, "objective: column 'job' is an identifier, which the plan"),
    ({"objective": "utility(one)", "sensitive": ["one"]}, "objective: column 'one' has the same value in all rows"),
    ({"objective": "discernibility", "importance": {"age": 2}}, "importance: the objective 'discernibility' is not"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_objectives_are_refused(arguments, message):
    with pytest.raises(gpupif.InputError, match=message):
        gpupif.protect(people(0)[0].assign(one="1"), "k>=2", **{"sensitive": ["ill"], **arguments})


def test_a_predicted_column_whose_name_is_no_text_is_named_as_sensitive():
    table = people(0)[0].rename(columns={"ill": 5})
    asked = {"quasi_identifiers": ["age"], "objective": "utility(5)"}
    with pytest.raises(gpupif.InputError, match=r"objective: no column '5' in the table\. There is 5, a name"):
        gpupif.protect(table, "k>=2", **asked)
    assert gpupif.protect(table, "k>=2", sensitive=[5], **asked).objective == "utility(5, information)"
