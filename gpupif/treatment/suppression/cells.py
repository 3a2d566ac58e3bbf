"""Cells suppressed until on some columns every row is one of at least k, and no further: on codes, in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import UnreachableError
from ...rows.keys import code_type
from ...rows.threads import Workers
from ...utils.display import plural
from .class_criteria import ClassCriterion, without_implied
from .grouping import Grouping
from .keyed_rows import KeyedRows
from .matching import MatchingRows
from .restoring import restore

# Rounds in which rows are grouped on one set of columns without regard to the others.
MOST_ROUNDS = 4


@dataclass(frozen=True)
class Suppressed:
    """cells (columns, rows): whether a value was taken away. rounds: times that all criteria were looked at.

    restored: values that were taken away on the way, and put back.
    """

    cells: npt.NDArray[np.bool_]
    rounds: int
    restored: int

    def codes(self, codes: Sequence[npt.NDArray[Any]], sizes: Sequence[int]) -> list[npt.NDArray[Any]]:
        """Codes of the table, as they are with these cells suppressed."""
        return [with_missing(*one) for one in zip(codes, self.cells, sizes, strict=True)]


def with_missing(codes: npt.NDArray[Any], cells: npt.NDArray[np.bool_], size: int) -> npt.NDArray[Any]:
    """Codes of a column of so many values with the missing value in some cells."""
    changed = codes.astype(np.result_type(codes.dtype, code_type(size + 1)))
    changed[cells] = size
    return changed


def suppress_cells(
    codes: Sequence[npt.NDArray[Any]],
    sizes: Sequence[int],
    criteria: Sequence[ClassCriterion],
    importance: Mapping[int, float],
    names: Sequence[Any] | None = None,
    missing: str = "category",
) -> Suppressed:
    """Suppress cells until all criteria hold, such that none of them holds any more where a single cell is restored.

    missing: "category": a missing value is a value of its own; then criteria hold also under "wildcard", where it
    matches every value, for more rows match than are equal.

    codes: by column, the missing value above all others, whose number is in `sizes`. importance: of the columns that
    may be suppressed, above 0: of two cells that would do, that of the less important column is. names: what messages
    call columns. Raises UnreachableError for a criterion that cannot be reached.
    """
    needed, names = without_implied(criteria), range(len(codes)) if names is None else names
    with Workers() as workers:
        if missing == "wildcard":
            matching = MatchingRows(codes, sizes, needed, importance, workers)
            rounds = matching.suppress()
            for criterion, short in zip(needed, matching.short(), strict=True):
                _refuse(criterion, short, len(codes[0]), importance, names)
            restored, suppressed = matching.restore(), matching.suppressed
        else:
            rows = KeyedRows(codes, sizes, workers)
            for criterion in needed:
                check_reached(rows, criterion, importance, names)
            rounds, restored, suppressed = (
                make_groups(rows, needed, importance),
                restore(rows, needed, importance),
                rows.suppressed,
            )
        cells = np.array([suppressed(column) for column in range(len(codes))])
    return Suppressed(cells, rounds, restored)


def make_groups(rows: KeyedRows, criteria: Sequence[ClassCriterion], importance: Mapping[int, float]) -> int:
    """Make groups of rows until all criteria hold; how often all of them were looked at."""
    rounds, short = 0, True
    while short:
        rounds, short = rounds + 1, False
        for criterion in criteria:
            grouping = Grouping(rows, criterion, importance)
            if len(grouping.short):
                short = True
                if rounds > MOST_ROUNDS:
                    # A few rows go from one set of columns to the other: those that lack all are alike on each of them.
                    rows.suppress(grouping.short, list(importance))
                    grouping = Grouping(rows, criterion, importance)
                grouping.run()
    return rounds


def check_reached(
    rows: KeyedRows, criterion: ClassCriterion, importance: Mapping[int, float], names: Sequence[Any]
) -> None:
    """Raise UnreachableError if a criterion does not hold whatever is suppressed."""
    sizes = rows.class_sizes(column for column in criterion.columns if column not in importance)
    _refuse(criterion, int(np.count_nonzero(sizes < criterion.k)), len(rows), importance, names)


def _refuse(
    criterion: ClassCriterion, short: int, rows: int, importance: Mapping[int, float], names: Sequence[Any]
) -> None:
    """Raise UnreachableError where so many rows stay in classes that are too small whatever is suppressed."""
    if not short:
        return
    said = criterion.text or f"k>={criterion.k}"
    fixed = [repr(names[column]) for column in criterion.columns if column not in importance]
    if not fixed:
        raise UnreachableError(
            f"criteria: {said!r} cannot be reached: the table has {rows:,} {plural(rows, 'row')}, fewer than "
            f"{criterion.k:,}. Ask for a lower k."
        )
    raise UnreachableError(
        f"criteria: {said!r} cannot be reached: {short:,} {plural(short, 'row')} would be of fewer than "
        f"{criterion.k:,} "
        f"that agree on {', '.join(fixed)}, which may not be suppressed. Add {'it' if len(fixed) == 1 else 'them'} to "
        "columns=, or recode before."
    )
