"""Distinct rows with multiplicities, in order of first appearance, and the number of each row's distinct row."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels import distinct as kernels
from gpupif.kernels.codes import add_multiplicities
from gpupif.kernels.groups import Room
from gpupif.kernels.spread import look_up

from .partition import BLOCK_ROWS, Blocks, Rows, index_type, partition_rows
from .threads import Workers


@dataclass(frozen=True)
class Distinct:
    """Distinct rows with multiplicities. number: (rows,) the number of each row's distinct row."""

    rows: Rows
    number: npt.NDArray[Any]


def distinct_rows(rows: Rows, total: int, workers: Workers, block_rows: int = BLOCK_ROWS) -> Distinct:
    """Return the distinct rows, exactly. total: the sum of the multiplicities."""
    size, words = rows.keys.shape
    everything = np.full(words, ~np.uint64(0))
    first = workers.empty(size, index_type(size))
    # For each first row, its count and later its number: one array, because they are never needed together.
    count_then_number = workers.empty(size, index_type(total + 1))
    _find_first_rows(partition_rows(rows, everything, block_rows, workers), first, count_then_number, workers)
    ranges = workers.ranges(size)
    found = workers.run(lambda a, b: kernels.count_first_rows(first, a, b), ranges)
    starts = np.cumsum([0, *found])
    distinct_count = int(starts[-1])
    counts = workers.empty(distinct_count, count_then_number.dtype)
    distinct = Rows(workers.empty((distinct_count, words), np.uint64), counts)
    outputs = (distinct.keys, distinct.counts)
    workers.run(
        lambda edges, numbers: kernels.collect_first_rows(
            first, *edges, rows.keys, count_then_number, *numbers, outputs
        ),
        list(zip(ranges, pairwise(starts), strict=True)),
    )
    look_up_rows(count_then_number, first, first, workers)
    return Distinct(distinct, first)


def look_up_rows(table: npt.NDArray[Any], index: npt.NDArray[Any], out: npt.NDArray[Any], workers: Workers) -> None:
    """Copy table[index[i]] to out[i], for all i. `out` may be `index`."""
    workers.run(lambda a, b: look_up(table, index[a:b], out[a:b]), workers.ranges(len(index)))


def sum_multiplicities(
    number: npt.NDArray[Any], multiplicities: npt.NDArray[np.int64], size: int
) -> npt.NDArray[np.int64]:
    """Return the sums of `multiplicities` over rows with equal numbers, (size,). Numbers are below `size`."""
    sums = np.zeros(size, np.int64)
    add_multiplicities(number, multiplicities, sums)
    return sums


def _find_first_rows(blocks: Blocks, first: npt.NDArray[Any], counts: npt.NDArray[Any], workers: Workers) -> None:
    """Find the first row that equals each row, and the multiplicity of each first row."""
    rows = (blocks.rows.keys, blocks.rows.counts, blocks.hashes(workers))

    def run(start: int, stop: int) -> None:
        largest = int(np.diff(blocks.offsets[start : stop + 1]).max())
        sizes = np.empty(largest, counts.dtype)
        kernels.find_first_rows(
            blocks.order, rows, blocks.offsets, (start, stop), Room.for_rows(largest), sizes, first, counts
        )

    workers.run(run, blocks.tasks(workers))


class DistinctRows:
    """Distinct rows in order of first appearance, found chunk by chunk. A row keeps its number.

    keys: (distinct rows, words). sums: (sums, distinct rows), of the amounts that are added with the rows.
    """

    def __init__(self, words: int, sums: int, workers: Workers) -> None:
        self.keys = np.empty((0, words), np.uint64)
        self.sums = np.empty((sums, 0), np.int64)
        self._workers = workers

    def __len__(self) -> int:
        return len(self.keys)

    def add(self, keys: npt.NDArray[np.uint64], *amounts: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Add rows, and return the number of each row's distinct row. amounts: for each sum, (rows,) to be added."""
        seen = len(self.keys)
        both = np.concatenate([self.keys, keys])
        distinct = distinct_rows(Rows(both), len(both), self._workers)
        number = distinct.number[seen:]
        self.keys = distinct.rows.keys
        sums = np.zeros((len(self.sums), len(self.keys)), np.int64)
        sums[:, :seen] = self.sums
        for own, more in zip(sums, amounts, strict=True):
            add_multiplicities(number, more, own)
        self.sums = sums
        return number
