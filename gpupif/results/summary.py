"""Scores summarised: by column, for the whole table, and the riskiest cells."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..rows.threads import Workers
from ..utils.display import Displayable, json_records, json_value
from .figures import ROW_MEASURES

if TYPE_CHECKING:
    from rich.console import Console

    from .scores import Scores

PERCENTILES = (50, 95, 99, 100)
TOP_CELLS = 10


@dataclass(frozen=True)
class Summary(Displayable):
    """Risk of a table; made by `Scores.summary`.

    columns: one row a scored column; prior_entropy (bits), cig_mean, cig_median, cig_p95, cig_max (bits per cell), fig
    (bits), csf_mean, csf_max (probability), reidentification_risk_mean, reidentification_risk_max (probability),
    unique_mean (share of the rows), class_size_min, weight (of wCIG), distinct_values; those of measures that were
    scored.
    pif: percentile to PIF in bits (empty without CIG). top: the riskiest cells. seconds: wall time by stage.
    through_host: see `Scores`.
    """

    rows: int
    distinct_rows: int
    device: str
    measures: tuple[str, ...]
    seconds: Mapping[str, float]
    columns: pd.DataFrame
    pif: Mapping[int, float]
    top: pd.DataFrame
    through_host: str = field(default="", kw_only=True)

    @property
    def cells(self) -> int:
        """Cells that were scored."""
        return self.rows * len(self.columns)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain numbers, text, lists and dictionaries, ready for JSON."""
        by_stage = {
            stage: {"seconds": seconds, "cells_per_second": self.cells / seconds if seconds else None}
            for stage, seconds in self.seconds.items()
        }
        columns = [
            {"column": json_value(name), **{key: json_value(value) for key, value in row.items()}}
            for name, row in self.columns.to_dict("index").items()
        ]
        return {
            "rows": self.rows,
            "distinct_rows": self.distinct_rows,
            "cells": self.cells,
            "device": self.device,
            "through_host": self.through_host,
            "measures": list(self.measures),
            "stages": by_stage,
            "columns": columns,
            "pif": {str(percentile): value for percentile, value in self.pif.items()},
            "top": json_records(self.top),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Summary:
        """The summary that `to_dict` made a dictionary of; values of cells as JSON has them."""
        columns = pd.DataFrame.from_records(document["columns"]).set_index("column")
        return cls(
            rows=document["rows"],
            distinct_rows=document["distinct_rows"],
            device=document["device"],
            measures=tuple(document["measures"]),
            seconds={stage: facts["seconds"] for stage, facts in document["stages"].items()},
            columns=columns,
            pif={int(percentile): value for percentile, value in document["pif"].items()},
            top=pd.DataFrame.from_records(document["top"]),
            through_host=document.get("through_host", ""),
        )

    def print(self, console: Console) -> None:
        """Draw it on a console of rich: size and speed, risk by column, PIF, and the riskiest cells."""
        from . import report

        size = report.size_line(self.rows, len(self.columns), self.distinct_rows, self.device)
        for line in (size, report.stages_line(self.seconds, self.cells), report.through_host_line(self.through_host)):
            if line:
                console.print(line, highlight=False)
        console.print()
        for table in report.column_tables(self.columns, console):
            console.print(table)
        note = report.given_away_note(self.columns, self.measures)
        if note:
            console.print(note, highlight=False)
        if self.pif:
            shown = "   ".join(f"PIF {percentile}: [bold]{value:.3f}[/]" for percentile, value in self.pif.items())
            console.print(f"Row information gain, bits:   {shown}", highlight=False)
        console.print()
        console.print(report.cell_table(self.top, self.measures, console))


def summarize(scores: Scores) -> Summary:
    """Summary of scores (see `Scores.summary`)."""
    # A device has its own threads, and is that of the calling one.
    with scores._frame.active(), Workers(None if scores._frame.device_frames() is None else 1) as workers:
        rows = workers.run(
            lambda name, target: _column(scores, name, target),
            [(name, target) for target, name in enumerate(scores.columns)],
        )
    has_cig = "cig" in scores.measures
    return Summary(
        rows=scores.rows,
        distinct_rows=scores.distinct_rows,
        device=scores.device,
        measures=scores.measures,
        seconds=dict(scores.seconds),
        columns=pd.DataFrame.from_records(rows, index=pd.Index(scores.columns, name="column", tupleize_cols=False)),
        pif=dict(zip(PERCENTILES, scores.pif(PERCENTILES), strict=True)) if has_cig else {},
        top=scores.top(TOP_CELLS),
        through_host=scores.through_host,
    )


def _column(scores: Scores, name: Hashable, target: int) -> dict[str, float]:
    prior = scores._prior_of[name]
    row: dict[str, float] = {"distinct_values": prior.column.cardinality, "prior_entropy": prior.entropy}
    if "cig" in scores.measures:
        gains = scores._values_of("cig")[target]
        median, high, most = np.percentile(gains, [50, 95, 100]).tolist()
        total = float(gains.sum(dtype=np.float64))
        row |= {"cig_mean": total / scores.rows, "cig_median": median, "cig_p95": high, "cig_max": most, "fig": total}
    for measure, figures in ROW_MEASURES.items():
        if measure in scores.measures:
            values = scores._values_of(measure)[target]
            total = float(values.sum(dtype=np.float64))
            found = {"mean": total / scores.rows, "max": float(values.max())}
            if "min" in figures:
                # With weights a class may be nobody.
                found["min"] = float(values[values > 0].min()) if found["max"] > 0 else 0.0
            row |= {f"{measure}_{figure}": found[figure] for figure in figures}
    if "csf" in scores.measures:
        surprise = scores._values_of("csf")[target]
        if scores._job.targets[target] in scores._job.wildcards:
            # Cells whose value is missing have none.
            surprise = surprise[surprise == surprise]
        if not len(surprise):
            return row | {"csf_mean": np.nan, "csf_max": np.nan, "weight": scores.weights[name]}
        row |= {"csf_mean": float(surprise.mean(dtype=np.float64)), "csf_max": float(surprise.max())}
    return row | {"weight": scores.weights[name]}
