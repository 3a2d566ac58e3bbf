"""Suppress cells by their scores until criteria of any kind hold, and restore cells that need not be suppressed."""

from __future__ import annotations

import math
from collections.abc import Container, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...attack.attackers import AnyKnown
from ...criteria.counted_scores import SIZE, known_columns, score_counted
from ...criteria.counted_table import CountedTable
from ...criteria.criterion import Criterion
from ...criteria.criterion_set import CriterionSet, CriterionValue
from ...criteria.quantities import ClassQuantity, ModelQuantity, RiskQuantity, ScoreQuantity
from ...disclosure.request import NO_ATTRIBUTE
from ...encoding.column import Column
from ...engines.base import Engine
from ...engines.choose import choose_engine, requested_device
from ...errors import InputError, UnmetError
from ...measures import Measure, as_risk, find_measure
from ...rows.threads import Workers
from ..coded_columns import CodedColumn
from .class_suppression import Suppressed, check_reached, make_groups, suppress_cells
from .grouping import ClassCriterion, KeyedRows, without_implied
from .restoring import Restoring

READINGS = ("category", "wildcard")
Floats = npt.NDArray[np.float64]


class Breaking(NamedTuple):
    """The cells that break a criterion.

    column: name of the column of the cells. None for whole rows: any of their cells may be suppressed.
    risks: float64 (distinct rows,). Risk of each cell; NaN if it does not break the criterion.
    """

    column: Hashable
    risks: Floats


class MeasuredCriteria:
    """Criteria, and their values for rows. A criterion must hold under every reading of missing values.

    readings: names of `READINGS`: "category" or "wildcard".
    names: names of all columns of the rows.
    columns: coded columns in the same order. Their labels are used.
    """

    def __init__(
        self,
        criteria: CriterionSet,
        readings: Sequence[str],
        names: Sequence[Hashable],
        columns: Sequence[CodedColumn],
        engine: Engine,
    ) -> None:
        self._criteria = criteria
        self._by_reading = {reading: criteria.read_as(reading) for reading in readings}
        self._names, self._columns, self._engine = list(names), columns, engine

    def values(self, rows: KeyedRows, readings: Sequence[str] | None = None) -> dict[str, list[CriterionValue]]:
        """Return the value of each criterion, by reading. readings: default None, the readings that must hold."""
        table, _ = self._counted(rows)
        asked = self._by_reading if readings is None else readings
        return {reading: self._criteria.read_as(reading).measure(table, self._engine) for reading in asked}

    def hold(self, rows: KeyedRows) -> bool:
        """Return whether all criteria hold for rows."""
        table, _ = self._counted(rows)
        return all(
            is_met(value, how) for how, own in self._by_reading.items() for value in own.measure(table, self._engine)
        )

    def breaking(self, rows: KeyedRows) -> tuple[list[Breaking], npt.NDArray[Any]]:
        """Return the cells that break criteria, and the number of each row's distinct row: integers (rows,)."""
        table, number = self._counted(rows)
        cells = []
        for reading, criteria in self._by_reading.items():
            for value in criteria.measure(table, self._engine):
                if not is_met(value, reading):
                    cells += self._breaking_cells(criteria, value.criterion, table)
        return cells, number

    def classes(self) -> tuple[list[ClassCriterion], list[Criterion]]:
        """Return the criteria that only require a size of equivalence classes, and all other criteria."""
        criteria = self._criteria
        classes: list[ClassCriterion] = []
        others = []
        for criterion in criteria.criteria:
            k, known = criterion.smallest_class_of_all, criteria.known(criterion)
            if k is None or (isinstance(known, AnyKnown) and known.subsets is not None):
                others.append(criterion)
            elif isinstance(known, AnyKnown):
                among = [self._names.index(name) for name in known.pool or ()]
                classes += ClassCriterion.for_any_known(known.known, among, k, str(criterion))
            else:
                classes.append(ClassCriterion(tuple(sorted(map(self._names.index, known))), k, str(criterion)))
        return classes, others

    def values_of_classes(self, rows: KeyedRows, suppressible: Container[int]) -> tuple[list[ClassCriterion], bool]:
        """Return criteria on different values in equivalence classes, and whether no other criteria are left.

        A criterion on the distribution of values needs some different values: that is tested first.

        suppressible: positions of the columns that may be suppressed.
        """
        if "category" not in self._by_reading:
            return [], False
        criteria, found, complete = self._by_reading["category"], list[ClassCriterion](), True
        for criterion in self.classes()[1]:
            quantity, known = criterion.quantity, criteria.known(criterion)
            if (
                not isinstance(quantity, ModelQuantity)
                or criteria.given.weights is not None
                or (isinstance(known, AnyKnown) and known.subsets is not None)
            ):
                complete = False
                continue
            complete &= quantity.model.name == "distinct_l" and criterion.is_met(criterion.fewest_values)
            for place in map(self._names.index, criteria.learnt(known)):
                if quantity.column not in (None, str(self._names[place])):
                    continue
                # The rows that match a row are whole classes: they have all known values of its own class.
                hidden = place in suppressible or bool((rows.codes[place] == rows.sizes[place]).any())
                complete &= not hidden or "wildcard" not in self._by_reading
                pool = [own for own in map(self._names.index, known_columns(known)) if own != place]
                size = known.known if isinstance(known, AnyKnown) else len(pool)
                sets = ClassCriterion.for_any_known(size, pool, criterion.fewest_values, str(criterion))
                found += [replace(own, values_of=place) for own in sets if own.k > 1]
        return found, complete

    def _counted(self, rows: KeyedRows) -> tuple[CountedTable, npt.NDArray[Any]]:
        distinct = rows.distinct(rows.keys)
        multiplicities = np.asarray(distinct.rows.counts).astype(np.int64)
        columns = []
        for place, (name, column) in enumerate(zip(self._names, self._columns, strict=True)):
            codes = rows.codes_of(distinct.rows.keys, place)
            counts = np.bincount(codes, multiplicities, rows.sizes[place] + 1).astype(np.int64)
            columns.append(Column(name, codes, counts, column.labels, True))
        # `kept` drops the values that no row has any more.
        every = np.ones(len(multiplicities), bool)
        return CountedTable(columns, multiplicities, len(rows)).kept(every), distinct.number

    def _breaking_cells(self, criteria: CriterionSet, criterion: Criterion, table: CountedTable) -> list[Breaking]:
        quantity, known, weights = criterion.quantity, criteria.known(criterion), criteria.given.weights

        def scored(columns: Sequence[Hashable], measure: Measure, weights: Hashable = weights) -> list[Floats]:
            given = table, known, columns, [measure], criteria.distances, self._engine
            _, scores = score_counted(*given, missing=criteria.missing, weights=weights)
            return [np.asarray(own.scores).astype(float) for own in scores[measure.name]]

        if isinstance(quantity, ClassQuantity) or (isinstance(quantity, ModelQuantity) and not quantity.sensitive):
            sizes = scored([NO_ATTRIBUTE], find_measure(SIZE), None)[0]
            below = criterion.smallest_class_of_all or getattr(quantity, "parameter", None) or sizes.min() + 1
            return [Breaking(None, np.where(sizes < below, -sizes, math.nan))]
        if isinstance(quantity, RiskQuantity):
            return [Breaking(None, _highest(scored([NO_ATTRIBUTE], find_measure("individual_risk"))[0]))]
        named = quantity.column
        if isinstance(quantity, ModelQuantity):
            measure = find_measure(quantity.model.measure(quantity.l_values, criteria.missing == "wildcard"))
            columns = [name for name in criteria.learnt(known) if named in (None, str(name))]
            # A class without a known value has no number of values. Rows of weight 0 make no share.
            zeros = quantity.model.name == "distinct_l"
            people = None if weights is None else table.weights(weights, []).multiplicities
            by_column = [
                np.where((zeros & (own == 0)) | (people == 0), math.nan, own) for own in scored(columns, measure)
            ]
            # Only the riskiest rows: the criterion compares the highest risk with its limit.
            return [Breaking(None, _highest(as_risk(measure, own))) for own in by_column]
        assert isinstance(quantity, ScoreQuantity)
        columns = [name for name in criteria.scored if named in (None, str(name))]
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
        return [Breaking(name, np.where(own > limit, own, math.nan)) for name, own in zip(columns, risks, strict=True)]


def is_met(value: CriterionValue, reading: str) -> bool:
    """Return whether a criterion holds. Under "wildcard", an undefined value breaks no criterion."""
    return value.is_met or (reading == "wildcard" and value.value is None)


def _highest(risks: Floats) -> Floats:
    known = risks[risks == risks]
    return np.where(risks == known.max(), risks, math.nan) if len(known) else np.full(len(risks), math.nan)


Numbers = npt.NDArray[np.int64]


class ByScores:
    """The suppression of cells by their scores.

    importance: number above 0 by position of a column that may be suppressed. names: names of all columns.
    """

    def __init__(
        self, rows: KeyedRows, criteria: MeasuredCriteria, importance: Mapping[int, float], names: Sequence[Hashable]
    ) -> None:
        self._rows, self._criteria, self._importance, self._names = rows, criteria, importance, list(names)
        self._others = 1

    def round(self) -> bool:
        """Suppress a cell of each row that breaks a criterion; return whether there was such a row.

        Raises UnmetError if a criterion is broken and no cell can be suppressed.
        """
        broken, number = self._criteria.breaking(self._rows)
        if not broken:
            return False
        suppressed = stuck = 0
        for cells in broken:
            breaking = np.flatnonzero((cells.risks == cells.risks)[number])
            before = suppressed
            suppressed += self._suppress_one(breaking, cells)
            stuck += suppressed == before
        if stuck:
            # A breaking row has no cell left to suppress: other rows are suppressed until they are equal to it.
            suppressed += self._suppress_others(broken, number)
        if not suppressed:
            raise self._unreachable()
        return True

    def _suppress_one(self, rows: Numbers, breaking: Breaking) -> int:
        """Suppress a cell of each row that has a value left, and return the number of such rows. rows: row numbers."""
        left, total = rows, 0
        if breaking.column is not None:
            left, total = self._suppress_in(left, self._names.index(breaking.column))
        for column in self._in_turn():
            left, number = self._suppress_in(left, column)
            total += number
        return total

    def _suppress_in(self, rows: Numbers, column: int) -> tuple[Numbers, int]:
        """Suppress a column of the rows with a value there; return the other rows, and how many had a value."""
        if column not in self._importance or not len(rows):
            return rows, 0
        there = self._rows.codes_of(self._rows.keys[rows], column) != self._rows.sizes[column]
        self._rows.suppress(rows[there], [column])
        return rows[~there], int(np.count_nonzero(there))

    def _suppress_others(self, broken: Sequence[Breaking], number: npt.NDArray[np.int64]) -> int:
        """Suppress cells of the first rows that break no criterion; return their number. Each call doubles the rows."""
        breaks = np.zeros(len(self._rows), bool)
        for cells in broken:
            breaks |= (cells.risks == cells.risks)[number]
        total = 0
        for column in self._in_turn():
            there = np.flatnonzero(~breaks & (self._rows.column(column) != self._rows.sizes[column]))[: self._others]
            self._rows.suppress(there, [column])
            total += len(there)
        self._others *= 2
        return total

    def _in_turn(self) -> list[int]:
        """Return the columns that may be suppressed, by importance, then by number of values, most values first."""
        sizes = self._rows.sizes
        return sorted(self._importance, key=lambda column: (self._importance[column], -sizes[column], column))

    def _unreachable(self) -> UnmetError:
        values = self._criteria.values(self._rows)
        reading, broken = next(
            (reading, value) for reading, own in values.items() for value in own if not is_met(value, reading)
        )
        where = "" if broken.column is None else f" in column {broken.column!r}"
        value = "not defined" if broken.value is None else f"{broken.value:.6g}"
        how = {"category": "are a value of their own", "wildcard": "match every value"}[reading]
        return UnmetError(
            f"require: {str(broken.criterion)!r} cannot be reached: with all cells of columns= suppressed it is "
            f"{value}{where}, if missing values {how}. Name more columns, or recode before."
        )


def suppress_to_criteria(
    columns: Sequence[CodedColumn],
    names: Sequence[Hashable],
    criteria: CriterionSet,
    importance: Mapping[int, float],
    missing: str | None,
) -> tuple[Suppressed, dict[str, list[CriterionValue]]]:
    """Suppress cells of some columns until all criteria hold, so that no single suppressed cell can be restored.

    columns: all columns that the criteria need, with all rows.
    names: names of the columns.
    importance: number above 0 by position of a column that may be suppressed.
    missing: "category" or "wildcard", the reading of missing values; None: criteria must hold under both.

    Returns the suppression, and the value of each criterion afterwards, by reading. Raises UnmetError for
    criteria that cannot be reached, and InputError for a table without rows.
    """
    if not len(columns[0].codes):
        raise InputError("table: expected at least one row, got none.")
    readings = READINGS if missing is None else (missing,)
    codes, sizes = [column.codes for column in columns], [len(column.labels) for column in columns]
    engine = choose_engine(requested_device(lambda: len(columns) * len(columns[0].codes)))
    measured = MeasuredCriteria(criteria, readings, names, columns, engine)
    classes, others = measured.classes()
    with Workers() as workers:
        rows = KeyedRows(codes, sizes, workers)
        if others:
            result = _suppress_by_scores(rows, measured, classes, importance, names, readings)
        else:
            # Equal rows match: if criteria must hold under both readings, "category" implies "wildcard".
            result = suppress_cells(codes, sizes, classes, importance, names, readings[0])
            rows = KeyedRows(result.codes(codes, sizes), sizes, workers)
        return result, measured.values(rows, READINGS)


def _suppress_by_scores(
    rows: KeyedRows,
    measured: MeasuredCriteria,
    classes: Sequence[ClassCriterion],
    importance: Mapping[int, float],
    names: Sequence[Hashable],
    readings: Sequence[str],
) -> Suppressed:
    """Group rows for criteria on equivalence classes, and suppress cells by their scores, in turns until all hold."""
    # Under "wildcard" alone, rows need not be equal: rows that match too few are suppressed by their scores.
    needed = without_implied(classes) if "category" in readings else []
    for criterion in needed:
        check_reached(rows, criterion, importance, names)
    by_scores, rounds = ByScores(rows, measured, importance, names), 1
    make_groups(rows, needed, importance)
    while by_scores.round():
        rounds += 1
        make_groups(rows, needed, importance)
    values, all_others = measured.values_of_classes(rows, importance)
    restoring = Restoring(rows, [*needed, *values], importance, None if all_others else lambda: measured.hold(rows))
    restored = restoring.restore_by_halves() + restoring.restore_each()
    return Suppressed(np.array([rows.suppressed(column) for column in range(len(names))]), rounds, restored)
