"""The check of a treated table: whether it meets the criteria of its plan."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..attack.arguments import as_attackers
from ..attack.attackers import Known
from ..criteria.counted_scores import known_columns
from ..criteria.criterion import Criterion, read_criteria
from ..criteria.criterion_set import CriterionSet, CriterionValue, named_by_attackers, named_columns
from ..criteria.measured_table import measure_table
from ..criteria.quantities import ModelQuantity, RiskQuantity, ScoreQuantity
from ..errors import NearlyUniqueWarning, NothingKnownWarning, UnmetError, warn
from ..frames.open import table_names, table_orders
from .plan import QUASI_IDENTIFIERS, SENSITIVE, Plan
from .suppression.suppress import Suppress, SuppressRows, read_distances, risk_arguments
from .value_maps.recode_rows import RecodeRows


class _Asked(NamedTuple):
    """Criteria of a plan: where they are written, what the attacker knows and learns, and how cells are read."""

    part: Any
    said: str
    known: Sequence[Hashable]
    sensitive: Sequence[Hashable]
    both_readings: bool


def named_by_criteria(plan: Plan) -> dict[Hashable, str]:
    """Return the columns that the criteria of a plan need in the table before, each with what names it, for errors."""
    own = plan.criteria
    if own is None or not len(own.require):
        return {}
    scored, named = [*plan.quasi_identifiers, *plan.sensitive], dict[Hashable, str]()
    for criterion in read_criteria(own.require):
        if isinstance(criterion.known, tuple):
            named |= dict.fromkeys(named_columns(criterion.known, scored), f"criterion {str(criterion)!r}")
    named |= named_by_attackers(as_attackers(own.attackers) or {})
    named |= {getattr(own, field): f"criteria: {field}" for field in ("weights", "household")}
    named |= dict.fromkeys(plan.sensitive, SENSITIVE) | dict.fromkeys(plan.quasi_identifiers, QUASI_IDENTIFIERS)
    return {name: f"plan: {argument}" for name, argument in named.items() if name is not None}


def check_treated(plan: Plan, table: Any, rows: int) -> list[CriterionValue]:
    """Return the value of each criterion of a plan in a treated table of any kind or a path, none if no row is left.

    rows: the rows of the table. Criteria are those of ``[criteria]``, or without it those of treatments that remove
    rows or suppress cells. Warns of criteria that the table cannot be measured by: they need a population, or a column
    that the plan drops.
    """
    values: list[CriterionValue] = []
    with warnings.catch_warnings():
        # These warnings are for the table before.
        warnings.simplefilter("ignore", NearlyUniqueWarning)
        warnings.simplefilter("ignore", NothingKnownWarning)
        for asked in _asked(plan) if rows else ():
            names = [name for own in table_names(table) for name in own]
            # As for treatments, ordered categories have no order in any table, as they have none in files.
            nominal = dict.fromkeys(table_orders(table), "nominal")
            criteria = _criteria_in(asked, names, nominal)
            if criteria is not None:
                values += measure_table(table, criteria, asked.both_readings)
    return values


def why_unmet(plan: Plan, values: Sequence[CriterionValue]) -> str | None:
    """Return why a treated table is not what was asked, in a sentence; None if it is. values: of `check_treated`."""
    broken = ", ".join(value.said for value in values if not value.is_met)
    if broken:
        return f"plan: the treated table does not meet the criteria: {broken}."
    if plan.criteria is not None and plan.criteria.unmet is not None:
        return f"plan: it is marked as unmet: {plan.criteria.unmet}"
    return None


def refuse_unmet(plan: Plan, values: Sequence[CriterionValue], keep_unmet: bool) -> None:
    """Raise UnmetError for a treated table that is not what was asked, unless it is kept all the same."""
    why = why_unmet(plan, values)
    if why is not None and not keep_unmet:
        raise UnmetError(f"{why} Nothing is released.")


def _asked(plan: Plan) -> list[_Asked]:
    suppresses = [own for own in plan.treatments if isinstance(own, Suppress) and own.where is None]
    both = any(own.missing is None for own in suppresses)
    if plan.criteria is not None:
        own = plan.criteria
        asked = _Asked(own, "criteria", plan.quasi_identifiers, plan.sensitive, both and own.missing is None)
        return [asked] if len(own.require) else []
    found = []
    for number, treatment in enumerate(plan.treatments, 1):
        said = f"treatment {number} ({treatment.do})"
        if isinstance(treatment, Suppress) and treatment.where is None:
            known = treatment.columns if treatment.quasi_identifiers is None else treatment.quasi_identifiers
        elif isinstance(treatment, SuppressRows) and treatment.where is None and treatment.remove:
            known = treatment.quasi_identifiers or ()
        elif isinstance(treatment, RecodeRows) and treatment.remove:
            known = list(treatment.levels)
        else:
            continue
        sensitive = getattr(treatment, "sensitive", None) or ()
        found.append(_Asked(treatment, said, known, sensitive, both and getattr(treatment, "missing", None) is None))
    return found


def _criteria_in(asked: _Asked, names: Sequence[Hashable], distances: Mapping[Hashable, Any]) -> CriterionSet | None:
    """Return the criteria that a table with some columns can be measured by, None for none. Warns of the others.

    distances: of columns for which the plan gives none.
    """
    given = {name: getattr(asked.part, name, None) for name in ("k", "attackers", "weights", "household", "missing")}
    attackers = as_attackers(given["attackers"]) or {}
    left = asked._replace(
        known=[name for name in asked.known if name in names],
        sensitive=[name for name in asked.sensitive if name in names],
    )
    measured = []
    for criterion in read_criteria(asked.part.require if given["k"] is None else f"k>={given['k']}"):
        why = _not_measured(criterion, attackers, given, names)
        of_values = isinstance(criterion.quantity, ModelQuantity) and criterion.quantity.sensitive
        if why is None and not (left.sensitive if of_values else left.known):
            why = _dropped((asked.sensitive if of_values else asked.known)[0])
        if why is None:
            most = len(left.known) - isinstance(criterion.quantity, ScoreQuantity)
            if isinstance(criterion.known, int) and criterion.known > most:
                # Of the columns that the plan leaves, the attacker knows any few that there are.
                criterion = replace(criterion, known=most or None)
            measured.append(criterion)
            continue
        warn(
            f"plan: {asked.said}: criterion {str(criterion)!r} was not measured in the treated table: it needs {why}. "
            "Measure it before the table goes out.",
            UserWarning,
        )
    if not measured:
        return None
    used = {own.attacker for own in measured}
    needed = {need for own in measured if isinstance(own.quantity, RiskQuantity) for need in own.quantity.figure.needs}
    needed |= {"sampling_fraction"} if "population_size" in needed else set()
    needed |= {"weights"} if given["weights"] in names else set()
    return CriterionSet.from_arguments(
        measured,
        left.known,
        left.sensitive,
        {name: own for name, own in attackers.items() if name in used} or None,
        {**distances, **read_distances(getattr(asked.part, "distances", None))},
        names=names,
        missing=given["missing"] or "category",
        given=risk_arguments(asked.part, needed),
    )


def _not_measured(
    criterion: Criterion, attackers: Mapping[str, Known], given: Mapping[str, Any], names: Sequence[Hashable]
) -> str | None:
    """Return what a criterion needs and a treated table has not; None if it can be measured."""
    quantity, known = criterion.quantity, criterion.known
    needs = quantity.figure.needs if isinstance(quantity, RiskQuantity) else set()
    if "population" in needs:
        return "the population, which no plan holds"
    if criterion.attacker is not None:
        known = tuple(map(str, known_columns(attackers.get(criterion.attacker) or ())))
    needed = [*(known if isinstance(known, tuple) else ()), getattr(quantity, "column", None)]
    needed += [given["household"]] if "household" in needs else []
    needed += [] if criterion.is_of_sizes and "weights" not in needs else [given["weights"]]
    lacking = [name for name in needed if name is not None and str(name) not in map(str, names)]
    return _dropped(lacking[0]) if lacking else None


def _dropped(name: Hashable) -> str:
    return f"column {str(name)!r}, which the plan drops"
