"""The values of criteria in a table of any kind, from `gpupif.risk` and `gpupif.score` as any user has them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

from ..attack.attackers import AnyKnown
from ..disclosure.assess import assess
from ..disclosure.request import RiskRequest
from ..disclosure.risk import risk
from ..engines.choose import choose_engine, requested_device
from ..errors import NoValueError
from ..results.score_distribution import ColumnQuery
from ..results.scores import Scores
from ..scoring.score import score
from .counted_table import CountedTable
from .criterion import Criterion
from .criterion_set import CriterionSet, CriterionValue, worst_of
from .quantities import ClassQuantity, ModelQuantity, RiskQuantity, ScoreQuantity


def measure_table(table: Any, criteria: CriterionSet, both_readings: bool = False) -> list[CriterionValue]:
    """Return the value of each criterion in a table of any kind, from `gpupif.risk` and `gpupif.score`.

    both_readings: whether missing values are read in two ways, as a value of their own and as any value, and the worse
    reading counts, unless the criteria are for the second reading alone.
    """
    values = [_value(table, criterion, criteria) for criterion in criteria.criteria]
    if not both_readings or criteria.missing == "wildcard":
        return values
    matching = {own.criterion: own for own in measure_table(table, criteria.read_as("wildcard"))}
    return [_worse(own, matching.get(own.criterion, own)) for own in values]


def _worse(own: CriterionValue, matching: CriterionValue) -> CriterionValue:
    """Return the less safe of two values of a criterion: the higher of a risk, the lower of a protection.

    own: the value if missing values are a value of their own. If it is not defined, it is not safe.
    matching: the value if they match every value. If it is not defined, nothing breaks the criterion, see
        `treatment.suppression.measured_criteria.is_met`.
    """
    if own.value is None or matching.value is None:
        return own
    worse = max if own.criterion.at_most else min
    return own if worse(own.value, matching.value) == own.value else matching


def _value(table: Any, criterion: Criterion, criteria: CriterionSet) -> CriterionValue:
    quantity, known = criterion.quantity, criteria.known(criterion)
    if isinstance(quantity, ScoreQuantity):
        scores = _scored(table, known, quantity, criteria)
        if quantity.measure is None:
            return worst_of(criterion, {None: _gain(scores, quantity.percentile)})
        names = [name for name in criteria.scored if quantity.column in (None, str(name))]
        return worst_of(criterion, dict(zip(names, _figures(scores, quantity, names), strict=True)))
    if isinstance(known, AnyKnown) or not known:
        # Equivalence classes are over a list of columns; any few columns, or none, are counted as the search does.
        counted = CountedTable.from_table(table, criteria.columns)
        return criteria.with_criteria([criterion]).measure(counted, choose_engine(requested_device(counted.cells)))[0]
    if isinstance(quantity, RiskQuantity):
        found = risk(
            table, list(known), groups=0, missing=criteria.missing, **criteria.given.keywords, **quantity.arguments
        )
        value = quantity.figure.find(found)
        return CriterionValue(criterion, value, criterion.is_met(value))
    if isinstance(quantity, ClassQuantity):
        classes = risk(
            table, list(known), k=quantity.k, threshold=quantity.threshold, groups=0, missing=criteria.missing
        ).classes
        value = quantity.figure.find(classes)
        return CriterionValue(criterion, value, criterion.is_met(value))
    assert isinstance(quantity, ModelQuantity)
    named = criteria.sensitive if quantity.sensitive else []
    sensitive = [name for name in named if name not in known and quantity.column in (None, str(name))]
    request = RiskRequest.from_arguments(
        table,
        list(known),
        sensitive or None,
        [quantity.model],
        quantity.l_values or None,
        {name: distance for name, distance in criteria.distances.items() if name in sensitive} or None,
        weights=criteria.given.weights if sensitive else None,
        missing=criteria.missing,
    )
    try:
        # All rows that are left may have the same value of a sensitive attribute.
        assessed = assess(table, replace(request, may_lack_values=True))
    except NoValueError:
        return _of_known_values(table, criterion, criteria, sensitive)
    if not quantity.sensitive:
        return CriterionValue(criterion, assessed.sizes.smallest, criterion.is_met(assessed.sizes.smallest))
    values = assessed.values[quantity.model.name]
    return worst_of(criterion, {name: float(value) for name, value in values.items()})


def _of_known_values(
    table: Any, criterion: Criterion, criteria: CriterionSet, sensitive: Sequence[Hashable]
) -> CriterionValue:
    """Return the value of a criterion over the attributes with known values. Without any, nothing breaks it."""
    if len(sensitive) == 1:
        return CriterionValue(criterion, None, True)
    values = [_value(table, criterion, replace(criteria, sensitive=[name])) for name in sensitive]
    worst = worst_of(criterion, {own.column: own.value for own in values if own.value is not None})
    return worst._replace(is_met=worst.is_met or worst.value is None)


def _scored(
    table: Any, known: Sequence[Hashable] | AnyKnown, quantity: ScoreQuantity, criteria: CriterionSet
) -> Scores:
    """Score the cells that a quantity is a figure of."""
    return score(
        table,
        "cig" if quantity.measure is None else quantity.measure.name,
        columns=criteria.scored,
        known=known if isinstance(known, AnyKnown) else list(known),
        distances={name: own for name, own in criteria.distances.items() if name in criteria.scored} or None,
        weights=criteria.given.weights,
        missing=criteria.missing,
    )


def _gain(scores: Scores, percentile: float | None) -> float:
    """Return a percentile of the row gains, or their mean (None), which is the sum of the means of the columns."""
    if percentile is not None:
        return float(scores.pif(percentile))
    means = [answer.mean for answer in scores.column_answers("cig", ColumnQuery(mean=True))]
    return math.fsum(math.nan if mean is None else mean for mean in means)


def _figures(scores: Scores, quantity: ScoreQuantity, names: Sequence[Hashable]) -> list[float]:
    """Return the figure of the scores of each column."""
    assert quantity.measure is not None
    percentile = quantity.percentile
    asked = ColumnQuery(mean=True) if percentile is None else ColumnQuery(percentiles=(percentile,))
    answers = dict(zip(scores.columns, scores.column_answers(quantity.measure.name, asked), strict=True))
    values = [answers[name].mean if percentile is None else answers[name].percentiles[percentile] for name in names]
    return [math.nan if value is None else value for value in values]
