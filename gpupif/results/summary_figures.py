"""What a summary says of scores in figures: found of pieces of a table, and put together, wherever these lie."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..rows.threads import Workers
from ..utils.exact_sums import ExactSum
from ..utils.percentiles import ONCE

# Of measures of rows, what is said of a column.
ROW_MEASURES = {
    "reidentification_risk": ("mean", "max"),
    "individual_risk": ("mean", "max"),
    "unique": ("mean",),
    "class_size": ("min",),
}
# Measures of which a summary says anything.
SUMMARISED = ("cig", "csf", *ROW_MEASURES)
# Percentiles of the CIG of a column, and of the gains of rows (PIF).
OF_COLUMNS, OF_ROWS = (50, 95), (50, 95, 99, 100)


class ColumnFacts(NamedTuple):
    """Of a scored column how many values it has, and the entropy of its prior in bits."""

    distinct_values: int
    prior_entropy: float


class ColumnFigures(NamedTuple):
    """Of some scores of a column: their sum, the highest, and the lowest above 0; -inf and inf where there are none.

    The lowest is found of measures only of which a summary says it.
    """

    sum: ExactSum = ExactSum()
    highest: float = -math.inf
    lowest: float = math.inf

    @classmethod
    def of(cls, measure: str, scores: Any, times: npt.NDArray[np.int64] = ONCE) -> ColumnFigures:
        """Of scores of host or device; times: how often each occurs, of the host only; empty: once."""
        total = ExactSum.of(scores, times)
        if total.terms < (times.sum() if len(times) else len(scores)):
            # Cells whose value is missing, and no category, may have none.
            scores = scores[scores == scores]
        # Adding zero makes -0.0 the 0.0 that it is.
        highest = float(scores.max()) + 0.0 if len(scores) else -math.inf
        positive = scores[scores > 0] if "min" in ROW_MEASURES.get(measure, ()) else scores[:0]
        return cls(total, highest, float(positive.min()) if len(positive) else math.inf)

    @classmethod
    def together(cls, parts: Iterable[ColumnFigures]) -> ColumnFigures:
        """Of several together."""
        sums, highest, lowest = zip(cls(), *parts, strict=True)
        return cls(ExactSum.total(sums), max(highest), min(lowest))


@dataclass(frozen=True)
class Figures:
    """Of some rows, by measure, what is known of each scored column."""

    of_columns: Mapping[str, Sequence[ColumnFigures]]

    @classmethod
    def of(cls, scores: Mapping[str, Any], workers: Workers) -> Figures:
        """Those of scores (columns, rows) by measure, of host or device."""
        return cls(
            {
                measure: workers.run(ColumnFigures.of, [(measure, column) for column in array])
                for measure, array in scores.items()
            }
        )

    @classmethod
    def together(cls, *several: Figures) -> Figures:
        """Those of pieces of a table together."""
        return cls(
            {
                measure: [
                    ColumnFigures.together(parts)
                    for parts in zip(*(one.of_columns[measure] for one in several), strict=True)
                ]
                for measure in several[0].of_columns
            }
        )

    @classmethod
    def beside(cls, *several: Figures) -> Figures:
        """Those of the same rows in further columns together, in the order of the columns."""
        return cls(
            {
                measure: [column for one in several for column in one.of_columns[measure]]
                for measure in several[0].of_columns
            }
        )

    def some(self, places: Sequence[int]) -> Figures:
        """Those of some of the columns, in this order."""
        return Figures({measure: [each[place] for place in places] for measure, each in self.of_columns.items()})

    def totals(self, measure: str) -> list[float]:
        """The sum of each column's scores, rounded once."""
        return [column.sum.over(1) for column in self.of_columns[measure]]

    def to_stored(self) -> dict[str, Any]:
        """Ready for JSON that has inf and NaN, for `from_stored`."""
        return dict(self.of_columns)

    @classmethod
    def from_stored(cls, document: Mapping[str, Any]) -> Figures:
        """From what `to_stored` made."""
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
    percentiles: Sequence[Sequence[float]],
    weights: Sequence[float],
) -> pd.DataFrame:
    """`Summary.columns`. percentiles: `OF_COLUMNS` of the CIG of each column; none where it was not scored."""
    records = []
    for place, fact in enumerate(facts):
        row: dict[str, float] = fact._asdict()
        found = {measure: columns[place] for measure, columns in figures.of_columns.items()}
        if "cig" in found:
            total, highest, _ = found["cig"]
            median, high = percentiles[place]
            row |= {"cig_mean": total.over(rows), "cig_median": median, "cig_p95": high}
            row |= {"cig_max": highest, "fig": total.over(1)}
        for measure, wanted in ROW_MEASURES.items():
            if measure in found:
                total, highest, lowest = found[measure]
                # With weights a class may be of weight 0.
                said = {"mean": total.over(rows), "max": highest, "min": lowest if highest else 0.0}
                row |= {f"{measure}_{figure}": said[figure] for figure in wanted}
        if "csf" in found:
            total, highest, _ = found["csf"]
            row |= {"csf_mean": total.mean, "csf_max": highest if total.terms else math.nan}
        records.append(row | {"weight": weights[place]})
    return pd.DataFrame.from_records(records, index=pd.Index([*names], name="column", tupleize_cols=False))
