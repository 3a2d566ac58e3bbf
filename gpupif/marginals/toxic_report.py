"""Toxic pairs drawn for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from ..results.report import _exact, _text

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

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


def print_toxic(
    rows: int,
    people: float | None,
    columns: int,
    seconds: Mapping[str, float],
    pairs: pd.DataFrame,
    values: pd.DataFrame,
    console: Console,
) -> None:
    """Print the pairs (or triples) of columns that tell most, and those of values far rarer than their parts.

    rows, people, columns (their number), seconds: of the table and the run. pairs, values: see `ToxicPairs`.
    """
    size = sum(str(name).startswith("column_") for name in pairs)
    kind = "pairs" if size == 2 else "triples"
    counted = ", ".join(f"{stage} {duration:.2f} s" for stage, duration in seconds.items())
    weighted = "" if people is None else f" for [bold]{people:,.6g}[/] people"
    console.print(
        f"[bold]{rows:,}[/] rows{weighted} x [bold]{columns}[/] columns: [bold]{len(pairs):,}[/] {kind}, {counted}",
        highlight=False,
    )
    console.print()
    places = range(1, size + 1)
    shown = pairs.head(SHOWN)
    more = f" (the first {SHOWN} of {len(pairs):,})" if len(shown) < len(pairs) else ""
    table = _table(f"Columns that tell most together, bits{more}", ["columns"])
    heads = [key for key in shown.columns if key in HEADS]
    _numbers(table, heads)
    for record in shown.to_dict("records"):
        names = [_text(record[f"column_{place}"]) for place in places]
        table.add_row(Text(" + ".join(names)), *(_number(key, record[key]) for key in heads))
    console.print(table)
    console.print()
    table = _table("Values far rarer together than their parts would make them, bits", ["columns", "values"])
    heads = [key for key in values.columns if key in HEADS]
    _numbers(table, heads)
    for record in values.to_dict("records"):
        names, found = ([record[f"{what}_{place}"] for place in places] for what in ("column", "value"))
        table.add_row(
            Text(" + ".join(map(_text, names))),
            Text(" + ".join(map(_exact, found))),
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
    if isinstance(value, int):
        return f"{value:,}"
    if key in ("count", "smallest_cohort"):
        return f"{value:,.6g}"
    return f"{value:,.1f}" if key == "expected" else f"{value:.2f}"
