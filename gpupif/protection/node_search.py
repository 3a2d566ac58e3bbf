"""The search of `protect` for the best node, told as it goes on, and ended by a time limit or by Ctrl-C."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..attack.attackers import AnyKnown, attacker_line
from ..criteria.counted_table import CountedTable
from ..criteria.criterion import Criterion
from ..criteria.criterion_set import CriterionSet, CriterionValue
from ..criteria.quantities import ScoreQuantity
from ..treatment.plan import Plan
from ..utils.display import as_cell, as_percent, duration, plural
from ..utils.progress import Reporter, short
from ..utils.signals import first_interrupt
from .counted_request import CountedRequest
from .lattice import MOST_NODES, Levels, count_nodes, with_ties
from .lattice_search import LatticeSearch, SearchResult
from .local_rounds import recode_further
from .node_checks import NodeChecks
from .objectives import Objective
from .result import FrontierNode, Protection, RecodedRows
from .treated_risk import certain_rows

# Seconds that the rest of a search may take without a word on its time. Checks are timed for TIMED seconds before.
SHORT_SEARCH, TIMED = 10.0, 1.0
# The beginning of a sentence about one attacker.
ATTACKER = "The attacker knows "
# The most groups of a level that are named.
SHOWN_GROUPS = 4
# A criterion that every table meets: its value is how many rows are unique.
UNIQUE_ROWS = Criterion.from_figure("uniques")


class NodeSearch:
    """The search for the best node.

    asked: the request. report: is told the checks. checks: of the nodes.
    """

    def __init__(self, asked: CountedRequest, report: Reporter, checks: NodeChecks) -> None:
        self._asked, self._report, self._checks = asked, report, checks
        request, counted = asked.request, asked.counted
        # The search whose time is told, and its time and number of checks when it began to check nodes in order.
        self._searching: LatticeSearch | None = None
        self._in_order: tuple[float, int] | None = None
        self._tells = True
        self._nodes = count_nodes([column.height for column in asked.levels])
        self._objective = request.objective.kind(
            asked.levels,
            request.importance,
            [asked.hierarchies[column.name] for column in asked.levels],
            counted.rows,
            checks,
            asked.suppression is not None,
            next((name for name in counted.names if str(name) == request.objective.column), None),
            request.objective.task,
        )

    def run(self) -> Protection:
        """Search, and return the best node as a result whose plan is not made and measured yet.

        If no node meets the criteria, or none was found in time, the result is the node that comes nearest; its `unmet`
        says why. Raises KeyboardInterrupt if the user ends the search before a node is found.
        """
        criteria, limit = self._asked.criteria, self._asked.request.time_limit
        before = criteria.with_criteria([*criteria.criteria, UNIQUE_ROWS]).measure(
            self._asked.counted, self._asked.engine
        )
        deadline = math.inf if limit is None else time.monotonic() + limit
        self._report.stage("search", None, "checks")
        checks = self._checks
        with first_interrupt() as is_interrupted:

            def search_of(checks: NodeChecks, objective: Objective) -> LatticeSearch:
                bounds = objective.bounds(lambda: is_interrupted() or time.monotonic() >= deadline)
                return LatticeSearch(
                    bounds.sums,
                    checks.holds if checks.prunes else None,
                    checks.failing,
                    checks.is_met if checks.selects else None,
                    deadline,
                    self._show_check,
                    objective.pricing,
                    bounds.floors,
                    is_interrupted,
                )

            self._searching = search = search_of(checks, self._objective)
            best = search.run()
            self._searching = None
            rounds, complete = list[RecodedRows](), best.complete
            if self._asked.request.local and best.node is not None:
                rounds, all_complete = recode_further(self._asked, best.node, search_of)
                complete &= all_complete
        if best.node is None:
            if is_interrupted():
                raise KeyboardInterrupt(f"no treatment that meets the criteria was found in {_checks_of(search)}")
            return self._nearest(before, best, search)
        if is_interrupted():
            self._report.say(
                "interrupted: the best plan so far is kept, and measured. Ctrl-C again keeps it unmeasured."
            )
        stopped_by = None
        if not complete and search.is_over:
            stopped_by = "Ctrl-C" if is_interrupted() else "time limit"
        return self._found(before, best, best.node, search, stopped_by, rounds)

    def _show_check(self, left: int, loss: float) -> None:
        self._report.rename(f"search, {short(left)}left")
        self._report.advance()
        search = self._searching
        # Larger lattices are listed in parts, so that it is not known how many nodes are left.
        if self._tells and search is not None and search.in_order and self._nodes <= MOST_NODES:
            began, checked = self._in_order = self._in_order or (time.monotonic(), search.checked)
            seconds, checks = time.monotonic() - began, search.checked - checked
            if checks > 0 and seconds >= TIMED:
                self._tells = False
                tell_time(self._report, left, seconds / checks, search.deadline - time.monotonic())

    def _found(
        self,
        before: Sequence[CriterionValue],
        best: SearchResult,
        node: Levels,
        search: LatticeSearch,
        stopped_by: str | None,
        local: Sequence[RecodedRows],
    ) -> Protection:
        """Return the result at a node, whose plan is not made and measured yet. before: of `UNIQUE_ROWS`, last."""
        asked, checks, objective = self._asked, self._checks, self._objective
        request, criteria = asked.request, asked.criteria
        suppressed = checks.suppressed_rows(node)
        # After the time limit no node is priced, as none is checked.
        shown = [own for own in checks.values if own in search.prices or not search.is_over]
        losses = {own: objective.value(search.price(own).cost) for own in shown}
        loss = objective.value(search.price(node).cost if best.node is None else best.loss)
        bound = objective.value(best.bound)
        highest = objective.value(search.price(tuple(column.height for column in asked.levels)).floor)
        suppresses = asked.suppression is not None and suppressed and best.node is not None
        of_classes = asked.suppression.criteria if asked.suppression is not None and suppresses else []
        searched = [[checks.values[node][criterion] for criterion in of_classes], *(own.searched for own in local)]
        return Protection(
            plan=Plan([]),
            rows=asked.counted.rows,
            suppressed_rows=suppressed - sum(own.rows for own in local),
            suppressed_cells=0,
            rows_with_cells=None,
            cells_unreached=False,
            levels=asked.by_column(node),
            heights={column.name: column.height for column in asked.levels},
            groups={
                column.name: column.described(level, SHOWN_GROUPS)
                for column, level in zip(asked.levels, node, strict=True)
            },
            losses={column.name: column.losses[level] for column, level in zip(asked.levels, node, strict=True)},
            objective=str(request.objective),
            unit=objective.unit,
            loss=loss,
            loss_share=loss / highest if highest else 0.0,
            highest_loss=highest,
            risk=[],
            before=before[:-1],
            smallest_class=None,
            unique_rows=None,
            unique_rows_before=int(before[-1].value or 0),
            certain_rows={},
            certain_rows_before=certain_rows(asked.counted, criteria, asked.engine),
            singled_out={},
            unmeasured=[],
            unused_weights=criteria.given.weights if all(own.is_of_sizes for own in criteria.criteria) else None,
            searched=[_least_safe(own) for own in zip(*searched, strict=True)],
            local=local,
            checks=search.checked,
            nodes=self._nodes,
            optimal=best.complete and best.node is not None,
            gap=0.0 if best.complete or not loss else (loss - bound) / loss,
            stopped_by=stopped_by,
            frontier=self._frontier(losses),
            proposed=[name for name in asked.hierarchies if name not in (*request.hierarchies, *request.strata)],
            identifiers=request.identifiers,
            device=asked.engine.device,
            seconds={},
            attacker=_attackers(criteria, criteria.scored if request.quasi_identifiers is None else ()),
            weighed=bool(request.importance),
        )

    def _frontier(self, losses: Mapping[Levels, float]) -> list[FrontierNode]:
        """Return the nodes that no other node equals or beats in loss, values and suppressed rows, the cheapest first.

        losses: by node. Nodes at which a criterion has no value, or at which more rows would be suppressed than may be,
        are left out.
        """
        asked, checks, nodes = self._asked, self._checks, []
        criteria, most = asked.criteria.criteria, asked.most
        for node, loss in losses.items():
            measured = [checks.values[node][own] for own in criteria if own in checks.values[node]]
            known = [(own.criterion, float(own.value)) for own in measured if own.value is not None]
            if len(known) < len(criteria):
                continue
            hidden = checks.suppressed.get(node, 0)
            if hidden > most:
                continue
            risks = [*(value if criterion.at_most else -value for criterion, value in known), hidden]
            is_met = all(own.is_met for own in measured)
            figures = {str(criterion): value for criterion, value in known}
            nodes.append((risks, node, FrontierNode(asked.by_column(node), loss, figures, hidden, is_met)))
        costs = with_ties(np.array([own.loss for _, _, own in nodes]))
        best: list[tuple[Sequence[float], FrontierNode]] = []
        # Of nodes that are equal in everything, the node with the lowest levels comes first.
        for _, (risks, _, own) in sorted(zip(costs, nodes, strict=True), key=lambda one: (one[0], *one[1][:2])):
            if not any(all(x <= y for x, y in zip(other, risks, strict=True)) for other, _ in best):
                best.append((risks, own))
        return [own for _, own in best]

    def _nearest(self, before: Sequence[CriterionValue], best: SearchResult, search: LatticeSearch) -> Protection:
        """Return the node that comes nearest to the criteria. Its `unmet` says why no node meets them."""
        asked, checks = self._asked, self._checks
        top = tuple(column.height for column in asked.levels)
        failing = [value for value in checks.values_of_all_rows(top) if not value.is_met]
        listed = " ".join(_why_not_met(value, asked.criteria, asked.counted) for value in failing)
        most = asked.most
        measured = {
            node: max(own.shortfall for own in values.values())
            for node, values in checks.values.items()
            if len(values) == len(asked.criteria.criteria) and checks.suppressed.get(node, 0) <= most
        }
        node = min(measured, key=lambda own: (measured[own], search.price(own).cost, own), default=top)
        suppressed = checks.suppressed_rows(node)
        over = ""
        if most < suppressed < asked.counted.rows:
            rows = f"{suppressed:,} of {asked.counted.rows:,} rows ({as_percent(suppressed / asked.counted.rows)})"
            over = f" The plan that comes nearest suppresses {rows}; {most:,} may be suppressed."
        found = self._found(before, best, node, search, None if best.complete else "time limit", [])
        # Without any row nothing is released: the nearest plan then suppresses none.
        found = replace(found, suppressed_rows=suppressed if over or suppressed <= most else 0)
        if not best.complete:
            why = f"time_limit: no treatment was found that meets the criteria, in {_checks_of(search)}. Raise it, or "
            why += f"relax a criterion. {listed}"
        else:
            together = f"Together they are not met at any node, in {_checks_of(search)}."
            why = f"require: no treatment meets the criteria. {asked.small_stratum() or listed or together}"
        return replace(found, unmet=f"{why.rstrip()}{over}")


def _attackers(criteria: CriterionSet, scored: Sequence[Hashable]) -> str:
    """Return a sentence about what the attackers of the criteria know.

    scored: the columns that are all known if the quasi-identifiers are; none if the user named the quasi-identifiers.
    """
    known: dict[str, list[str]] = {}
    for own in criteria.criteria:
        line = attacker_line(criteria.known(own), scored)
        known.setdefault(line, []).append(str(own) if own.of_default_attacker else str(own).partition(": ")[0])
    if len(known) == 1:
        return next(iter(known))
    several = [f"{line.removeprefix(ATTACKER)[:-1]} ({', '.join(dict.fromkeys(of))})" for line, of in known.items()]
    return f"The attackers know {'; '.join(several)}."


def _least_safe(values: Sequence[CriterionValue]) -> CriterionValue:
    """Return the least safe of several values of a criterion, of which some may not be defined."""
    defined = [own for own in values if own.value is not None] or values
    return (max if values[0].criterion.at_most else min)(defined, key=lambda own: own.value or 0.0)


def _checks_of(search: LatticeSearch) -> str:
    return f"{search.checked:,} {plural(search.checked, 'check')}"


def tell_time(report: Reporter, nodes: int, seconds: float, limit: float) -> None:
    """Say how long a search takes at worst, if that is long.

    nodes: the nodes that are left to check. seconds: of one check, the mean so far. limit: seconds until the time
    limit.
    """
    worst = seconds * nodes
    if worst < SHORT_SEARCH:
        return
    ends = f" It ends in {duration(limit)}, at the time limit, with the best plan." if limit < worst else ""
    report.say(
        f"the search has {nodes:,} nodes left to check, each in about {seconds:.2g} s: {duration(worst)} at worst."
        f"{ends} Ctrl-C keeps the best plan so far."
    )


def _why_not_met(value: CriterionValue, criteria: CriterionSet, table: CountedTable) -> str:
    """Return why a criterion is not met with all columns at their top, in a sentence."""
    criterion = value.criterion
    known = criteria.known(criterion)
    names: Sequence[Hashable] = list(known.pool or ()) if isinstance(known, AnyKnown) else known
    fixed = [name for name in names if name not in criteria.quasi_identifiers and name != value.column]
    came = "not defined" if value.value is None else as_cell(value.value)
    said = f"{str(criterion)!r} is not even met with each quasi-identifier at its top level: it is {came}"
    of_values = not (isinstance(criterion.quantity, ScoreQuantity) and criterion.quantity.is_of_size)
    if of_values and value.column is not None and value.column not in criteria.quasi_identifiers:
        return (
            f"{said} in column {value.column!r}. The column is sensitive and stays as it is, with "
            f"{_distribution(value.column, table)}. Relax the criterion, or make the column coarser before."
        )
    if fixed:
        return (
            f"{said}. The attacker knows column {', '.join(map(repr, fixed))}, which the plan does not change. Name it "
            "in quasi_identifiers=, or relax the criterion."
        )
    return f"{said}. The table has {table.rows:,} {plural(table.rows, 'row')}. Relax the criterion."


def _distribution(name: Hashable, table: CountedTable) -> str:
    """Return how many values a column has, and how common the most common one is, in words."""
    column = table.columns[table.place(name)]
    most = int(column.counts.argmax())
    share = int(column.counts[most]) / table.rows
    value = column.values([most])[0]
    shown = "missing values" if value is None else repr(value)
    values = f"{column.cardinality:,} different {plural(column.cardinality, 'value')}"
    return f"{values}, {shown} in {100 * share:.3g} % of the rows"
