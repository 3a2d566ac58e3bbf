"""Special uniques summarised: by size of what singles rows out, and by column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from ..utils.display import Displayable, Heading, as_text, draw_table, plural

if TYPE_CHECKING:
    from rich.console import Console

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
        dis = "" if self.dis is None else f", DIS [bold]{self.dis:.4f}[/]"
        by = "1 column" if self.max_size == 1 else f"{self.max_size} columns or fewer"
        console.print(
            f"[bold]{self.rows:,}[/] {plural(self.rows, 'row')}, {self.unique_rows:,} unique on all columns, "
            f"[bold]{self.scored_rows:,}[/] singled out by {by}{dis}",
            highlight=False,
        )
        console.print()
        top = self.top
        if "index" in top and (top["index"] == top["row"]).all():
            top = top.drop(columns="index")
        for title, frame in (
            ("Minimal sample uniques by size", self.sizes.reset_index(names="columns")),
            ("Part of all scores by column", self.columns.reset_index()),
            ("Rows at the highest risk", top),
        ):
            if len(frame):
                first, *others = map(str, frame.columns)
                headings = [Heading(first, text=True, show=as_text), *(Heading(name, folds=True) for name in others)]
                console.print(draw_table(title, headings, frame.itertuples(index=False, name=None)))
