"""What a summary says of scores in figures: found of pieces of a table, and put together, wherever these lie."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..rows.threads import Workers

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
# Sums are made over so many rows at a time, and then exactly of these sums.
SUMMED_ROWS = 1 << 16


class ColumnFacts(NamedTuple):
    """Of a scored column how many values it has, and the entropy of its prior in bits."""

    distinct_values: int
    prior_entropy: float


@dataclass(frozen=True)
class Figures:
    """Of some rows, by measure and scored column: sums of some of them each, how many cells have a score (not NaN), the
    highest score, and the lowest above 0.
    """

    sums: dict[str, list[list[float]]]
    cells: dict[str, list[int]]
    highest: dict[str, list[float]]
    lowest: dict[str, list[float]]

    @classmethod
    def of(cls, scores: Mapping[str, Any], workers: Workers) -> Figures:
        """Those of scores (columns, rows) by measure, of host or device."""
        found = {
            measure: workers.run(_figures_of, [(column, _wants_lowest(measure)) for column in array])
            for measure, array in scores.items()
        }
        each = [{measure: [one[place] for one in columns] for measure, columns in found.items()} for place in range(4)]
        return cls(*each)

    @classmethod
    def together(cls, *several: Figures) -> Figures:
        """Those of pieces of a table together, in the order of their rows."""
        first = several[0]

        def each(name: str, combine: Any) -> dict[str, list[Any]]:
            return {
                measure: [
                    combine(parts) for parts in zip(*(getattr(one, name)[measure] for one in several), strict=True)
                ]
                for measure in getattr(first, name)
            }

        joined = each("sums", lambda parts: [part for piece in parts for part in piece])
        return cls(joined, each("cells", sum), each("highest", max), each("lowest", min))

    @classmethod
    def beside(cls, *several: Figures) -> Figures:
        """Those of the same rows in further columns together, in the order of the columns."""
        return cls(
            *(
                {
                    measure: [column for one in several for column in getattr(one, name)[measure]]
                    for measure in getattr(several[0], name)
                }
                for name in ("sums", "cells", "highest", "lowest")
            )
        )

    def of_columns(self, places: Sequence[int]) -> Figures:
        """Those of some of the columns, in this order."""
        return Figures(
            *(
                {measure: [columns[place] for place in places] for measure, columns in getattr(self, name).items()}
                for name in ("sums", "cells", "highest", "lowest")
            )
        )

    def total(self, measure: str, column: int) -> float:
        """The sum of a column's scores: exactly that of the sums of its pieces, in any order."""
        return math.fsum(self.sums[measure][column])

    def as_json(self) -> dict[str, Any]:
        """What `Figures(**...)` makes the same of."""
        return asdict(self)


def _wants_lowest(measure: str) -> bool:
    return "min" in ROW_MEASURES.get(measure, ())


def _figures_of(column: Any, wants_lowest: bool) -> tuple[list[float], int, float, float]:
    """Sums, cells with a score, the highest and the lowest above 0; -inf and inf where there are none."""
    sums = _sums(column)
    if any(part != part for part in sums):
        # Cells whose value is missing, and no category, may have none.
        column = column[column == column]
        sums = _sums(column)
    highest = float(column.max()) if len(column) else -math.inf
    positive = column[column > 0] if wants_lowest else column[:0]
    return sums, len(column), highest, float(positive.min()) if len(positive) else math.inf


def _sums(column: Any) -> list[float]:
    whole = len(column) // SUMMED_ROWS * SUMMED_ROWS
    sums = [column[whole:].sum(dtype=np.float64)]
    if whole:
        sums = [*column[:whole].reshape(-1, SUMMED_ROWS).sum(axis=1, dtype=np.float64), *sums]
    return [float(part) for part in sums]


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
        if "cig" in figures.sums:
            total = figures.total("cig", place)
            median, high = percentiles[place]
            row |= {"cig_mean": total / rows, "cig_median": median, "cig_p95": high}
            row |= {"cig_max": figures.highest["cig"][place], "fig": total}
        for measure, wanted in ROW_MEASURES.items():
            if measure in figures.sums:
                highest, lowest = figures.highest[measure][place], figures.lowest[measure][place]
                # With weights a class may be of weight 0.
                found = {
                    "mean": figures.total(measure, place) / rows,
                    "max": highest,
                    "min": lowest if highest else 0.0,
                }
                row |= {f"{measure}_{figure}": found[figure] for figure in wanted}
        if "csf" in figures.sums:
            cells = figures.cells["csf"][place]
            row["csf_mean"] = figures.total("csf", place) / cells if cells else np.nan
            row["csf_max"] = figures.highest["csf"][place] if cells else np.nan
        records.append(row | {"weight": weights[place]})
    return pd.DataFrame.from_records(records, index=pd.Index([*names], name="column", tupleize_cols=False))
