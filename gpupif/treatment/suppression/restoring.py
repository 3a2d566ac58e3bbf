"""Suppressed cells whose values can be put back without a class of rows becoming too small."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from gpupif.kernels import class_counts as kernels

from ...errors import InputError
from ...utils.memory import free_bytes, shown
from .class_criteria import ClassCriterion
from .keyed_rows import KeyedRows, Keys


def restore(rows: KeyedRows, criteria: Sequence[ClassCriterion], importance: Mapping[int, float]) -> int:
    """Put values back, those of the most important columns first, until none can be; how many were.

    Afterwards no value of a suppressed cell can be put back by itself. All criteria have to hold.
    """
    cells = _cells(rows, importance)
    if not len(cells[0]):
        return 0
    masks = np.array([rows.masks(criterion.columns) for criterion in criteria])
    tables = _tables(rows, criteria, masks, cells[1])
    limits = np.array([criterion.k for criterion in criteria])
    fields = np.array([rows.layout.fields[column] for column in range(len(rows.codes))], np.uint64)
    entries = kernels.count_rows(rows.keys, *tables)
    restored = np.zeros(len(cells[0]), bool)
    changed = np.empty((1, rows.layout.words), np.uint64)
    total, found = 0, 1
    while found:
        entries, found = kernels.restore_cells(cells, fields, rows.keys, limits, tables, entries, restored, changed)
        total += found
    return int(total)


def _cells(rows: KeyedRows, importance: Mapping[int, float]) -> tuple[npt.NDArray[np.int64], ...]:
    """Rows, columns and values of the suppressed cells, the most important columns first."""
    columns = sorted(importance, key=lambda column: (-importance[column], column))
    places = [np.flatnonzero(rows.suppressed(column)) for column in columns]
    codes = [rows.codes[column][place].astype(np.int64) for column, place in zip(columns, places, strict=True)]
    of = np.repeat(np.array(columns, np.int64), [len(place) for place in places])
    nothing = np.empty(0, np.int64)
    return np.concatenate([nothing, *places]), of, np.concatenate([nothing, *codes])


def _tables(
    rows: KeyedRows, criteria: Sequence[ClassCriterion], masks: Keys, columns: npt.NDArray[np.int64]
) -> tuple[Keys, npt.NDArray[np.int64], npt.NDArray[np.int64], Keys, npt.NDArray[np.int64]]:
    """Tables as `kernels.class_counts` has them, for all classes and those that restored cells may make."""
    by_column = np.bincount(columns, minlength=len(rows.codes))
    numbers = [
        len(rows.distinct(rows.keys & mask).rows.keys) + int(by_column[list(criterion.columns)].sum())
        for mask, criterion in zip(masks, criteria, strict=True)
    ]
    slots = [1 << (2 * number).bit_length() for number in numbers]
    needed, free = 8 * (sum(slots) + sum(numbers) * (masks.shape[1] + 1)), free_bytes()
    if needed > free:
        raise InputError(
            f"criteria: counting the classes of {len(criteria):,} sets of columns takes {shown(needed)}, of which "
            f"{shown(free)} are free. Let fewer columns be known, or treat fewer rows."
        )
    return (
        masks,
        np.cumsum([0, *slots]),
        np.zeros(sum(slots), np.int64),
        np.empty((sum(numbers), masks.shape[1]), np.uint64),
        np.zeros(sum(numbers), np.int64),
    )
