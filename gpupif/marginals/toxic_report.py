"""Toxic pairs drawn for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from ..utils.display import as_found, as_text

if TYPE_CHECKING:
    from rich.console import Console

    from .toxic_pairs import ToxicPairs

# Pairs of columns that are shown.
SHOWN = 20
HEADS = {
    "joint_entropy": "joint entropy",
    "mutual_information": "mutual inf.",
    "total_correlation": "total corr.",
    "unique_share": "unique rows",
    "smallest_cohort": "smallest cohort",
    "combinations": "combinations",
    "count": "rows",
    "expected": "expected",
    "rarity": "rarity",
    "information": "information",
}


def print_toxic(found: ToxicPairs, console: Console) -> None:
    """Print the pairs of columns that tell most, and the toxic pairs of values."""
    kind = "pairs" if found.size == 2 else "triples"
    counted = ", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in found.seconds.items())
    console.print(
        f"[bold]{found.rows:,}[/] rows x [bold]{len(found.columns)}[/] columns: [bold]{len(found.pairs):,}[/] {kind}, "
        f"{counted}",
        highlight=False,
    )
    console.print()
    shown = found.pairs.head(SHOWN)
    more = f" (the first {SHOWN} of {len(found.pairs):,})" if len(shown) < len(found.pairs) else ""
    table = _table(f"Columns that tell most together, bits{more}", ["columns"])
    heads = [key for key in shown.columns if key in HEADS]
    _numbers(table, heads)
    for record in shown.to_dict("records"):
        names = [as_text(record[f"column_{place}"]) for place in range(1, found.size + 1)]
        table.add_row(Text(" + ".join(names)), *(_number(key, record[key]) for key in heads))
    console.print(table)
    console.print()
    table = _table("Values far rarer together than their parts would make them, bits", ["columns", "values"])
    heads = [key for key in found.values.columns if key in HEADS]
    _numbers(table, heads)
    for record in found.values.to_dict("records"):
        places = range(1, found.size + 1)
        names, values = ([record[f"{what}_{place}"] for place in places] for what in ("column", "value"))
        table.add_row(
            Text(" + ".join(map(as_text, names))),
            Text(" + ".join(map(as_found, values))),
            *(_number(key, record[key]) for key in heads),
        )
    console.print(table)


def _table(title: str, heads: list[str]) -> Table:
    table = Table(title=title, title_justify="left", header_style="bold")
    for head in heads:
        table.add_column(head, overflow="fold")
    return table


def _numbers(table: Table, keys: list[str]) -> None:
    for key in keys:
        table.add_column(HEADS[key], justify="right")


def _number(key: str, value: Any) -> str:
    if key == "unique_share":
        return f"{100 * value:.2f} %"
    if key in ("count", "smallest_cohort", "combinations"):
        return f"{value:,}"
    return f"{value:,.1f}" if key == "expected" else f"{value:.2f}"
