"""The CPU engine: Numba kernels on all cores score blocks of rows that fit the cache."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...rows.partition import BLOCK_ROWS
from ...rows.threads import Workers
from ..any_known import needs_whole_engine, score_each_set
from ..attacker_scoring import score_job
from ..base import AnyKnownResult, AnyKnownShares, EngineResult, Job, KnownSubset, Progress
from ..block_scoring import BlockRun, score_in_blocks, shared_by_scored_columns
from ..memory import working_memory
from .any_known import AnyKnownRun
from .counting import CpuCounting
from .scorer import CpuScorer
from .wildcards import score_matching


@dataclass(eq=False)
class CpuEngine:
    """The engine on the CPU. threads: default all cores. block_rows: rows of a block. No result depends on either."""

    threads: int | None = None
    block_rows: int = BLOCK_ROWS
    device = "cpu"
    frames = None
    shares_distinct_rows = True

    def score(self, job: Job, progress: Progress) -> EngineResult:
        """Score all scored columns of the job (see `Engine`).

        Raise InputError for too many patterns of missing values.
        """
        return score_job(job.on_host().with_ordered_codes(), progress, self._score_cohorts, self._score_matching)

    def _score_cohorts(self, job: Job, progress: Progress) -> EngineResult:
        """Score a job without wildcards in which every row counts."""
        scorer = CpuScorer()
        of_rows = shared_by_scored_columns(job)
        rest = replace(job, measures=[measure for measure in job.measures if measure not in of_rows])
        memory = working_memory(rest, scorer.scored_columns_at_once(job.rows, len(rest.measures)))
        with Workers(self.threads, memory) as workers:
            result = score_in_blocks(BlockRun(rest, progress, workers, self.block_rows, scorer), of_rows)
        return replace(result, values={one.name: result.values[one.name] for one in job.measures if result.values})

    def _score_matching(self, job: Job, scored_columns: Sequence[int], progress: Progress) -> EngineResult:
        """Score some scored columns against known columns in which missing values match every value."""
        with Workers(self.threads) as workers:
            run = BlockRun(replace(job, scores_on="host"), progress, workers, self.block_rows, CpuScorer())
            return score_matching(run, scored_columns)

    def score_sets(
        self, job: Job, sets: Sequence[KnownSubset], progress: Progress, shares: AnyKnownShares | None = None
    ) -> AnyKnownResult:
        """Score against any attacker (see `Engine`)."""
        if needs_whole_engine(job):
            return score_each_set(self.score, job, sets, progress, self.threads, shares)
        with Workers(self.threads if shares is None else shares.threads) as workers:
            return AnyKnownRun(job, workers, progress, shares=shares).score(sets)

    def counting(self, workers: Workers) -> contextlib.AbstractContextManager[CpuCounting]:
        """Count on the host (see `Engine`)."""
        return contextlib.nullcontext(CpuCounting(workers))
