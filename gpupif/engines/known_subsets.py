"""Attackers who know any few of the columns: what is asked of an engine, and what it gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .base import Engine, Job, Progress
    from .known_subsets_memory import AnyShares


@dataclass(frozen=True)
class SetOfColumns:
    """Columns, ascending, and those of them that are scored against an attacker who knows the others."""

    columns: tuple[int, ...]
    targets: tuple[int, ...]


@dataclass(frozen=True)
class AnyResult:
    """worst, mean: measure name to an array (targets, rows), of the host or of a device. weights: by target that of
    each of its subsets, in the order of the sets. distinct_rows: over all columns. through_host: see `EngineResult`.
    """

    worst: dict[str, npt.NDArray[Any]]
    mean: dict[str, npt.NDArray[Any]]
    weights: list[npt.NDArray[np.float64]]
    distinct_rows: int
    through_host: str = ""


def score_sets(
    engine: Engine, job: Job, sets: Sequence[SetOfColumns], progress: Progress, shares: AnyShares | None = None
) -> AnyResult:
    """Worst and mean scores of each cell over the attackers that the sets stand for, at least one for each target.

    sets: in an order of their own, the faster the more columns of neighbours are the same; what serves none of the
    job's targets is passed over. What comes out depends on nothing else: sums run in the order of the sets. Scores lie
    where the job wants them; they may be on a device. shares: of the host's memory, where it is limited.
    """
    # Of the others any few are known, never the scored one.
    job = replace(job, known=[])
    mine = [SetOfColumns(one.columns, tuple(target for target in one.targets if target in job.targets)) for one in sets]
    return engine.score_sets(job, [one for one in mine if one.targets], progress, shares)
