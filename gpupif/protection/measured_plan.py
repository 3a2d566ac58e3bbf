"""The plan of a node, and the risk of the table that is treated by it."""

from __future__ import annotations

import signal
from collections.abc import Hashable, Sequence
from dataclasses import asdict, replace
from typing import Any

from ..criteria.class_criteria import ORIGINAL, ClassCriteria
from ..errors import UnmetError
from ..frames.open import table_names
from ..treatment.plan import Plan
from ..treatment.plan_criteria import PlanCriteria
from ..treatment.suppression.suppress import Suppress, SuppressRows
from ..treatment.treatment import Treatment
from ..treatment.value_maps.recode import Recode
from ..treatment.value_maps.recode_rows import RecodeRows
from ..utils.display import as_cell
from ..utils.progress import Reporter
from ..utils.signals import Interrupted
from .counted_request import CountedRequest
from .identifiers import KEEP, identifier_treatments
from .result import Protection
from .treated_risk import TreatedRisk, measure_treated


def measure_plan(asked: CountedRequest, found: Protection, report: Reporter) -> Protection:
    """Make the plan of the best node, treat the table by it, and measure the risk.

    If the user ends that (Ctrl-C), the plan that suppresses whole rows is returned without a risk.
    """
    try:
        return _measure(asked, found)
    except (KeyboardInterrupt, Interrupted) as interrupted:
        if getattr(interrupted, "number", signal.SIGINT) != signal.SIGINT:
            raise
    report.say("interrupted: the plan is kept, but the treated table was not measured.")
    plan = _make_plan(asked, found)
    return replace(found, plan=_whole_plan(asked, found, plan), searched=())


def _measure(asked: CountedRequest, found: Protection) -> Protection:
    """Make the plan, and measure the risk.

    Single cells are suppressed if they are asked for, unless they are in too many rows or do not meet the criteria.
    """
    if asked.request.cells and asked.suppression is not None and found.suppressed_rows and found.unmet is None:
        try:
            plan = _make_plan(asked, found, cells=True)
            after = measure_treated(asked.table, plan, asked.criteria, _unchanged(asked), cells=True)
        except UnmetError:
            found = replace(found, cells_unreached=True)
        else:
            if not all(value.is_met for value in after.values):
                found = replace(found, cells_unreached=True)
            elif after.rows <= asked.suppression.most:
                return _measured(asked, replace(found, searched=()), plan, after)
            else:
                found = replace(found, rows_with_cells=after.rows)
    if found.local:
        plan = _make_plan(asked, found)
        after = measure_treated(asked.table, plan, asked.criteria, _unchanged(asked))
        assert asked.suppression is not None
        if all(value.is_met for value in after.values) and after.rows <= asked.suppression.most:
            return _measured(asked, found, plan, after)
        found = replace(found, local=(), local_unreached=True)
    plan = _make_plan(asked, found)
    return _measured(asked, found, plan, measure_treated(asked.table, plan, asked.criteria, _unchanged(asked)))


def _measured(asked: CountedRequest, found: Protection, plan: Plan, after: TreatedRisk) -> Protection:
    broken = [value for value in after.values if not value.is_met]
    if found.unmet is None and broken:
        why = f"require: the treated table does not meet the criteria: {', '.join(value.said for value in broken)}."
        if asked.request.reference == ORIGINAL:
            why += " Its classes were compared with suppressed rows, too, as reference 'original' asks."
        found = replace(found, unmet=why)
    elif found.unmet is not None and not broken and after.rows <= asked.most:
        found = replace(
            found, unmet=f"{found.unmet} The plan that comes nearest meets them; there was no time to check it."
        )
    elif found.unmet is not None:
        # The message may have the same value, with each column at its top.
        others = [value.said for value in broken if value.value is None or as_cell(value.value) not in found.unmet]
        nearest = f" In the plan that comes nearest {', '.join(others)}." if others else ""
        found = replace(found, unmet=f"{found.unmet}{nearest}")
    return replace(
        found,
        plan=_whole_plan(asked, found, plan, met=not broken and after.rows <= asked.most),
        suppressed_rows=after.rows,
        suppressed_cells=after.cells,
        risk=after.values,
        smallest_class=after.smallest_class,
        unique_rows=after.unique_rows,
        certain_rows=after.certain_rows,
        singled_out=after.singled_out,
        unmeasured=_unchanged(asked),
    )


def _unchanged(asked: CountedRequest) -> list[Hashable]:
    """Return the columns that are no part of the criteria, and that the plan leaves as they are."""
    changed = {name for name, done in asked.request.identifiers.items() if done != KEEP}
    named = {*asked.criteria.scored, *changed}
    return [name for name in table_names(asked.table)[0] if name not in named]


def _whole_plan(asked: CountedRequest, found: Protection, plan: Plan, met: bool = False) -> Plan:
    """Return a plan with the treatments of identifiers, the roles of columns, and what the treated table must meet.

    met: whether the treated table meets all criteria. A plan that does not is marked.

    Treatments that suppress may measure by an identifier, such as the household, so that it is treated last.
    """
    by_measure = asked.request.given.columns
    first = {name: done for name, done in asked.request.identifiers.items() if name not in by_measure}
    last = {name: done for name, done in asked.request.identifiers.items() if name in by_measure}
    treatments = [*identifier_treatments(first), *plan.treatments, *identifier_treatments(last)]
    request, given = asked.request, asked.criteria.given
    criteria = PlanCriteria(
        require=[str(criterion) for criterion in request.criteria],
        attackers=request.attackers or None,
        distances=_distances(asked, [name for name in asked.criteria.scored if not found.levels.get(name)]),
        weights=given.weights,
        household=given.household,
        game=None if given.game is None else asdict(given.game),
        sampling_fraction=given.sampling_fraction,
        population_size=given.population_size,
        missing="wildcard" if request.missing == "wildcard" else None,
        unmet=None if met else found.unmet,
    )
    return Plan(treatments, plan.hierarchies, asked.criteria.quasi_identifiers, asked.criteria.sensitive, criteria)


def _make_plan(asked: CountedRequest, found: Protection, cells: bool = False) -> Plan:
    """Return the plan that recodes the columns and then suppresses. cells: whether single cells are suppressed."""
    levels = {name: [level, *(own.levels[name] for own in found.local)] for name, level in found.levels.items()}
    treatments: list[Treatment] = [Recode(name, level=level) for name, (level, *_) in levels.items() if level]
    known = list(asked.criteria.quasi_identifiers)
    if found.local:
        # Local recoding removes the rows that are left.
        treatments = [RecodeRows(levels, remove=True, **_criteria_of_classes(asked, ORIGINAL))]
    elif cells:
        treatments.append(_suppress_cells(asked, found))
    elif found.suppressed_rows:
        treatments.append(SuppressRows(quasi_identifiers=known, **_criteria_of_classes(asked, asked.request.reference)))
    hierarchies = {name: asked.hierarchies[name] for name, own in levels.items() if any(own)}
    # The caller measures the treated table.
    return Plan(treatments, hierarchies, criteria=PlanCriteria(require=[]))


def _suppress_cells(asked: CountedRequest, found: Protection) -> Suppress:
    """Return the treatment that suppresses single cells until all criteria hold."""
    request, known, given = asked.request, list(asked.criteria.quasi_identifiers), asked.criteria.given
    return Suppress(
        columns=[name for name in known if name not in request.strata],
        require=[str(criterion) for criterion in request.criteria],
        quasi_identifiers=known,
        sensitive=list(request.sensitive) or None,
        attackers=request.attackers or None,
        weights=given.weights,
        household=given.household,
        game=None if given.game is None else asdict(given.game),
        population_size=given.population_size,
        missing="wildcard" if request.missing == "wildcard" else None,
        importance=dict(request.importance) or None,
        distances=_distances(asked, [name for name in asked.criteria.scored if not found.levels.get(name)]),
    )


def _criteria_of_classes(asked: CountedRequest, reference: str) -> dict[str, Any]:
    """Return the arguments by which a treatment judges classes."""
    attackers, criteria = ClassCriteria.by_attacker(asked.criteria), asked.criteria
    matching = {"missing": "wildcard"} if criteria.missing == "wildcard" else {}
    if len(attackers) == 1 and attackers[0].is_over(criteria.quasi_identifiers) and not attackers[0].models:
        return {"k": attackers[0].k, **matching}
    columns = list(dict.fromkeys(name for own in attackers for name in own.columns))
    require = [criterion for own in attackers for criterion in own.criteria]
    named = {own.attacker: criteria.known(own) for own in require if own.attacker is not None}
    compares = any(own.compares for own in attackers)
    original = {"reference": ORIGINAL} if compares and reference == ORIGINAL else {}
    others = {"attackers": named, "weights": criteria.given.weights if columns else None, **matching, **original}
    return {
        "require": [str(criterion) for criterion in require],
        "sensitive": columns or None,
        "distances": _distances(asked, columns),
        **{argument: own for argument, own in others.items() if own},
    }


def _distances(asked: CountedRequest, columns: Sequence[Hashable]) -> dict[Hashable, Any] | None:
    """Return how far values of some columns are apart, as given or by the order of their categories; None for none."""
    orders = {name: list(order) for name, order in asked.counted.orders.items()}
    distances = {**orders, **asked.request.distances}
    return {name: distances[name] for name in columns if name in distances} or None
