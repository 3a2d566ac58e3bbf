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

    sums: for the weights. values: by scored column and measure the distinct scores with multiplicities, for
    percentiles and the like. rows: distinct rows over all columns, where they are known.
    """

    sums: WeightSums = field(default_factory=WeightSums)
    values: dict[tuple[int, str], Multiset] = field(default_factory=dict)
    rows: int | None = None

    def add(self, other: PartResult) -> None:
        """Add the result of another part, for the same scored columns or others."""
        self.sums = WeightSums.total(self.sums, other.sums)
        for key, (values, times) in other.values.items():
            before = self.values.get(key, (values[:0], times[:0]))
            self.values[key] = (np.concatenate([before[0], values]), np.concatenate([before[1], times]))

    def as_json(self) -> dict[str, Any]:
        """All but the values, ready for JSON."""
        listed = {
            what: {scored_column: one.units for scored_column, one in by.items()}
            for what, by in (("cohorts", self.sums.cohorts), ("distinct", self.sums.distinct))
        }
        return {**listed, "rows": self.rows}

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> PartResult:
        """From what `as_json` made."""
        cohorts, distinct = (
            {int(scored_column): LogSum(units) for scored_column, units in by.items()}
            for by in (facts["cohorts"], facts["distinct"])
        )
        return cls(WeightSums(cohorts, distinct), rows=facts["rows"])
