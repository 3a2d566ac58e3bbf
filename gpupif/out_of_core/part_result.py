"""Results of the parts of a table beside scores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..utils.information import LogSum

# Distinct values and their multiplicities.
Multiset = tuple[Any, Any]


@dataclass
class PartResult:
    """Results of a part beside its scores, by target.

    cohorts, distinct: sums over those of `EngineResult`, for the weights. gains: the distinct CIG with multiplicities,
    for percentiles. rows: distinct rows over all columns, where they are known. weights: of targets, where no sums are
    of use: with wildcards, and over attackers who know any few columns.
    """

    cohorts: dict[int, LogSum] = field(default_factory=dict)
    distinct: dict[int, LogSum] = field(default_factory=dict)
    gains: dict[int, Multiset] = field(default_factory=dict)
    rows: int | None = None
    weights: dict[int, float] = field(default_factory=dict)

    def add(self, other: PartResult) -> None:
        """Add the result of another part, for the same targets or others."""
        self.weights |= other.weights
        for mine, theirs in ((self.cohorts, other.cohorts), (self.distinct, other.distinct)):
            for target, sizes in theirs.items():
                mine[target] = LogSum.total([mine[target], sizes]) if target in mine else sizes
        for target, (gains, times) in other.gains.items():
            before = self.gains.get(target, (gains[:0], times[:0]))
            self.gains[target] = (np.concatenate([before[0], gains]), np.concatenate([before[1], times]))

    def as_json(self) -> dict[str, Any]:
        """All but the gains, ready for JSON."""
        listed = {
            what: {target: one.units for target, one in by.items()}
            for what, by in (("cohorts", self.cohorts), ("distinct", self.distinct))
        }
        return {**listed, "rows": self.rows, "weights": self.weights}

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> PartResult:
        """From what `as_json` made."""
        cohorts, distinct = (
            {int(target): LogSum(units) for target, units in by.items()} for by in (facts["cohorts"], facts["distinct"])
        )
        weights = {int(target): weight for target, weight in facts["weights"].items()}
        return cls(cohorts, distinct, rows=facts["rows"], weights=weights)
