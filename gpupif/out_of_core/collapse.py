"""The distinct rows of chunks on disk, found as these are read, up to a limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..attack.weights import Units
from ..rows.distinct import DistinctRows
from ..rows.keys import KeyLayout
from ..rows.threads import Workers
from .chunks import Chunks


class TooManyRowsError(Exception):
    """There are more distinct rows than there is room for.

    While it is handled, its traceback holds on to those found; suppressed, it lets go of them.
    """


@dataclass(frozen=True)
class Packing:
    """How rows of chunks become keys: the columns used, by their places, as they lie in keys.

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
        """Some columns of a table whose columns have these numbers of values; one of a single value may be missing."""
        several = [cardinalities[column] for column in columns]
        # A single value takes no bits.
        there = [column if cardinality > 1 else 0 for column, cardinality in zip(columns, several, strict=True)]
        return cls(there, KeyLayout.of(several), units, weights)


class PackedChunks(NamedTuple):
    """Rows of chunks that follow each other. first: number of the first chunk; sizes: rows of each.

    keys: packed; times: how much each row counts, in units, None where rows have no weights.
    """

    first: int
    sizes: list[int]
    keys: npt.NDArray[np.uint64]
    times: npt.NDArray[np.int64] | None

    def sizes_before(self, last: int | None) -> list[int]:
        """Rows of each of these chunks whose number is below `last`; None: of all."""
        return self.sizes if last is None else self.sizes[: max(0, last - self.first)]


def packed_chunks(
    chunks: Chunks,
    packing: Packing,
    most: Callable[[], int],
    workers: Workers,
    done: Callable[[int], None] = lambda rows: None,
) -> Iterator[PackedChunks]:
    """The chunks, packed, so many at once as have at most `most()` rows.

    done: hears of the rows of each chunk.
    """
    keys: list[npt.NDArray[np.uint64]] = []
    times: list[npt.NDArray[np.int64]] = []
    first = 0
    sizes = list(chunks.sizes)
    for number, size in enumerate(sizes):
        if keys and sum(map(len, keys)) + size > most():
            yield _packed(first, sizes[first:number], keys, times)
            keys, times, first = [], [], number
        codes = chunks.codes(number)
        keys.append(packing.layout.pack([codes[column] for column in packing.columns], workers))
        if packing.units is not None:
            times.append(packing.units.times(codes[packing.weights]))
        done(size)
    yield _packed(first, sizes[first:], keys, times)


def _packed(
    first: int, sizes: list[int], keys: list[npt.NDArray[np.uint64]], times: list[npt.NDArray[np.int64]]
) -> PackedChunks:
    return PackedChunks(first, sizes, np.concatenate(keys), np.concatenate(times) if times else None)


def collapse(
    chunks: Chunks,
    packing: Packing,
    most: int,
    workers: Workers,
    limit: float = math.inf,
    asked: int | None = None,
    done: Callable[[int], None] = lambda rows: None,
) -> DistinctRows:
    """The distinct rows of chunks; raises TooManyRowsError as soon as there are more than `limit`.

    Summed up are how often each occurs in the first `asked` chunks and, where rows have weights, what they stand for
    together, in units. most: rows that are packed at once. done: hears of the rows of each chunk.
    """
    rows = DistinctRows(packing.layout.words, 1 if packing.units is None else 2, workers)
    # Not fewer than are there, for what is added is compared with all of them.
    for piece in packed_chunks(chunks, packing, lambda: min(len(rows), most), workers, done=done):
        occurs = (np.arange(len(piece.keys)) < sum(piece.sizes_before(asked))).astype(np.int64)
        rows.add(piece.keys, occurs, *([] if piece.times is None else [piece.times]))
        if len(rows) > limit:
            raise TooManyRowsError
    return rows
