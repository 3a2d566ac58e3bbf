"""The distinct rows of chunks on disk, found as these are read, up to a limit."""

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
    """There are more distinct rows than there is room for.

    While it is handled, its traceback holds on to those found; suppressed, it lets go of them.
    """


@dataclass(frozen=True)
class Packing:
    """The way from rows of chunks to keys: the columns used, by their places, as they are in keys.

    units: of the weights, None where rows have none; weights: the column that holds these.
    """

    columns: Sequence[int]
    layout: KeyLayout
    units: Units | None = None
    weights: int = -1

    @classmethod
    def of(
        cls, cardinalities: Sequence[int], columns: Sequence[int], units: Units | None = None, weights: int = -1
    ) -> Packing:
        """Return the packing of some columns, of these cardinalities; a column of a single value may be missing."""
        several = [cardinalities[column] for column in columns]
        # A single value takes no bits.
        there = [column if cardinality > 1 else 0 for column, cardinality in zip(columns, several, strict=True)]
        return cls(there, KeyLayout.of(several), units, weights)


def collapse(
    chunks: Chunks,
    packing: Packing,
    most: int,
    workers: Workers,
    limit: float = math.inf,
    done: Callable[[int], None] = lambda rows: None,
) -> DistinctRows:
    """Return the distinct rows of chunks; raises TooManyRowsError as soon as there are more than `limit`.

    Summed up are how often each occurs and, where rows have weights, what its rows stand for together, in units. most:
    rows that are packed at once. done: hears of the rows of each chunk.
    """
    rows = DistinctRows(packing.layout.words, 1 if packing.units is None else 2, workers)
    waiting: list[list[npt.NDArray[Any]]] = []
    for number, size in enumerate(chunks.sizes):
        # Not fewer than there are distinct rows, for what is added is compared with all of them.
        if waiting and sum(len(keys) for keys, *_ in waiting) + size > min(len(rows), most):
            _add(rows, waiting, limit)
            waiting = []
        codes = chunks.codes(number)
        keys = packing.layout.pack([codes[column] for column in packing.columns], workers)
        units = [] if packing.units is None else [packing.units.times(codes[packing.weights])]
        waiting.append([keys, np.ones(size, np.int64), *units])
        done(size)
    _add(rows, waiting, limit)
    return rows


def _add(rows: DistinctRows, waiting: list[list[npt.NDArray[Any]]], limit: float) -> None:
    rows.add(*(np.concatenate(arrays) for arrays in zip(*waiting, strict=True)))
    if len(rows) > limit:
        raise TooManyRowsError
