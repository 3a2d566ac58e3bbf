"""A summary drawn for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

    from .summary import Summary

BAR = 10


def print_summary(summary: Summary, console: Console) -> None:
    """Print the table's size and speed, risk by column, PIF, and the riskiest cells."""
    console.print(
        f"[bold]{summary.rows:,}[/] rows x [bold]{len(summary.columns)}[/] columns scored, "
        f"{summary.distinct_rows:,} distinct rows, device [bold]{summary.device}[/]",
        highlight=False,
    )
    console.print(_stages(summary), highlight=False)
    console.print()
    console.print(_columns(summary))
    if summary.pif:
        shown = "   ".join(f"PIF {percentile}: [bold]{value:.3f}[/]" for percentile, value in summary.pif.items())
        console.print(f"Row information gain, bits:   {shown}", highlight=False)
    console.print()
    console.print(_riskiest(summary))


def _stages(summary: Summary) -> str:
    parts = []
    for stage, seconds in summary.seconds.items():
        speed = f" ({_short(summary.cells / seconds)}cells/s)" if seconds > 0 else ""
        parts.append(f"{stage} {seconds:.2f} s{speed}")
    return ", ".join(parts)


def _short(number: float) -> str:
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= limit:
            return f"{number / limit:.1f} {unit} "
    return f"{number:.0f} "


def _columns(summary: Summary) -> Table:
    """Risk by column; the bar is the mean CIG on the scale of the largest prior entropy or mean CIG."""
    frame = summary.columns
    table = Table(title="Risk by column (bits; CSF as probability)", title_justify="left", header_style="bold")
    heads = {
        "distinct_values": "values",
        "prior_entropy": "entropy",
        "cig_mean": "CIG mean",
        "cig_median": "median",
        "cig_p95": "95 %",
        "cig_max": "max",
        "fig": "FIG",
        "csf_mean": "CSF mean",
        "csf_max": "max",
        "weight": "weight",
    }
    kept = [key for key in heads if key in frame.columns]
    table.add_column("column", overflow="fold")
    if "cig_mean" in kept:
        table.add_column("CIG")
    for key in kept:
        table.add_column(heads[key], justify="right")
    scale = max(frame[key].max() for key in ("prior_entropy", "cig_mean") if key in kept)
    for name, row in frame.iterrows():
        bar = [_bar(row["cig_mean"] / scale if scale else 0.0)] if "cig_mean" in kept else []
        table.add_row(Text(_text(name)), *bar, *(_number(key, row[key]) for key in kept))
    return table


def _bar(share: float) -> str:
    filled = round(share * BAR)
    return f"[red]{'█' * filled}[/][dim]{'░' * (BAR - filled)}[/]"


def _number(key: str, value: float) -> str:
    if key == "distinct_values":
        return f"{value:,.0f}"
    return f"{value:,.1f}" if key == "fig" else f"{value:.3f}"


def _riskiest(summary: Summary) -> Table:
    table = Table(title="Riskiest cells", title_justify="left", header_style="bold")
    top = summary.top
    if "index" in top and (top["index"] == top["row"]).all():
        top = top.drop(columns="index")
    for key in top.columns:
        text = key in ("index", "column", "value")
        table.add_column(key, justify="left" if text else "right", overflow="fold")
    for cell in top.to_dict("records"):
        table.add_row(*(Text(_cell(value)) for value in cell.values()))
    return table


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else _text(value)


def _text(value: Any) -> str:
    return "(missing)" if value is None or value != value else str(value)
