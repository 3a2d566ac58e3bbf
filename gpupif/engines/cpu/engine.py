"""The CPU engine: Numba kernels on all cores score blocks of rows that fit the cache."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...rows.partition import BLOCK_ROWS
from ...rows.threads import Workers
from ..attacker_scoring import StepwiseEngine
from ..base import AnyKnownResult, AnyKnownShares, EngineResult, Job, KnownSubset, Progress
from ..block_scoring import BlockRun, score_in_blocks, shared_by_scored_columns
from ..memory import working_memory
from .any_known import AnyKnownRun
from .counting import CpuCounting
from .scorer import CpuScorer
from .wildcards import score_matching


@dataclass(eq=False)
class CpuEngine(StepwiseEngine):
    """The engine on the CPU. threads: default all cores. block_rows: rows of a block. No result depends on either."""

    threads: int | None = None
    block_rows: int = BLOCK_ROWS
    device = "cpu"
    frames = None
    shares_distinct_rows = True

    @contextlib.contextmanager
    def opened(self, job: Job) -> Iterator[tuple[Job, CpuEngine]]:
        """Yield the job with its codes on the host, and this engine (see `StepwiseEngine`)."""
        yield job.on_host().with_ordered_codes(), self

    def score_cohorts(self, job: Job, progress: Progress) -> EngineResult:
        """Score a job without wildcards in which every row counts (see `JobSteps`)."""
        scorer = CpuScorer()
        of_rows = shared_by_scored_columns(job)
        rest = replace(job, measures=[measure for measure in job.measures if measure not in of_rows])
        memory = working_memory(rest, scorer.scored_columns_at_once(job.rows, len(rest.measures)))
        with Workers(self.threads, memory) as workers:
            result = score_in_blocks(BlockRun(rest, progress, workers, self.block_rows, scorer), of_rows)
        return replace(result, values={one.name: result.values[one.name] for one in job.measures if result.values})

    def score_matching(self, job: Job, scored_columns: Sequence[int], progress: Progress) -> EngineResult:
        """Score some scored columns in which missing values match every value (see `JobSteps`)."""
        with Workers(self.threads) as workers:
            run = BlockRun(replace(job, scores_on="host"), progress, workers, self.block_rows, CpuScorer())
            return score_matching(run, scored_columns)

    def score_known_sets(
        self, job: Job, sets: Sequence[KnownSubset], progress: Progress, shares: AnyKnownShares | None
    ) -> AnyKnownResult:
        """Score against an attacker who knows any of the sets (see `JobSteps`)."""
        with Workers(self.threads if shares is None else shares.threads) as workers:
            return AnyKnownRun(job, workers, progress, shares=shares).score(sets)

    def placed(self, scores: dict[str, Any], job: Job) -> dict[str, Any]:
        """Return the scores: they are on the host (see `JobSteps`)."""
        return scores

    def counting(self, workers: Workers) -> contextlib.AbstractContextManager[CpuCounting]:
        """Count on the host (see `Engine`)."""
        return contextlib.nullcontext(CpuCounting(workers))
