"""Rows that are equal to another row, found exactly within the memory limit, in several passes if need be."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..pipeline.shuffle_messages import partition_of_keys
from ..rows.distinct import distinct_rows
from ..rows.keys import KeyLayout
from ..rows.partition import Rows
from ..rows.threads import Workers
from .table_chunks import TableChunks

# Memory of a row during the search: copies of its key, and bytes of row numbers.
KEY_COPIES, NUMBER_BYTES = 3, 32


class DuplicateRows(NamedTuple):
    """The rows that are equal to another row.

    rows: int. The number of these rows.
    first: list of int. The numbers of the first of these rows, from 0.
    """

    rows: int
    first: list[int]


def duplicate_rows(chunks: TableChunks, memory: int, shown: int = 10) -> DuplicateRows:
    """Return the rows of a table that are equal to another row; missing values are equal.

    memory: int. The bytes for the search.
    shown: int. The number of rows to return. Default 10.
    """
    if any(column.counts.max() == 1 for column in chunks.columns):
        return DuplicateRows(0, [])
    layout = KeyLayout.from_cardinalities([column.cardinality for column in chunks.columns])
    row = KEY_COPIES * 8 * layout.words + NUMBER_BYTES
    passes = max(1, -(-chunks.rows * row // max(1, memory)))
    repeated, first = 0, np.empty(0, np.int64)
    with Workers() as workers:
        for turn in range(passes):
            keys, numbers = _some_keys(chunks, layout, turn, passes, workers)
            if not len(keys):
                continue
            distinct = distinct_rows(Rows(keys), len(keys), workers)
            again = np.flatnonzero(np.asarray(distinct.rows.counts)[distinct.number] > 1)
            repeated += len(again)
            first = np.sort(np.append(first, numbers[again[:shown]]))[:shown]
    return DuplicateRows(repeated, first.tolist())


def _some_keys(
    chunks: TableChunks, layout: KeyLayout, turn: int, turns: int, workers: Workers
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Return the keys, and the numbers, of the rows whose hash belongs to this turn."""
    keys, numbers, start = [], [], 0
    for number, size in enumerate(chunks.sizes):
        packed = layout.pack(chunks.codes(number), workers)
        own = np.flatnonzero(partition_of_keys(packed, layout, layout.fields, turns) == turn)
        keys.append(packed if turns == 1 else packed[own])
        numbers.append(own + start)
        start += size
    return np.concatenate(keys), np.concatenate(numbers)
