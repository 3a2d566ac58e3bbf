"""An engine for missing values that match every value of the attacker's knowledge; in memory, on the CPU.

Cohorts then overlap, so there is no partition to score by. `gpupif.kernels.wildcard_cohorts` tells how they are found:
exactly, pattern of missing values by pattern. Targets for which nothing is missing are left to the CPU engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from gpupif.kernels import pack
from gpupif.kernels import wildcard_cohorts as cohorts
from gpupif.kernels import wildcards as kernels
from gpupif.kernels.blocks import Scratch, ordered_cells

from ..errors import InputError
from ..information import column_weight, entropy_of_counts
from ..keys import KeyLayout
from .base import EngineResult, Job, Progress, kernel_values
from .cohort_scores import spread_scores
from .cpu import CpuEngine
from .cpu_scorer import CpuScorer
from .distinct import Distinct, distinct_rows
from .host_run import pack_keys, project, row_index
from .partition import BLOCK_ROWS, NO_ROWS, Rows, index_type
from .run import Run
from .workers import TASKS_PER_THREAD, Workers

if TYPE_CHECKING:
    import numpy.typing as npt

    from .any_engine import AnyResult, SetOfColumns

# Steps, each a look-up and what is found, 10 to 50 ns: an hour or two of one core.
MOST_STEPS = 2e11
# What a pair of patterns costs beside its keys.
PAIR_STEPS = 16
# Keys scored at once are so few that their links to all patterns are at most so many.
MOST_LINKS = 1 << 23
LEAST_KEYS = 1 << 10
BATCH_CELLS = 1 << 14


class WildcardEngine:
    """Scores with missing values that match any (see `Engine`).

    threads: default all cores. most_keys: keys scored at once; no result depends on either.
    """

    device = "cpu"
    frames = None

    def __init__(self, threads: int | None = None, most_keys: int | None = None) -> None:
        self.threads = threads
        self.most_keys = most_keys

    def score(self, job: Job, progress: Progress) -> EngineResult:
        """Score all targets of the job. Raises InputError where it has too many patterns of missing values."""
        if not job.wildcards:
            return CpuEngine(self.threads).score(job, progress)
        job = job.on_host()
        asks = any(column in job.wildcards for column in job.known)
        targets = [column for column in job.targets if asks or column in job.wildcards]
        others = [column for column in job.targets if column not in targets]
        with Workers(self.threads) as workers:
            run = Run(job.in_order(), progress, workers, BLOCK_ROWS, CpuScorer())
            distinct = self._score_all(run, targets)
        result = run.results.finished(distinct)
        if others:
            _put(result, job, others, CpuEngine(self.threads).score(replace(job, targets=others), progress))
        return result

    def score_sets(self, job: Job, sets: Sequence[SetOfColumns], progress: Progress) -> AnyResult:
        """As the CPU engine: of tables with wildcards this is not asked (see `refuse_with_any_known`)."""
        return CpuEngine(self.threads).score_sets(job, sets, progress)

    def _score_all(self, run: Run, targets: Sequence[int]) -> int:
        """Score some targets; returns how many distinct rows the table has."""
        job, layout, total = run.job, run.results.layout, run.results.total
        counts = NO_ROWS if job.times is None else job.times.astype(index_type(total + 1))
        table = distinct_rows(Rows(pack_keys(job.codes, layout, run.workers), counts), total, run.workers)
        _check_work(run, table, len(targets))
        inside = [column for column in targets if column in job.known]
        for group in [[column] for column in targets if column not in job.known] + ([inside] if inside else []):
            columns = sorted({*job.known, *group})
            whole = len(columns) == len(job.codes)
            part, words = (table, layout) if whole else project(run, table, layout, columns)
            for column in group:
                self._score(run, part, words, column)
        return len(table.rows.keys)

    def _score(self, run: Run, table: Distinct, layout: KeyLayout, column: int) -> None:
        """Score one target on the distinct rows over it and the known columns."""
        job, workers = run.job, run.workers
        known, order = _by_pattern(run, table.rows, layout, column)
        values, size = kernel_values(job, [column]), len(job.priors[column])
        scores = workers.empty((-(-len(job.measures) // 2), len(order), 2), np.float64)
        own, losses = np.empty(len(order), np.int64), np.empty(len(order))
        segments = self._segments(known.offsets, workers.threads)
        longest = max(stop - start for _, start, stop in segments)

        def score(first: int, last: int) -> None:
            room = cohorts.Room.of(known, longest, size)
            most = max(BATCH_CELLS, size + 1)
            memory = (room, Scratch.of(most, np.int64, run.wanted.kinds), ordered_cells(most, run.wanted.kinds))
            part = np.array(segments[first:last])
            kernels.score_patterns(known, part, 0, values, run.logs, run.wanted, *memory, own, losses, scores)

        workers.run(score, _tasks(segments, known.offsets, workers.threads))
        counts = job.counts[column][:size]
        certain = int(counts.sum())
        # Sorted, so that the sum does not depend on the order of rows.
        loss = float(np.sort(losses).sum())
        entropy = entropy_of_counts(counts) if certain else 0.0
        run.results.weights[job.targets.index(column)] = column_weight(loss, max(1, certain), entropy)
        spread_scores(run, scores, row_index(run, order, table.number), column)
        run.progress.advance(job.rows)

    def _segments(self, offsets: npt.NDArray[np.int64], threads: int) -> list[tuple[int, int, int]]:
        """Keys in pieces of one pattern that are scored at once: (pattern, first key, last key + 1)."""
        patterns, keys = len(offsets) - 1, int(offsets[-1])
        fair = -(-keys // (threads * TASKS_PER_THREAD))
        most = self.most_keys or max(LEAST_KEYS, min(MOST_LINKS // patterns, fair))
        edges = offsets.tolist()
        return [
            (pattern, start, min(start + most, edges[pattern + 1]))
            for pattern in range(patterns)
            for start in range(edges[pattern], edges[pattern + 1], most)
        ]


def _tasks(
    segments: Sequence[tuple[int, int, int]], offsets: npt.NDArray[np.int64], threads: int
) -> list[tuple[int, int]]:
    """Runs of segments of about equal work."""
    keys = int(offsets[-1])
    lengths = np.array([stop - start for _, start, stop in segments])
    work = np.cumsum(keys + lengths * (len(offsets) - 1))
    number = min(len(segments), threads * TASKS_PER_THREAD)
    cuts = np.searchsorted(work, work[-1] * np.arange(1, number) / number, side="left") + 1
    edges = np.unique([0, *cuts.tolist(), len(segments)]).tolist()
    return list(pairwise(edges))


def _patterns(
    run: Run, keys: npt.NDArray[np.uint64], layout: KeyLayout, wild: Sequence[int]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """The patterns of missing values in some columns, as bits (patterns, words), in order; and which each key has."""
    workers = run.workers
    flags = np.zeros((len(keys), max(1, -(-len(wild) // 64))), np.uint64)
    fields = np.array([layout.fields[column] for column in wild], np.uint64).reshape(-1, 3)
    missing = np.array([len(run.job.priors[column]) for column in wild], np.uint64)
    workers.run(lambda a, b: cohorts.mark_missing(keys[a:b], fields, missing, flags[a:b]), workers.ranges(len(keys)))
    found = distinct_rows(Rows(flags), len(keys), workers)
    order = np.lexsort(found.rows.keys.T)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return found.rows.keys[order], place[found.number]


def _by_pattern(run: Run, rows: Rows, layout: KeyLayout, target: int) -> tuple[cohorts.Keys, npt.NDArray[np.int64]]:
    """Distinct rows sorted by their keys, these by pattern; and where each row stood."""
    job, workers = run.job, run.workers
    columns = [column for column in job.known if column != target]
    wild = [column for column in columns if column in job.wildcards]
    masks = layout.masks(columns)
    masked = workers.empty(rows.keys.shape, np.uint64)
    workers.run(lambda a, b: np.bitwise_and(rows.keys[a:b], masks, out=masked[a:b]), workers.ranges(len(masked)))
    found = distinct_rows(Rows(masked, rows.counts), run.results.total, workers)
    patterns, pattern_of = _patterns(run, found.rows.keys, layout, wild)
    order, offsets = _sorted_by(pattern_of, len(patterns))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    row_order, starts = _sorted_by(place[found.number], len(order))
    keep = np.tile(masks, (len(patterns), 1))
    for bit, column in enumerate(wild):
        lacking = (patterns[:, bit // 64] >> np.uint64(bit % 64)) & np.uint64(1) == 1
        keep[lacking] &= ~layout.masks([column])
    word, shift, mask = layout.fields[target]
    values = np.empty(len(row_order), np.int64)
    pack.unpack_column(rows.keys[row_order, word], shift, mask, values)
    return cohorts.Keys(found.rows.keys[order], keep, offsets, starts, values, rows.counts[row_order]), row_order


def _sorted_by(groups: npt.NDArray[np.int64], number: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Numbers from 0 on in the order of their groups, and where each group begins there; one more for the end."""
    starts = np.zeros(number + 1, np.int64)
    np.cumsum(np.bincount(groups, minlength=number), out=starts[1:])
    order = np.empty(len(groups), np.int64)
    cohorts.sort_by_group(groups, starts[:-1].copy(), order)
    return order, starts


def _check_work(run: Run, table: Distinct, targets: int) -> None:
    """Raise InputError where comparing each pattern of missing values with each would take too long."""
    wild = [column for column in run.job.known if column in run.job.wildcards]
    rows = len(table.rows.keys)
    patterns = len(_patterns(run, table.rows.keys, run.results.layout, wild)[0])
    steps = 2.0 * targets * patterns * (rows + PAIR_STEPS * patterns)
    if steps > MOST_STEPS:
        raise InputError(
            f"missing: 'wildcard' compares each of {patterns:,} patterns of missing values in {len(wild)} known "
            f"columns with each, over {rows:,} different rows and {targets} scored columns: about {steps:.0e} steps, "
            f"expected at most {MOST_STEPS:.0e}. Let the attacker know fewer columns that have missing values "
            "(known=), score fewer at once (columns=), or use missing='category'."
        )


def _put(result: EngineResult, job: Job, targets: Sequence[int], found: EngineResult) -> None:
    """Put the scores of some targets of a job into the result of all."""
    for number, column in enumerate(targets):
        place = job.targets.index(column)
        result.weights[place] = found.weights[number]
        for name, values in result.values.items():
            values[place] = found.values[name][number]
