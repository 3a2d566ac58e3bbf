"""The distinct rows of a table on disk, collected chunk by chunk, up to a limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..attack.weights import Units
from ..rows.distinct import DistinctRows
from ..rows.keys import KeyLayout
from ..rows.threads import Workers
from .table_chunks import Chunks


class TooManyRowsError(Exception):
    """The error that there are more distinct rows than the limit.

    Its traceback keeps the rows found so far in memory; suppress it to free them.
    """


@dataclass(frozen=True)
class Packing:
    """The packing of rows into keys.

    columns: list of int. The columns to read for each field of a key.
    layout: KeyLayout. The layout of keys.
    units: Units. The sampling weights; None without weights.
    weights: int. The column of weights.
    """

    columns: Sequence[int]
    layout: KeyLayout
    units: Units | None = None
    weights: int = -1

    @classmethod
    def for_columns(
        cls, cardinalities: Sequence[int], columns: Sequence[int], units: Units | None = None, weights: int = -1
    ) -> Packing:
        """Return the packing of some columns; a column with a single value is not read.

        cardinalities: of all columns.
        """
        several = [cardinalities[column] for column in columns]
        # A single value takes no bits of a key, so any column can be read in its place.
        there = [column if cardinality > 1 else 0 for column, cardinality in zip(columns, several, strict=True)]
        return cls(there, KeyLayout.from_cardinalities(several), units, weights)


def collapse(
    chunks: Chunks,
    packing: Packing,
    most: int,
    workers: Workers,
    limit: float = math.inf,
    done: Callable[[int], None] = lambda rows: None,
) -> DistinctRows:
    """Return the distinct rows of chunks, with their multiplicities, and their weights in units if rows have weights.

    most: int. The number of rows that are packed at once.
    limit: number of distinct rows. Default: no limit.
    done: function called with the number of rows of each chunk.

    Raises TooManyRowsError as soon as there are more than `limit` distinct rows.
    """
    rows = DistinctRows(packing.layout.words, 1 if packing.units is None else 2, workers)
    waiting: list[list[npt.NDArray[Any]]] = []
    for number, size in enumerate(chunks.sizes):
        # Add about as many rows at once as there are distinct rows: each time all distinct rows are grouped again.
        if waiting and sum(len(keys) for keys, *_ in waiting) + size > min(len(rows), most):
            _add(rows, waiting, limit)
            waiting = []
        codes = chunks.codes(number)
        keys = packing.layout.pack([codes[column] for column in packing.columns], workers)
        units = [] if packing.units is None else [packing.units.multiplicities(codes[packing.weights])]
        waiting.append([keys, np.ones(size, np.int64), *units])
        done(size)
    _add(rows, waiting, limit)
    return rows


def _add(rows: DistinctRows, waiting: list[list[npt.NDArray[Any]]], limit: float) -> None:
    rows.add(*(np.concatenate(arrays) for arrays in zip(*waiting, strict=True)))
    if len(rows) > limit:
        raise TooManyRowsError
