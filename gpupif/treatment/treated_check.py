"""The check of a treated table: whether it meets the criteria of its plan."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..attack.arguments import as_attackers
from ..attack.attackers import AnyKnown, Known
from ..attack.population import Population
from ..criteria.criterion import Criterion, read_criteria
from ..criteria.criterion_set import CriterionSet, CriterionValue, named_by_attackers, named_columns
from ..criteria.measured_table import measure_table
from ..criteria.quantities import ModelQuantity, RiskQuantity, ScoreQuantity
from ..disclosure.risk_figures import RiskArguments
from ..errors import NearlyUniqueWarning, NothingKnownWarning, UnmetError
from ..frames.open import table_names, table_orders
from ..utils.display import json_value
from .dropped_columns import Drop
from .plan import QUASI_IDENTIFIERS, SENSITIVE, Plan
from .plan_criteria import PlanCriteria
from .suppression.suppress import Suppress, SuppressRows, read_distances, risk_arguments
from .value_maps.recode import Recode
from .value_maps.recode_rows import RecodeRows


class Checked(NamedTuple):
    """A treated table as it meets the criteria of its plan.

    values: the values of the criteria that could be measured. unmeasured: what each other criterion needs.
    """

    values: list[CriterionValue]
    unmeasured: dict[Criterion, str]

    def to_record(self) -> list[dict[str, Any]]:
        """Return the criteria for a record, ready for JSON."""
        values = [*self.values, *(CriterionValue(criterion, None, False) for criterion in self.unmeasured)]
        return [{name: json_value(own) for name, own in value._asdict().items()} for value in values]


class _Asked(NamedTuple):
    """Criteria of a plan: the part that has them, what the attacker knows and learns, and how cells are read."""

    part: Any
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


# Treats a table by a plan, with the key of the run.
TreatAs = Callable[[Any, Plan], Any]


def check_treated(
    plan: Plan,
    table: Any,
    rows: int,
    source: Any = None,
    treat_as: TreatAs | None = None,
    population: Population | None = None,
) -> Checked:
    """Measure the criteria of a plan in a treated table of any kind or a path; there are none if no row is left.

    Criteria are those of ``[criteria]``, or without it those of treatments that remove rows or suppress cells. Columns
    that the plan drops are known to nobody. rows: the rows of the table.
    source, treat_as: the table before, and how it is treated. If a criterion needs weights or households in a column
    that the plan drops last, as plans of `gpupif.protect` do, the table is treated again without dropping it.
    population: the population that criteria need. It is recoded as the table is.
    """
    checked = Checked([], {})
    with warnings.catch_warnings():
        # These warnings are for the table before.
        warnings.simplefilter("ignore", NearlyUniqueWarning)
        warnings.simplefilter("ignore", NothingKnownWarning)
        for asked in _asked(plan) if rows else ():
            measured, names = table, [name for own in table_names(table) for name in own]
            lacking = [name for name in _columns_of_rows(asked.part) if name not in names]
            if lacking and treat_as is not None:
                measured = treat_as(source, _without_dropping(plan, lacking))
                names = [*names, *(name for name in table_names(measured)[0] if name in lacking)]
            # As for treatments, ordered categories have no order in any table, as they have none in files.
            nominal = dict.fromkeys(table_orders(measured), "nominal")
            criteria, unmeasured = _criteria_in(asked, names, population, nominal)
            checked.unmeasured.update(unmeasured)
            if criteria.criteria:
                if treat_as is not None:
                    criteria = replace(criteria, given=with_treated_population(criteria.given, plan, treat_as))
                checked.values.extend(measure_table(measured, criteria, asked.both_readings))
    return checked


def has_criteria(plan: Plan) -> bool:
    """Return whether treated tables are measured by criteria of a plan."""
    return bool(_asked(plan))


def why_unmet(plan: Plan, checked: Checked) -> str | None:
    """Return why a treated table is not what was asked, in sentences; None if it is."""
    broken = [value.said for value in checked.values if not value.is_met]
    said = [f"the treated table does not meet the criteria: {', '.join(broken)}."] if broken else []
    said += [
        f"{str(criterion)!r} cannot be measured in the treated table: it needs {what}."
        for criterion, what in checked.unmeasured.items()
    ]
    if not said and plan.criteria is not None and plan.criteria.unmet is not None:
        said = [f"it is marked as unmet: {plan.criteria.unmet.rstrip('.')}."]
    return f"plan: {' '.join(said)}" if said else None


def refuse_unmet(plan: Plan, checked: Checked, keep_unmet: bool) -> None:
    """Raise UnmetError for a treated table that is not what was asked, unless it is kept all the same."""
    why = why_unmet(plan, checked)
    if why is not None and not keep_unmet:
        raise UnmetError(f"{why} Nothing is released.")


def _columns_of_rows(part: Any) -> list[Hashable]:
    """Return the columns that say for how many people or for which household a row stands."""
    named = (getattr(part, name, None) for name in ("weights", "household"))
    return [name for name in named if name is not None]


def _without_dropping(plan: Plan, columns: Sequence[Hashable]) -> Plan:
    """Return a plan that does not drop some columns at its end. No random number of other treatments changes."""
    treatments = list(plan.treatments)
    for place in range(len(treatments) - 1, -1, -1):
        treatment = treatments[place]
        if not isinstance(treatment, Drop):
            break
        left = [name for name in treatment.columns if name not in columns]
        treatments[place : place + 1] = [Drop(left)] if left else []
    return Plan(treatments, plan.hierarchies, criteria=PlanCriteria(require=[]))


def with_treated_population(given: RiskArguments, plan: Plan, treat_as: TreatAs) -> RiskArguments:
    """Return arguments of `gpupif.risk` with a population, if any, whose values are recoded as the table's are."""
    there = [] if given.population is None else table_names(given.population.table)[0]
    recoding = [own for own in plan.treatments if isinstance(own, Recode) and own.column in there]
    if given.population is None or not recoding:
        return given
    hierarchies = {own.column: plan.hierarchies[own.column] for own in recoding if own.column in plan.hierarchies}
    treated = treat_as(given.population.table, Plan(recoding, hierarchies))
    return replace(given, population=replace(given.population, table=treated))


def _asked(plan: Plan) -> list[_Asked]:
    suppresses = [own for own in plan.treatments if isinstance(own, Suppress) and own.where is None]
    both = any(own.missing is None for own in suppresses)
    if plan.criteria is not None:
        own = plan.criteria
        asked = _Asked(own, plan.quasi_identifiers, plan.sensitive, both and own.missing is None)
        return [asked] if len(own.require) else []
    found = []
    for treatment in plan.treatments:
        if isinstance(treatment, Suppress) and treatment.where is None:
            known = treatment.columns if treatment.quasi_identifiers is None else treatment.quasi_identifiers
        elif isinstance(treatment, SuppressRows) and treatment.where is None and treatment.remove:
            known = treatment.quasi_identifiers or ()
        elif isinstance(treatment, RecodeRows) and treatment.remove:
            known = list(treatment.levels)
        else:
            continue
        sensitive = getattr(treatment, "sensitive", None) or ()
        found.append(_Asked(treatment, known, sensitive, both and getattr(treatment, "missing", None) is None))
    return found


def _criteria_in(
    asked: _Asked, names: Sequence[Hashable], population: Population | None, distances: Mapping[Hashable, Any]
) -> tuple[CriterionSet, dict[Criterion, str]]:
    """Return the criteria that a table with some columns can be measured by, and what the others need.

    Criteria on values of dropped columns are left out: nothing can be learnt of them. distances: of columns for which
    the plan gives none.
    """
    part, there = asked.part, {str(name) for name in names}
    known, sensitive = ([name for name in own if name in names] for own in (asked.known, asked.sensitive))
    attackers = {
        name: _without_columns(own, names)
        for name, own in (as_attackers(getattr(part, "attackers", None)) or {}).items()
    }
    k = getattr(part, "k", None)
    weights, household = getattr(part, "weights", None), getattr(part, "household", None)
    measured, unmeasured = list[Criterion](), dict[Criterion, str]()
    for criterion in read_criteria(part.require if k is None else f"k>={k}"):
        quantity = criterion.quantity
        of_column = getattr(quantity, "column", None)
        of_values = isinstance(quantity, ModelQuantity) and quantity.sensitive
        gone = (of_column is not None and of_column not in there) or (of_values and not sensitive)
        # Without quasi-identifiers all rows are one class, of which only models are defined.
        if gone or (not known and not (sensitive and isinstance(quantity, ModelQuantity))):
            continue
        needs = quantity.figure.needs if isinstance(quantity, RiskQuantity) else set()
        of_rows = [household] if "household" in needs else []
        of_rows += [] if criterion.is_of_sizes and "weights" not in needs else [weights]
        lacking = [name for name in of_rows if name is not None and name not in names]
        if "population" in needs and population is None:
            unmeasured[criterion] = "population="
        elif lacking:
            unmeasured[criterion] = f"column {lacking[0]!r}, which the plan drops"
        elif isinstance(criterion.known, tuple):
            measured.append(replace(criterion, known=tuple(name for name in criterion.known if name in there)))
        elif isinstance(criterion.known, int):
            # Of a cell that is scored, the attacker knows other columns.
            most = len(known) - isinstance(quantity, ScoreQuantity)
            measured.append(replace(criterion, known=min(criterion.known, most) or None))
        else:
            measured.append(criterion)
    given_distances = {**distances, **read_distances(getattr(part, "distances", None))}
    needed = {need for own in measured if isinstance(own.quantity, RiskQuantity) for need in own.quantity.figure.needs}
    needed |= {"sampling_fraction"} if "population_size" in needed else set()
    needed |= {"weights"} if weights in names else set()
    given = risk_arguments(part, needed)
    used = {own.attacker for own in measured}
    criteria = CriterionSet(
        measured,
        known,
        sensitive,
        {name: _without_columns(own, names) for name, own in attackers.items() if name in used},
        {name: own for name, own in given_distances.items() if name in names},
        getattr(part, "missing", None) or "category",
        replace(given, population=population) if "population" in needed else given,
    )
    return criteria, unmeasured


def _without_columns(known: Known, names: Sequence[Hashable]) -> Known:
    """Return what an attacker knows of a table with some columns, if it knew more."""
    if isinstance(known, AnyKnown):
        among = [name for name in known.pool or () if name in names]
        return replace(known, known=min(known.known, len(among)), among=among) if known.pool is not None else known
    return None if known is None else [name for name in known if name in names]
