"""The CPU engine: Numba kernels on all cores, block by cache-sized block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpupif.kernels import cohorts
from gpupif.kernels.groups import Room

from ..keys import KeyLayout
from .base import EngineResult, Job, Progress
from .host_run import score_in_blocks, working_memory
from .partition import BLOCK_ROWS, CohortBlocks
from .run import Run
from .tally import Tally
from .workers import Workers

if TYPE_CHECKING:
    import numpy.typing as npt

# So many targets are scored and spread to all rows before the next ones that a cache holds their scores.
CACHED_BYTES = 1 << 24


class CpuEngine:
    """Scores on the CPU. threads: default all cores. block_rows: rows per block; no result depends on either."""

    device = "cpu"
    frames = None

    def __init__(self, threads: int | None = None, block_rows: int = BLOCK_ROWS) -> None:
        self.threads = threads
        self.block_rows = block_rows

    def score(self, job: Job, progress: Progress) -> EngineResult:
        """Score all targets of the job (see `Engine`)."""
        job, scorer = job.on_host(), CpuScorer()
        memory = working_memory(job, scorer.targets_at_once(job.rows, len(job.measures)))
        with Workers(self.threads, memory) as workers:
            return score_in_blocks(Run(job, progress, workers, self.block_rows, scorer))


@dataclass(frozen=True)
class CpuTargets:
    """Target columns, and what the kernels need of them."""

    columns: Sequence[int]
    kernel: cohorts.Targets

    def only(self, places: list[int]) -> CpuTargets:
        """See `Targets`."""
        return CpuTargets([self.columns[place] for place in places], self.kernel.only(places))


class CpuScorer:
    """Scores blocks with the CPU's kernels (see `Scorer`)."""

    def targets_at_once(self, rows: int, measures: int) -> int:
        """See `Scorer`."""
        return max(1, CACHED_BYTES // (8 * rows * measures))

    def describe(self, run: Run, columns: Sequence[int], layout: KeyLayout) -> CpuTargets:
        """See `Scorer`."""
        job = run.job
        ends = np.cumsum([0, *(len(job.priors[column]) for column in columns)])
        alone = np.empty((ends[-1], len(run.numbers)))

        def score_values(target: int, start: int, stop: int) -> None:
            column, part = columns[target], alone[ends[target] : ends[target + 1]]
            priors, accuracy = (job.priors[column], job.log2_priors[column]), float(job.accuracies[column])
            cohorts.score_values(*priors, accuracy, start, stop, run.numbers, part)

        tasks = [
            (target, *edges)
            for target, column in enumerate(columns)
            for edges in run.workers.ranges(len(job.priors[column]))
        ]
        run.workers.run(score_values, tasks)
        kernel = cohorts.Targets(
            np.array([layout.fields[column] for column in columns], np.uint64),
            ends[:-1],
            np.concatenate([job.priors[column] for column in columns]),
            np.concatenate([job.log2_priors[column] for column in columns]),
            np.array([job.accuracies[column] for column in columns], np.float64),
            alone,
            run.logs,
        )
        return CpuTargets(columns, kernel)

    def score(
        self, run: Run, blocks: CohortBlocks, targets: CpuTargets, scores: npt.NDArray[np.float64]
    ) -> list[Tally]:
        """See `Scorer`."""
        part = blocks.blocks
        rows = (part.rows.keys, part.rows.counts, blocks.hashes)

        def score(first: int, last: int) -> Tally:
            largest = int(np.diff(part.offsets[first : last + 1]).max())
            room, sums = Room.of(largest), cohorts.Sums.of(largest, part.rows.counts.dtype)
            rows_here = int(part.offsets[last] - part.offsets[first])
            tally = Tally.of(len(targets.columns), run.results.total, rows_here)
            place = (part.offsets, (first, last))
            cohorts.score_blocks(rows, *place, targets.kernel, run.numbers, room, sums, tuple(tally), scores)
            return tally

        return run.workers.run(score, blocks.tasks)
