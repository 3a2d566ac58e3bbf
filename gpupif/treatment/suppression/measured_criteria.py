"""Cells suppressed until criteria of every kind hold, and no further, by the scores of the cells."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...attack.any_known import AnyKnown
from ...criteria.counted_scores import SIZE, score_counted
from ...criteria.counted_table import CountedTable
from ...criteria.criterion import Criterion
from ...criteria.criterion_set import CriterionSet, CriterionValue
from ...criteria.quantities import ClassQuantity, ModelQuantity, ScoreQuantity
from ...disclosure.request import NO_ATTRIBUTE
from ...encoding.column import Column
from ...engines.base import Engine
from ...engines.choose import choose_engine, requested_device
from ...errors import InputError, UnreachableError
from ...measures import Measure, as_risk, find_measure
from ...rows.threads import Workers
from ..coded_columns import CodedColumn
from .class_suppression import Suppressed, check_reached, make_groups, suppress_cells
from .grouping import ClassCriterion, KeyedRows, without_implied

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
        columns: Sequence[CodedColumn],
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

        if isinstance(quantity, ClassQuantity) or (isinstance(quantity, ModelQuantity) and not quantity.sensitive):
            sizes = scored([NO_ATTRIBUTE], find_measure(SIZE))[0]
            below = _least_class(criterion) or getattr(quantity, "parameter", None) or sizes.min() + 1
            return [Breaking(None, np.where(sizes < below, -sizes, math.nan))]
        named = quantity.column
        if isinstance(quantity, ModelQuantity):
            measure = find_measure(quantity.model.measure(quantity.l_values, of.missing == "wildcard"))
            columns = [name for name in of.sensitive if named in (None, str(name))]
            # Those that are worst: what the others have is not compared with the limit.
            return [Breaking(None, _highest(as_risk(measure, scores))) for scores in scored(columns, measure)]
        assert isinstance(quantity, ScoreQuantity)
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
    if isinstance(quantity, ModelQuantity) and not quantity.sensitive:
        return max(1, math.ceil(criterion.limit))
    if isinstance(quantity, ClassQuantity) and criterion.limit == 0:
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


Numbers = npt.NDArray[np.int64]


class ByScores:
    """Cells suppressed by their scores. importance: by column, of those that may be suppressed; names: of all."""

    def __init__(
        self, rows: KeyedRows, criteria: MeasuredCriteria, importance: Mapping[int, float], names: Sequence[Hashable]
    ) -> None:
        self._rows, self._criteria, self._importance, self._names = rows, criteria, importance, list(names)
        self._others = 1

    def round(self) -> bool:
        """Suppress a cell of each row that breaks a criterion; return whether there are any.

        Raises UnreachableError if no cell is left.
        """
        found, number = self._criteria.breaking(self._rows)
        if not found:
            return False
        suppressed = stuck = 0
        for one in found:
            breaking = np.flatnonzero((one.risks == one.risks)[number])
            before = suppressed
            suppressed += self._suppress_one(breaking, one)
            stuck += suppressed == before
        if stuck:
            # Rows with nothing left are like no others: more become like them.
            suppressed += self._suppress_others(found, number)
        if not suppressed:
            raise self._unreachable()
        return True

    def _suppress_one(self, rows: Numbers, breaking: Breaking) -> int:
        """Suppress one cell of each row that has any left; how many had."""
        left, total = rows, 0
        if breaking.column is not None:
            left, total = self._suppress_in(left, self._names.index(breaking.column))
        for column in self._in_turn():
            left, number = self._suppress_in(left, column)
            total += number
        return total

    def _suppress_in(self, rows: Numbers, column: int) -> tuple[Numbers, int]:
        """Suppress a column of rows that have it; the others, and how many had."""
        if column not in self._importance or not len(rows):
            return rows, 0
        there = self._rows.codes_of(self._rows.keys[rows], column) != self._rows.sizes[column]
        self._rows.suppress(rows[there], [column])
        return rows[~there], int(np.count_nonzero(there))

    def _suppress_others(self, found: Sequence[Breaking], number: npt.NDArray[np.int64]) -> int:
        """Suppress cells of rows that break nothing, each time of twice as many, the first ones; how many."""
        broken = np.zeros(len(self._rows), bool)
        for one in found:
            broken |= (one.risks == one.risks)[number]
        total = 0
        for column in self._in_turn():
            there = np.flatnonzero(~broken & (self._rows.column(column) != self._rows.sizes[column]))[: self._others]
            self._rows.suppress(there, [column])
            total += len(there)
        self._others *= 2
        return total

    def _in_turn(self) -> list[int]:
        """Columns that may be suppressed: those that matter least, of these those with the most values, first."""
        sizes = self._rows.sizes
        return sorted(self._importance, key=lambda column: (self._importance[column], -sizes[column], column))

    def _unreachable(self) -> UnreachableError:
        values = self._criteria.values(self._rows)
        reading, broken = next(
            (reading, one) for reading, several in values.items() for one in several if not is_met(one, reading)
        )
        where = "" if broken.column is None else f" in column {broken.column!r}"
        value = "not defined" if broken.value is None else f"{broken.value:.6g}"
        how = {"category": "are a value of their own", "wildcard": "match every value"}[reading]
        return UnreachableError(
            f"require: {str(broken.criterion)!r} cannot be reached: with all cells of columns= suppressed it is "
            f"{value}{where}, where missing values {how}. Name more columns, or recode before."
        )


class Restoring:
    """Values put back, those of the most important columns first, until no single one can be."""

    def __init__(self, rows: KeyedRows, criteria: MeasuredCriteria, importance: Mapping[int, float]) -> None:
        self._rows, self._criteria = rows, criteria
        self._columns = sorted(importance, key=lambda column: (-importance[column], column))
        # Cells that could not be restored since one was: as cells of equal rows are alike, what they are.
        self._needed: set[tuple[bytes, int, int]] = set()

    def run(self) -> int:
        """Put values back; how many were."""
        total = sum(self._many(self._suppressed(column), column) for column in self._columns)
        while found := sum(self._each(column) for column in self._columns):
            total += found
        return total

    def _suppressed(self, column: int) -> Numbers:
        return np.flatnonzero(self._rows.suppressed(column))

    def _try(self, cells: Numbers, column: int) -> bool:
        """Put these cells of a column back where all criteria hold then; whether they do."""
        kind = self._rows.keys[cells[0]].tobytes(), column, int(self._rows.codes[column][cells[0]])
        if len(cells) == 1 and kind in self._needed:
            return False
        self._rows.put_back(cells, column)
        if self._criteria.hold(self._rows):
            self._needed.clear()
            return True
        self._rows.suppress(cells, [column])
        if len(cells) == 1:
            self._needed.add(kind)
        return False

    def _many(self, cells: Numbers, column: int) -> int:
        """Put back as many of these cells of a column as are found by halves."""
        if not len(cells):
            return 0
        if self._try(cells, column):
            return len(cells)
        half = len(cells) // 2
        return self._many(cells[:half], column) + self._many(cells[half:], column) if half else 0

    def _each(self, column: int) -> int:
        """Put back cells of a column one by one."""
        cells = self._suppressed(column)
        return sum(self._try(cells[place : place + 1], column) for place in range(len(cells)))


def suppress_to_criteria(
    columns: Sequence[CodedColumn],
    names: Sequence[Hashable],
    criteria: CriterionSet,
    importance: Mapping[int, float],
    missing: str | None,
) -> tuple[Suppressed, dict[str, list[CriterionValue]]]:
    """Suppress cells of some columns until all criteria hold, such that no single one can be restored.

    columns: of all rows, all that criteria need. importance: by place, of the columns that may be suppressed, above 0.
    missing: how missing values are read, None for both ways. Also what the rows have of each criterion then, by
    reading. Raises UnreachableError for criteria that cannot be reached, InputError for a table without rows.
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
            found = _suppress_by_scores(rows, measured, classes, importance, names, readings)
        else:
            # Where rows are equal they match.
            found = suppress_cells(codes, sizes, classes, importance, names, readings[0])
            rows = KeyedRows(found.codes(codes, sizes), sizes, workers)
        return found, measured.values(rows, READINGS)


def _suppress_by_scores(
    rows: KeyedRows,
    measured: MeasuredCriteria,
    classes: Sequence[ClassCriterion],
    importance: Mapping[int, float],
    names: Sequence[Hashable],
    readings: Sequence[str],
) -> Suppressed:
    """Make groups of rows where that does, and suppress cells by their scores, in turns until all criteria hold."""
    # Where rows are to match only, those that match too few are suppressed by their scores.
    needed = without_implied(classes) if "category" in readings else []
    for criterion in needed:
        check_reached(rows, criterion, importance, names)
    by_scores, rounds = ByScores(rows, measured, importance, names), 1
    make_groups(rows, needed, importance)
    while by_scores.round():
        rounds += 1
        make_groups(rows, needed, importance)
    restored = Restoring(rows, measured, importance).run()
    return Suppressed(np.array([rows.suppressed(column) for column in range(len(names))]), rounds, restored)
