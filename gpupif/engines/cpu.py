"""The CPU engine: Numba kernels on all cores, block by cache-sized block."""

from __future__ import annotations

from collections import Counter
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
# So many targets are scored between two waits for all threads that their scores stay within this.
SCORES_BYTES = 1 << 26


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
        joint = self._sum_log(self._count_sizes(rows.counts))
        for group in plan_passes(targets, known, self.entropies, len(rows.keys), self.block_rows):
            blocks = CohortBlocks(rows, layout, group, known, self.entropies, self.block_rows, self.workers)
            index = self._row_index(blocks, table)
            at_once = max(1, SCORES_BYTES // (8 * len(rows.keys) * len(self.numbers)))
            scores = np.empty((min(at_once, len(group)), len(rows.keys), len(self.numbers)))
            for first in range(0, len(group), at_once):
                some = group[first : first + at_once]
                tallies = self._score_targets(blocks, layout, some, scores)
                for column, sizes in zip(some, tallies, strict=True):
                    self._weigh(column, sizes, joint)
                self._spread(scores, index, some)
                self.progress.advance(self.job.rows * len(some))

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
        """Fill `scores` (targets, distinct rows in partition order, measures); returns the cohorts by size of each."""
        job, blocks = self.job, cohort_blocks.blocks
        rows = (blocks.rows.keys, blocks.rows.counts, cohort_blocks.hashes)

        def run(target: int, first: int, last: int) -> Counter[int]:
            column, tally = columns[target], self._new_tally()
            parameters = (job.priors[column], job.log2_priors[column], float(job.accuracies[column]), self.logs)
            field, out = tuple(layout.fields[column]), scores[target]
            listed = cohorts.score_blocks(
                rows, blocks.offsets, (first, last), field, parameters, self.numbers, self.needs_gain, tally, out
            )
            return self._read_tally(tally, listed)

        tasks = [(target, *edges) for target in range(len(columns)) for edges in cohort_blocks.tasks]
        sizes: list[Counter[int]] = [Counter() for _ in columns]
        for (target, *_), counted in zip(tasks, self.workers.run(run, tasks), strict=True):
            sizes[target].update(counted)
        for start, stop, halves in cohort_blocks.children:
            for child in halves:
                here = [target for target, column in enumerate(columns) if column in child.targets]
                part = np.empty((len(here), stop - start, scores.shape[2]))
                tallies = self._score_targets(child, layout, [columns[target] for target in here], part)
                for place, target in enumerate(here):
                    sizes[target].update(tallies[place])
                    scores[target, start:stop][child.blocks.order] = part[place]
        return sizes

    def _new_tally(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Where a kernel counts groups by size: small ones by number, large ones, of which there are few, as a list."""
        return np.zeros(SMALL_COHORTS, np.int64), np.empty(self.job.rows // SMALL_COHORTS + 1, np.int64)

    @staticmethod
    def _read_tally(tally: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]], listed: int) -> Counter[int]:
        small, large = tally
        positions = np.flatnonzero(small)
        sizes = Counter(dict(zip(positions.tolist(), small[positions].tolist(), strict=True)))
        sizes.update(large[:listed].tolist())
        return sizes

    def _count_sizes(self, counts: npt.NDArray[Any]) -> Counter[int]:
        tally = self._new_tally()
        return self._read_tally(tally, cohorts.count_sizes(counts, len(counts), *tally, 0))

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
        """Scores of some targets from distinct rows to all rows, two measures of the same type at a time."""
        measures = self.job.measures
        pairs = [
            picks
            for integer in (False, True)
            for picks in batched([k for k, measure in enumerate(measures) if measure.integer == integer], 2)
        ]

        def run(source: int, column: int, picks: Sequence[int], start: int, stop: int) -> None:
            target = self.job.targets.index(column)
            factors = tuple(self.weights[target] if measures[k].weighted else 1.0 for k in picks)
            outs = tuple(self.values[measures[k].name][target] for k in picks)
            if len(picks) == 2:
                spread.spread_two(scores[source], tuple(picks), factors, index, start, stop, outs)
            else:
                spread.spread(scores[source], picks[0], factors[0], index, start, stop, outs[0])

        ranges = self.workers.ranges(self.job.rows)
        self.workers.run(
            run,
            [
                (source, column, picks, *edges)
                for source, column in enumerate(columns)
                for picks in pairs
                for edges in ranges
            ],
        )


def batched(items: Sequence[int], size: int) -> list[Sequence[int]]:
    """Items in groups of `size`, the last perhaps smaller."""
    return [items[start : start + size] for start in range(0, len(items), size)]
