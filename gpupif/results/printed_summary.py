"""The printed summary: its tables, made from plain frames and numbers, as wide as the console allows.

`utils/printed_width.py` has the width of output that does not go to a terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.text import Text

from ..errors import listed
from ..utils.display import Heading, as_cell, as_found, as_percent, as_text, draw_table, plural
from ..utils.printed_width import fits
from ..utils.progress import short
from .summary_figures import ROW_MEASURES

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.table import Table

# Characters of a bar.
BAR = 10
# Columns with a lower weight are called given away.
GIVEN_AWAY = 0.005
HEADS = {
    "distinct_values": "values",
    "prior_entropy": "entropy",
    "cig_mean": "CIG mean",
    "cig_median": "median",
    "cig_p95": "95 %",
    "cig_max": "max",
    "fig": "FIG",
    "csf_mean": "CSF mean",
    "csf_max": "max",
    "reidentification_risk_mean": "risk mean",
    "reidentification_risk_max": "max",
    "individual_risk_mean": "individual risk mean",
    "individual_risk_max": "max",
    "unique_mean": "unique",
    "class_size_min": "least class",
    "weight": "weight",
}
# Beginnings of the names of figures that `risk` has too, and shows in percent.
IN_PERCENT = ("reidentification_risk", "individual_risk", "unique")
OF_ATTACKERS = {"worst_by_mean": "worst by mean", "worst_by_max": "worst by max"}


def size_line(rows: int, columns: int, distinct_rows: int | None, device: str, attackers: int | None = None) -> str:
    """Return in rich's markup how large a table was scored, on which device, and against how many attackers."""
    against = "" if attackers is None else f" against [bold]{attackers}[/] {plural(attackers, 'attacker')}"
    distinct = [] if distinct_rows is None else [f"{distinct_rows:,} distinct {plural(distinct_rows, 'row')}"]
    shape = f"[bold]{rows:,}[/] {plural(rows, 'row')} x [bold]{columns}[/] {plural(columns, 'column')}"
    scored = f"{shape} scored{against}"
    return ", ".join([scored, *distinct, f"device [bold]{device}[/]"])


def stages_line(seconds: Mapping[str, float], cells: int) -> str:
    """Return wall time and speed by stage."""
    parts = []
    for stage, spent in seconds.items():
        speed = f" ({short(cells / spent)}cells/s)" if spent > 0 else ""
        parts.append(f"{stage} {spent:.2f} s{speed}")
    return ", ".join(parts)


def column_tables(columns: pd.DataFrame, console: Console) -> list[Table]:
    """Return the tables of `Summary.columns`: one, or two if the console is too narrow for its numbers."""
    keys = [key for key in HEADS if key in columns.columns]
    whole = _risk_by_column(columns, keys, "cig_mean" in keys)
    if fits(whole, console):
        return [whole]
    first = [key for key in keys if key.startswith(("distinct", "prior", "cig"))]
    rest = [key for key in keys if key not in first]
    return [_risk_by_column(columns, part, False) for part in (first, rest) if part]


def given_away_note(columns: pd.DataFrame, measures: Sequence[str]) -> str:
    """Return a note on columns that the others give away as a whole, from `Summary.columns`; empty for none."""
    if all(name in ROW_MEASURES for name in measures):
        return ""
    names = columns.index[(columns["weight"] < GIVEN_AWAY) & (columns["prior_entropy"] > 0)]
    if not len(names):
        return ""
    given_away = listed(list(names), 5, as_text)
    return (
        f"[yellow]Weight near 0:[/] what the attacker knows gives away nearly every value of {escape(given_away)}, so "
        "their riskiest cells are just the rarest values. Bin or leave out columns with many values, or name fewer "
        "with --known."
    )


def cell_table(top: pd.DataFrame, measures: Sequence[str], console: Console) -> Table:
    """Return the table of `Summary.top`; if the console is too narrow, without what anyone can look up."""
    if "index" in top and (top["index"] == top["row"]).all():
        top = top.drop(columns="index")
    whole = _cells(top)
    if fits(whole, console):
        return whole
    return _cells(top.drop(columns=["index", "prior", *measures[1:]], errors="ignore"))


def attacker_tables(attackers: pd.DataFrame, knowledge: Mapping[str, str], columns: pd.DataFrame) -> list[Table]:
    """Return the tables of `AttackerSummary.attackers` and `AttackerSummary.columns`.

    knowledge: what each attacker knows, in words.
    """
    keys = [key for key in attackers.columns if key != "known"]
    heads = [Heading(HEADS.get(key, key.replace("pif_", "PIF ")), show=_numbers(key)) for key in keys]
    rows = [(name, knowledge[str(name)], *(row[key] for key in keys)) for name, row in attackers.iterrows()]
    words = [Heading("attacker", text=True, show=str), Heading("knows", text=True, show=str)]
    tables = [draw_table(f"Risk by attacker {_units(attackers)}", [*words, *heads], rows)]
    if len(columns):
        heads = [Heading("column", text=True, show=as_text)]
        heads += [
            Heading(
                OF_ATTACKERS.get(key, HEADS.get(key, key)),
                text=key.startswith("worst"),
                show=as_percent if key.startswith(IN_PERCENT) else as_cell,
            )
            for key in columns.columns
        ]
        tables.append(draw_table("Who learns most, by column", heads, columns.itertuples(name=None)))
    return tables


def _units(frame: pd.DataFrame) -> str:
    """Return the units of the figures, for a title; figures in percent have their own."""
    parts = ["bits"] if {"fig", "prior_entropy"} & {*frame.columns} else []
    parts += ["CSF as probability"] if "csf_mean" in frame.columns else []
    parts += ["unique: share of rows"] if "unique_mean" in frame.columns else []
    return f"({'; '.join(parts)})" if parts else ""


def _risk_by_column(frame: pd.DataFrame, keys: Sequence[str], bars: bool) -> Table:
    """Return a table of some figures by column.

    bars: draw the mean CIG on the scale of the largest prior entropy or mean CIG.
    """
    scale = max(frame[key].max() for key in ("prior_entropy", "cig_mean") if key in frame.columns)
    heads = [Heading("column", text=True, show=as_text)]
    heads += [Heading("CIG", show=lambda mean: _bar(mean / scale if scale else 0.0))] if bars else []
    heads += [Heading(HEADS[key], show=_numbers(key)) for key in keys]
    shown = [*(["cig_mean"] if bars else []), *keys]
    rows = ((name, *(row[key] for key in shown)) for name, row in frame.iterrows())
    return draw_table(f"Risk by column {_units(frame)}", heads, rows)


def _bar(share: float) -> Text:
    filled = round(share * BAR)
    return Text.from_markup(f"[red]{'█' * filled}[/][dim]{'░' * (BAR - filled)}[/]")


def _numbers(key: str) -> Any:
    """Return how figures with this name are shown; figures that `risk` has too are shown as there."""
    if key.startswith(IN_PERCENT):
        return as_percent
    if key == "distinct_values":
        return "{:,.0f}".format
    if key == "class_size_min":
        return "{:,.6g}".format
    return "{:,.1f}".format if key == "fig" else "{:.3f}".format


def _cells(top: pd.DataFrame) -> Table:
    words = ("index", "column", "value", "attacker", "known")
    heads = [Heading(key, text=key in words, show=as_found if key == "value" else as_cell) for key in top.columns]
    return draw_table("Riskiest cells", heads, ([*cell.values()] for cell in top.to_dict("records")))
