"""The results of `gpupif.tables` and `gpupif.audit_table`."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..errors import InputError
from ..utils.display import (
    Displayable,
    Heading,
    as_cell,
    as_found,
    as_text,
    draw_line,
    draw_table,
    draw_verdict,
    plural,
    quoted,
)

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

# How many rows of a table are printed, over how many columns its last column is spread, and the longest word of a
# heading.
MOST_PRINTED, MOST_SPREAD, LONGEST_HEADING = 40, 10, 24
SUPPRESSED = "c"
NOT_PRIVATE = "cell keys are not differential privacy"


@dataclass(frozen=True)
class TableAudit(Displayable):
    """The audit of a table with suppressed cells; made by `gpupif.audit_table`. Prints as a table.

    cells: int. Cells of the table, totals included.
    suppressed: int. Suppressed cells.
    computed: int. Suppressed cells whose figure follows from the published ones: lowest and highest are equal.
    disclosed: int. Suppressed cells that are bounded too closely; computed cells are among them.
    width: float. The least width of the interval that was asked for. 0: any width above 0.
    least: float. What every suppressed figure has at least, for all that readers know.
    bounds: pandas DataFrame. A row for each suppressed cell: its values by column, `lower`, `upper` (infinite if no
        total bounds the cell), and `disclosed`.
    """

    cells: int
    suppressed: int
    computed: int
    disclosed: int
    width: float
    least: float
    bounds: pd.DataFrame

    @property
    def passes(self) -> bool:
        """True if no suppressed cell is bounded too closely."""
        return not self.disclosed

    def verdict(self, redact: bool = False) -> list[str]:
        """See `Displayable.verdict`."""
        if not self.suppressed:
            return [f"No cell of {self.cells:,} is suppressed, so the audit had no bounds to find."]
        are = "is" if self.suppressed == 1 else "are"
        of = f"{self.suppressed:,} of {self.cells:,} {plural(self.cells, 'cell')} {are} suppressed"
        closely = f"bounded to less than {as_cell(self.width)}" if self.width else "bounded too closely"
        if self.passes:
            none = "it cannot" if self.suppressed == 1 else "none of them can"
            holds = f"Audit: {of}, and {none} be computed from totals or {closely}."
            known = (
                "This audit takes suppressed figures of 0 for possible. For counts above 0, say least=1 to audit_table."
            )
            return [holds] if self.least else [holds, known]
        rest = self.disclosed - self.computed
        return [
            f"Audit fails: {of}, yet {self.computed:,} can be computed exactly, and {rest:,} more can be {closely}.",
            "Suppress further cells of the same rows and columns. If you have the rows, gpupif tables finds them.",
        ]

    def draw(self, console: Console) -> None:
        draw_verdict(self, console)
        bounds = self.bounds.sort_values("disclosed", ascending=False, kind="stable")
        if len(bounds):
            console.print()
            figures = [Heading("lowest"), Heading("highest"), Heading("disclosed", show=lambda own: "yes" * own)]
            rows = bounds.to_numpy(object).tolist()
            draw_cells(console, "Suppressed cells", list(bounds.columns)[:-3], figures, rows)


@dataclass(frozen=True)
class CountTable(Displayable):
    """A table of counts or sums; made by `gpupif.tables`. Prints as a table.

    `counts` may be published, and so may the file that `write` makes; the other fields narrow down the true figures.

    rows: int. Rows of the table that was counted.
    by: sequence of column names. The columns whose combinations are cells.
    figure: str. The name of the column of figures in `counts`: "count" or "sum".
    counts: pandas DataFrame. A row for each cell: its values as texts, None for missing and `total` for all, and the
        figure; missing if suppressed.
    total: str. The text that marks totals.
    value, weights: column name or None. The column that was summed; the column of sampling weights.
    method: str. "nearest", "random", "controlled", "cell-key", or "none" for exact figures.
    base: int or None. The base of rounding.
    slack: float. How far a published figure may be from the true one.
    rules: mapping of rule to value. The rules of primary suppression.
    primary, secondary: int. Cells suppressed by the rules, and to protect those.
    totals_suppressed: int. Totals among both.
    mean_change: float. The mean absolute change of the published figures.
    one_cell_lines: int. Rows and columns of published counts, those of totals too, in which one of two or more cells
        alone is suppressed or above 0. Without rounding and noise it has all their people. 0 for sums.
    audit: TableAudit or None. Bounds for readers of the exact figures of all published cells. None without suppression.
    key: str or None. Identifies the secret key; the key cannot be found from it.
    seconds: mapping of stage to wall time, seconds.
    """

    rows: int
    by: Sequence[Hashable]
    figure: str
    counts: pd.DataFrame
    total: str
    value: Hashable
    weights: Hashable
    method: str
    base: int | None
    slack: float
    rules: Mapping[str, Any]
    primary: int
    secondary: int
    totals_suppressed: int
    mean_change: float
    one_cell_lines: int
    audit: TableAudit | None
    key: str | None
    seconds: Mapping[str, float]

    @property
    def is_whole(self) -> bool:
        """True if figures are counts of rows, so whole numbers."""
        return self.value is None and self.weights is None

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dictionary for JSON; suppressed figures are None."""
        return super().to_dict() | {"by": list(map(str, self.by)), "differentially_private": False}

    def __repr__(self) -> str:
        return f"<CountTable of {self.rows:,} rows: {len(self.counts):,} cells>"

    def write(self, path: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Write the cells to a .csv, .parquet or .feather file that only you may read.

        Suppressed figures and missing values are empty. Raises OutputError.
        """
        from ..io.write import check_output, write_tables

        check_output(path, overwrite)
        columns = {str(name): pa.array(self.counts[name], from_pandas=True) for name in self.counts.columns}
        write_tables([pa.table(columns)], path, overwrite=overwrite, private=True)

    def verdict(self, redact: bool = False) -> list[str]:
        """See `Displayable.verdict`. redact: whether all is left out that narrows down the true figures, too."""
        summed = "" if self.value is None else f"sums of {quoted(self.value)} of "
        summed += f"people, by the weights in {quoted(self.weights)}, of " if self.weights is not None else ""
        names = " x ".join(map(quoted, self.by))
        rows = "rows" if redact else f"{self.rows:,} {plural(self.rows, 'row')}"
        counted = f"{summed}{rows} by {names}: {len(self.counts):,} cells."
        parts = [self._rounded] if self._rounded else []
        if self.rules:
            why = " or ".join(RULES[name].format(value) for name, value in self.rules.items())
            if not self.primary:
                parts.append(f"no cell is suppressed for {why}")
            elif redact:
                parts.append(f"suppressed cells: {self.primary + self.secondary:,} for {why}, and to protect those")
            else:
                totals = f"; totals among all of them: {self.totals_suppressed:,}" if self.totals_suppressed else ""
                said = f"{self.primary:,} for {why}, {self.secondary:,} more to protect those"
                parts.append(f"suppressed cells: {said}{totals}")
        said = "; ".join(parts) if parts else "no figure is protected: these are exact"
        audit = [] if self.audit is None else self.audit.verdict(redact)[:1]
        if self.value is not None and self.primary:
            audit.append("Who is alone in a suppressed cell cannot compute another cell of the same row or column.")
        if self.one_cell_lines:
            lines = f"{self.one_cell_lines:,} {'row or column' if self.one_cell_lines == 1 else 'rows and columns'}"
            said = "all people are in one cell, which says something of each of them"
            if self.slack:
                said = f"only one cell is not shown as 0; each of the others may truly have up to {self.slack:g}"
            audit.append(f"In {lines} {said}.")
        return [f"{own[0].upper()}{own[1:]}" for own in (counted, f"{said}.", *audit)]

    @property
    def _rounded(self) -> str:
        ways = {
            "nearest": "to the nearest multiple",
            "random": "at random by the key",
            "controlled": "so that totals hold",
        }
        if self.method == "cell-key":
            return f"noise of at most {self.slack:g} is drawn by cell keys ({NOT_PRIVATE})"
        return "" if self.base is None else f"figures are rounded to base {self.base:,}, {ways[self.method]}"

    def draw(self, console: Console) -> None:
        draw_verdict(self, console)
        console.print()
        keys, figures, rows = self._printed()
        title = self.figure.capitalize() + ("s" if self.value is None else f"s of {self.value}")
        draw_cells(console, title, keys, [Heading(name, show=_figure) for name in figures], rows)
        if self.primary or self.secondary:
            draw_line(console, f"{SUPPRESSED}: suppressed.", "dim")

    def _printed(self) -> tuple[Sequence[Hashable], list[str], list[list[Any]]]:
        """Return the keys, the headings of figures, and the lines; a last column of few values is spread."""
        rows = self.counts.astype(object)
        records = rows.where(rows.notna(), None).to_numpy().tolist()
        last = list(dict.fromkeys(record[-2] for record in records))
        spread = [f"{self.by[-1]} = {as_found(value)}" for value in last[: MOST_SPREAD + 1]]
        if len(self.by) == 1 or len(spread) > MOST_SPREAD or has_long_word(spread):
            return self.by, [self.figure], records
        # Cells are in order: those that differ in the last column follow each other.
        lines = [records[start : start + len(last)] for start in range(0, len(records), len(last))]
        return self.by[:-1], spread, [[*line[0][:-2], *(record[-1] for record in line)] for line in lines]


# Each rule of primary suppression in words.
RULES = {
    "suppress_below": "fewer than {} rows",
    "dominance": "dominance (n, k) = {}",
    "p_percent": "the p % rule ({})",
}


def _figure(value: Any) -> str:
    """Return a figure as text."""
    return SUPPRESSED if value is None else as_cell(value)


def has_long_word(names: Sequence[str]) -> bool:
    """Return whether a word of some names is too long for a heading, which is never broken."""
    return max(map(len, " ".join(names).split()), default=0) > LONGEST_HEADING


def draw_cells(
    console: Console, title: str, by: Sequence[Hashable], figures: Sequence[Heading], rows: Sequence[Sequence[Any]]
) -> None:
    """Draw the first `MOST_PRINTED` cells of a table. by: columns whose values begin each row; figures follow."""
    names = list(map(as_text, by))
    shown = rows[:MOST_PRINTED]
    if has_long_word(names):
        # Long names stand beside each value.
        pairs = [[f"{name} = {as_found(own)}" for name, own in zip(names, row, strict=False)] for row in shown]
        shown = [["; ".join(pair), *row[len(names) :]] for pair, row in zip(pairs, shown, strict=True)]
        names = ["values"]
    headings = [*(Heading(name, text=True, show=as_found) for name in names), *figures]
    more = f" (the first {MOST_PRINTED} of {len(rows):,})" if len(rows) > MOST_PRINTED else ""
    console.print(draw_table(f"{title}{more}", headings, shown, keys=len(names)))


def make_frame(by: Sequence[Hashable], values: Sequence[Sequence[Any]], places: Any, **figures: Any) -> pd.DataFrame:
    """Return a frame of some cells. values: of each axis. places: flat numbers of the cells. figures: more columns.

    Raises InputError if a column of `by` has the name of another.
    """
    import pandas as pd

    if taken := [str(name) for name in by if str(name) in figures]:
        raise InputError(f"by: column {taken[0]!r} has the name of a column of the result. Rename it in the table.")
    index = np.unravel_index(places, [len(own) for own in values])
    columns: dict[Any, Any] = {}
    for name, own, number in zip(by, values, index, strict=True):
        array = np.empty(len(own), object)
        array[:] = list(own)
        columns[name] = pd.Series(array[number], dtype=object)
    return pd.DataFrame(columns | figures)
