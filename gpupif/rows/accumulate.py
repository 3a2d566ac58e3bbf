"""Distinct rows found chunk by chunk: what has been seen keeps its number."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels.codes import add_times

from .distinct import distinct_rows
from .partition import Rows
from .threads import Workers


class DistinctRows:
    """Distinct rows in order of first appearance.

    keys: (rows, words). sums: (sums, rows), of what is given with the rows that are added.
    """

    def __init__(self, words: int, sums: int, workers: Workers) -> None:
        self.keys = np.empty((0, words), np.uint64)
        self.sums = np.empty((sums, 0), np.int64)
        self._workers = workers

    def __len__(self) -> int:
        return len(self.keys)

    def add(self, keys: npt.NDArray[np.uint64], *amounts: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Further rows, with what each adds to each sum; returns which distinct row each of them is."""
        before = len(self.keys)
        both = np.concatenate([self.keys, keys])
        found = distinct_rows(Rows(both), len(both), self._workers)
        number = found.number[before:]
        self.keys = found.rows.keys
        sums = np.zeros((len(self.sums), len(self.keys)), np.int64)
        sums[:, :before] = self.sums
        for own, more in zip(sums, amounts, strict=True):
            add_times(number, more, own)
        self.sums = sums
        return number
