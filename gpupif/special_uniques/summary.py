"""Special uniques summarised: by size of what singles rows out, and by column."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..utils.display import Displayable, Heading, as_text, draw_table

if TYPE_CHECKING:
    import numpy.typing as npt
    from rich.console import Console

    from .search_in_memory import Uniques

TOP_ROWS = 10


@dataclass(frozen=True)
class SudaSummary(Displayable):
    """Special uniques of a table; made by `SpecialUniques.summary`. Prints as tables.

    rows, unique_rows, dis: see `SpecialUniques`. scored_rows: with a score above 0.
    sizes: one row a size of MSUs; msus (of all rows together), rows (with at least one), smallest (rows that have none
    of fewer columns). columns: one row a column; msus with it, and contribution, the part of all scores that comes from
    these, 0 to 1 (an MSU counts for each of its columns). top: the rows with the highest scores.
    """

    rows: int
    unique_rows: int
    scored_rows: int
    max_size: int
    dis: float | None
    sizes: pd.DataFrame
    columns: pd.DataFrame
    top: pd.DataFrame

    def print(self, console: Console) -> None:
        """Draw it on a console of rich."""
        print_suda(self, console)


def summarize_suda(
    columns: Sequence[Hashable],
    weights: Sequence[float],
    found: Uniques,
    scores: npt.NDArray[np.float64],
    rows: int,
    dis: float | None,
    top: pd.DataFrame,
) -> SudaSummary:
    """Summary of special uniques (see `SpecialUniques.summary`).

    weights: of a set by its size, less 1. scores: of the distinct rows. rows, dis, top: of the table.
    """
    # Rows that are equal to others have no MSU.
    sizes, without = [], np.ones(found.counts.shape[1], np.bool_)
    for size, counts in enumerate(found.counts, 1):
        has = counts > 0
        sizes.append(
            {
                "size": size,
                "msus": int(counts.sum(dtype="int64")),
                "rows": int(has.sum()),
                "smallest": int((has & without).sum()),
            }
        )
        without = without & ~has
    records = []
    total = sum(weights[len(set_) - 1] * number for set_, number in found.found.items())
    for place in range(len(columns)):
        sets = {set_: number for set_, number in found.found.items() if place in set_}
        weight = sum(weights[len(set_) - 1] * number for set_, number in sets.items())
        records.append({"msus": sum(sets.values()), "contribution": weight / total if total else 0.0})
    return SudaSummary(
        rows=rows,
        unique_rows=found.unique,
        scored_rows=int((scores > 0).sum()),
        max_size=len(weights),
        dis=dis,
        sizes=pd.DataFrame.from_records(sizes).set_index("size"),
        columns=pd.DataFrame.from_records(records, index=pd.Index(columns, name="column", tupleize_cols=False)),
        top=top,
    )


def print_suda(summary: SudaSummary, console: Console) -> None:
    """Print a summary of special uniques."""
    dis = "" if summary.dis is None else f", DIS [bold]{summary.dis:.4f}[/]"
    console.print(
        f"[bold]{summary.rows:,}[/] rows, {summary.unique_rows:,} unique on all columns, [bold]{summary.scored_rows:,}"
        f"[/] singled out by {summary.max_size} columns or fewer{dis}",
        highlight=False,
    )
    console.print()
    top = summary.top
    if "index" in top and (top["index"] == top["row"]).all():
        top = top.drop(columns="index")
    for title, frame in (
        ("Minimal sample uniques by size", summary.sizes.reset_index(names="columns")),
        ("Part of all scores by column", summary.columns.reset_index()),
        ("Rows at the highest risk", top),
    ):
        if len(frame):
            first, *others = map(str, frame.columns)
            headings = [Heading(first, text=True, show=as_text), *(Heading(name, folds=True) for name in others)]
            # By records, so that whole numbers stay such.
            console.print(draw_table(title, headings, map(tuple, (one.values() for one in frame.to_dict("records")))))
