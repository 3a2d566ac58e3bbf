"""The CPU engine: Numba kernels on all cores, block by cache-sized block."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...rows.partition import BLOCK_ROWS
from ...rows.threads import Workers
from ..base import AnyKnownResult, AnyKnownShares, EngineResult, Job, KnownSubset, Progress
from ..block_run import BlockRun
from ..block_scoring import score_in_blocks, shared_by_scored_columns, working_memory
from ..individual_risk import score_rows_and_people
from ..known_subsets import needs_whole_engine, score_each_set
from ..wildcards import score_apart
from ..zero_weights import score_zero_weights
from .counting import CpuCounting
from .known_subsets import score_any_known
from .scorer import CpuScorer
from .wildcards import score_matching


@dataclass(eq=False)
class CpuEngine:
    """Scores on the CPU. threads: default all cores. block_rows: rows per block; no result depends on either."""

    threads: int | None = None
    block_rows: int = BLOCK_ROWS
    device = "cpu"
    frames = None
    shares_distinct_rows = True

    def score(self, job: Job, progress: Progress) -> EngineResult:
        """Score all scored columns of the job (see `Engine`). Raises InputError for too many patterns of missing
        values.
        """
        return score_rows_and_people(self._score_any, job, progress)

    def _score_any(self, job: Job, progress: Progress) -> EngineResult:
        """Score a job in which rows count in one way, perhaps with wildcards, or rows that count 0."""

        def usual(given: Job) -> EngineResult:
            return score_zero_weights(given, lambda counted: self._score(counted, progress))

        return score_apart(
            job, lambda given, scored_columns: self._score_matching(given, scored_columns, progress), usual
        )

    def _score(self, job: Job, progress: Progress) -> EngineResult:
        job, scorer = job.on_host().with_ordered_codes(), CpuScorer()
        of_rows = shared_by_scored_columns(job)
        rest = replace(job, measures=[measure for measure in job.measures if measure not in of_rows])
        memory = working_memory(rest, scorer.scored_columns_at_once(job.rows, len(rest.measures)))
        with Workers(self.threads, memory) as workers:
            result = score_in_blocks(BlockRun(rest, progress, workers, self.block_rows, scorer), of_rows)
        return replace(result, values={one.name: result.values[one.name] for one in job.measures if result.values})

    def _score_matching(self, job: Job, scored_columns: Sequence[int], progress: Progress) -> EngineResult:
        with Workers(self.threads) as workers:
            job = replace(job.on_host().with_ordered_codes(), scores_on="host")
            return score_matching(BlockRun(job, progress, workers, self.block_rows, CpuScorer()), scored_columns)

    def score_sets(
        self, job: Job, sets: Sequence[KnownSubset], progress: Progress, shares: AnyKnownShares | None = None
    ) -> AnyKnownResult:
        """Score against any attacker (see `Engine`)."""
        if needs_whole_engine(job):
            return score_each_set(self.score, job, sets, progress, self.threads, shares)
        return score_any_known(job, sets, progress, self.threads, shares)

    def counting(self, workers: Workers) -> contextlib.AbstractContextManager[CpuCounting]:
        """See `CountingEngine`."""
        return contextlib.nullcontext(CpuCounting(workers))
