"""Cells of which somebody asks what an attacker sees, in a table whose rows come in pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .riskiest import CohortCount, count_cohort, describe, describe_value
from .worst_attacker import describe_worst

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..attack.any_known import KnownSubsets
    from ..encoding.column import Column
    from ..engines.base import Job
    from ..measures import Measure
    from .base import RiskyCell


@dataclass(frozen=True)
class ExplainedCells:
    """Some cells of a table. job, columns: without codes of rows. keys: of each cell the codes of its row."""

    job: Job
    columns: Sequence[Column]
    cells: Sequence[RiskyCell]
    keys: Sequence[Sequence[int]]

    def values(self) -> list[dict[str, Any]]:
        """See `Explainer`."""
        return [
            describe_value(self.job, position, self.columns[position], key[position])
            for position, key in zip(self._positions, self.keys, strict=True)
        ]

    def count(self, codes: Sequence[Any], times: npt.NDArray[np.int64] | None) -> list[CohortCount]:
        """Of some rows those in the cohort of each cell; see `count_cohort`."""
        return [
            count_cohort(self.job, codes, times, key, position)
            for position, key in zip(self._positions, self.keys, strict=True)
        ]

    @staticmethod
    def total(counts: Iterable[Sequence[CohortCount]]) -> list[CohortCount]:
        """What `count` found in several pieces of the table together."""
        return [CohortCount.total(several) for several in zip(*counts, strict=True)]

    def explain(self, counts: Sequence[CohortCount]) -> list[dict[str, Any]]:
        """See `Explainer`; counts: of all rows."""
        return [
            describe(self.job, position, self.columns[position], key[position], count)
            for position, key, count in zip(self._positions, self.keys, counts, strict=True)
        ]

    def explain_worst(
        self,
        rows: Job,
        subsets: KnownSubsets,
        weights_of: Callable[[Job, int], npt.NDArray[np.float64]],
        by: Measure,
    ) -> list[dict[str, Any]]:
        """See `Explainer`, where the attacker knows any few columns.

        rows: the job with the codes of all distinct rows. weights_of: finds for these the weight of the column at a
        position against each of the subsets.
        """
        found = []
        for position, key in zip(self._positions, self.keys, strict=True):
            weights = weights_of(rows, position) if by.weighted else np.ones(0)
            found.append(describe_worst(rows, self.columns[position], key, position, subsets, weights, by))
        return found

    @property
    def _positions(self) -> list[int]:
        """Place of the column of each cell."""
        return [self.job.scored_columns[cell.scored_column] for cell in self.cells]
