"""The CPU engine: Numba kernels on all cores, block by cache-sized block."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .any_known import score_any_known
from .base import EngineResult, Job, Progress
from .counting import CpuCounting
from .cpu_scorer import CpuScorer
from .host_run import score_in_blocks, working_memory
from .partition import BLOCK_ROWS
from .run import Run
from .workers import Workers

if TYPE_CHECKING:
    from .any_engine import AnyResult, SetOfColumns


class CpuEngine:
    """Scores on the CPU. threads: default all cores. block_rows: rows per block; no result depends on either."""

    device = "cpu"
    frames = None

    def __init__(self, threads: int | None = None, block_rows: int = BLOCK_ROWS) -> None:
        self.threads = threads
        self.block_rows = block_rows

    def score(self, job: Job, progress: Progress) -> EngineResult:
        """Score all targets of the job (see `Engine`)."""
        job, scorer = job.on_host().in_order(), CpuScorer()
        memory = working_memory(job, scorer.targets_at_once(job.rows, len(job.measures)))
        with Workers(self.threads, memory) as workers:
            return score_in_blocks(Run(job, progress, workers, self.block_rows, scorer))

    def score_sets(self, job: Job, sets: Sequence[SetOfColumns], progress: Progress) -> AnyResult:
        """Score against any attacker (see `Engine`)."""
        return score_any_known(job, sets, progress, self.threads)

    def counting(self, workers: Workers) -> contextlib.AbstractContextManager[CpuCounting]:
        """See `CountingEngine`."""
        return contextlib.nullcontext(CpuCounting(workers))
