"""The CPU engine: Numba kernels on all cores, block by cache-sized block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpupif.kernels import cohorts, pack, spread

from ..information import entropy_of_counts, log2_counts, sum_count_log_count
from ..keys import KeyLayout
from .base import EngineResult, Job, Progress
from .distinct import Distinct, distinct_rows
from .partition import BLOCK_ROWS, CohortBlocks, Rows, plan_passes
from .workers import Workers

if TYPE_CHECKING:
    import numpy.typing as npt

SMALL_COHORTS = 4096
LOG_TABLE = 1024


class CpuEngine:
    """Scores on the CPU. threads: default all cores. block_rows: rows per block; no result depends on either."""

    device = "cpu"

    def __init__(self, threads: int | None = None, block_rows: int = BLOCK_ROWS) -> None:
        self.threads = threads
        self.block_rows = block_rows

    def score(self, job: Job, progress: Progress) -> EngineResult:
        """Score all targets of the job (see `Engine`)."""
        with Workers(self.threads) as workers:
            return _Run(job, progress, workers, self.block_rows).result()


def pack_keys(codes: Sequence[npt.NDArray[Any]], layout: KeyLayout, workers: Workers) -> npt.NDArray[np.uint64]:
    """Row keys (rows, words) of columns of codes."""
    rows = len(codes[0])
    keys = np.zeros((rows, layout.words), np.uint64)

    def pack_range(start: int, stop: int) -> None:
        for column, values in enumerate(codes):
            field = layout.fields[column]
            if field.mask:
                pack.pack_column(values, start, stop, field.word, field.shift, keys)

    workers.run(pack_range, workers.ranges(rows))
    return keys


def count_rows(codes: Sequence[npt.NDArray[Any]], cardinalities: Sequence[int], workers: Workers) -> npt.NDArray[Any]:
    """How often each distinct row of these columns occurs, in order of first appearance."""
    keys = pack_keys(codes, KeyLayout.of(cardinalities), workers)
    return distinct_rows(Rows(keys), len(keys), workers).rows.counts


class _Run:
    """One scoring run: what its steps share."""

    def __init__(self, job: Job, progress: Progress, workers: Workers, block_rows: int) -> None:
        self.job = job
        self.progress = progress
        self.workers = workers
        self.block_rows = block_rows
        self.numbers = np.array([measure.number for measure in job.measures])
        self.needs_gain = any(measure.needs_gain for measure in job.measures)
        self.entropies = [entropy_of_counts(counts) for counts in job.counts]
        self.weights = [0.0] * len(job.targets)
        self.logs = log2_counts(np.arange(LOG_TABLE))
        self.values: dict[str, npt.NDArray[Any]] = {
            measure.name: np.empty((len(job.targets), job.rows), np.int64 if measure.integer else job.dtype)
            for measure in job.measures
        }

    def result(self) -> EngineResult:
        """Run all projections of the table that the targets need."""
        job = self.job
        layout = KeyLayout.of([len(counts) for counts in job.counts])
        table = distinct_rows(Rows(pack_keys(job.codes, layout, self.workers)), job.rows, self.workers, self.block_rows)
        inside = [column for column in job.targets if column in job.known]
        everything = set(range(len(job.codes)))
        for targets in (inside, *([column] for column in job.targets if column not in job.known)):
            if targets:
                columns = sorted({*job.known, *targets})
                rows, words = (table, layout) if set(columns) == everything else self._project(table, layout, columns)
                self._score_projection(rows, words, targets)
        return EngineResult(self.values, self.weights, len(table.rows.keys))

    def _project(self, table: Distinct, layout: KeyLayout, columns: Sequence[int]) -> tuple[Distinct, KeyLayout]:
        """Distinct rows over some of the columns only."""
        projected, words, masks = layout.project(columns)
        rows = Rows(table.rows.keys[:, words] & masks, table.rows.counts)
        narrow = distinct_rows(rows, self.job.rows, self.workers, self.block_rows)
        number = np.empty_like(table.number)
        self.workers.run(
            lambda a, b: spread.look_up(narrow.number, table.number, a, b, number),
            self.workers.ranges(self.job.rows),
        )
        return Distinct(narrow.rows, number), projected

    def _score_projection(self, table: Distinct, layout: KeyLayout, targets: Sequence[int]) -> None:
        rows, known = table.rows, self.job.known
        joint = sum_count_log_count(*np.unique(rows.counts, return_counts=True))
        for group in plan_passes(targets, known, self.entropies, len(rows.keys), self.block_rows):
            blocks = CohortBlocks(rows, layout, group, known, self.entropies, self.block_rows, self.workers)
            index = self._row_index(blocks, table)
            scores = np.empty((len(rows.keys), len(self.numbers)))
            for column in group:
                sizes = self._score_target(blocks, layout, column, scores)
                self._finish_target(column, sizes, joint, scores, index)

    def _row_index(self, blocks: CohortBlocks, table: Distinct) -> npt.NDArray[Any]:
        """For each row of the table its place in partition order."""
        order = blocks.blocks.order
        place = np.empty_like(order)
        self.workers.run(lambda a, b: spread.invert(order, a, b, place), self.workers.ranges(len(order)))
        index = np.empty(self.job.rows, order.dtype)
        self.workers.run(
            lambda a, b: spread.look_up(place, table.number, a, b, index), self.workers.ranges(self.job.rows)
        )
        return index

    def _score_target(
        self, cohort_blocks: CohortBlocks, layout: KeyLayout, column: int, scores: npt.NDArray[np.float64]
    ) -> dict[int, int]:
        """Fill `scores` (distinct rows in partition order, measures) for one target; returns cohorts by size."""
        blocks = cohort_blocks.blocks
        rows = (blocks.rows.keys, blocks.rows.counts, cohort_blocks.hashes)
        job = self.job
        parameters = (job.priors[column], job.log2_priors[column], float(job.accuracies[column]), self.logs)
        field = tuple(layout.fields[column])
        small = np.zeros((len(cohort_blocks.tasks), SMALL_COHORTS), np.int64)
        large = [np.empty(self.job.rows // SMALL_COHORTS + 1, np.int64) for _ in cohort_blocks.tasks]

        def run(task: int, first: int, last: int) -> int:
            used: int = cohorts.score_blocks(
                rows,
                blocks.offsets,
                (first, last),
                field,
                parameters,
                self.numbers,
                self.needs_gain,
                (small[task], large[task]),
                scores,
            )
            return used

        listed = self.workers.run(run, [(task, *edges) for task, edges in enumerate(cohort_blocks.tasks)])
        counts = small.sum(axis=0)
        sizes = dict(zip(np.flatnonzero(counts).tolist(), counts[counts > 0].tolist(), strict=True))
        for used, sizes_listed in zip(listed, large, strict=True):
            for size in sizes_listed[:used].tolist():
                sizes[size] = sizes.get(size, 0) + 1
        for start, stop, halves in cohort_blocks.children:
            child = next(half for half in halves if column in half.targets)
            part = np.empty((stop - start, scores.shape[1]))
            for size, times in self._score_target(child, layout, column, part).items():
                sizes[size] = sizes.get(size, 0) + times
            scores[start + child.blocks.order] = part
        return sizes

    def _finish_target(
        self,
        column: int,
        sizes: dict[int, int],
        joint: float,
        scores: npt.NDArray[np.float64],
        index: npt.NDArray[Any],
    ) -> None:
        """The weight of one target, and its scores from distinct rows to all rows.

        H(X|known) n = sum over cohorts of C log2 C - sum over distinct rows of c log2 c.
        """
        target = list(self.job.targets).index(column)
        conditional = sum_count_log_count(list(sizes), list(sizes.values())) - joint
        entropy = self.entropies[column]
        self.weights[target] = min(1.0, max(0.0, conditional / self.job.rows) / entropy) if entropy > 0 else 0.0
        self._spread(scores, index, target)
        self.progress.advance(self.job.rows)

    def _spread(self, scores: npt.NDArray[np.float64], index: npt.NDArray[Any], target: int) -> None:
        """Scores of one target from distinct rows to all rows, two measures of the same type at a time."""
        measures = self.job.measures
        ranges = self.workers.ranges(self.job.rows)
        order = sorted(range(len(measures)), key=lambda k: measures[k].integer)
        while order:
            picks = order[: 1 + (len(order) > 1 and measures[order[0]].integer == measures[order[1]].integer)]
            del order[: len(picks)]
            factors = tuple(self.weights[target] if measures[k].weighted else 1.0 for k in picks)
            outs = tuple(self.values[measures[k].name][target] for k in picks)
            if len(picks) == 2:
                pair = (scores, tuple(picks), factors, index)
                self.workers.run(lambda a, b, x=pair, o=outs: spread.spread_two(*x, a, b, o), ranges)
            else:
                single = (scores, picks[0], factors[0], index)
                self.workers.run(lambda a, b, x=single, o=outs: spread.spread(*x, a, b, o[0]), ranges)
