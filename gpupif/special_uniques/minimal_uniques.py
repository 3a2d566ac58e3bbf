"""The result of a search for minimal sample uniques (MSUs). All ways to search give the same result."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class MsuCounts(NamedTuple):
    """The MSUs of records. A record is a distinct row; see `FewRows` for the record of each row.

    counts: array (sizes, records). The number of MSUs of 1, 2, ... columns.
    shares: array (records, columns). The sum of the weights of the MSUs with a column, see `scoring.msu_weights`; empty
        if contributions were not asked for.
    by_column: array (sizes, columns). The number of MSUs with a column, of all records.
    spilled: int. Bytes that went to a temporary file because memory had no room.
    """

    counts: npt.NDArray[np.uint32]
    shares: npt.NDArray[np.float64]
    by_column: npt.NDArray[np.int64]
    spilled: int = 0

    @classmethod
    def nothing(cls, sizes: int, records: int, columns: int, with_shares: bool) -> MsuCounts:
        """Return the result for records without MSUs. sizes: the largest size of a set."""
        shares = np.zeros((records, columns) if with_shares else (0, 0))
        return cls(np.zeros((sizes, records), np.uint32), shares, np.zeros((sizes, columns), np.int64))

    def of_few(self, records: npt.NDArray[np.intp]) -> MsuCounts:
        """Return a record without MSUs, followed by the given records, which must be all records with MSUs."""
        few = self.nothing(len(self.counts), len(records) + 1, self.by_column.shape[1], bool(self.shares.size))
        few.counts[:, 1:] = self.counts[:, records]
        if self.shares.size:
            few.shares[1:] = self.shares[records]
        return few._replace(by_column=self.by_column, spilled=self.spilled)


class Uniques(NamedTuple):
    """The minimal sample uniques of the rows of a table.

    number: the record of each row in `found`.
    unique: int. Rows that differ from all other rows.
    pairs: int. Rows that are equal to exactly one other row.
    found: the MSUs of the records.
    pair_people: float. The sum of the sampling weights of the rows in pairs; None without sampling weights.
    """

    number: FewRows
    unique: int
    pairs: int
    found: MsuCounts
    pair_people: float | None = None


class FewRows:
    """The record of each row: 1, 2, ... for the `rows` with MSUs (ascending), 0 for all other rows."""

    def __init__(self, rows: npt.NDArray[np.int64]) -> None:
        self.rows = rows

    def __getitem__(self, rows: slice) -> npt.NDArray[np.uint32]:
        first, last = np.searchsorted(self.rows, [rows.start, rows.stop])
        out = np.zeros(rows.stop - rows.start, np.uint32)
        out[self.rows[first:last] - rows.start] = np.arange(first + 1, last + 1)
        return out
