"""The risk of a treated table, measured as any table's is: by `gpupif.risk` and `gpupif.score`, not by a search."""

from __future__ import annotations

import contextlib
import math
import os
import tempfile
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..attack.known_subsets import AnyKnown
from ..disclosure.risk import risk
from ..engines.choose import choose_engine, requested_device
from ..errors import NearlyUniqueWarning, NothingKnownWarning
from ..io.base import Input
from ..marginals.request import CountRequest
from ..results.distribution import ColumnQuery
from ..results.scores import Scores
from ..scoring.score import score
from ..targets.counted import CountedTable
from ..targets.quantities import OfClasses, OfModel, OfScores
from ..targets.target import Target
from ..targets.target_set import TargetSet, TargetValue, worst_of
from ..treatment.plan import Plan
from ..treatment.treat import treat
from ..treatment.treated import Treated
from ..utils.config import resources


@dataclass(frozen=True)
class Measured:
    """A treated table. values: of each target, in their order. rows: taken away, or with cells that were suppressed;
    cells: how many were, of rows that are left.
    """

    values: Sequence[TargetValue]
    rows: int
    cells: int


def measured_again(table: Any, plan: Plan, targets: TargetSet, cells: bool = False) -> Measured:
    """What a table of any kind has of each target once it is treated by a plan.

    cells: whether single cells are suppressed: then they are read as a value of their own, and as any value, and the
    worse counts.
    """
    with contextlib.ExitStack() as opened, warnings.catch_warnings():
        # They were said of the table as it is.
        warnings.simplefilter("ignore", NearlyUniqueWarning)
        warnings.simplefilter("ignore", NothingKnownWarning)
        done = _treated(table, plan, opened)
        found = measure_table(done.table, targets)
        if not cells:
            return Measured(found, done.record.rows_removed or 0, 0)
        others = measure_table(done.table, replace(targets, missing="wildcard"))
        worse = [_worse(one, other) for one, other in zip(found, others, strict=True)]
        last = done.record.treatments[-1]
        return Measured(worse, int(last.found["rows"]), sum((last.suppressed or {}).values()))


def measure_table(table: Any, targets: TargetSet) -> list[TargetValue]:
    """What a table of any kind has of each target, in their order, from `gpupif.risk` and `gpupif.score`."""
    return [_value(table, target, targets) for target in targets.targets]


def _treated(table: Any, plan: Plan, opened: contextlib.ExitStack) -> Treated:
    """The table treated; of files that are read in streams files in a folder that is deleted again."""
    if isinstance(table, str | os.PathLike | Input) and CountRequest().in_streams(table):
        from ..treatment.files import treat_files

        folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="gpupif-", dir=resources().temp))
        return treat_files(table, Path(folder) / "treated.parquet", plan)
    return treat(table, plan)


def _worse(one: TargetValue, other: TargetValue) -> TargetValue:
    """Of two values of a target the one that is less safe; what is not known is not safe."""
    if one.value is None or other.value is None:
        return one if one.value is None else other
    pair = (one, other) if one.target.at_most else (other, one)
    return pair[0] if pair[0].value >= pair[1].value else pair[1]  # type: ignore[operator]


def _value(table: Any, target: Target, targets: TargetSet) -> TargetValue:
    quantity, known = target.quantity, targets.known(target)
    if isinstance(quantity, OfScores):
        scores = _scored(table, known, quantity, targets)
        if quantity.measure is None:
            return worst_of(target, {None: _gain(scores, quantity.percentile)})
        names = [name for name in targets.scored if quantity.column in (None, str(name))]
        return worst_of(target, dict(zip(names, _figures(scores, quantity, names), strict=True)))
    if isinstance(known, AnyKnown) or not known:
        # Of who knows any few columns, or none, there are no classes.
        counted = CountedTable.of(table, targets.columns)
        return targets.with_targets([target]).measure(counted, choose_engine(requested_device(counted.cells)))[0]
    sensitive = [name for name in targets.sensitive if isinstance(quantity, OfModel) and name not in known]
    return _of_risk(
        table, target, known, sensitive if isinstance(quantity, OfModel) and quantity.sensitive else [], targets
    )


def _of_risk(
    table: Any, target: Target, known: Sequence[Hashable], sensitive: Sequence[Hashable], targets: TargetSet
) -> TargetValue:
    quantity = target.quantity
    distance = {name: one for name, one in targets.distances.items() if name in sensitive}
    if isinstance(quantity, OfClasses):
        parameter = quantity.parameter
        below = int(parameter) if parameter is not None and quantity.figure.depends == ("k",) else 5
        limit = parameter if parameter is not None and quantity.figure.depends != ("k",) else None
        found = risk(table, list(known), k=below, threshold=limit, groups=0, missing=targets.missing)
        value = quantity.figure.find(found.classes)
        return TargetValue(target, value, target.is_met(value))
    assert isinstance(quantity, OfModel)
    found = risk(
        table,
        list(known),
        list(sensitive) or None,
        models=[quantity.model.name],
        l=quantity.l_values or None,
        distance=distance or None,
        groups=0,
        missing=targets.missing,
    )
    if not quantity.sensitive:
        return TargetValue(target, found.k, target.is_met(found.k))
    values = found.attributes[quantity.model.name]
    return worst_of(
        target, {name: float(value) for name, value in values.items() if quantity.column in (None, str(name))}
    )


def _scored(table: Any, known: Sequence[Hashable] | AnyKnown, quantity: OfScores, targets: TargetSet) -> Scores:
    return score(
        table,
        "cig" if quantity.measure is None else quantity.measure.name,
        columns=targets.scored,
        known=known if isinstance(known, AnyKnown) else list(known),
        distances={name: one for name, one in targets.distances.items() if name in targets.scored} or None,
        missing=targets.missing,
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
