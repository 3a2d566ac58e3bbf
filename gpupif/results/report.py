"""A summary drawn for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ..utils.progress import short
from .summary import OF_ROWS

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from .attacker_summary import AttackerSummary
    from .known_subsets_summary import AnyKnownSummary
    from .summary import Summary

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
    "unique_mean": "unique",
    "class_size_min": "least class",
    "weight": "weight",
}

ATTACKER_HEADS = {
    "fig": "FIG",
    "csf_mean": "CSF mean",
    "csf_max": "max",
    "reidentification_risk_mean": "risk mean",
    "reidentification_risk_max": "max",
    "unique_mean": "unique",
    "class_size_min": "least class",
    "worst_by_mean": "worst by mean",
    "worst_by_max": "worst by max",
}


def print_summary(summary: Summary, console: Console) -> None:
    """Print the table's size and speed, risk by column, PIF, and the riskiest cells."""
    console.print(
        f"[bold]{summary.rows:,}[/] rows x [bold]{len(summary.columns)}[/] columns scored, "
        f"{summary.distinct_rows:,} distinct rows, device [bold]{summary.device}[/]",
        highlight=False,
    )
    console.print(_stages(summary), highlight=False)
    _print_through_host(summary, console)
    console.print()
    for table in _columns(summary, console):
        console.print(table)
    for note in _notes(summary):
        console.print(note, highlight=False)
    if summary.pif:
        shown = "   ".join(f"PIF {percentile}: [bold]{value:.3f}[/]" for percentile, value in summary.pif.items())
        console.print(f"Row information gain, bits:   {shown}", highlight=False)
    console.print()
    console.print(_riskiest(summary, console))


def print_attackers(summary: AttackerSummary, console: Console) -> None:
    """Print risk by attacker, and by column the attacker who learns most."""
    first = next(iter(summary.summaries.values()))
    console.print(
        f"[bold]{first.rows:,}[/] rows x [bold]{len(first.columns)}[/] columns scored against "
        f"[bold]{len(summary.summaries)}[/] attackers, device [bold]{first.device}[/]",
        highlight=False,
    )
    _print_through_host(next((one for one in summary.summaries.values() if one.through_host), first), console)
    console.print()
    table = Table(title=f"Risk by attacker {_units(summary.attackers)}", title_justify="left", header_style="bold")
    table.add_column("attacker", overflow="fold")
    table.add_column("knows", overflow="fold")
    keys = [key for key in summary.attackers.columns if key != "known"]
    for key in keys:
        table.add_column(ATTACKER_HEADS.get(key, key.replace("pif_", "PIF ")), justify="right", no_wrap=True)
    for name, row in summary.attackers.iterrows():
        knows = ", ".join(_text(column) for column in summary.known[str(name)]) or "nothing"
        table.add_row(Text(str(name)), Text(knows), *(_number(key, row[key]) for key in keys))
    console.print(table)
    if not len(summary.columns):
        return
    worst = Table(title="Who learns most, by column", title_justify="left", header_style="bold")
    for key in ("column", *summary.columns.columns):
        text = key == "column" or key.startswith("worst")
        head = ATTACKER_HEADS.get(key, HEADS.get(key, key))
        worst.add_column(head, justify="left" if text else "right", overflow="fold", no_wrap=not text)
    for name, row in summary.columns.iterrows():
        worst.add_row(Text(_text(name)), *(Text(_cell(value)) for value in row))
    console.print(worst)


def print_any_known(summary: AnyKnownSummary, console: Console) -> None:
    """Print the worst over all attackers as `print_summary` does, and the means by column."""
    console.print(f"Each cell's worst and mean score over attackers: {summary.attackers}", highlight=False)
    console.print("[bold]Worst[/]", highlight=False)
    print_summary(summary, console)
    console.print("\n[bold]Mean[/]", highlight=False)
    for table in _columns(summary.mean, console):
        console.print(table)


def _print_through_host(summary: Summary, console: Console) -> None:
    """Print that a GPU did not score the table as a whole, where that is so."""
    if summary.through_host:
        console.print(f"[yellow]Scored {escape(summary.through_host)}[/]", highlight=False)


def _stages(summary: Summary) -> str:
    parts = []
    for stage, seconds in summary.seconds.items():
        speed = f" ({short(summary.cells / seconds)}cells/s)" if seconds > 0 else ""
        parts.append(f"{stage} {seconds:.2f} s{speed}")
    return ", ".join(parts)


def _fits(table: Table, console: Console) -> bool:
    return console.measure(table, options=console.options.update(width=10_000)).maximum <= console.width


def _columns(summary: Summary, console: Console) -> list[Table]:
    """Risk by column, as one table or, where the console is too narrow for its numbers, two."""
    frame = summary.columns
    keys = [key for key in HEADS if key in frame.columns]
    whole = _part(frame, keys, "cig_mean" in keys)
    if _fits(whole, console):
        return [whole]
    first = [key for key in keys if key.startswith(("distinct", "prior", "cig"))]
    return [_part(frame, part, False) for part in (first, [key for key in keys if key not in first]) if part]


def _units(frame: pd.DataFrame) -> str:
    """What the figures are in, as a title has it."""
    said = {"csf_mean": "CSF", "reidentification_risk_mean": "risk"}
    names = [name for key, name in said.items() if key in frame.columns]
    parts = ["bits"] if {"fig", "prior_entropy"} & {*frame.columns} else []
    parts += [f"{' and '.join(names)} as probability"] if names else []
    parts += ["unique: share of rows"] if "unique_mean" in frame.columns else []
    return f"({'; '.join(parts)})" if parts else ""


def _part(frame: pd.DataFrame, keys: Sequence[str], bars: bool) -> Table:
    """Some of the figures by column; bars: the mean CIG on the scale of the largest prior entropy or mean CIG."""
    table = Table(title=f"Risk by column {_units(frame)}", title_justify="left", header_style="bold")
    table.add_column("column", overflow="fold")
    if bars:
        table.add_column("CIG", no_wrap=True)
    for key in keys:
        table.add_column(HEADS[key], justify="right", no_wrap=True)
    scale = max(frame[key].max() for key in ("prior_entropy", "cig_mean") if key in frame.columns)
    for name, row in frame.iterrows():
        bar = [_bar(row["cig_mean"] / scale if scale else 0.0)] if bars else []
        table.add_row(Text(_text(name)), *bar, *(_number(key, row[key]) for key in keys))
    return table


def _notes(summary: Summary) -> list[str]:
    """What to know of the figures: columns that the others give away as a whole."""
    frame = summary.columns
    if all(name in OF_ROWS for name in summary.measures):
        return []
    given_away = frame.index[(frame["weight"] < GIVEN_AWAY) & (frame["prior_entropy"] > 0)]
    if not len(given_away):
        return []
    names = ", ".join(map(_text, given_away[:5])) + (f" and {len(given_away) - 5} more" if len(given_away) > 5 else "")
    return [
        f"[yellow]Weight near 0:[/] what the attacker knows gives away nearly every value of {escape(names)}, so their "
        "riskiest cells are just the rarest values. Bin or leave out columns with many values, or name fewer with "
        "--known."
    ]


def _bar(share: float) -> str:
    filled = round(share * BAR)
    return f"[red]{'█' * filled}[/][dim]{'░' * (BAR - filled)}[/]"


def _number(key: str, value: float) -> str:
    if key == "distinct_values":
        return f"{value:,.0f}"
    if key == "class_size_min":
        return f"{value:,.6g}"
    return f"{value:,.1f}" if key == "fig" else f"{value:.3f}"


def _riskiest(summary: Summary, console: Console) -> Table:
    """The riskiest cells; what anyone can look up is left out where the console is too narrow."""
    top = summary.top
    if "index" in top and (top["index"] == top["row"]).all():
        top = top.drop(columns="index")
    whole = _cells(top)
    if _fits(whole, console):
        return whole
    return _cells(top.drop(columns=["index", "prior", *summary.measures[1:]], errors="ignore"))


def _cells(top: pd.DataFrame) -> Table:
    table = Table(title="Riskiest cells", title_justify="left", header_style="bold")
    for key in top.columns:
        text = key in ("index", "column", "value", "known")
        table.add_column(key, justify="left" if text else "right", overflow="fold", no_wrap=not text)
    for cell in top.to_dict("records"):
        table.add_row(*(Text(_exact(value) if key == "value" else _cell(value)) for key, value in cell.items()))
    return table


def _exact(value: Any) -> str:
    """A value as one can look it up in the table."""
    return f"{value:.15g}" if isinstance(value, float) and value == value else _text(value)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else _text(value)


def _text(value: Any) -> str:
    return "(missing)" if value is None or value != value else str(value)
