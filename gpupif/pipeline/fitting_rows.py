"""The rows of a partition within the memory of one task: collapsed to distinct rows, else cut finer.

A partition is cut finer by the hash of the columns that keep its cohorts whole. If these columns have the same values
in all rows, such a cut separates nothing. Then each half of the scored columns is collapsed without the other half's
columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..rows.distinct import DistinctRows, TooManyRowsError, collapse, distinct_rows
from ..rows.keys import KeyLayout
from ..rows.partition import Rows
from ..rows.threads import Workers
from .shuffle_messages import Message, partition_of_keys, row_count, rows_in

# The number of values of a hash. A partition is a range of hashes.
HASHES = 1 << 32


class Span(NamedTuple):
    """A range of the hashes of each bin: range number `place` of `of` equal ranges."""

    of: int = 1
    place: int = 0


class FittingRows(NamedTuple):
    """Rows of a partition, or of a span of it, that hold the cohorts of some scored columns whole.

    scored_columns: list of int. The scored columns.
    span: Span. The span of hashes.
    keys: array (rows, words). In collapsed rows, columns that are neither known nor scored are 0.
    counts: list of arrays, one for each way to count. How often each row counts.
    collapsed: bool. Whether rows are distinct. If not, they are as they came, sender after sender.
    """

    scored_columns: list[int]
    span: Span
    keys: npt.NDArray[np.uint64]
    counts: list[npt.NDArray[np.int64]]
    collapsed: bool


@dataclass(frozen=True)
class PartitionRows:
    """The rows that reached a partition in one cut.

    senders: list of tuples. The messages of each sender, one for each way to count its rows; None if its rows do not
    count in this way.
    layout: KeyLayout. The layout of the keys.
    known: columns that the attacker knows.
    by: columns whose hash gives the bin of a row.
    bins: int. The number of bins.
    limit: number of distinct rows that fit into memory.
    workers: Workers. The threads of the task.
    """

    senders: Sequence[tuple[Message | None, ...]]
    layout: KeyLayout
    known: Sequence[int]
    by: Sequence[int]
    bins: int
    limit: float
    workers: Workers

    @property
    def rows(self) -> int:
        """The number of rows that came, before equal rows are collapsed."""
        return sum(map(_sent_rows, self.senders))

    def fitting(self, scored_columns: Sequence[int], collapse: bool = False) -> Iterator[FittingRows]:
        """Yield the rows in as few spans as fit into memory, each row once for each scored column.

        collapse: bool. Whether rows are collapsed even if all fit as they came. Default False.
        """
        if self.rows <= self.limit and not collapse:
            arrays = [np.concatenate(each) for each in zip(*self._rows_of(Span()), strict=True)]
            yield FittingRows(list(scored_columns), Span(), arrays[0], arrays[1:], collapsed=False)
            return
        yield from self._fit(list(scored_columns), Span(), tried=False)

    def located(self, fit: FittingRows, senders: int) -> Iterator[tuple[npt.NDArray[np.bool_] | None, Any]]:
        """Yield the places of the rows of the first `senders` senders among the rows that `fitting` yielded.

        Yields for each sender: an array that tells which of its rows are in the span (None: all), and the places of
        these rows in `fit.keys`.
        """
        if not fit.collapsed:
            start = 0
            for sent in self.senders[:senders]:
                rows = _sent_rows(sent)
                yield None, slice(start, start + rows)
                start += rows
            return
        needed = self.layout.masks({*self.known, *fit.scored_columns})
        waiting: list[tuple[npt.NDArray[np.bool_] | None, npt.NDArray[np.uint64]]] = []
        # Look up about as many rows at once as there are distinct rows: each time all distinct rows are grouped again.
        for number, sent in enumerate(self.senders[:senders]):
            keys, *_ = self._read(sent)
            mine = None if fit.span.of == 1 else self._places(keys, fit.span.of) == fit.span.place
            waiting.append((mine, (keys if mine is None else keys[mine]) & needed))
            size = sum(len(own) for _, own in waiting)
            if size < min(len(fit.keys), self.limit) and number + 1 < min(senders, len(self.senders)):
                continue
            both = np.concatenate([fit.keys, *(own for _, own in waiting)])
            places = distinct_rows(Rows(both), len(both), self.workers).number[len(fit.keys) :]
            start = 0
            for mine, own in waiting:
                yield mine, places[start : start + len(own)]
                start += len(own)
            waiting = []

    def in_span(self, sender: int, span: Span) -> npt.NDArray[np.bool_]:
        """Return which rows of a sender are in a span."""
        keys, *_ = self._read(self.senders[sender])
        return np.asarray(self._places(keys, span.of) == span.place)

    def _fit(self, scored_columns: list[int], span: Span, tried: bool) -> Iterator[FittingRows]:
        """Yield the rows of a span of hashes.

        tried: bool. Whether a finer cut by the known columns has failed.
        """
        # Nothing can be cut any more: a single scored column and equal known columns leave hardly more distinct rows
        # than the column has values.
        limit = math.inf if tried and len(scored_columns) <= 1 else self.limit
        try:
            found = self._collapse(scored_columns, span, limit)
        except TooManyRowsError:
            found = None
        if found is not None:
            yield FittingRows(scored_columns, span, found.keys, list(found.sums), collapsed=True)
            return
        finer = [] if tried else self._finer(span)
        for own in finer:
            yield from self._fit(scored_columns, own, tried=False)
        if not finer:
            middle = len(scored_columns) // 2
            halves = [half for half in (scored_columns[:middle], scored_columns[middle:]) if half]
            for half in halves or [[]]:
                yield from self._fit(half, span, tried=True)

    def _finer(self, span: Span) -> list[Span]:
        """Return the spans with rows of a finer cut; nothing if all rows would stay in one span."""
        rows = sum(len(keys) for keys, *_ in self._rows_of(span))
        times = -(-2 * rows // max(1, int(self.limit)))
        if self.bins * span.of * times >= HASHES or not self.by:
            return []
        sizes = np.zeros(times, np.int64)
        for keys, *_ in self._rows_of(span):
            sizes += np.bincount(self._places(keys, span.of * times) - span.place * times, minlength=times)
        if sizes.max() == rows:
            return []
        return [Span(span.of * times, span.place * times + int(place)) for place in np.flatnonzero(sizes)]

    def _collapse(self, scored_columns: Sequence[int], span: Span, limit: float) -> DistinctRows:
        """Return the distinct rows of a span; raise TooManyRowsError for more than `limit`."""
        needed = self.layout.masks({*self.known, *scored_columns})
        rows = ([keys & needed, *counts] for keys, *counts in self._rows_of(span))
        return collapse(rows, self.layout.words, len(self.senders[0]), self.workers, self.limit, limit)

    def _rows_of(self, span: Span) -> Iterator[list[Any]]:
        """Yield the keys and counts of the rows of a span, sender by sender."""
        for sent in self.senders:
            arrays = self._read(sent)
            if span.of > 1:
                mine = self._places(arrays[0], span.of) == span.place
                arrays = [array[mine] for array in arrays]
            yield arrays

    def _read(self, sent: tuple[Message | None, ...]) -> list[Any]:
        """Return the keys of a sender's rows, and how often each row counts, for each way to count."""
        several = [None if message is None else rows_in([message], self.layout.words) for message in sent]
        keys = next(rows.keys for rows in several if rows is not None)
        return [keys, *(np.zeros(len(keys), np.int64) if rows is None else _counts(rows) for rows in several)]

    def _places(self, keys: npt.NDArray[Any], of: int) -> npt.NDArray[np.int64]:
        """Return for each row its range among `of` equal ranges of its bin."""
        return partition_of_keys(keys, self.layout, self.by, self.bins * of).astype(np.int64) % of


def _sent_rows(sent: tuple[Message | None, ...]) -> int:
    return next(row_count(message) for message in sent if message is not None)


def _counts(rows: Rows) -> npt.NDArray[np.int64]:
    """Return how often each row counts: once if no counts were sent."""
    return rows.counts if len(rows.counts) == len(rows.keys) else np.ones(len(rows.keys), np.int64)
