"""The printed summary: its tables, made from plain frames and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from ..errors import listed
from ..utils.display import Heading, as_cell, as_found, as_percent, as_text, draw_table, plural
from ..utils.progress import short
from .summary_figures import ROW_MEASURES

if TYPE_CHECKING:
    import pandas as pd

    from ..utils.printed_table import PrintedTable

# Characters of a bar.
BAR = 10
# Columns with a lower weight are called given away.
GIVEN_AWAY = 0.005
HEADS = {
    "distinct_values": "values",
    "prior_entropy": "entropy, bits",
    "cig_mean": "mean CIG, bits",
    "cig_median": "median CIG, bits",
    "cig_p95": "95 % CIG, bits",
    "cig_max": "highest CIG, bits",
    "fig": "FIG, bits",
    "csf_mean": "mean CSF",
    "csf_max": "highest CSF",
    "reidentification_risk_mean": "mean risk",
    "reidentification_risk_max": "highest risk",
    "individual_risk_mean": "mean individual risk",
    "individual_risk_max": "highest individual risk",
    "unique_mean": "unique rows",
    "class_size_min": "least class, rows",
    "weight": "entropy left",
}
# What figures mean, and what is high, by the figure that has to be there.
LEGENDS = {
    "cig_mean": "CIG: bits learnt of a value beyond what is known without it; a mean near the entropy is high.",
    "fig": "FIG: CIG of all rows.",
    "csf_mean": "CSF: change of a probability, 0 to 1.",
    "reidentification_risk_mean": "Risk: chance to be re-identified.",
    "weight": "Entropy left: the share of the entropy that stays unknown (the weight of wCIG); near 0 is high risk.",
}
CELL_HEADS = {
    "cells": "cells with it",
    "cig": "CIG, bits",
    "csf": "CSF",
    "wcig": "wCIG, bits",
    "cohort_size": "cohort, rows",
}
# Beginnings of the names of figures that `risk` has too, and shows in percent.
IN_PERCENT = ("reidentification_risk", "individual_risk", "unique")
OF_ATTACKERS = {"worst_by_mean": "worst by mean", "worst_by_max": "worst by highest"}


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


def column_table(columns: pd.DataFrame, first: Sequence[int] = ()) -> PrintedTable:
    """Return the table of `Summary.columns`, with a bar for the mean CIG. first: places of columns that come first."""
    keys = [key for key in HEADS if key in columns.columns]
    frame = columns.iloc[list(dict.fromkeys([*first, *range(len(columns))]))]
    heads = [Heading("column", text=True, show=as_text)]
    shown = list(keys)
    if "cig_mean" in keys:
        # The scale of the bars.
        scale = max(frame[key].max() for key in ("prior_entropy", "cig_mean"))
        bar = Heading(f"CIG from 0 to {scale:.3g} bits", True, lambda mean: _bar(mean / scale if scale else 0.0), True)
        heads.append(bar)
        shown.insert(0, "cig_mean")
    heads += [Heading(HEADS[key], show=_numbers(key)) for key in keys]
    return draw_table("Risk by column", heads, zip(frame.index, *(frame[key] for key in shown), strict=True))


def legend(columns: pd.DataFrame) -> str:
    """Return what the figures of `Summary.columns` mean, and what is high."""
    return " ".join(said for key, said in LEGENDS.items() if key in columns)


def given_away_note(columns: pd.DataFrame, measures: Sequence[str]) -> str:
    """Return a note on columns that the others give away as a whole, from `Summary.columns`; empty for none."""
    if all(name in ROW_MEASURES for name in measures):
        return ""
    names = columns.index[(columns["weight"] < GIVEN_AWAY) & (columns["prior_entropy"] > 0)]
    if not len(names):
        return ""
    given_away = listed(list(names), 5, as_text)
    return (
        f"Entropy left near 0: what the attacker knows gives away nearly every value of {given_away}, so their "
        "riskiest cells are just the rarest values. Bin or leave out columns with many values, or name fewer with "
        "--known."
    )


def misled_note(top: pd.DataFrame) -> str:
    """Return a note on riskiest cells whose value became less probable; empty if there are none."""
    if "posterior" not in top or "prior" not in top or not (top["posterior"] < top["prior"]).any():
        return ""
    return (
        "CIG counts all that the attacker learns, also what is wrong: where the posterior is below the prior, the "
        "attacker is led away from the cell's value."
    )


def cell_table(top: pd.DataFrame, measures: Sequence[str]) -> PrintedTable:
    """Return the table of `Summary.top`; if the console is too narrow, without what anyone can look up."""
    if "index" in top and (top["index"] == top["row"]).all():
        top = top.drop(columns="index")
    words = ("index", "column", "value", "attacker", "known")
    # Rows are counted in whole numbers, people by their weights.
    is_weighed = "cohort_size" in top and top["cohort_size"].dtype.kind == "f"
    people = {"cohort_size": "cohort, people"} if is_weighed else {}
    heads = [
        Heading(
            people.get(key, CELL_HEADS.get(key, key.replace("_", " "))),
            key in words,
            as_found if key == "value" else as_cell,
            key in ("index", "prior", *measures[1:]),
        )
        for key in top.columns
    ]
    title = "Riskiest cells" + ", once for each value, with the first row" * ("cells" in top)
    # A line is about a row, a column, and a value.
    keys = 1 + max((place for place, key in enumerate(top.columns) if key in ("column", "value")), default=0)
    return draw_table(title, heads, ([*cell.values()] for cell in top.to_dict("records")), keys=keys)


def attacker_tables(attackers: pd.DataFrame, knowledge: Mapping[str, str], columns: pd.DataFrame) -> list[PrintedTable]:
    """Return the tables of `AttackerSummary.attackers` and `AttackerSummary.columns`.

    knowledge: what each attacker knows, in words.
    """
    keys = [key for key in attackers.columns if key != "known"]
    heads = [Heading(HEADS.get(key, key.replace("pif_", "PIF ")), show=_numbers(key)) for key in keys]
    rows = [(name, knowledge[str(name)], *(row[key] for key in keys)) for name, row in attackers.iterrows()]
    words = [Heading("attacker", text=True), Heading("knows", text=True)]
    tables = [draw_table("Risk by attacker; PIF and FIG in bits", [*words, *heads], rows)]
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
