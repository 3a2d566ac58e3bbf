"""Rows of codes as keys in which cells are suppressed: a suppressed cell has the code of a missing value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels.pack import unpack_column

from ...rows.distinct import Distinct, distinct_rows
from ...rows.keys import KeyLayout, code_type
from ...rows.partition import Rows
from ...rows.threads import Workers

Keys = npt.NDArray[np.uint64]


class KeyedRows:
    """Rows of a table by keys of all columns; those of suppressed cells change.

    codes: by column, as `PieceColumn` has them: the missing value is above all others. sizes: how many values each has.
    """

    def __init__(self, codes: Sequence[npt.NDArray[Any]], sizes: Sequence[int], workers: Workers) -> None:
        self.codes, self.sizes, self.workers = codes, sizes, workers
        self.layout = KeyLayout.of([size + 1 for size in sizes])
        self.keys = np.array(self.layout.pack(codes, workers))

    def __len__(self) -> int:
        return len(self.keys)

    def masks(self, columns: Iterable[int]) -> Keys:
        """What keeps these columns of a key."""
        return self.layout.masks(columns)

    def holes(self, columns: Iterable[int]) -> Keys:
        """Keys of rows that lack these columns have these bits there."""
        bits = np.zeros(self.layout.words, np.uint64)
        for column in columns:
            word, shift, mask = self.layout.fields[column]
            bits[word] |= np.uint64((self.sizes[column] & mask) << shift)
        return bits

    def distinct(self, keys: Keys) -> Distinct:
        """The different ones of some keys, in order of first appearance."""
        return distinct_rows(Rows(keys), len(keys), self.workers)

    def class_sizes(self, columns: Iterable[int]) -> npt.NDArray[np.int64]:
        """For each row how many are equal to it on some columns, missing values being values of their own."""
        found = self.distinct(self.keys & self.masks(columns))
        sizes: npt.NDArray[np.int64] = np.asarray(found.rows.counts).astype(np.int64)[found.number]
        return sizes

    def suppress(self, rows: npt.NDArray[np.int64], columns: Iterable[int]) -> None:
        """Suppress these columns of some rows."""
        columns = list(columns)
        self.keys[rows] = (self.keys[rows] & ~self.masks(columns)) | self.holes(columns)

    def codes_of(self, keys: Keys, column: int) -> npt.NDArray[Any]:
        """The codes of a column in some keys."""
        word, shift, mask = self.layout.fields[column]
        found = np.empty(len(keys), code_type(self.sizes[column] + 1))
        unpack_column(keys[:, word], shift, mask, found)
        return found

    def column(self, column: int) -> npt.NDArray[Any]:
        """The codes of a column as they are now."""
        return self.codes_of(self.keys, column)

    def put_back(self, rows: npt.NDArray[np.int64], column: int) -> None:
        """Restore a column of some rows."""
        word, shift, mask = self.layout.fields[column]
        field = np.uint64(mask << shift)
        values = self.codes[column][rows].astype(np.uint64) << np.uint64(shift)
        self.keys[rows, word] = (self.keys[rows, word] & ~field) | values

    def suppressed(self, column: int) -> npt.NDArray[np.bool_]:
        """The rows whose value of a column was there, and is not any more."""
        missing = self.sizes[column]
        return np.asarray((self.column(column) == missing) & (self.codes[column] != missing))
