"""The CPU engine: Numba kernels on all cores, block by cache-sized block."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpupif.kernels import cohorts, pack, spread
from gpupif.kernels.groups import Room

from ..information import entropy_of_counts, log2_counts, sum_count_log_count
from ..keys import KeyLayout
from .base import EngineResult, Job, Progress
from .distinct import Distinct, distinct_rows
from .partition import BLOCK_ROWS, CohortBlocks, Rows, plan_passes
from .tally import Tally, count_sizes
from .workers import Workers

if TYPE_CHECKING:
    import numpy.typing as npt

LOG_TABLE = 1024
# Targets whose scores fit into a cache together are scored and spread to all rows before the next ones.
CACHED_BYTES = 1 << 24
# Otherwise as many at a time as fit into this, those of a row side by side as far as they fill a line of memory.
SCORES_BYTES = 1 << 29
LINE_BYTES = 64


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
        self.entropies = [entropy_of_counts(counts) for counts in job.counts]
        self.weights = [0.0] * len(job.targets)
        self.scratch = np.empty(0)
        self.logs = log2_counts(np.arange(LOG_TABLE))
        # By what they hold: positions of the measures, and their scores (measures, targets, rows).
        self.values: list[tuple[list[int], npt.NDArray[Any]]] = []
        for integer, dtype in ((False, job.dtype), (True, "int64")):
            picks = [k for k, measure in enumerate(job.measures) if measure.integer == integer]
            self.values.append((picks, np.empty((len(picks), len(job.targets), job.rows), dtype)))

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
        values = {job.measures[k].name: scores[m] for picks, scores in self.values for m, k in enumerate(picks)}
        return EngineResult(values, self.weights, len(table.rows.keys))

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
        joint = self._sum_log(count_sizes(rows.counts, self.job.rows))
        for group in plan_passes(targets, known, self.entropies, len(rows.keys), self.block_rows):
            blocks = CohortBlocks(rows, layout, group, known, self.entropies, self.block_rows, self.workers)
            index = self._row_index(blocks, table)
            at_once, lanes = plan_scores(len(rows.keys), len(self.numbers))
            for first in range(0, len(group), at_once):
                some = group[first : first + at_once]
                scores = self._scores(len(some), len(rows.keys), min(lanes, len(some)))
                for column, sizes in zip(some, self._score_targets(blocks, layout, some, scores), strict=True):
                    self._weigh(column, sizes, joint)
                self._spread(scores, index, some)
                self.progress.advance(self.job.rows * len(some))

    def _scores(self, targets: int, rows: int, lanes: int) -> npt.NDArray[np.float64]:
        """Where distinct rows get their scores; memory that was touched once is used again where it can be."""
        shape = (-(-targets // lanes), rows, lanes, len(self.numbers))
        if self.scratch.size != math.prod(shape):
            self.scratch = np.empty(0)
            self.scratch = np.empty(math.prod(shape))
        return self.scratch.reshape(shape)

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

    def _score_targets(
        self, cohort_blocks: CohortBlocks, layout: KeyLayout, columns: Sequence[int], scores: npt.NDArray[np.float64]
    ) -> list[Counter[int]]:
        """Fill `scores` (see `score_blocks`), rows in partition order; returns the cohorts by size of each target."""
        blocks = cohort_blocks.blocks
        rows = (blocks.rows.keys, blocks.rows.counts, cohort_blocks.hashes)
        targets = self._describe(columns, layout)

        def run(first: int, last: int) -> list[Counter[int]]:
            largest = int(np.diff(blocks.offsets[first : last + 1]).max())
            room, sums = Room.of(largest), cohorts.Sums.of(largest, blocks.rows.counts.dtype)
            tally = Tally.of(len(columns), self.job.rows)
            cohorts.score_blocks(rows, blocks.offsets, (first, last), targets, self.numbers, room, sums, tally, scores)
            return tally.read()

        sizes: list[Counter[int]] = [Counter() for _ in columns]
        for counted in self.workers.run(run, cohort_blocks.tasks):
            for total, part in zip(sizes, counted, strict=True):
                total.update(part)
        for start, stop, halves in cohort_blocks.children:
            for child in halves:
                here = [target for target, column in enumerate(columns) if column in child.targets]
                part = np.empty((len(here), stop - start, 1, len(self.numbers)))
                tallies = self._score_targets(child, layout, [columns[target] for target in here], part)
                for place, target in enumerate(here):
                    sizes[target].update(tallies[place])
                    whole = scores[target // scores.shape[2], start:stop, target % scores.shape[2]]
                    whole[child.blocks.order] = part[place, :, 0]
        return sizes

    def _describe(self, columns: Sequence[int], layout: KeyLayout) -> cohorts.Targets:
        """What the kernels need of these target columns."""
        job = self.job
        ends = np.cumsum([0, *(len(job.priors[column]) for column in columns)])
        alone = np.empty((ends[-1], len(self.numbers)))

        def run(target: int, start: int, stop: int) -> None:
            column, part = columns[target], alone[ends[target] : ends[target + 1]]
            priors, accuracy = (job.priors[column], job.log2_priors[column]), float(job.accuracies[column])
            cohorts.score_values(*priors, accuracy, start, stop, self.numbers, part)

        self.workers.run(
            run,
            [
                (target, *edges)
                for target, column in enumerate(columns)
                for edges in self.workers.ranges(len(job.priors[column]))
            ],
        )
        return cohorts.Targets(
            np.array([layout.fields[column] for column in columns], np.uint64),
            ends[:-1],
            np.concatenate([job.priors[column] for column in columns]),
            np.concatenate([job.log2_priors[column] for column in columns]),
            np.array([job.accuracies[column] for column in columns], np.float64),
            alone,
            self.logs,
        )

    @staticmethod
    def _sum_log(sizes: Counter[int]) -> float:
        return sum_count_log_count(list(sizes), list(sizes.values()))

    def _weigh(self, column: int, sizes: Counter[int], joint: float) -> None:
        """Weight of one target: H(X|known) / H(X).

        H(X|known) n = sum over cohorts of C log2 C - sum over distinct rows of c log2 c (`joint`).
        """
        conditional = self._sum_log(sizes) - joint
        entropy = self.entropies[column]
        weight = min(1.0, max(0.0, conditional / self.job.rows) / entropy) if entropy > 0 else 0.0
        self.weights[self.job.targets.index(column)] = weight

    def _spread(self, scores: npt.NDArray[np.float64], index: npt.NDArray[Any], columns: Sequence[int]) -> None:
        """Scores of some targets from distinct rows to all rows."""
        job = self.job
        lanes = scores.shape[2]
        for picks, out in self.values:
            for group, part in enumerate(scores if picks else ()):
                places = [job.targets.index(column) for column in columns[group * lanes : (group + 1) * lanes]]
                factors = [[self.weights[t] if job.measures[k].weighted else 1.0 for k in picks] for t in places]
                arguments = (part, np.array(places), np.array(picks), np.array(factors), index)
                tasks = [(*arguments, *edges, out) for edges in self.workers.ranges(job.rows)]
                self.workers.run(spread.spread, tasks)


def plan_scores(rows: int, measures: int) -> tuple[int, int]:
    """How many targets to score at once, and how many of them to keep side by side in each distinct row.

    Spreading to all rows costs one access to far memory per row and line.
    """
    bytes_each = 8 * rows * measures
    if bytes_each <= CACHED_BYTES:
        return CACHED_BYTES // bytes_each, 1
    at_once = max(1, SCORES_BYTES // bytes_each)
    lanes = max(1, min(at_once, LINE_BYTES // (8 * measures)))
    return lanes * (at_once // lanes), lanes
