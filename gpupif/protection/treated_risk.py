"""The risk of the treated table, measured by `gpupif.risk` and `gpupif.score` as any table's is, not by the search."""

from __future__ import annotations

import contextlib
import math
import os
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..attack.attackers import AnyKnown
from ..comparison.risk import singled_out
from ..criteria.counted_scores import score_counted
from ..criteria.counted_table import CountedTable
from ..criteria.criterion import Criterion
from ..criteria.criterion_set import CriterionSet, CriterionValue, worst_of
from ..criteria.quantities import ClassQuantity, ModelQuantity, RiskQuantity, ScoreQuantity
from ..disclosure.assess import assess
from ..disclosure.request import RiskRequest
from ..disclosure.risk import risk
from ..disclosure.risk_figures import RiskArguments
from ..engines.base import Engine
from ..engines.choose import choose_engine, requested_device
from ..errors import NearlyUniqueWarning, NothingKnownWarning
from ..io.base import Input
from ..io.temporary_folder import temporary_folder
from ..marginals.request import CountRequest
from ..measures import find_measure
from ..results.score_distribution import ColumnQuery
from ..results.scores import Scores
from ..scoring.score import score
from ..treatment.plan import Plan
from ..treatment.plan_run import Treated
from ..treatment.treat import treat
from ..treatment.value_maps.recode import Recode
from ..utils.config import resources
from .request import figures_of_risk, population_columns


class TreatedRisk(NamedTuple):
    """The risk of a treated table.

    values: of each criterion, in their order. rows: how many rows were taken away or, if single cells were suppressed,
    have such cells. cells: how many cells of the rows that are left were suppressed. smallest_class: the rows of the
    smallest equivalence class over the quasi-identifiers. unique_rows: how many rows are alone in their class.
    certain_rows: see `certain_rows`. singled_out: see `singled_out`.
    """

    values: Sequence[CriterionValue]
    rows: int
    cells: int
    smallest_class: int
    unique_rows: int
    certain_rows: Mapping[Hashable, int]
    singled_out: Mapping[Hashable, int]


def measure_treated(
    table: Any, plan: Plan, criteria: CriterionSet, unchanged: Sequence[Hashable], cells: bool = False
) -> TreatedRisk:
    """Treat a table of any kind by a plan, and measure its criteria.

    unchanged: columns that are no part of the criteria, and that the plan leaves as they are.
    cells: whether the plan suppresses single cells. Missing values are then read in two ways, as a value of their own
    and as any value, and the worse reading counts, unless the criteria are for the second reading alone.
    """
    with contextlib.ExitStack() as opened, warnings.catch_warnings():
        # These warnings were given for the table before.
        warnings.simplefilter("ignore", NearlyUniqueWarning)
        warnings.simplefilter("ignore", NothingKnownWarning)
        treated = _treated(table, plan, opened)
        criteria = replace(criteria, given=_with_treated_population(criteria, plan, opened))
        values = measure_table(treated.table, criteria)
        rows, suppressed = treated.record.rows_removed or 0, 0
        if cells:
            if criteria.missing != "wildcard":
                matching = {own.criterion: own for own in measure_table(treated.table, criteria.read_as("wildcard"))}
                values = [_worse(own, matching.get(own.criterion, own)) for own in values]
            last = treated.record.treatments[-1]
            rows, suppressed = int(last.found["rows"]), sum((last.suppressed or {}).values())
        sizes = _smallest_and_unique(treated.table, values, criteria)
        certain = {}
        if criteria.sensitive:
            weights = [] if criteria.given.weights is None else [criteria.given.weights]
            counted = CountedTable.from_table(treated.table, [*criteria.scored, *weights])
            engine, readings = choose_engine(requested_device(counted.cells)), [criteria]
            readings += [criteria.read_as("wildcard")] * cells
            found = [certain_rows(counted, reading, engine) for reading in readings]
            certain = {name: max(own[name] for own in found) for name in criteria.sensitive}
        return TreatedRisk(values, rows, suppressed, *sizes, certain, singled_out(treated.table, unchanged))


def certain_rows(table: CountedTable, criteria: CriterionSet, engine: Engine) -> dict[Hashable, int]:
    """Return by sensitive attribute how many rows are in classes with a single value of it, classes of one row too.

    As in `gpupif.risk`, rows of weight 0 are no members of classes.
    """
    if not criteria.sensitive:
        return {}
    known, sensitive, measure = criteria.quasi_identifiers, criteria.sensitive, find_measure("distinct_values")
    matching = {"missing": criteria.missing, "weights": criteria.given.weights}
    _, scores = score_counted(table, known, sensitive, [measure], {}, engine, **matching)
    of_columns = zip(sensitive, scores[measure.name], strict=True)
    return {name: int(table.multiplicities[np.asarray(own.scores) == 1].sum()) for name, own in of_columns}


def with_population(counted: CountedTable, table: Any, criteria: CriterionSet, missing: str) -> CountedTable:
    """Return a counted table with its population, if criteria are on one.

    `gpupif.risk` first refuses wrong weights and households, and a population that lacks rows of the table.
    """
    measure_table(table, figures_of_risk(criteria))
    people = criteria.given.population
    if people is None:
        return counted
    columns = population_columns(criteria)
    return replace(counted, population=CountedTable.from_table(people.table, columns, "population", missing=missing))


def measure_table(table: Any, criteria: CriterionSet) -> list[CriterionValue]:
    """Return the value of each criterion in a table of any kind, from `gpupif.risk` and `gpupif.score`."""
    return [_value(table, criterion, criteria) for criterion in criteria.criteria]


def _smallest_and_unique(table: Any, values: Sequence[CriterionValue], criteria: CriterionSet) -> tuple[int, int]:
    """Return the rows of the smallest class over the quasi-identifiers, and how many rows are alone in their class.

    values: of the criteria in the table. If k is among them, the table is not counted again.
    """
    for criterion, value, *_ in values:
        of_k = isinstance(criterion.quantity, ModelQuantity) and criterion.smallest_class is not None
        if of_k and value is not None and value > 1:
            return int(value), 0
    classes = risk(table, list(criteria.quasi_identifiers), groups=0, missing=criteria.missing).classes
    return classes.k, classes.uniques


def _treated(table: Any, plan: Plan, opened: contextlib.ExitStack) -> Treated:
    """Treat a table. Files that are read in streams are treated to files in a folder that `opened` deletes."""
    if isinstance(table, str | os.PathLike | Input) and CountRequest().in_streams(table):
        from ..treatment.treat_files import treat_files

        folder = opened.enter_context(temporary_folder(resources().temp))
        return treat_files(table, folder / "treated.parquet", plan)
    return treat(table, plan)


def _with_treated_population(criteria: CriterionSet, plan: Plan, opened: contextlib.ExitStack) -> RiskArguments:
    """Return the arguments of `gpupif.risk` with a population whose values are recoded as those of the table are."""
    given, columns = criteria.given, population_columns(criteria)
    recoding = [own for own in plan.treatments if isinstance(own, Recode) and own.column in columns]
    if given.population is None or not recoding:
        return given
    hierarchies = {own.column: plan.hierarchies[own.column] for own in recoding}
    treated = _treated(given.population.table, Plan(recoding, hierarchies), opened)
    return replace(given, population=replace(given.population, table=treated.table))


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
    # All rows that are left may have the same value of a sensitive attribute.
    assessed = assess(table, replace(request, may_lack_values=True))
    if not quantity.sensitive:
        return CriterionValue(criterion, assessed.sizes.smallest, criterion.is_met(assessed.sizes.smallest))
    values = assessed.values[quantity.model.name]
    return worst_of(criterion, {name: float(value) for name, value in values.items()})


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
