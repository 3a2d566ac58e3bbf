"""Cells suppressed until criteria of all kinds hold, and no further."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from ...criteria.criterion_set import CriterionSet, CriterionValue
from ...engines.choose import choose_engine, requested_device
from ...errors import InputError
from ...rows.threads import Workers
from ..base import PieceColumn
from .by_scores import ByScores, Restoring
from .cells import Suppressed, check_reached, make_groups, suppress_cells
from .class_criteria import ClassCriterion, without_implied
from .keyed_rows import KeyedRows
from .measured_criteria import READINGS, MeasuredCriteria


def suppress_to_criteria(
    columns: Sequence[PieceColumn],
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
