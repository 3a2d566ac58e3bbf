"""Attackers who know any few of the columns, on the engine that there is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .any_known import AnyResult, SetOfColumns, score_any_known
from .cpu import CpuEngine

if TYPE_CHECKING:
    from .any_memory import AnyShares
    from .base import Engine, Job, Progress


def score_sets(
    engine: Engine, job: Job, sets: Sequence[SetOfColumns], progress: Progress, shares: AnyShares | None = None
) -> AnyResult:
    """Worst and mean scores of each cell over the attackers that the sets stand for; see `score_any_known`."""
    if not isinstance(engine, CpuEngine):
        raise NotImplementedError
    return score_any_known(job.on_host(), sets, progress, engine.threads, shares)
