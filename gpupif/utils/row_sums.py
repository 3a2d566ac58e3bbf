"""Sums of rows over columns, the same in any order of the columns and from any parts of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from gpupif.kernels.row_sums import add_column

from .arrays import is_on_device


class RowSums(NamedTuple):
    """Sums of rows to twice the precision of a float, high + low: exact, but for numbers more than 2^50 apart."""

    high: Any
    low: Any

    @classmethod
    def zeros(cls, rows: int) -> RowSums:
        """Of so many rows without columns, on the host."""
        return cls(np.zeros(rows), np.zeros(rows))

    @classmethod
    def of(cls, columns: Iterable[Any]) -> RowSums | None:
        """Of columns of host or device; None without any."""
        sums: RowSums | None = None
        for column in columns:
            if sums is None:
                first = column.astype(np.float64)
                sums = cls(first, np.zeros_like(first))
            else:
                sums = sums.plus(column)
        return sums

    def plus(self, column: Any) -> RowSums:
        """With another column; on the host these sums become it."""
        if not is_on_device(column):
            add_column(np.asarray(column), self.high, self.low)
            return self
        number = column.astype(np.float64)
        high = self.high + number
        added = high - self.high
        lost = (self.high - (high - added)) + (number - added)
        lost[lost != lost] = 0
        return RowSums(high, self.low + lost)

    def add_at(self, rows: Any, others: RowSums) -> None:
        """Add sums of some rows, each once; on the host."""
        some = RowSums(self.high[rows], self.low[rows]).plus(others.high).plus(others.low)
        self.high[rows], self.low[rows] = some

    def rounded(self) -> Any:
        """As floats, rounded once."""
        return self.high + self.low


def sum_rows(columns: Iterable[Any]) -> Any:
    """The sum of each row in float64, rounded once; of columns of host or device, None without any."""
    sums = RowSums.of(columns)
    return None if sums is None else sums.rounded()
