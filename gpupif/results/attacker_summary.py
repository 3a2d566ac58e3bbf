"""Scores against several attackers summarised: who learns most, of the whole table and of each column."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..engines.worst_and_mean import worst_place
from ..measures import find_measure
from ..utils.display import Displayable, as_json, as_text, plural
from .figures import ROW_MEASURES
from .summary import AnyKnownSummary, Summary, print_head

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class AttackerSummary(Displayable):
    """Risk by attacker; made by `Scores.summary` where there are several.

    summaries: by attacker its `Summary`. known: by attacker the columns it knows, or of which it knows any few.
    attackers: one row an attacker; known (how many columns), fig (bits, of all columns), pif_50, pif_95, pif_99,
    pif_100 (bits), csf_mean, csf_max, reidentification_risk_mean, reidentification_risk_max (probability, over all
    scored cells), unique_mean (share of these), class_size_min; those of measures that were scored. columns: one row a
    scored column; for CIG, else CSF, else re-identification risk, worst_by_mean and worst_by_max (attackers, of equal
    ones the first), and the scores <measure>_mean and <measure>_max against them; empty where none was scored. fig:
    bits, attackers by scored columns. Where any few columns are known, all is of the worst scores.
    """

    summaries: Mapping[str, Summary]
    known: Mapping[str, Sequence[Hashable]]
    attackers: pd.DataFrame
    columns: pd.DataFrame
    fig: pd.DataFrame

    def __repr__(self) -> str:
        return f"<AttackerSummary of {len(self.summaries)} {plural(len(self.summaries), 'attacker')}>"

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain numbers, text, lists and dictionaries, ready for JSON."""
        figures = self.attackers.drop(columns="known").to_dict("index")
        attackers = {
            name: {"known": list(self.known[name])} | figures[name] | summary.to_dict()
            for name, summary in self.summaries.items()
        }
        return {"attackers": as_json(attackers), "worst": as_json(self.columns)}

    def draw(self, console: Console) -> None:
        """Draw it on a console of rich: risk by attacker, and by column the attacker who learns most."""
        from . import report

        several = list(self.summaries.values())
        # As of `Scores`, over all attackers.
        distinct = max((one.distinct_rows for one in several if one.distinct_rows is not None), default=None)
        through_host = next((one.through_host for one in several if one.through_host), "")
        whole = replace(several[0], distinct_rows=distinct, through_host=through_host)
        print_head(whole, console, len(several))
        for table in report.attacker_tables(self.attackers, self._knowledge(), self.columns):
            console.print(table)

    def _knowledge(self) -> dict[str, str]:
        """By attacker what it knows, in words."""
        words = {}
        for name, summary in self.summaries.items():
            columns = ", ".join(map(as_text, self.known[name])) or "nothing"
            any_few = f"any {summary.subsets['known']} of " if isinstance(summary, AnyKnownSummary) else ""
            words[name] = f"{any_few}{columns}"
        return words


def summarize_attackers(summaries: Mapping[str, Summary], known: Mapping[str, Sequence[Hashable]]) -> AttackerSummary:
    """What the summaries of several attackers on the same cells say together."""
    names = list(summaries)
    tables = {name: summary.columns for name, summary in summaries.items()}
    first = tables[names[0]]
    rows: list[dict[str, Any]] = []
    for name in names:
        summary = summaries[name]
        row: dict[str, Any] = {
            "known": summary.subsets["known"] if isinstance(summary, AnyKnownSummary) else len(known[name])
        }
        if "fig" in first:
            row["fig"] = float(tables[name]["fig"].sum())
            row |= {f"pif_{percentile}": bits for percentile, bits in summary.pif.items()}
        for key in (
            "csf_mean",
            "csf_max",
            *(f"{one}_{figure}" for one in ROW_MEASURES for figure in ROW_MEASURES[one]),
        ):
            if key in first:
                row[key] = float(getattr(tables[name][key], key.rpartition("_")[2])())
        rows.append(row)
    by = next((measure for measure in ("cig", "csf", "reidentification_risk") if f"{measure}_mean" in first), None)
    worst = [] if by is None else [_worst_in(column, tables, by) for column in range(len(first))]
    index = pd.Index(names, name="attacker")
    labels = first.index if by else first.index[:0]
    fig = {name: table["fig"] for name, table in tables.items() if "fig" in table}
    return AttackerSummary(
        summaries,
        known,
        pd.DataFrame.from_records(rows, index=index),
        pd.DataFrame(worst, index=labels),
        pd.DataFrame(fig).T.rename_axis("attacker"),
    )


def _worst_in(column: int, tables: Mapping[str, pd.DataFrame], by: str) -> dict[str, Any]:
    """Which attackers learn most in a column, and its scores against them; tables: `Summary.columns` by attacker."""
    found: dict[str, Any] = {}
    for what in ("mean", "max"):
        scores = np.array([table[f"{by}_{what}"].iloc[column] for table in tables.values()])
        worst = worst_place(find_measure(by), scores)
        found |= {f"worst_by_{what}": list(tables)[worst], f"{by}_{what}": float(scores[worst])}
    return found
