"""The limits of a first configuration: criteria as gates, and the limits that offices use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...criteria.criterion import Criterion, read_criteria
from ...criteria.quantities import ClassQuantity, ModelQuantity, RiskQuantity, ScoreQuantity
from ...errors import InputError
from ...treatment.plan import Plan
from ...treatment.suppression.suppress import Suppress, SuppressRows
from .settings import GateSettings, Settings


class OfficeLimit(NamedTuple):
    """A limit that offices use. who: gets the table. source: whose limit it is, as docs/how-to/thresholds.md has it."""

    criterion: str
    who: str
    source: str


# The first is proposed, the others are examples in comments.
OFFICE_LIMITS = (
    OfficeLimit(
        "k>=11",
        "anybody",
        "European Medicines Agency and Health Canada, for clinical data that go public: a risk of at most 0.09, which "
        "1 / 11 is when rounded. If your rule does not round, take 12. Ontario's guidelines take 15 or 20 if the table "
        "is more sensitive.",
    ),
    OfficeLimit(
        "k>=5",
        "researchers under contract",
        "World Bank (practice guide for sdcMicro) and Handbook on Statistical Disclosure Control, which also name 3, "
        "and do not say for whom.",
    ),
    OfficeLimit("uniques<=0", "your own staff, in a closed room", "No office's limit, but a place to start."),
)


def gates_of(
    criteria: Sequence[Criterion], settings: Settings, treated: bool = False
) -> tuple[list[GateSettings], Settings]:
    """Return a gate for each criterion, and settings with the measures and parameters that the gates depend on.

    treated: the gates measure the treated table. Raises InputError for a criterion that no gate can have.
    """
    gates, needed = [], dict[str, Any]()
    for criterion in criteria:
        if not criterion.of_default_attacker:
            raise _refused(criterion, "expected nothing before a colon: a gate is about risk.quasi_identifiers")
        if treated and not criterion.of_classes:
            raise _refused(criterion, "expected a figure of classes, such as k: a gate on a treated table has no other")
        kind, subject, own = _kind_of(criterion)
        for name, value in own.items():
            if needed.setdefault(name, value) != value:
                raise _refused(criterion, f"expected {name} {needed[name]:g} as before: all gates have the same")
        measures = settings.score.measures
        if subject.get("measure") not in (None, *measures):
            score = settings.score.model_copy(update={"measures": [*measures, subject["measure"]]})
            settings = settings.model_copy(update={"score": score})
        limit: dict[str, Any] = {"max" if criterion.at_most else "min": criterion.limit}
        gates.append(GateSettings(kind=kind, **subject, **limit, treated=treated))
    return gates, settings.model_copy(update={"risk": settings.risk.model_copy(update=needed)})


def _kind_of(criterion: Criterion) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return the kind of gate that measures the figure of a criterion, its further keys, and the keys of [risk]."""
    quantity = criterion.quantity
    column = {} if quantity.column is None else {"column": quantity.column}
    if isinstance(quantity, ModelQuantity):
        return quantity.model.name, column, {"l": quantity.l_values} if quantity.l_values else {}
    if isinstance(quantity, ClassQuantity):
        return quantity.figure.name, {}, dict(zip(quantity.figure.depends[-1:], [quantity.parameter], strict=False))
    if isinstance(quantity, RiskQuantity):
        return quantity.figure.path, {}, quantity.arguments
    assert isinstance(quantity, ScoreQuantity)
    share = {} if quantity.percentile is None else {"percentile": float(quantity.percentile)}
    if quantity.measure is None:
        if not share:
            raise _refused(criterion, "expected a percentile, such as pif95: no gate is on the mean of rows")
        return "pif", share, {}
    subject = {"measure": quantity.measure.name, **column}
    if not share:
        return "mean", subject, {}
    extreme = {100.0: "max", 0.0: "min"}.get(share["percentile"])
    return (extreme, subject, {}) if extreme else ("percentile", {**subject, **share}, {})


def _refused(criterion: Criterion, reason: str) -> InputError:
    return InputError(f"criterion {str(criterion)!r}: {reason}. Leave it out, or write a gate of your own afterwards.")


def criteria_of_plan(plan: Plan) -> list[Criterion]:
    """Return the criteria that a plan makes a table meet; there may be none.

    Without criteria of the plan they are those of its treatments that suppress. Raises InputError if these are about
    other quasi-identifiers than the plan.
    """
    if plan.criteria is not None:
        return read_criteria(plan.criteria.require) if len(plan.criteria.require) else []
    texts: list[str] = []
    for number, treatment in enumerate(plan.treatments, 1):
        if isinstance(treatment, Suppress | SuppressRows):
            own = treatment.require or []
            found = [*([own] if isinstance(own, str) else own), *([f"k>={treatment.k}"] if treatment.k else [])]
            known = treatment.quasi_identifiers or (treatment.columns if isinstance(treatment, Suppress) else None)
            if found and set(known or ()) != set(plan.quasi_identifiers):
                raise InputError(
                    f"plan: treatment {number} ({treatment.do}): expected criteria about the quasi_identifiers of the "
                    "plan, as gates are; got others. Write the same columns to the plan's quasi_identifiers."
                )
            texts += found
    return read_criteria(texts) if texts else []
