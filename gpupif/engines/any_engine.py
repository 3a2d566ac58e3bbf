"""Attackers who know any few of the columns: what is asked of an engine, and what it gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .base import Engine, Job, Progress


@dataclass(frozen=True)
class SetOfColumns:
    """Columns, ascending, and those of them that are scored against an attacker who knows the others."""

    columns: tuple[int, ...]
    targets: tuple[int, ...]


@dataclass(frozen=True)
class AnyResult:
    """worst, mean: measure name to an array (targets, rows), of the host or of a device. weights: by target that of
    each of its subsets, in the order of the sets. distinct_rows: over all columns.
    """

    worst: dict[str, npt.NDArray[Any]]
    mean: dict[str, npt.NDArray[Any]]
    weights: list[npt.NDArray[np.float64]]
    distinct_rows: int


def score_sets(engine: Engine, job: Job, sets: Sequence[SetOfColumns], progress: Progress) -> AnyResult:
    """Worst and mean scores of each cell over the attackers that the sets stand for, at least one for each target.

    sets: in an order of their own, the faster the more columns of neighbours are the same. What comes out depends on
    nothing else: sums run in the order of the sets. Scores lie where the job wants them; they may be on a device.
    """
    return engine.score_sets(job, sets, progress)
