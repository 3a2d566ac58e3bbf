"""The risk of a treated table, measured as any table's is: by `gpupif.risk` and `gpupif.score`, not by a search."""

from __future__ import annotations

import contextlib
import math
import os
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..attack.known_subsets import AnyKnown
from ..criteria.counted import CountedTable
from ..criteria.criterion import Criterion
from ..criteria.criterion_set import CriterionSet, CriterionValue, worst_of
from ..criteria.quantities import OfClasses, OfModel, OfScores
from ..disclosure.assess import assess
from ..disclosure.request import RiskRequest
from ..disclosure.risk import risk
from ..engines.choose import choose_engine, requested_device
from ..errors import NearlyUniqueWarning, NothingKnownWarning
from ..io.base import Input
from ..io.temporary_folder import temporary_folder
from ..marginals.request import CountRequest
from ..results.distribution import ColumnQuery
from ..results.scores import Scores
from ..scoring.score import score
from ..treatment.plan import Plan
from ..treatment.treat import treat
from ..treatment.treated import Treated
from ..utils.config import resources


@dataclass(frozen=True)
class Measured:
    """A treated table. values: of each criterion, in their order. rows: taken away, or with cells that were suppressed;
    cells: how many were, of rows that are left.
    """

    values: Sequence[CriterionValue]
    rows: int
    cells: int


def measured_again(table: Any, plan: Plan, criteria: CriterionSet, cells: bool = False) -> Measured:
    """What a table of any kind has of each criterion once it is treated by a plan.

    cells: whether single cells are suppressed: then they are read as a value of their own, and as any value, and the
    worse counts.
    """
    with contextlib.ExitStack() as opened, warnings.catch_warnings():
        # They were said of the table as it is.
        warnings.simplefilter("ignore", NearlyUniqueWarning)
        warnings.simplefilter("ignore", NothingKnownWarning)
        done = _treated(table, plan, opened)
        found = measure_table(done.table, criteria)
        if not cells:
            return Measured(found, done.record.rows_removed or 0, 0)
        others = measure_table(done.table, replace(criteria, missing="wildcard"))
        worse = [_worse(one, other) for one, other in zip(found, others, strict=True)]
        last = done.record.treatments[-1]
        return Measured(worse, int(last.found["rows"]), sum((last.suppressed or {}).values()))


def measure_table(table: Any, criteria: CriterionSet) -> list[CriterionValue]:
    """What a table of any kind has of each criterion, in their order, from `gpupif.risk` and `gpupif.score`."""
    return [_value(table, criterion, criteria) for criterion in criteria.criteria]


def _treated(table: Any, plan: Plan, opened: contextlib.ExitStack) -> Treated:
    """The table treated; of files that are read in streams files in a folder that is deleted again."""
    if isinstance(table, str | os.PathLike | Input) and CountRequest().in_streams(table):
        from ..treatment.files import treat_files

        folder = opened.enter_context(temporary_folder(resources().temp))
        return treat_files(table, folder / "treated.parquet", plan)
    return treat(table, plan)


def _worse(one: CriterionValue, other: CriterionValue) -> CriterionValue:
    """Return the less safe of two values of a criterion: the higher of a risk, the lower of a protection.

    one: where missing values are a value of their own; if it is not defined, it is not safe. other: where they match
    every value; if it is not defined, nothing breaks the criterion, see
    `treatment.suppression.measured_criteria.is_met`.
    """
    if one.value is None or other.value is None:
        return one
    worse = max if one.criterion.at_most else min
    return one if worse(one.value, other.value) == one.value else other


def _value(table: Any, criterion: Criterion, criteria: CriterionSet) -> CriterionValue:
    quantity, known = criterion.quantity, criteria.known(criterion)
    if isinstance(quantity, OfScores):
        scores = _scored(table, known, quantity, criteria)
        if quantity.measure is None:
            return worst_of(criterion, {None: _gain(scores, quantity.percentile)})
        names = [name for name in criteria.scored if quantity.column in (None, str(name))]
        return worst_of(criterion, dict(zip(names, _figures(scores, quantity, names), strict=True)))
    if isinstance(known, AnyKnown) or not known:
        # Of who knows any few columns, or none, there are no classes.
        counted = CountedTable.of(table, criteria.columns)
        return criteria.with_criteria([criterion]).measure(counted, choose_engine(requested_device(counted.cells)))[0]
    sensitive = [name for name in criteria.sensitive if isinstance(quantity, OfModel) and name not in known]
    return _of_risk(
        table, criterion, known, sensitive if isinstance(quantity, OfModel) and quantity.sensitive else [], criteria
    )


def _of_risk(
    table: Any, criterion: Criterion, known: Sequence[Hashable], sensitive: Sequence[Hashable], criteria: CriterionSet
) -> CriterionValue:
    quantity = criterion.quantity
    distance = {name: one for name, one in criteria.distances.items() if name in sensitive}
    if isinstance(quantity, OfClasses):
        parameter = quantity.parameter
        below = int(parameter) if parameter is not None and quantity.figure.depends == ("k",) else 5
        limit = parameter if parameter is not None and quantity.figure.depends != ("k",) else None
        found = risk(table, list(known), k=below, threshold=limit, groups=0, missing=criteria.missing)
        value = quantity.figure.find(found.classes)
        return CriterionValue(criterion, value, criterion.is_met(value))
    assert isinstance(quantity, OfModel)
    request = RiskRequest.from_arguments(
        table,
        list(known),
        list(sensitive) or None,
        [quantity.model],
        quantity.l_values or None,
        distance or None,
        missing=criteria.missing,
    )
    # Rows may be left that have one value of a sensitive attribute.
    assessed = assess(table, replace(request, may_lack_values=True))
    if not quantity.sensitive:
        return CriterionValue(criterion, assessed.sizes.smallest, criterion.is_met(assessed.sizes.smallest))
    values = assessed.values[quantity.model.name]
    return worst_of(
        criterion, {name: float(value) for name, value in values.items() if quantity.column in (None, str(name))}
    )


def _scored(table: Any, known: Sequence[Hashable] | AnyKnown, quantity: OfScores, criteria: CriterionSet) -> Scores:
    return score(
        table,
        "cig" if quantity.measure is None else quantity.measure.name,
        columns=criteria.scored,
        known=known if isinstance(known, AnyKnown) else list(known),
        distances={name: one for name, one in criteria.distances.items() if name in criteria.scored} or None,
        missing=criteria.missing,
    )


def _gain(scores: Scores, percentile: float | None) -> float:
    """A percentile of the row gains, or their mean: the sum of the means of the columns."""
    if percentile is not None:
        return float(scores.pif(percentile))
    means = [one.mean for one in scores.column_answers("cig", ColumnQuery(mean=True))]
    return math.fsum(math.nan if mean is None else mean for mean in means)


def _figures(scores: Scores, quantity: OfScores, names: Sequence[Hashable]) -> list[float]:
    assert quantity.measure is not None
    percentile = quantity.percentile
    asked = ColumnQuery(mean=True) if percentile is None else ColumnQuery(percentiles=(percentile,))
    answers = dict(zip(scores.columns, scores.column_answers(quantity.measure.name, asked), strict=True))
    found = []
    for name in names:
        answer = answers[name]
        value = answer.mean if percentile is None else answer.percentiles[percentile]
        found.append(math.nan if value is None else value)
    return found
