"""The minimal sample uniques that a search finds; the same for all ways to search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class Found(NamedTuple):
    """The minimal sample uniques of distinct rows, or of other records of rows.

    counts (sizes, records): minimal sets by their size, less 1. shares (records, columns): sums over the minimal sets
    with a column of the weight of their size; empty where it is not wanted. by_column (sizes, columns): minimal sets
    with a column, of all records. spilled: bytes that memory had no room for.
    """

    counts: npt.NDArray[np.uint32]
    shares: npt.NDArray[np.float64]
    by_column: npt.NDArray[np.int64]
    spilled: int = 0

    @classmethod
    def nothing(cls, sizes: int, records: int, columns: int, with_shares: bool) -> Found:
        """Return the result for records without minimal sets."""
        shares = np.zeros((records, columns) if with_shares else (0, 0))
        return cls(np.zeros((sizes, records), np.uint32), shares, np.zeros((sizes, columns), np.int64))

    def of_few(self, records: npt.NDArray[np.intp]) -> Found:
        """Return a record without minimal sets, followed by the given records, which are all that have some."""
        few = self.nothing(len(self.counts), len(records) + 1, self.by_column.shape[1], bool(self.shares.size))
        few.counts[:, 1:] = self.counts[:, records]
        if self.shares.size:
            few.shares[1:] = self.shares[records]
        return few._replace(by_column=self.by_column, spilled=self.spilled)


@dataclass(frozen=True)
class Uniques:
    """The minimal sample uniques of the rows of a table.

    number[i]: which record of `found` row i has; of slices too. unique: rows that differ from all others; pairs: rows
    that are equal to one other, and pair_people the sum of their sampling weights (None without).
    """

    number: Any
    unique: int
    pairs: int
    found: Found
    pair_people: float | None = None


class FewRows:
    """The record of each row: 1, 2, ... for the `rows`, which ascend, and 0 for all other rows."""

    def __init__(self, rows: npt.NDArray[np.int64]) -> None:
        self.rows = rows

    def __getitem__(self, rows: slice | int) -> Any:
        if not isinstance(rows, slice):
            place = int(np.searchsorted(self.rows, rows))
            return place + 1 if place < len(self.rows) and self.rows[place] == rows else 0
        first, last = np.searchsorted(self.rows, [rows.start, rows.stop])
        out = np.zeros(rows.stop - rows.start, np.uint32)
        out[self.rows[first:last] - rows.start] = np.arange(first + 1, last + 1)
        return out
