"""Results of the parts of a table beside scores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..engines.partition_plan import WeightSums
from ..utils.information import LogSum

# Distinct values and their multiplicities.
Multiset = tuple[Any, Any]


@dataclass
class PartResult:
    """Results of a part beside its scores.

    sums: for the weights. gains: by target the distinct CIG with multiplicities, for percentiles. rows: distinct rows
    over all columns, where they are known.
    """

    sums: WeightSums = field(default_factory=WeightSums)
    gains: dict[int, Multiset] = field(default_factory=dict)
    rows: int | None = None

    def add(self, other: PartResult) -> None:
        """Add the result of another part, for the same targets or others."""
        self.sums = WeightSums.total(self.sums, other.sums)
        for target, (gains, times) in other.gains.items():
            before = self.gains.get(target, (gains[:0], times[:0]))
            self.gains[target] = (np.concatenate([before[0], gains]), np.concatenate([before[1], times]))

    def as_json(self) -> dict[str, Any]:
        """All but the gains, ready for JSON."""
        listed = {
            what: {target: one.units for target, one in by.items()}
            for what, by in (("cohorts", self.sums.cohorts), ("distinct", self.sums.distinct))
        }
        return {**listed, "rows": self.rows}

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> PartResult:
        """From what `as_json` made."""
        cohorts, distinct = (
            {int(target): LogSum(units) for target, units in by.items()} for by in (facts["cohorts"], facts["distinct"])
        )
        return cls(WeightSums(cohorts, distinct), rows=facts["rows"])
