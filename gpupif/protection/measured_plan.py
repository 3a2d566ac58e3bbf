"""The plan of a node, and the risk of the table that is treated by it."""

from __future__ import annotations

import signal
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from ..criteria.class_criteria import ClassCriteria
from ..criteria.criterion_set import CriterionValue
from ..errors import UnreachableError
from ..treatment.plan import Plan
from ..treatment.suppression.suppress import Suppress, SuppressRows
from ..treatment.treatment import Treatment
from ..treatment.value_maps.recode import Recode
from ..treatment.value_maps.recode_rows import RecodeRows
from ..utils.progress import Reporter
from ..utils.signals import Interrupted
from .counted_request import CountedRequest
from .node_search import FoundNode
from .treated_risk import TreatedRisk, measure_treated


class MeasuredPlan(NamedTuple):
    """A plan without identifiers, and the risk after it.

    rows_with_cells, cells_unreached, searched: see `Protection`.
    """

    plan: Plan
    after: TreatedRisk
    searched: Sequence[CriterionValue] = ()
    rows_with_cells: int | None = None
    cells_unreached: bool = False


def measure_plan(asked: CountedRequest, found: FoundNode, report: Reporter) -> MeasuredPlan:
    """Make the plan of a node, treat the table by it, and measure the risk.

    If the user ends that (Ctrl-C), the plan that suppresses whole rows is returned without a risk.
    """
    try:
        return _measure(asked, found)
    except (KeyboardInterrupt, Interrupted) as interrupted:
        if getattr(interrupted, "number", signal.SIGINT) != signal.SIGINT:
            raise
    report.say("interrupted: the plan is kept, but the treated table was not measured.")
    suppressed = found.suppressed - sum(own.rows for own in found.local)
    plan = _make_plan(asked, found, _suppressing(asked, found))
    return MeasuredPlan(plan, TreatedRisk([], suppressed, 0, None, None))


def _measure(asked: CountedRequest, found: FoundNode) -> MeasuredPlan:
    """Make the plan, and measure the risk.

    Single cells are suppressed if they are asked for, unless they are in too many rows or do not meet the criteria.
    """
    rows_with_cells, cells_unreached = None, False
    if asked.request.cells and asked.suppression is not None and found.suppressed:
        try:
            plan = _make_plan(asked, found, [_suppress_cells(asked, found)])
            after = measure_treated(asked.table, plan, asked.criteria, cells=True)
        except UnreachableError:
            cells_unreached = True
        else:
            cells_unreached = not all(value.is_met for value in after.values)
            if not cells_unreached and after.rows <= asked.suppression.most:
                return MeasuredPlan(plan, after)
            rows_with_cells = None if cells_unreached else after.rows
    plan = _make_plan(asked, found, _suppressing(asked, found))
    searched = [_worst(own) for own in zip(found.searched, *(own.searched for own in found.local), strict=True)]
    after = measure_treated(asked.table, plan, asked.criteria)
    return MeasuredPlan(plan, after, searched, rows_with_cells, cells_unreached)


def _worst(values: Sequence[CriterionValue]) -> CriterionValue:
    """Return the least safe of several values of a criterion."""
    return (max if values[0].criterion.at_most else min)(values, key=lambda own: own.value or 0.0)


def _make_plan(asked: CountedRequest, found: FoundNode, suppressing: Sequence[Treatment]) -> Plan:
    """Return the plan that recodes the columns and then suppresses."""
    levels = {
        column.name: [level, *(own.levels[column.name] for own in found.local)]
        for column, level in zip(asked.levels, found.node, strict=True)
    }
    recoding: list[Treatment] = [Recode(name, level=level) for name, (level, *_) in levels.items() if level]
    if found.local:
        recoding = [RecodeRows(levels, remove=True, **_criteria_of_classes(asked))]
    hierarchies = {name: asked.hierarchies[name] for name, own in levels.items() if any(own)}
    return Plan([*recoding, *suppressing], hierarchies)


def _suppressing(asked: CountedRequest, found: FoundNode) -> list[Treatment]:
    """Return the treatment that suppresses rows whose class breaks a criterion, unless local recoding does."""
    if found.local or not found.suppressed:
        return []
    return [SuppressRows(quasi_identifiers=list(asked.criteria.quasi_identifiers), **_criteria_of_classes(asked))]


def _suppress_cells(asked: CountedRequest, found: FoundNode) -> Suppress:
    """Return the treatment that suppresses single cells until all criteria hold."""
    request, known = asked.request, list(asked.criteria.quasi_identifiers)
    recoded = [column.name for column, level in zip(asked.levels, found.node, strict=True) if level]
    return Suppress(
        columns=[name for name in known if name not in request.strata],
        require=[str(criterion) for criterion in request.criteria],
        quasi_identifiers=known,
        sensitive=list(request.sensitive) or None,
        attackers=request.attackers or None,
        importance=dict(request.importance) or None,
        distances=_distances(asked, [name for name in asked.criteria.scored if name not in recoded]),
    )


def _criteria_of_classes(asked: CountedRequest) -> dict[str, Any]:
    """Return the arguments by which a treatment judges classes."""
    own = ClassCriteria.from_set(asked.criteria)
    if not own.models:
        return {"k": own.k}
    return {
        "require": [str(criterion) for criterion in own.criteria],
        "sensitive": own.columns,
        "distances": _distances(asked, own.columns),
    }


def _distances(asked: CountedRequest, columns: Sequence[Hashable]) -> dict[Hashable, Any] | None:
    """Return how far values of some columns are apart, as given or by the order of their categories; None for none."""
    orders = {name: list(order) for name, order in asked.counted.orders.items()}
    distances = {**orders, **asked.request.distances}
    return {name: distances[name] for name in columns if name in distances} or None
