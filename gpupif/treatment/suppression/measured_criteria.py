"""Criteria of all kinds on rows in which cells are suppressed: whether they hold, and which cells break them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...attack.known_subsets import AnyKnown
from ...criteria.counted import CountedTable
from ...criteria.counted_scores import SIZE, score_counted
from ...criteria.criterion import Criterion
from ...criteria.criterion_set import CriterionSet, CriterionValue
from ...criteria.quantities import OfClasses, OfModel, OfScores
from ...disclosure.request import NO_ATTRIBUTE
from ...encoding.column import Column
from ...engines.base import Engine
from ...measures import Measure, as_risk, find_measure
from ..base import PieceColumn
from .class_criteria import ClassCriterion
from .keyed_rows import KeyedRows

READINGS = ("category", "wildcard")
Floats = npt.NDArray[np.float64]


class Breaking(NamedTuple):
    """Cells that break a criterion: by different row how risky each is, NaN where a cell breaks nothing.

    column: whose cells; None: whole rows, of whose columns any will do.
    """

    column: Hashable
    risks: Floats


class MeasuredCriteria:
    """Criteria, and how they are measured: under some readings of missing values, of which the worst counts.

    names: of the columns of the rows. columns: with the labels of their values.
    """

    def __init__(
        self,
        criteria: CriterionSet,
        readings: Sequence[str],
        names: Sequence[Hashable],
        columns: Sequence[PieceColumn],
        engine: Engine,
    ) -> None:
        self._criteria = criteria
        self._by_reading = {reading: replace(criteria, missing=reading) for reading in readings}
        self._names, self._columns, self._engine = list(names), columns, engine

    def values(self, rows: KeyedRows, readings: Sequence[str] | None = None) -> dict[str, list[CriterionValue]]:
        """What rows have of each criterion, by reading: by those that count, or by others."""
        table, _ = self._counted(rows)
        several = self._by_reading if readings is None else readings
        return {one: replace(self._criteria, missing=one).measure(table, self._engine) for one in several}

    def hold(self, rows: KeyedRows) -> bool:
        """Whether all criteria do."""
        table, _ = self._counted(rows)
        return all(
            is_met(one, reading) for reading, of in self._by_reading.items() for one in of.measure(table, self._engine)
        )

    def breaking(self, rows: KeyedRows) -> tuple[list[Breaking], npt.NDArray[Any]]:
        """The cells that break criteria that do not hold; and for each row which of the different rows it is."""
        table, number = self._counted(rows)
        found = []
        for reading, of in self._by_reading.items():
            for value in of.measure(table, self._engine):
                if not is_met(value, reading):
                    found += self._of_criterion(of, value.criterion, table)
        return found, number

    def classes(self) -> tuple[list[ClassCriterion], list[Criterion]]:
        """Criteria that are no more than a least number of rows of each class; and all others."""
        of = next(iter(self._by_reading.values()))
        classes: list[ClassCriterion] = []
        others = []
        for criterion in of.criteria:
            k, known = _least_class(criterion), of.known(criterion)
            if k is None or (isinstance(known, AnyKnown) and known.subsets is not None):
                others.append(criterion)
            elif isinstance(known, AnyKnown):
                among = [self._names.index(name) for name in known.pool or ()]
                classes += ClassCriterion.of_any(known.known, among, k, str(criterion))
            else:
                classes.append(ClassCriterion(tuple(sorted(map(self._names.index, known))), k, str(criterion)))
        return classes, others

    def _counted(self, rows: KeyedRows) -> tuple[CountedTable, npt.NDArray[Any]]:
        found = rows.distinct(rows.keys)
        times = np.asarray(found.rows.counts).astype(np.int64)
        columns = []
        for place, (name, column) in enumerate(zip(self._names, self._columns, strict=True)):
            codes = rows.codes_of(found.rows.keys, place)
            counts = np.bincount(codes, times, rows.sizes[place] + 1).astype(np.int64)
            columns.append(Column(name, codes, counts, column.labels, True))
        # Without the values that no row has any more.
        return CountedTable(columns, times, len(rows)).kept(np.ones(len(times), bool)), found.number

    def _of_criterion(self, of: CriterionSet, criterion: Criterion, table: CountedTable) -> list[Breaking]:
        quantity, known = criterion.quantity, of.known(criterion)

        def scored(columns: Sequence[Hashable], measure: Measure) -> list[Floats]:
            _, found = score_counted(table, known, columns, [measure], of.distances, self._engine, missing=of.missing)
            return [np.asarray(one.scores).astype(float) for one in found[measure.name]]

        if isinstance(quantity, OfClasses) or (isinstance(quantity, OfModel) and not quantity.sensitive):
            sizes = scored([NO_ATTRIBUTE], find_measure(SIZE))[0]
            below = _least_class(criterion) or getattr(quantity, "parameter", None) or sizes.min() + 1
            return [Breaking(None, np.where(sizes < below, -sizes, math.nan))]
        named = quantity.column
        if isinstance(quantity, OfModel):
            measure = find_measure(quantity.model.measure(quantity.l_values, of.missing == "wildcard"))
            columns = [name for name in of.sensitive if named in (None, str(name))]
            # Those that are worst: what the others have is not compared with the limit.
            return [Breaking(None, _highest(as_risk(measure, scores))) for scores in scored(columns, measure)]
        assert isinstance(quantity, OfScores)
        columns = [name for name in of.scored if named in (None, str(name))]
        measure = quantity.measure or find_measure("cig")
        risks = [as_risk(measure, scores) for scores in scored(columns, measure)]
        if quantity.measure is None:
            gains = np.nansum(risks, axis=0)
            worst = np.nanargmax(np.nan_to_num(risks, nan=-math.inf), axis=0)
            over = gains > criterion.limit
            return [
                Breaking(name, np.where(over & (worst == place), gains, math.nan)) for place, name in enumerate(columns)
            ]
        limit = float(as_risk(measure, np.array([criterion.limit]))[0])
        return [Breaking(name, np.where(one > limit, one, math.nan)) for name, one in zip(columns, risks, strict=True)]


def _least_class(criterion: Criterion) -> int | None:
    """The fewest rows of each class that a criterion allows, if it says no more than that."""
    quantity = criterion.quantity
    if isinstance(quantity, OfModel) and not quantity.sensitive:
        return max(1, math.ceil(criterion.limit))
    if isinstance(quantity, OfClasses) and criterion.limit == 0:
        if quantity.figure.name in ("unique_rows", "unique_share"):
            return 2
        if quantity.figure.depends == ("k",) and quantity.parameter is not None:
            return int(quantity.parameter)
    return None


def is_met(value: CriterionValue, reading: str) -> bool:
    """Whether a criterion holds; where every value might be any other it is not broken by what is not defined."""
    return value.is_met or (reading == "wildcard" and value.value is None)


def _highest(risks: Floats) -> Floats:
    known = risks[risks == risks]
    return np.where(risks == known.max(), risks, math.nan) if len(known) else np.full(len(risks), math.nan)
