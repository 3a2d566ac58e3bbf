"""Cells suppressed until every row matches at least k, where a missing value matches every value, and no further."""

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

# Columns that are the bits of a number.
MOST_COLUMNS = 64

Numbers = npt.NDArray[np.int64]


class Index(NamedTuple):
    """Where rows with a value are, see `kernels.matching_rows`; lacking: how many rows are in `holes` by column."""

    order: npt.NDArray[Any]
    starts: Numbers
    holes: npt.NDArray[Any]
    lacking: Numbers

    @classmethod
    def of(cls, codes: Sequence[npt.NDArray[Any]], sizes: Sequence[int]) -> Index:
        """Of columns of codes, the missing value above all others."""
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
    """Rows of a table in which cells are suppressed, and how many match each, for each criterion.

    importance: of the columns that may be suppressed. Raises InputError for too many columns.
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
                f"require: expected at most {MOST_COLUMNS} columns where missing values match every value, got "
                f"{len(codes)}. Let fewer be known, or leave missing= out."
            )
        self._criteria, self._importance = criteria, importance
        self._before = np.stack([_signed(*column) for column in zip(codes, sizes, strict=True)], axis=1)
        self.codes = self._before.copy()
        self._seen = np.array([_bits(criterion.columns) for criterion in criteria], np.uint64)
        self._limits = np.array([criterion.k for criterion in criteria], np.int64)
        self._found = np.empty(len(self.codes), np.int64)
        self._index = Index.of(codes, sizes)
        rows = KeyedRows(codes, sizes, workers)
        self._counts = np.array([rows.class_sizes(criterion.columns) for criterion in criteria])
        kernels.add_matches(self.codes, self._seen, self._index, self._counts, self._found)

    def suppress(self) -> int:
        """Suppress cells until all criteria hold; how often all of them were looked at."""
        for t, criterion in enumerate(self._criteria):
            columns = [column for column in criterion.columns if column in self._importance]
            columns.sort(key=lambda column: (self._importance[column], -len(np.unique(self.codes[:, column])), column))
            cost = {some: sum(self._importance[column] for column in some) for some in sets_to_try(columns)}
            for some in sorted(cost, key=lambda some: cost[some]):
                short = np.flatnonzero(self._counts[t] < criterion.k)
                if not len(short):
                    break
                kernels.suppress_where(
                    *(short, _bits(some), t, self._limits, self.codes, self._seen, self._index, self._counts),
                    self._found,
                )
        # Whatever else is suppressed, no row matches fewer.
        return 1

    def short(self) -> list[int]:
        """By criterion the rows that match too few."""
        return [int(np.count_nonzero(counts < k)) for counts, k in zip(self._counts, self._limits, strict=True)]

    def restore(self) -> int:
        """Put values back, those of the most important columns first, until none can be; how many were."""
        columns = sorted(self._importance, key=lambda column: (-self._importance[column], column))
        places = [np.flatnonzero(self.suppressed(column)) for column in columns]
        of = np.repeat(np.array(columns, np.int64), [len(place) for place in places])
        rows = np.concatenate([np.empty(0, np.int64), *places])
        cells = rows, of, self._before[rows, of]
        restored = np.zeros(len(rows), bool)
        # A cell that is needed while more are suppressed is needed when fewer are.
        return int(
            kernels.restore_values(
                *(cells, self._limits, self.codes, self._seen, self._index, self._counts, self._found), restored
            )
        )

    def suppressed(self, column: int) -> npt.NDArray[np.bool_]:
        """The rows whose value of a column was there, and is not any more."""
        return np.asarray(self.codes[:, column] != self._before[:, column])


def _bits(columns: Sequence[int]) -> np.uint64:
    return np.uint64(sum(1 << column for column in columns))


def _signed(codes: npt.NDArray[Any], size: int) -> npt.NDArray[np.int32]:
    """Codes with -1 for a missing value."""
    signed = codes.astype(np.int32)
    signed[signed == size] = -1
    return signed
