"""A column of a table in memory: maps of its values are put together, and brought to its rows when these are needed."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..encoding.encode import encode_column
from ..encoding.merge import recode
from ..frames.replacement import Replacement
from ..utils.arrays import read_only
from .base import ColumnValues, PieceColumn, ValueMapStep
from .columns import Changes, column_values, counts_of, piece_column, places_among
from .plain_piece import ValuesPiece


class MemoryColumn:
    """All rows of a column. counts: rows by code, missing ones last; found where they are not given."""

    def __init__(self, column: PieceColumn, counts: npt.NDArray[np.int64] | None = None) -> None:
        self.labels = column.labels
        self._codes = column.codes
        # By code of the rows what it is now; None where nothing changed.
        self._now: npt.NDArray[np.int64] | None = None
        self._counts = counts

    @classmethod
    def encoded(cls, name: Hashable, array: Any) -> MemoryColumn:
        """A column of a frame, see `encode_column`; raises ColumnTypeError for values that are no categories."""
        if hasattr(array, "__len__") and len(array) == 0:
            return cls(piece_column(name, array))
        column = encode_column(name, array)
        counts = column.counts if column.missing else np.append(column.counts, 0)
        return cls(piece_column(name, column), counts)

    def rows(self) -> PieceColumn:
        """What it is now, row by row."""
        if self._now is not None:
            counts = self.counts()
            self._codes = recode(read_only(self._codes), self._now)
            self._now, self._counts = None, counts
        return PieceColumn(self._codes, self.labels)

    def replacement(self, before: pa.DataType) -> Replacement:
        """What it is now, in the place of a column with values of the type `before`."""
        return Replacement(self._codes, self.labels, before, self.counts(), self._now)

    def counts(self) -> npt.NDArray[np.int64]:
        """Rows by code of what it is now, missing ones last."""
        if self._counts is None:
            self._counts = counts_of(PieceColumn(self._codes, self.labels))
        if self._now is None:
            return self._counts
        return np.bincount(self._now, self._counts, len(self.labels) + 1).astype(np.int64)

    def values(self) -> ColumnValues:
        """Its values."""
        counts = self.counts()
        return column_values(self.labels, counts[:-1], int(counts[-1]))

    def mapped(self, step: ValueMapStep) -> tuple[MemoryColumn, Changes]:
        """The column after a step that looks at values alone, and what that changes; no row is looked at."""
        counts = self.counts()
        occurs = np.flatnonzero(counts)
        before = PieceColumn(occurs, self.labels)
        piece = ValuesPiece(step.column, before)
        step.apply(piece)
        after = piece[step.column]
        missing = len(after.labels)
        now = np.full(len(counts), missing, np.int64)
        now[occurs] = after.codes
        made = MemoryColumn(PieceColumn(self._codes, after.labels), self._counts)
        made._now = now if self._now is None else now[self._now]
        same = np.append(places_among(after.labels, self.labels), len(self.labels))[after.codes]
        changed = counts[occurs[same != occurs]].sum()
        gone = counts[occurs[(after.codes == missing) & (occurs != len(self.labels))]].sum()
        return made, Changes(int(changed), int(gone))
