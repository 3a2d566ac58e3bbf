"""The summary of scores: risk by column, for the whole table and by attacker, and the riskiest cells.

`printed_summary` draws it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..attack.attackers import KnownSubsets
from ..engines.worst_and_mean import worst_place
from ..errors import listed
from ..measures import find_measure
from ..utils.display import (
    Displayable,
    as_json,
    as_part,
    as_text,
    bits,
    draw_line,
    draw_verdict,
    highest_place,
    json_value,
    plural,
    quoted,
)
from ..utils.redaction import HIDDEN, as_interval, lower_end, named_figure
from .summary_figures import ROW_MEASURES

if TYPE_CHECKING:
    from rich.console import Console

# How many of the riskiest cells a summary has.
TOP_CELLS = 10
# Columns of tables that hold names, or values of the table.
WORDS = ["column", "index", "value", "known", "attacker"]
# The measure by which an `AttackerSummary` says who is the worst: the first of these that was scored.
WORST_BY = ("cig", "csf", "reidentification_risk")


# The words for figures of rows in a verdict.
ROWS_SAID = {
    "unique_mean": "{} of rows are alone in their class",
    "reidentification_risk_mean": "the risk of re-identification is {} on average",
    "individual_risk_mean": "the individual risk is {} on average",
}


@dataclass(frozen=True)
class Summary(Displayable):
    """The risk of a table; made by `Scores.summary`.

    rows: number of rows.
    distinct_rows, device, through_host: see `Scores`.
    measures: the measures that were scored.
    seconds: wall time by stage.
    columns: one row for each scored column: prior_entropy (bits), cig_mean, cig_median, cig_p95, cig_max (bits per
    cell), fig (bits), csf_mean, csf_max, reidentification_risk_mean, reidentification_risk_max, individual_risk_mean,
    individual_risk_max (probability), unique_mean (share of the rows), class_size_min, weight (of wCIG),
    distinct_values; only of measures that were scored.
    pif: PIF in bits by percentile; empty without CIG.
    top: the riskiest cells, as `Scores.top` returns them.
    attacker: what the attacker knows, in words. known: the columns that the attacker knows.
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
    known: Sequence[Hashable] = field(default=(), kw_only=True)

    def __repr__(self) -> str:
        columns = f"{len(self.columns)} {plural(len(self.columns), 'column')}"
        return f"<{type(self).__name__} of {self.rows:,} {plural(self.rows, 'row')} x {columns}>"

    @property
    def cells(self) -> int:
        """The number of cells that were scored."""
        return self.rows * len(self.columns)

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain numbers, text, lists and dictionaries, ready for JSON."""
        return self._document(lambda key, value: json_value(value))

    def to_stored(self) -> dict[str, Any]:
        """Return the summary as `to_dict` does, with numbers that JSON lacks (inf, NaN) as text, for `from_dict`."""
        return self._document(_storable)

    def _document(self, plain: Callable[[str, Any], Any]) -> dict[str, Any]:
        """Return the summary as a dictionary. plain: turns the value of a named column into JSON."""
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
        """Return the summary from what `to_stored` returned; values of cells stay as JSON has them."""
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

    def verdict(self, redact: bool = False) -> list[str]:
        """See `Displayable.verdict`."""
        size = f"{self.rows:,} {plural(self.rows, 'row')} x {len(self.columns)} {plural(len(self.columns), 'column')}"
        said = [f"{size} scored. {self.attacker}".rstrip()]
        columns = self.columns

        def between(figure: float) -> str:
            """Return bits of a redacted result."""
            shown = as_interval(figure, self.rows)
            return f"bits that are {HIDDEN}" if shown == HIDDEN else f"{shown} bits"

        learnt = "fig" in columns and bool(columns["cig_max"].any())
        if "fig" in columns and self.rows and not learnt:
            said.append("What the attacker knows tells nothing of any value: every CIG is 0.")
        elif learnt:
            unknown = columns.iloc[self._unknown]
            means = [lower_end(own, self.rows) if redact else own for own in unknown["cig_mean"]]
            most = unknown.iloc[highest_place(means)]
            # The highest figure of a cell tells its value to who knows how frequent values are.
            mean, highest = bits(most["cig_mean"]), "" if redact else f", at most {bits(most['cig_max'])}"
            average = f"a row gives away {unknown['fig'].sum() / self.rows:.3g}"
            average += f" of {bits(unknown['prior_entropy'].sum())} on average"
            if redact:
                # A sum over columns tells more than its parts, since a reader knows the entropies of some.
                said.append(f"Most is given away of {quoted(most.name)}: {between(most['cig_mean'])} on average.")
            elif len(unknown) == 1 < len(columns):
                said.append(f"Of {quoted(most.name)}, which the attacker does not know, {average}{highest}.")
            else:
                of = f"Of the {len(unknown)} columns that the attacker does not know, " * (len(unknown) < len(columns))
                average = f"{of}{average}. Most is of {quoted(most.name)}: {mean} on average{highest}."
                said.append(f"{average[0].upper()}{average[1:]}")
        words = {name: own for name, own in ROWS_SAID.items() if name in columns}
        shares = {name: columns[name].max() for name in words}
        parts = {name: as_interval(own, self.rows, True) if redact else as_part(own) for name, own in shares.items()}
        rows = [own.format(parts[name]) for name, own in words.items() if parts[name] != HIDDEN]
        if self.pif and learnt:
            every = f"of all {len(columns)} columns together, " * (len(self._unknown) < len(columns))
            few = f"{bits(self.pif[99])} or more"
            if redact:
                few = named_figure("pif99", self.pif[99], self.rows)
                few = f"bits that are {HIDDEN}" if few == HIDDEN else f"{few} bits, or more"
            riskiest = "" if redact else f", the riskiest {bits(self.pif[100])}"
            rows.append(f"{every}1 row in 100 gives away {few}{riskiest}")
        elif "csf_max" in columns and "fig" not in columns and redact:
            rows.append("the highest change of a value's probability (CSF) is hidden")
        elif "csf_max" in columns and "fig" not in columns:
            rows.append(f"the probability of a value changes by {columns['csf_max'].max():.3g} at most (CSF)")
        if rows:
            sentence = "; ".join(rows)
            said.append(f"{sentence[0].upper()}{sentence[1:]}.")
        return said

    def draw(self, console: Console) -> None:
        """Draw the verdict, risk by column, PIF, the riskiest cells, and size and speed on a console of rich."""
        draw_verdict(self, console)
        self._draw_tables(console)
        draw_run(self, console)

    def _draw_tables(self, console: Console) -> None:
        from . import printed_summary

        console.print()
        console.print(printed_summary.column_table(self.columns, self._unknown))
        draw_line(console, printed_summary.legend(self.columns), "dim")
        note = printed_summary.given_away_note(self.columns, self.measures)
        if note:
            draw_line(console, note, "yellow")
        if self.pif:
            shown = ", ".join(f"PIF {percentile}: {value:.3f}" for percentile, value in self.pif.items())
            every = " over all columns" * (len(self._unknown) < len(self.columns))
            draw_line(console, f"Bits that a row gives away{every}, by percentile: {shown}")
        console.print()
        console.print(printed_summary.cell_table(self.top, self.measures))
        draw_line(console, printed_summary.misled_note(self.top), "dim")

    @property
    def _unknown(self) -> list[int]:
        """The places of the columns that the attacker does not know, which come first."""
        return unknown_places(list(self.columns.index), self.known)


def draw_run(summary: Summary, console: Console, attackers: int | None = None) -> None:
    """Draw how many rows were scored, where, and in which time. attackers: their number, if there are several."""
    from . import printed_summary

    size = printed_summary.size_line(
        summary.rows, len(summary.columns), summary.distinct_rows, summary.device, attackers
    )
    console.print()
    for line in filter(None, (size, printed_summary.stages_line(summary.seconds, summary.cells))):
        console.print(line, highlight=False)
    if summary.through_host:
        draw_line(console, f"Scored {summary.through_host}", "yellow")


def unknown_places(scored: Sequence[Any], known: Collection[Any]) -> list[int]:
    """Return the places of the scored columns whose riskiest cells are shown.

    These are the columns that the attacker does not know; all columns, if the attacker knows all.
    """
    inside = {*known}
    return [place for place, column in enumerate(scored) if column not in inside] or [*range(len(scored))]


def _storable(key: str, value: Any) -> Any:
    """Return a value for JSON; numbers that JSON lacks become text, if their column holds figures."""
    lacking = key not in WORDS and isinstance(value, float) and not math.isfinite(value)
    return str(value) if lacking else json_value(value)


def _with_numbers(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return a frame of records, in which figures that were stored as text are numbers again."""
    frame = pd.DataFrame.from_records(list(records))
    for name in frame.columns.difference(WORDS):
        if frame[name].dtype.kind not in "iuf":
            frame[name] = frame[name].astype(float)
    return frame


@dataclass(frozen=True, repr=False)
class AnyKnownSummary(Summary):
    """The `Summary` of the worst scores over attackers who know any few columns.

    mean: the `Summary` of the mean scores. attackers: who they are, in words. subsets: who they are, as
    `KnownSubsets.to_dict` returns it.
    """

    mean: Summary
    attackers: str
    subsets: Mapping[str, Any]

    @classmethod
    def join(cls, worst: Summary, mean: Summary, subsets: KnownSubsets) -> AnyKnownSummary:
        """Join the summaries of the worst and of the mean scores."""
        facts = {field.name: getattr(worst, field.name) for field in fields(worst)}
        return cls(**facts, mean=mean, attackers=repr(subsets), subsets=subsets.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return the dictionary of `Summary`, with ``known_any`` (the attackers) and ``mean`` (a summary)."""
        return {**super().to_dict(), "known_any": dict(self.subsets), "mean": self.mean.to_dict()}

    def verdict(self, redact: bool = False) -> list[str]:
        """See `Displayable.verdict`; the figures are those of the worst scores."""
        _, *figures = super().verdict(redact)
        size = f"{self.rows:,} {plural(self.rows, 'row')} x {len(self.columns)} {plural(len(self.columns), 'column')}"
        return [f"{size} scored. Worst score of each cell over attackers: {self.attackers}.", *figures]

    def _draw_tables(self, console: Console) -> None:
        """Draw the tables of the worst scores, and the mean scores by column."""
        from . import printed_summary

        super()._draw_tables(console)
        console.print()
        draw_line(console, "The mean over attackers, in place of the worst score of each cell:")
        console.print(printed_summary.column_table(self.mean.columns, self._unknown))


@dataclass(frozen=True)
class AttackerSummary(Displayable):
    """The risk by attacker; made by `Scores.summary` if there are several.

    If an attacker knows any few columns, its figures are of the worst scores.

    summaries: the `Summary` of each attacker.
    known: the columns that each attacker knows, or of which it knows any few.
    attackers: one row for each attacker; known (number of columns), fig (bits, of all columns), pif_50, pif_95, pif_99,
    pif_100 (bits), csf_mean, csf_max, reidentification_risk_mean, reidentification_risk_max (probability, over all
    scored cells), unique_mean (share of the cells), class_size_min; only of measures that were scored.
    columns: one row for each scored column; by CIG, else CSF, else re-identification risk, worst_by_mean and
    worst_by_max (attackers, the first of equal ones), and their scores <measure>_mean and <measure>_max; empty if none
    of the three was scored.
    fig: bits, attackers by scored columns.
    """

    summaries: Mapping[str, Summary]
    known: Mapping[str, Sequence[Hashable]]
    attackers: pd.DataFrame
    columns: pd.DataFrame
    fig: pd.DataFrame

    def __repr__(self) -> str:
        return f"<AttackerSummary of {len(self.summaries)} {plural(len(self.summaries), 'attacker')}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain numbers, text, lists and dictionaries, ready for JSON."""
        figures = self.attackers.drop(columns="known").to_dict("index")
        attackers = {
            name: {"known": list(self.known[name])} | figures[name] | summary.to_dict()
            for name, summary in self.summaries.items()
        }
        return {"attackers": as_json(attackers), "worst": as_json(self.columns)}

    def verdict(self, redact: bool = False) -> list[str]:
        """See `Displayable.verdict`; the figures are those of the attacker who learns most."""
        first = next(iter(self.summaries.values()))
        columns = f"{len(first.columns)} {plural(len(first.columns), 'column')}"
        names = listed(list(self.summaries), 5, as_text)
        asked = f"{first.rows:,} {plural(first.rows, 'row')} x {columns} scored against {len(self.summaries)} attackers"
        by = next((name for name in ("fig", "csf_mean", "reidentification_risk_mean") if name in self.attackers), None)
        if by is None:
            return [f"{asked}: {names}."]
        worst = list(self.summaries)[highest_place(self.attackers[by])]
        _, *figures = self.summaries[worst].verdict(redact)
        return [f"{asked}: {names}. {as_text(worst)} learns most, knowing {self._knowledge()[worst]}.", *figures]

    def draw(self, console: Console) -> None:
        """Draw the verdict, risk by attacker, and by column the attacker who learns most on a console of rich."""
        from . import printed_summary

        summaries = list(self.summaries.values())
        # As `Scores` over all attackers says it.
        counts = [summary.distinct_rows for summary in summaries if summary.distinct_rows is not None]
        through_host = next((summary.through_host for summary in summaries if summary.through_host), "")
        whole = replace(summaries[0], distinct_rows=max(counts, default=None), through_host=through_host)
        draw_verdict(self, console)
        for table in printed_summary.attacker_tables(self.attackers, self._knowledge(), self.columns):
            console.print()
            console.print(table)
        draw_run(whole, console, len(summaries))

    def _knowledge(self) -> dict[str, str]:
        """Return in words what each attacker knows."""
        words = {}
        for name, summary in self.summaries.items():
            columns = ", ".join(map(as_text, self.known[name])) or "nothing"
            any_few = f"any {summary.subsets['known']} of " if isinstance(summary, AnyKnownSummary) else ""
            words[name] = f"{any_few}{columns}"
        return words


def summarize_attackers(summaries: Mapping[str, Summary], known: Mapping[str, Sequence[Hashable]]) -> AttackerSummary:
    """Return the summary by attacker from the summaries of several attackers on the same cells."""
    tables = {name: summary.columns for name, summary in summaries.items()}
    first = next(iter(tables.values()))
    figures = ["csf_mean", "csf_max", *(f"{name}_{figure}" for name in ROW_MEASURES for figure in ROW_MEASURES[name])]
    rows: list[dict[str, Any]] = []
    for name, summary in summaries.items():
        row: dict[str, Any] = {
            "known": summary.subsets["known"] if isinstance(summary, AnyKnownSummary) else len(known[name])
        }
        if "fig" in first:
            row["fig"] = float(tables[name]["fig"].sum())
            row |= {f"pif_{percentile}": bits for percentile, bits in summary.pif.items()}
        for key in figures:
            if key in first:
                row[key] = float(getattr(tables[name][key], key.rpartition("_")[2])())
        rows.append(row)
    by = next((measure for measure in WORST_BY if f"{measure}_mean" in first), None)
    worst = [] if by is None else [_worst_in(column, tables, by) for column in range(len(first))]
    fig = {name: table["fig"] for name, table in tables.items() if "fig" in table}
    return AttackerSummary(
        summaries,
        known,
        pd.DataFrame.from_records(rows, index=pd.Index(list(summaries), name="attacker")),
        pd.DataFrame(worst, index=first.index if by else first.index[:0]),
        pd.DataFrame(fig).T.rename_axis("attacker"),
    )


def _worst_in(column: int, tables: Mapping[str, pd.DataFrame], by: str) -> dict[str, Any]:
    """Return the attackers who learn most in a column, and their scores. tables: `Summary.columns` by attacker."""
    row: dict[str, Any] = {}
    for figure in ("mean", "max"):
        scores = np.array([table[f"{by}_{figure}"].iloc[column] for table in tables.values()])
        worst = worst_place(find_measure(by), scores)
        row |= {f"worst_by_{figure}": list(tables)[worst], f"{by}_{figure}": float(scores[worst])}
    return row
