"""Suppress cells until every row matches at least k rows, if a missing value matches every value; restore the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels import matching_rows as kernels

from ...errors import InputError
from ...rows.partition import index_type
from ...rows.threads import Workers
from .grouping import ClassCriterion, KeyedRows, sets_to_try

# The most columns: each is a bit of a number of 64 bits.
MOST_COLUMNS = 64

Numbers = npt.NDArray[np.int64]


class Index(NamedTuple):
    """An index of rows by value, see `kernels.matching_rows`.

    order: integers (columns, rows). Row numbers, sorted by the value in each column; missing values come last.
    starts: int64 (columns, largest number of values + 2). Position in `order` at which each value begins.
    holes: integers (columns, rows). Numbers of the rows with a missing value in each column, at the beginning.
    lacking: int64 (columns,). The number of rows with a missing value.
    """

    order: npt.NDArray[Any]
    starts: Numbers
    holes: npt.NDArray[Any]
    lacking: Numbers

    @classmethod
    def from_codes(cls, codes: Sequence[npt.NDArray[Any]], sizes: Sequence[int]) -> Index:
        """Return the index of some columns. codes, sizes: see `MatchingRows`."""
        rows = len(codes[0])
        kind = index_type(rows)
        order, holes = np.empty((len(codes), rows), kind), np.empty((len(codes), rows), kind)
        starts, lacking = np.zeros((len(codes), max(sizes) + 2), np.int64), np.zeros(len(codes), np.int64)
        for column, (values, size) in enumerate(zip(codes, sizes, strict=True)):
            order[column] = np.argsort(values, kind="stable")
            ends = np.cumsum(np.bincount(values, minlength=size + 1))
            starts[column, 1 : size + 2] = ends
            lacking[column] = rows - (ends[size - 1] if size else 0)
            holes[column, : lacking[column]] = order[column, rows - lacking[column] :]
        return cls(order, starts, holes, lacking)


class MatchingRows:
    """The rows of a table in which cells are suppressed, and the number of rows that match each row.

    codes: by column, integers (rows,); the code of a missing value is the number of values. sizes: number of values by
    column. importance: number above 0 by position of a column that may be suppressed. Raises InputError for more than
    64 columns.
    """

    def __init__(
        self,
        codes: Sequence[npt.NDArray[Any]],
        sizes: Sequence[int],
        criteria: Sequence[ClassCriterion],
        importance: Mapping[int, float],
        workers: Workers,
    ) -> None:
        if len(codes) > MOST_COLUMNS:
            raise InputError(
                f"require: expected at most {MOST_COLUMNS} columns if missing values match every value, got "
                f"{len(codes)}. Let fewer be known, or leave missing= out."
            )
        self._criteria, self._importance = criteria, importance
        self._before = np.stack([_signed(*column) for column in zip(codes, sizes, strict=True)], axis=1)
        self.codes = self._before.copy()
        self._seen = np.array([_bits(criterion.columns) for criterion in criteria], np.uint64)
        self._limits = np.array([criterion.k for criterion in criteria], np.int64)
        self._found = np.empty(len(self.codes), np.int64)
        self._index = Index.from_codes(codes, sizes)
        rows = KeyedRows(codes, sizes, workers)
        self._counts = np.array([rows.class_sizes(criterion.columns) for criterion in criteria])
        kernels.add_matches(self.codes, self._seen, self._index, self._counts, self._found)

    def suppress(self) -> int:
        """Suppress cells until all criteria hold, and return how often all criteria were checked."""
        for number, criterion in enumerate(self._criteria):
            columns = [column for column in criterion.columns if column in self._importance]
            columns.sort(key=lambda column: (self._importance[column], -len(np.unique(self.codes[:, column])), column))
            cost = {tried: sum(self._importance[column] for column in tried) for tried in sets_to_try(columns)}
            for tried in sorted(cost, key=lambda tried: cost[tried]):
                short = np.flatnonzero(self._counts[number] < criterion.k)
                if not len(short):
                    break
                kernels.suppress_where(
                    *(short, _bits(tried), number, self._limits, self.codes, self._seen, self._index, self._counts),
                    self._found,
                )
        # Suppressing a cell never reduces the rows that match a row: one check of each criterion is enough.
        return 1

    def short(self) -> list[int]:
        """Return for each criterion the number of rows that match too few rows."""
        return [int(np.count_nonzero(counts < k)) for counts, k in zip(self._counts, self._limits, strict=True)]

    def restore(self) -> int:
        """Restore cells, the most important columns first, until none can be restored; return their number."""
        columns = sorted(self._importance, key=lambda column: (-self._importance[column], column))
        places = [np.flatnonzero(self.suppressed(column)) for column in columns]
        cell_columns = np.repeat(np.array(columns, np.int64), [len(place) for place in places])
        rows = np.concatenate([np.empty(0, np.int64), *places])
        cells = rows, cell_columns, self._before[rows, cell_columns]
        restored = np.zeros(len(rows), bool)
        # One pass is enough: a cell that is needed now is still needed when fewer cells are suppressed.
        return int(
            kernels.restore_values(
                *(cells, self._limits, self.codes, self._seen, self._index, self._counts, self._found), restored
            )
        )

    def suppressed(self, column: int) -> npt.NDArray[np.bool_]:
        """Return for each row whether its cell in a column is suppressed: booleans (rows,)."""
        return np.asarray(self.codes[:, column] != self._before[:, column])


def _bits(columns: Sequence[int]) -> np.uint64:
    return np.uint64(sum(1 << column for column in columns))


def _signed(codes: npt.NDArray[Any], size: int) -> npt.NDArray[np.int32]:
    """Return codes with -1 for missing values."""
    signed = codes.astype(np.int32)
    signed[signed == size] = -1
    return signed
