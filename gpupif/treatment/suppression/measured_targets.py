"""Targets of all kinds on rows in which cells are suppressed: whether they hold, and which cells break them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...attack.known_subsets import AnyKnown
from ...disclosure.cells import NONE
from ...encoding.column import Column
from ...engines.base import Engine
from ...measures import Measure, as_risk, find_measure
from ...targets.counted import CountedTable
from ...targets.counted_scores import SIZE, score_counted
from ...targets.quantities import OfClasses, OfModel, OfScores
from ...targets.target import Target
from ...targets.target_set import TargetSet, TargetValue
from ..base import PieceColumn
from .class_targets import ClassTarget
from .keyed_rows import KeyedRows

READINGS = ("category", "wildcard")
Floats = npt.NDArray[np.float64]


class Breaking(NamedTuple):
    """Cells that break a target: by different row how risky each is, NaN where a cell breaks nothing.

    column: whose cells; None: whole rows, of whose columns any will do.
    """

    column: Hashable
    risks: Floats


class MeasuredTargets:
    """Targets, and how they are measured: under some readings of missing values, of which the worst counts.

    names: of the columns of the rows. columns: with the labels of their values.
    """

    def __init__(
        self,
        targets: TargetSet,
        readings: Sequence[str],
        names: Sequence[Hashable],
        columns: Sequence[PieceColumn],
        engine: Engine,
    ) -> None:
        self._targets = targets
        self._by_reading = {reading: replace(targets, missing=reading) for reading in readings}
        self._names, self._columns, self._engine = list(names), columns, engine

    def values(self, rows: KeyedRows, readings: Sequence[str] | None = None) -> dict[str, list[TargetValue]]:
        """What rows have of each target, by reading: by those that count, or by others."""
        table, _ = self._counted(rows)
        several = self._by_reading if readings is None else readings
        return {one: replace(self._targets, missing=one).measure(table, self._engine) for one in several}

    def hold(self, rows: KeyedRows) -> bool:
        """Whether all targets do."""
        table, _ = self._counted(rows)
        return all(
            is_met(one, reading) for reading, of in self._by_reading.items() for one in of.measure(table, self._engine)
        )

    def breaking(self, rows: KeyedRows) -> tuple[list[Breaking], npt.NDArray[Any]]:
        """The cells that break targets that do not hold; and for each row which of the different rows it is."""
        table, number = self._counted(rows)
        found = []
        for reading, of in self._by_reading.items():
            for value in of.measure(table, self._engine):
                if not is_met(value, reading):
                    found += self._of_target(of, value.target, table)
        return found, number

    def classes(self) -> tuple[list[ClassTarget], list[Target]]:
        """Targets that are no more than a least number of rows of each class; and all others."""
        of = next(iter(self._by_reading.values()))
        classes: list[ClassTarget] = []
        others = []
        for target in of.targets:
            k, known = _least_class(target), of.known(target)
            if k is None or (isinstance(known, AnyKnown) and known.subsets is not None):
                others.append(target)
            elif isinstance(known, AnyKnown):
                among = [self._names.index(name) for name in known.pool or ()]
                classes += ClassTarget.of_any(known.known, among, k, str(target))
            else:
                classes.append(ClassTarget(tuple(sorted(map(self._names.index, known))), k, str(target)))
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

    def _of_target(self, of: TargetSet, target: Target, table: CountedTable) -> list[Breaking]:
        quantity, known = target.quantity, of.known(target)

        def scored(columns: Sequence[Hashable], measure: Measure) -> list[Floats]:
            _, found = score_counted(table, known, columns, [measure], of.distances, self._engine, missing=of.missing)
            return [np.asarray(one.scores).astype(float) for one in found[measure.name]]

        if isinstance(quantity, OfClasses) or (isinstance(quantity, OfModel) and not quantity.sensitive):
            sizes = scored([NONE], find_measure(SIZE))[0]
            below = _least_class(target) or getattr(quantity, "parameter", None) or sizes.min() + 1
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
            over = gains > target.limit
            return [
                Breaking(name, np.where(over & (worst == place), gains, math.nan)) for place, name in enumerate(columns)
            ]
        limit = float(as_risk(measure, np.array([target.limit]))[0])
        return [Breaking(name, np.where(one > limit, one, math.nan)) for name, one in zip(columns, risks, strict=True)]


def _least_class(target: Target) -> int | None:
    """The fewest rows of each class that a target allows, if it says no more than that."""
    quantity = target.quantity
    if isinstance(quantity, OfModel) and not quantity.sensitive:
        return max(1, math.ceil(target.limit))
    if isinstance(quantity, OfClasses) and target.limit == 0:
        if quantity.figure.name in ("unique_rows", "unique_share"):
            return 2
        if quantity.figure.depends == ("k",) and quantity.parameter is not None:
            return int(quantity.parameter)
    return None


def is_met(value: TargetValue, reading: str) -> bool:
    """Whether a target holds; where every value might be any other it is not broken by what is not defined."""
    return value.is_met or (reading == "wildcard" and value.value is None)


def _highest(risks: Floats) -> Floats:
    known = risks[risks == risks]
    return np.where(risks == known.max(), risks, math.nan) if len(known) else np.full(len(risks), math.nan)
