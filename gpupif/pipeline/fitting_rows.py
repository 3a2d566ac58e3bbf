"""The rows of a partition, within the memory of one task: collapsed to distinct rows, or else cut finer.

A partition is cut finer by the hash of the columns that keep its cohorts whole. If that leaves it as it is, since the
columns have the same values in all rows, half of its scored columns are looked at at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..rows.distinct import DistinctRows
from ..rows.keys import KeyLayout
from ..rows.partition import Rows
from ..rows.threads import Workers
from .parcels import Parcel, partition_of_keys, row_count, rows_in

# A hash has so many values, of which partitions are ranges.
HASHES = 1 << 32


class FittingRows(NamedTuple):
    """Rows of a partition, or of a part of it, that hold the cohorts of some scored columns whole.

    keys: array (rows, words). Columns that are neither known nor among the scored ones may be 0.
    counts: list of arrays, one for each way to count. How often each row counts.
    """

    scored_columns: list[int]
    keys: npt.NDArray[np.uint64]
    counts: list[npt.NDArray[np.int64]]


class _TooManyRowsError(Exception):
    """There are more distinct rows than fit."""


@dataclass(frozen=True)
class PartitionRows:
    """What reached a partition in one cut.

    parcels: list of tuples. The parcels of each sender, one for each way in which the same rows are counted.
    layout: KeyLayout. The layout of the keys.
    known, by: columns. What the attacker knows; by whose hash the partition was made, of so many `bins`.
    limit: distinct rows that fit into memory.
    """

    parcels: Sequence[tuple[Parcel, ...]]
    layout: KeyLayout
    known: Sequence[int]
    by: Sequence[int]
    bins: int
    limit: float
    workers: Workers

    def fitting(self, scored_columns: Sequence[int]) -> Iterator[FittingRows]:
        """Return the rows in as few parts as fit into memory, each once for each of the scored columns."""
        if sum(row_count(own[0]) for own in self.parcels) <= self.limit:
            several = [rows_in(same, self.layout.words) for same in zip(*self.parcels, strict=True)]
            yield FittingRows(list(scored_columns), several[0].keys, [_counts(rows) for rows in several])
            return
        yield from self._fit(list(scored_columns), _Span(1, 0), tried=False)

    def _fit(self, scored_columns: list[int], span: _Span, tried: bool) -> Iterator[FittingRows]:
        """Return the rows of a span of hashes. tried: it cannot be cut by the known columns any more."""
        # One scored column of one class has not many more distinct rows than it has values.
        limit = math.inf if tried and len(scored_columns) == 1 else self.limit
        try:
            found = self._collapse(scored_columns, span, limit)
        except _TooManyRowsError:
            found = None
        if found is not None:
            yield FittingRows(scored_columns, found.keys, list(found.sums))
            return
        if not tried:
            finer = self._finer(span)
            if finer:
                for own in finer:
                    yield from self._fit(scored_columns, own, tried=False)
                return
        middle = len(scored_columns) // 2
        for half in filter(None, (scored_columns[:middle], scored_columns[middle:])):
            yield from self._fit(half, span, tried=True)

    def _finer(self, span: _Span) -> list[_Span]:
        """Return the spans with rows of a finer cut, nothing if it would leave the rows together."""
        rows = sum(len(keys) for keys, *_ in self._rows_of(span))
        times = -(-2 * rows // max(1, int(self.limit)))
        if self.bins * span.of * times >= HASHES or not self.by:
            return []
        sizes = np.zeros(times, np.int64)
        for keys, *_ in self._rows_of(span):
            sizes += np.bincount(self._places(keys, span.of * times) - span.place * times, minlength=times)
        if sizes.max() == rows:
            return []
        return [_Span(span.of * times, span.place * times + int(place)) for place in np.flatnonzero(sizes)]

    def _collapse(self, scored_columns: Sequence[int], span: _Span, limit: float) -> DistinctRows:
        """Return the distinct rows of a span; raises _TooManyRowsError for more than the limit."""
        needed = self.layout.masks({*self.known, *scored_columns})
        rows = DistinctRows(self.layout.words, len(self.parcels[0]), self.workers)
        waiting: list[list[npt.NDArray[Any]]] = []
        size = 0
        # As many at once as there are distinct rows: those are compared with all that is added.
        for own in self._rows_of(span):
            if waiting and size + len(own[0]) > min(max(len(rows), 1), self.limit):
                self._add(rows, waiting, limit)
                waiting, size = [], 0
            waiting.append([own[0] & needed, *own[1:]])
            size += len(own[0])
        self._add(rows, waiting, limit)
        return rows

    @staticmethod
    def _add(rows: DistinctRows, waiting: list[list[npt.NDArray[Any]]], limit: float) -> None:
        keys, *counts = (np.concatenate(arrays) for arrays in zip(*waiting, strict=True))
        rows.add(keys, *counts)
        if len(rows) > limit:
            raise _TooManyRowsError

    def _rows_of(self, span: _Span) -> Iterator[list[Any]]:
        """Return the keys, and the counts, of the rows of a span, sender by sender."""
        for same in self.parcels:
            several = [rows_in([parcel], self.layout.words) for parcel in same]
            arrays = [several[0].keys, *map(_counts, several)]
            if span.of > 1:
                mine = self._places(arrays[0], span.of) == span.place
                arrays = [array[mine] for array in arrays]
            yield arrays

    def _places(self, keys: npt.NDArray[Any], of: int) -> npt.NDArray[np.int64]:
        """Return in which of so many spans of its bin each row lies."""
        return partition_of_keys(keys, self.layout, self.by, self.bins * of).astype(np.int64) % of


class _Span(NamedTuple):
    """The hashes of number `place` of `of` equal ranges of each bin."""

    of: int
    place: int


def _counts(rows: Rows) -> npt.NDArray[np.int64]:
    """Return how often each row counts: once, where no counts were sent."""
    return rows.counts if len(rows.counts) == len(rows.keys) else np.ones(len(rows.keys), np.int64)
