"""Scores summarised: by column, for the whole table, and the riskiest cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import pandas as pd

from ..attack.any_known import KnownSubsets
from ..utils.display import Displayable, draw_line, json_value, plural

if TYPE_CHECKING:
    from rich.console import Console

# Of the riskiest cells.
TOP_CELLS = 10
# Columns of tables that hold names, and values of the table.
WORDS = ["column", "index", "value", "known", "attacker"]


@dataclass(frozen=True)
class Summary(Displayable):
    """Risk of a table; made by `Scores.summary`.

    columns: one row a scored column; prior_entropy (bits), cig_mean, cig_median, cig_p95, cig_max (bits per cell), fig
    (bits), csf_mean, csf_max, reidentification_risk_mean, reidentification_risk_max, individual_risk_mean,
    individual_risk_max (probability), unique_mean (share of the rows), class_size_min, weight (of wCIG),
    distinct_values; those of measures that were scored. pif: percentile to PIF in bits (empty without CIG). top: the
    riskiest cells. seconds: wall time by stage. distinct_rows, through_host: see `Scores`. attacker: what the attacker
    knows, in words.
    """

    rows: int
    distinct_rows: int | None
    device: str
    measures: tuple[str, ...]
    seconds: Mapping[str, float]
    columns: pd.DataFrame
    pif: Mapping[int, float]
    top: pd.DataFrame
    through_host: str = field(default="", kw_only=True)
    attacker: str = field(default="", kw_only=True)

    def __repr__(self) -> str:
        columns = f"{len(self.columns)} {plural(len(self.columns), 'column')}"
        return f"<{type(self).__name__} of {self.rows:,} {plural(self.rows, 'row')} x {columns}>"

    @property
    def cells(self) -> int:
        """Cells that were scored."""
        return self.rows * len(self.columns)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain numbers, text, lists and dictionaries, ready for JSON."""
        return self._document(lambda key, value: json_value(value))

    def to_stored(self) -> dict[str, Any]:
        """As `to_dict`, with numbers that JSON lacks (inf, NaN) as text, for `from_dict`."""
        return self._document(_storable)

    def _document(self, plain: Callable[[str, Any], Any]) -> dict[str, Any]:
        """plain: a value as JSON has it, from the name of its column and itself."""
        by_stage = {
            stage: {"seconds": seconds, "cells_per_second": self.cells / seconds if seconds else None}
            for stage, seconds in self.seconds.items()
        }
        columns = [
            {"column": plain("column", name), **{str(key): plain(str(key), value) for key, value in row.items()}}
            for name, row in self.columns.to_dict("index").items()
        ]
        return {
            "rows": self.rows,
            "distinct_rows": self.distinct_rows,
            "cells": self.cells,
            "device": self.device,
            "through_host": self.through_host,
            "attacker": self.attacker,
            "measures": list(self.measures),
            "stages": by_stage,
            "columns": columns,
            "pif": {str(percentile): value for percentile, value in self.pif.items()},
            "top": [
                {str(key): plain(str(key), value) for key, value in cell.items()}
                for cell in self.top.to_dict("records")
            ],
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Summary:
        """The summary that `to_stored` made a dictionary of; values of cells as JSON has them."""
        columns = _with_numbers(document["columns"]).set_index("column")
        return cls(
            rows=document["rows"],
            distinct_rows=document["distinct_rows"],
            device=document["device"],
            measures=tuple(document["measures"]),
            seconds={stage: facts["seconds"] for stage, facts in document["stages"].items()},
            columns=columns,
            pif={int(percentile): value for percentile, value in document["pif"].items()},
            top=_with_numbers(document["top"]),
            through_host=document.get("through_host", ""),
            attacker=document.get("attacker", ""),
        )

    def draw(self, console: Console) -> None:
        """Draw it on a console of rich: size and speed, risk by column, PIF, and the riskiest cells."""
        from . import report

        print_head(self, console)
        for table in report.column_tables(self.columns, console):
            console.print(table)
        note = report.given_away_note(self.columns, self.measures)
        if note:
            console.print(note, highlight=False, emoji=False)
        if self.pif:
            shown = "   ".join(f"PIF {percentile}: [bold]{value:.3f}[/]" for percentile, value in self.pif.items())
            console.print(f"Row information gain, bits:   {shown}", highlight=False)
        console.print()
        console.print(report.cell_table(self.top, self.measures, console))


def print_head(summary: Summary, console: Console, attackers: int | None = None) -> None:
    """Draw what the attacker knows, the size of a table that was scored, and the time that it took.

    attackers: how many there were, if several.
    """
    from . import report

    size = report.size_line(summary.rows, len(summary.columns), summary.distinct_rows, summary.device, attackers)
    stages = report.stages_line(summary.seconds, summary.cells)
    if summary.attacker and attackers is None:
        draw_line(console, summary.attacker)
    for line in filter(None, (size, stages)):
        console.print(line, highlight=False)
    if summary.through_host:
        draw_line(console, f"Scored {summary.through_host}", "yellow")
    console.print()


def _storable(key: str, value: Any) -> Any:
    """A value as JSON has it; numbers of figures that JSON lacks as text."""
    lacking = key not in WORDS and isinstance(value, float) and not math.isfinite(value)
    return str(value) if lacking else json_value(value)


def _with_numbers(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """A frame of these records, in which texts of numbers are numbers again, but for names and values of the table."""
    frame = pd.DataFrame.from_records(list(records))
    for name in frame.columns.difference(WORDS):
        if frame[name].dtype.kind not in "iuf":
            frame[name] = frame[name].astype(float)
    return frame


@dataclass(frozen=True, repr=False)
class AnyKnownSummary(Summary):
    """A `Summary` of the worst scores over attackers who know any few columns.

    mean: the `Summary` of the mean scores. attackers: how many there were, in words; subsets: the same, as of
    `KnownSubsets.to_dict`.
    """

    mean: Summary
    attackers: str
    subsets: Mapping[str, Any]

    @classmethod
    def of(cls, worst: Summary, mean: Summary, subsets: KnownSubsets) -> AnyKnownSummary:
        """Both summaries as one."""
        facts = {field.name: getattr(worst, field.name) for field in fields(worst)}
        return cls(**facts, mean=mean, attackers=repr(subsets), subsets=subsets.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """As of `Summary`, with the attackers under ``known_any`` and the summary of the means under ``mean``."""
        return {**super().to_dict(), "known_any": dict(self.subsets), "mean": self.mean.to_dict()}

    def draw(self, console: Console) -> None:
        """Draw it on a console of rich: the worst over all attackers as any summary, and the means by column."""
        from . import report

        draw_line(console, f"Each cell's worst and mean score over attackers: {self.attackers}")
        console.print("[bold]Worst[/]", highlight=False)
        super().draw(console)
        console.print("\n[bold]Mean[/]", highlight=False)
        for table in report.column_tables(self.mean.columns, console):
            console.print(table)
