"""Toxic pairs drawn for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..utils.display import Heading, as_found, as_part, draw_table, plural

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.table import Table

BITS = "{:.2f}".format


def _count(value: Any) -> str:
    """How many rows, or with weights people."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


# What is shown of pairs, by column.
HEADINGS = {
    "joint_entropy": Heading("joint entropy", folds=True, show=BITS),
    "mutual_information": Heading("mutual inf.", folds=True, show=BITS),
    "total_correlation": Heading("total corr.", folds=True, show=BITS),
    "unique_share": Heading("unique rows", folds=True, show=lambda value: f"{100 * value:.2f} %"),
    "smallest_cohort": Heading("smallest cohort", folds=True, show=_count),
    "combinations": Heading("combinations", folds=True, show=_count),
    "distinction": Heading("distinction", folds=True, show=as_part),
    "separation": Heading("separation", folds=True, show=as_part),
    "count": Heading("rows", folds=True, show=_count),
    "expected": Heading("expected", folds=True, show="{:,.1f}".format),
    "rarity": Heading("rarity", folds=True, show=BITS),
    "information": Heading("information", folds=True, show=BITS),
}


def print_toxic(
    rows: int,
    people: float | None,
    columns: int,
    seconds: Mapping[str, float],
    pairs: pd.DataFrame,
    values: pd.DataFrame,
    top: int,
    console: Console,
) -> None:
    """Print the pairs (or triples) of columns that tell most, and those of values far rarer than their parts.

    rows, people, columns (their number), seconds: of the table and the run. pairs, values, top: see `ToxicPairs`.
    """
    size = sum(str(name).startswith("column_") for name in pairs)
    kind = plural(len(pairs), "pair" if size == 2 else "triple")
    counted = ", ".join(f"{stage} {duration:.2f} s" for stage, duration in seconds.items())
    weighted = "" if people is None else f" for [bold]{people:,.6g}[/] people"
    console.print(
        f"[bold]{rows:,}[/] {plural(rows, 'row')}{weighted} x [bold]{columns}[/] columns: [bold]{len(pairs):,}[/] "
        f"{kind}, {counted}",
        highlight=False,
    )
    console.print()
    title = f"Columns that tell most together, bits{_of(top, len(pairs))}"
    console.print(_table(title, pairs.head(top), size, {"columns": "column"}))
    console.print()
    title = (
        f"Values far rarer together than their parts would make them, bits{_of(top, int(pairs['combinations'].sum()))}"
    )
    console.print(_table(title, values, size, {"columns": "column", "values": "value"}))


def _of(top: int, found: int) -> str:
    """How many of those that were found are shown, unless all are."""
    return f" (the first {top:,} of {found:,})" if top < found else ""


def _table(title: str, frame: pd.DataFrame, size: int, parts: Mapping[str, str]) -> Table:
    """A table of what is said of pairs, or triples; parts: by heading, which columns are put together below it."""
    keys = [key for key in frame.columns if key in HEADINGS]
    headings = [*(Heading(name, text=True) for name in parts), *(HEADINGS[key] for key in keys)]
    rows = [
        [
            *(
                " + ".join(as_found(record[f"{part}_{place}"]) for place in range(1, size + 1))
                for part in parts.values()
            ),
            *(record[key] for key in keys),
        ]
        for record in frame.to_dict("records")
    ]
    return draw_table(title, headings, rows)
