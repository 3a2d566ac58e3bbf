"""What `score` returns for attackers who know any few of the columns."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .engines.base import EngineResult
from .result import Scores
from .writing import output_names

if TYPE_CHECKING:
    import pandas as pd

    from .columns import EncodedTable
    from .engines.any_known import AnyResult
    from .engines.base import Job
    from .frames import Frame
    from .known_subsets import KnownSubsets
    from .priors import Prior


class AnyKnownScores(Scores):
    """Worst and mean scores over all attackers who know any r columns; made by `gpupif.score` with ``known=r``.

    All that `Scores` has, of each cell's *worst* score over the attackers: the highest, of measures where low is risky
    (``cohort_size``, ``prior``, ``entropy``, ``distinct_values``) the lowest. ``scores.mean`` has the same of each
    cell's mean score. wCIG is weighted with the weight of each attacker before.

    mean: `Scores` of the means. subsets: `KnownSubsets`, what the attackers know. weights: by column the lowest weight
    (in ``mean`` the mean weight): that against the attackers to whom the column says least that is new.
    """

    def __init__(
        self,
        frame: Frame,
        encoded: EncodedTable,
        job: Job,
        found: AnyResult,
        subsets: KnownSubsets,
        columns: Sequence[Hashable],
        priors: Mapping[Hashable, Prior],
        device: str,
        seconds: dict[str, float],
    ) -> None:
        def result(values: dict[str, Any], weights: list[float]) -> EngineResult:
            return EngineResult(values, weights, found.distinct_rows, [], [], {})

        rest = (columns, priors, device, seconds)
        super().__init__(frame, encoded, job, result(found.worst, [float(w.min()) for w in found.weights]), *rest)
        self.subsets = subsets
        mean = result(found.mean, [float(w.mean()) for w in found.weights])
        self.mean = MeanScores(frame, encoded, job, mean, *rest)
        self._subset_weights = found.weights

    def __repr__(self) -> str:
        return (
            f"<AnyKnownScores of {self.rows:,} rows x {len(self.columns)} columns: {', '.join(self.measures)}; "
            f"any {self.subsets.known} columns known: {self.subsets!r}; device {self.device}>"
        )


class MeanScores(Scores):
    """Mean scores over all attackers; ``mean`` of `AnyKnownScores`."""
