"""Cells suppressed until on some columns every row is one of at least k, and no further: on codes, in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...rows.threads import Workers
from ...utils.display import plural
from .class_targets import ClassTarget, without_implied
from .grouping import Grouping
from .keyed_rows import KeyedRows
from .restoring import restore


@dataclass(frozen=True)
class Suppressed:
    """cells (columns, rows): whether a value was taken away. rounds: times that all targets were looked at.

    restored: values that were taken away on the way, and put back.
    """

    cells: npt.NDArray[np.bool_]
    rounds: int
    restored: int

    def codes(self, codes: Sequence[npt.NDArray[Any]], sizes: Sequence[int]) -> list[npt.NDArray[Any]]:
        """Codes of the table, as they are with these cells suppressed."""
        return [
            np.where(cells, np.asarray(size).astype(one.dtype), one)
            for one, size, cells in zip(codes, sizes, self.cells, strict=True)
        ]


def suppress_cells(
    codes: Sequence[npt.NDArray[Any]],
    sizes: Sequence[int],
    targets: Sequence[ClassTarget],
    importance: Mapping[int, float],
    names: Sequence[Any] | None = None,
) -> Suppressed:
    """Suppress cells until all targets hold, a missing value being a value of its own; no cell can be restored alone.

    Then they hold also where missing values match every value, for more rows match than are equal.

    codes: by column, the missing value above all others, whose number is in `sizes`. importance: of the columns that
    may be suppressed, above 0: of two cells that would do, that of the less important column is. names: what messages
    call columns. Raises InputError for a target that cannot be reached.
    """
    needed = without_implied(targets)
    with Workers() as workers:
        rows = KeyedRows(codes, sizes, workers)
        for target in needed:
            _check_reachable(rows, target, importance, names or range(len(codes)))
        rounds, short = 0, True
        while short:
            rounds, short = rounds + 1, False
            for target in needed:
                grouping = Grouping(rows, target, importance)
                if len(grouping.short):
                    short = True
                    grouping.run()
        restored = restore(rows, needed, importance)
        cells = np.array([rows.suppressed(column) for column in range(len(codes))])
    return Suppressed(cells, rounds, restored)


def _check_reachable(
    rows: KeyedRows, target: ClassTarget, importance: Mapping[int, float], names: Sequence[Any]
) -> None:
    """Raise InputError where rows stay in classes that are too small whatever is suppressed."""
    fixed = [column for column in target.columns if column not in importance]
    sizes = rows.class_sizes(fixed)
    short = int(np.count_nonzero(sizes < target.k))
    if not short:
        return
    said = target.text or f"k>={target.k}"
    if not fixed:
        raise InputError(
            f"targets: {said!r} cannot be reached: the table has {len(rows):,} {plural(len(rows), 'row')}, fewer than "
            f"{target.k:,}. Ask for a lower k."
        )
    stay = ", ".join(repr(names[column]) for column in fixed)
    raise InputError(
        f"targets: {said!r} cannot be reached: {short:,} {plural(short, 'row')} of fewer than {target.k:,} that agree "
        f"on {stay}, which may not be suppressed. Add the {plural(len(fixed), 'column')} to columns=, or recode before."
    )
