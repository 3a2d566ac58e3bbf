"""The worst and mean score of each cell over attackers who know any r columns, on the CPU.

A set of r + 1 columns serves r + 1 attackers: each scores one column of the set and knows the r others. Rows are
collapsed to distinct rows. The distinct rows are numbered by their combination of the set's values. The combinations
are scored as the distinct rows of a table of their own. Then each row takes the scores of its combination.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels import any_known as kernels
from gpupif.kernels import blocks, pack
from gpupif.kernels.codes import first_rows
from gpupif.kernels.groups import full_hashes
from gpupif.kernels.spread import take_pairs

from ...rows.distinct import distinct_rows
from ...rows.keys import KeyLayout
from ...rows.partition import Rows, index_type
from ...rows.threads import Workers
from ...utils.information import column_weight, conditional_entropy
from ..any_known import DistinctRun
from ..base import AnyKnownResult, AnyKnownShares, Job, KnownSubset, Progress, served
from ..block_scoring import BlockRun
from ..cohort_sizes import CohortSizes
from ..memory import MOST_SLOTS
from .scorer import CpuScoredColumns, CpuScorer

# Slots, one for each possible pair of a number and a code, that a thread may have: always, for each row, and at most.
# If more pairs are possible, rows are numbered by their keys.
SLOTS, SLOTS_PER_ROW = 1 << 22, 16
# Bytes, for each thread, of scores and row numbers of sets that are kept at once; bytes of results at once.
BATCH_BYTES, RESULT_BYTES = 1 << 28, 1 << 31
# Most sets of a batch for each thread; most sets of a task, which have all columns except the last in common.
SETS_PER_THREAD, SETS_PER_TASK = 16, 4


@dataclass(frozen=True)
class _Scored:
    """The scores of one set of columns.

    number: (distinct rows,). The number of each row's combination.
    scores: (scored columns, pairs of measures, combinations, 2). Weighted; negated for measures whose low is worst.
    weights: by scored column of the set.
    """

    number: npt.NDArray[Any]
    scores: npt.NDArray[np.float64]
    weights: list[float]


class AnyKnownRun(DistinctRun):
    """A run over sets of columns on the CPU.

    slots: the slots of each thread, instead of SLOTS. shares: of the memory, if it is limited. No result depends on
    either.
    """

    def __init__(
        self,
        job: Job,
        workers: Workers,
        progress: Progress,
        slots: int | None = None,
        shares: AnyKnownShares | None = None,
    ) -> None:
        job = job.on_host().with_ordered_codes()
        super().__init__(job, progress, workers)
        self._slots = max(SLOTS, min(MOST_SLOTS, SLOTS_PER_ROW * self.rows)) if slots is None else slots
        self._batch, self._at_once = BATCH_BYTES * workers.threads, len(job.scored_columns)
        if shares is not None:
            self._slots, self._batch, self._at_once = (
                shares.slots,
                min(self._batch, shares.batch),
                shares.scored_columns,
            )
        # Needed for the description of the scored columns only. `extremes_only`: it allocates no results.
        self._run = BlockRun(replace(job, extremes_only=True), progress, workers, self.rows, CpuScorer())
        described = CpuScorer().describe(self._run, job.scored_columns, job.layout)
        kernel, self._wanted = described.kernel, described.wanted
        # Combinations of a set are few: sharing scores by the size of one-value cohorts does not pay.
        self._kernel = kernel._replace(largest_shared_size=np.ones_like(kernel.largest_shared_size))
        # Measures whose low scores are worst are negated, so that the highest score is the worst for all measures.
        pairs = -(-len(job.measures) // 2)
        self._signs, self._weighted = np.ones((pairs, 2)), np.zeros((pairs, 2), bool)
        for k, measure in enumerate(job.measures):
            self._signs[k // 2, k % 2] = -1.0 if measure.low_is_risky else 1.0
            self._weighted[k // 2, k % 2] = measure.weighted
        self._factored = bool((self._signs < 0).any() or self._weighted.any())
        self._spare: deque[_ThreadBuffers] = deque()

    def score(self, sets: Sequence[KnownSubset]) -> AnyKnownResult:
        """Return the worst and mean scores of each scored column, over the sets that contain it."""
        job = self.job
        at_once = max(1, min(self._at_once, RESULT_BYTES // (32 * len(self._signs) * self.rows)))
        for first in range(0, len(job.scored_columns), at_once):
            columns = job.scored_columns[first : first + at_once]
            self._score_columns(columns, served(sets, columns))
        return self.results.finished(self.rows)

    def _score_columns(self, columns: Sequence[int], sets: Sequence[KnownSubset]) -> None:
        """Score some scored columns on the sets that contain them, and put their worst and mean into the results."""
        job, weights = self.job, self.results.weights
        found = np.empty((len(columns), len(self._signs), self.rows, 4))
        found[..., :2], found[..., 2:] = -np.inf, 0.0
        for batch in self._batches(sets):
            each = max(1, min(SETS_PER_TASK, len(batch) // self.workers.threads))
            tasks = [(some[place : place + each],) for some in _by_prefix(batch) for place in range(0, len(some), each)]
            scored = [one for part in self.workers.run(self._score_sets, tasks) for one in part]
            places = [np.array([columns.index(column) for column in one.scored_columns]) for one in batch]
            for one, scores in zip(batch, scored, strict=True):
                for column, weight in zip(one.scored_columns, scores.weights, strict=True):
                    weights[column].append(weight)

            def aggregate(start: int, stop: int, scored: Any = scored, places: Any = places) -> None:
                for one, scored_columns in zip(scored, places, strict=True):
                    kernels.aggregate_set(one.number[start:stop], one.scores, scored_columns, found[:, :, start:stop])

            self.workers.run(aggregate, self.workers.ranges(self.rows))
            self.progress.advance(job.rows * sum(map(len, places)))
        for place, column in enumerate(columns):
            for k, measure in enumerate(job.measures):
                pair, side, sign = k // 2, k % 2, self._signs[k // 2, k % 2]
                highest, sums = found[place, pair, :, side], found[place, pair, :, 2 + side]
                # Plus zero: a negated sum of zero would be written as -0.0.
                self.put(column, measure, sign * highest, sign * sums / len(weights[column]) + 0.0)

    def _batches(self, sets: Sequence[KnownSubset]) -> Iterator[Sequence[KnownSubset]]:
        """Yield the sets in batches that fit `_batch` bytes."""
        threads, pairs = self.workers.threads, len(self._signs)
        batch: list[KnownSubset] = []
        taken = 0
        for one in sets:
            most = min(self.rows, math.prod(self.cardinalities[column] for column in one.columns))
            needed = 4 * self.rows + 16 * pairs * len(one.scored_columns) * most
            if batch and (len(batch) == SETS_PER_THREAD * threads or taken + needed > self._batch):
                yield batch
                batch, taken = [], 0
            batch.append(one)
            taken += needed
        if batch:
            yield batch

    def _score_sets(self, sets: Sequence[KnownSubset]) -> list[_Scored]:
        """Score sets that have all columns except the last in common: rows are numbered by the common columns once."""
        try:
            buffers = self._spare.pop()
        except IndexError:
            buffers = _ThreadBuffers(self.rows)
        prefix, numbers = np.zeros(self.rows, np.uint32), 1
        for column in sets[0].columns[:-1]:
            prefix, numbers = self._number(prefix, numbers, column, buffers)
        scored = []
        for one in sets:
            number, combinations = self._number(prefix, numbers, one.columns[-1], buffers)
            scored.append(self._score_set(one, number, buffers.first[:combinations], buffers))
        self._spare.append(buffers)
        return scored

    def _number(
        self, left: npt.NDArray[Any], numbers: int, column: int, buffers: _ThreadBuffers
    ) -> tuple[npt.NDArray[Any], int]:
        """Return a number for each row's pair of a number (`left`) and a code of a column, and how many pairs occur.

        numbers: the number of numbers in `left`. buffers: `first` receives the first row of each pair.
        """
        codes, radix = self.codes[column], self.cardinalities[column]
        if numbers * radix <= self._slots:
            number = np.empty(self.rows, left.dtype)
            slots = buffers.slots_for(numbers * radix)
            found = kernels.number_pairs(left, codes, radix, slots, buffers.first, number)
            kernels.clear_slots(left, codes, radix, buffers.first[:found], slots)
            return number, found
        layout = KeyLayout.from_cardinalities([numbers, radix])
        # This code already runs in a thread of the run.
        with Workers(1) as alone:
            distinct = distinct_rows(Rows(layout.pack([left, codes], alone)), self.rows, alone)
        first_rows(distinct.number, buffers.first)
        return distinct.number.astype(left.dtype, copy=False), len(distinct.rows.keys)

    def _score_set(
        self, one: KnownSubset, number: npt.NDArray[Any], first: npt.NDArray[np.int64], buffers: _ThreadBuffers
    ) -> _Scored:
        run, job, combinations = self._run, self.job, len(first)
        counts = np.empty(combinations, self.multiplicities.dtype)
        kernels.sum_multiplicities(number, self.multiplicities, counts)
        layout = KeyLayout.from_cardinalities([self.cardinalities[column] for column in one.columns])
        keys = np.zeros((combinations, layout.words), np.uint64)
        for place, column in enumerate(one.columns):
            word, shift, mask = layout.fields[place]
            if mask:
                pack.pack_column(self.codes[column][first], shift, keys[:, word])
        hashes = np.empty(combinations if layout.words > 1 else 0, np.uint64)
        if layout.words > 1:
            full_hashes(keys, np.full(layout.words, ~np.uint64(0)), hashes)
        which = np.array([job.scored_columns.index(column) for column in one.scored_columns])
        fields = np.zeros_like(self._kernel.fields)
        for scored_column, column in zip(which, one.scored_columns, strict=True):
            fields[scored_column] = layout.fields[one.columns.index(column)]
        values, pairs = int(np.diff(self._kernel.values.first).max()), len(self._signs)
        out = blocks.Out(
            np.empty((len(which), combinations + values, len(self._wanted.measures))),
            np.empty((len(which), combinations), index_type(combinations + values + 1)),
        )
        CpuScoredColumns(one.scored_columns, which, self._kernel, values, self._wanted).put_values(out)
        cohorts = CohortSizes.empty(len(which), self.total, combinations)
        memory = buffers.memory_for(combinations, counts.dtype, self._wanted.kinds)
        whole = ((keys, counts, hashes), np.array([0, combinations]), (0, 1), which)
        kernel = self._kernel._replace(fields=fields)
        ends = np.zeros(len(which), np.int64)
        asked = (kernel, self._wanted)
        blocks.score_blocks(blocks.NO_VALUES, *whole, *asked, memory, tuple(cohorts), ends, out)
        scores = np.empty((len(which), pairs, combinations, 2))
        for scored_column, places in enumerate(out.places):
            take_pairs(out.scores[scored_column], np.array(run.scored_as), places, scores[scored_column])
        if len(job.measures) % 2:
            # The last pair has one measure only.
            scores[:, -1, :, 1] = 0.0
        distinct = CohortSizes.from_counts(counts, self.total).log_sum(0)
        weights = [
            column_weight(conditional_entropy(cohorts.log_sum(t), distinct, self.total), run.results.entropies[column])
            for t, column in enumerate(one.scored_columns)
        ]
        if self._factored:
            for part, weight in zip(scores, weights, strict=True):
                part *= (self._signs * np.where(self._weighted, weight, 1.0))[:, None]
        return _Scored(number, scores, weights)


class _ThreadBuffers:
    """The working memory of one thread, which grows as needed."""

    def __init__(self, rows: int) -> None:
        self.first = np.empty(rows, np.int64)
        self._slots = np.zeros(0, index_type(rows + 1))
        self._size = 0
        self._memory: Any = None

    def slots_for(self, size: int) -> npt.NDArray[Any]:
        """Return at least `size` slots, all zero. The caller sets them back to zero."""
        if len(self._slots) < size:
            self._slots = np.zeros(size, self._slots.dtype)
        return self._slots

    def memory_for(self, rows: int, dtype: Any, kinds: npt.NDArray[np.int64]) -> tuple[Any, ...]:
        """Return the working memory of `score_blocks` for blocks of up to `rows` rows."""
        if self._size < rows:
            self._size = min(len(self.first), 2 * rows)
            self._memory = blocks.memory_for(self._size, dtype, kinds)
        return self._memory  # type: ignore[no-any-return]


def _by_prefix(sets: Sequence[KnownSubset]) -> list[list[KnownSubset]]:
    """Return runs of neighbouring sets that have all columns except the last in common."""
    return [list(some) for _, some in groupby(sets, lambda one: one.columns[:-1])]
