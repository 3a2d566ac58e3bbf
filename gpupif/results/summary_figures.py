"""The figures of a summary: found for chunks of a table, and combined."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..attack.priors import Prior
from ..utils.exact_sums import ExactSum
from ..utils.percentiles import ONCE
from .score_distribution import ColumnAnswer

# The figures of each column for measures of rows.
ROW_MEASURES = {
    "reidentification_risk": ("mean", "max"),
    "individual_risk": ("mean", "max"),
    "unique": ("mean",),
    "class_size": ("min",),
}
# Measures with figures in a summary.
SUMMARISED = ("cig", "csf", *ROW_MEASURES)
# Percentiles of the CIG of a column, and of the gains of rows (PIF).
OF_COLUMNS, OF_ROWS = (50, 95), (50, 95, 99, 100)


class ColumnFacts(NamedTuple):
    """The number of values of a scored column, and the entropy of its prior in bits."""

    distinct_values: int
    prior_entropy: float

    @classmethod
    def from_prior(cls, prior: Prior) -> ColumnFacts:
        """Return the facts of the column with a prior."""
        return cls(prior.column.cardinality, prior.entropy)


class ColumnFigures(NamedTuple):
    """The sum of some scores of a column, the highest, and the lowest above 0; -inf and inf if there are none.

    The lowest is found only for measures whose summary has it.
    """

    sum: ExactSum = ExactSum()
    highest: float = -math.inf
    lowest: float = math.inf

    @classmethod
    def from_scores(cls, measure: str, scores: Any, multiplicities: npt.NDArray[np.int64] = ONCE) -> ColumnFigures:
        """Return the figures of scores on the host or a device.

        multiplicities: how often each occurs, only for the host; empty for once.
        """
        total = ExactSum.from_numbers(scores, multiplicities)
        if total.terms < (multiplicities.sum() if len(multiplicities) else len(scores)):
            # Cells whose value is missing, and no category, may have no score.
            scores = scores[scores == scores]
        # Adding zero turns -0.0 into 0.0.
        highest = float(scores.max()) + 0.0 if len(scores) else -math.inf
        positive = scores[scores > 0] if "min" in ROW_MEASURES.get(measure, ()) else scores[:0]
        return cls(total, highest, float(positive.min()) if len(positive) else math.inf)

    @classmethod
    def together(cls, parts: Iterable[ColumnFigures]) -> ColumnFigures:
        """Return the figures of all chunks together."""
        sums, highest, lowest = zip(cls(), *parts, strict=True)
        return cls(ExactSum.total(sums), max(highest), min(lowest))


@dataclass(frozen=True)
class Figures:
    """The figures of some rows: by measure, of each scored column."""

    of_columns: Mapping[str, Sequence[ColumnFigures]]

    @classmethod
    def together(cls, *chunks: Figures) -> Figures:
        """Return the figures of all chunks of a table together."""
        return cls(
            {
                measure: [
                    ColumnFigures.together(parts)
                    for parts in zip(*(figures.of_columns[measure] for figures in chunks), strict=True)
                ]
                for measure in chunks[0].of_columns
            }
        )

    @classmethod
    def beside(cls, *columns_of: Figures) -> Figures:
        """Return the figures of the same rows in all columns, from figures of some columns each, in their order."""
        return cls(
            {
                measure: [column for figures in columns_of for column in figures.of_columns[measure]]
                for measure in columns_of[0].of_columns
            }
        )

    def some(self, places: Sequence[int]) -> Figures:
        """Return the figures of some columns, in this order."""
        return Figures({measure: [each[place] for place in places] for measure, each in self.of_columns.items()})

    def totals(self, measure: str) -> list[float]:
        """Return the sum of each column's scores, rounded once."""
        return [column.sum.over(1) for column in self.of_columns[measure]]

    def to_stored(self) -> dict[str, Any]:
        """Return the figures ready for JSON that has inf and NaN, for `from_stored`."""
        return dict(self.of_columns)

    @classmethod
    def from_stored(cls, document: Mapping[str, Any]) -> Figures:
        """Return the figures from what `to_stored` returned."""
        return cls(
            {
                measure: [ColumnFigures(ExactSum(*total), *extremes) for total, *extremes in columns]
                for measure, columns in document.items()
            }
        )


def summary_columns(
    names: Iterable[Hashable],
    facts: Sequence[ColumnFacts],
    rows: int,
    figures: Figures,
    distributions: Sequence[ColumnAnswer],
    weights: Sequence[float],
) -> pd.DataFrame:
    """Return the frame of `Summary.columns`.

    names: of the scored columns. distributions: of the CIG of each column, with the percentiles `OF_COLUMNS`; none if
    it was not scored. weights: of wCIG.
    """
    records = []
    for place, fact in enumerate(facts):
        row: dict[str, float] = fact._asdict()
        figures_of = {measure: columns[place] for measure, columns in figures.of_columns.items()}
        if "cig" in figures_of:
            total, highest, _ = figures_of["cig"]
            median, high = distributions[place].percentiles.values()
            row |= {"cig_mean": total.over(rows), "cig_median": median, "cig_p95": high}
            row |= {"cig_max": highest, "fig": total.over(1)}
        for measure, wanted in ROW_MEASURES.items():
            if measure in figures_of:
                total, highest, lowest = figures_of[measure]
                # With sampling weights a class may weigh 0.
                values = {"mean": total.over(rows), "max": highest, "min": lowest if highest else 0.0}
                row |= {f"{measure}_{figure}": values[figure] for figure in wanted}
        if "csf" in figures_of:
            total, highest, _ = figures_of["csf"]
            row |= {"csf_mean": total.mean, "csf_max": highest if total.terms else math.nan}
        records.append(row | {"weight": weights[place]})
    return pd.DataFrame.from_records(records, index=pd.Index([*names], name="column", tupleize_cols=False))
