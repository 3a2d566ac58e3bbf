"""A comparison drawn for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..utils.display import Heading, as_cell, as_part, as_text, draw_table, plural
from .linkage import Linkage
from .utility import Utility

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

# Pairs of columns that are shown: those that lost most.
SHOWN_PAIRS = 10

FIGURES = {
    "pif50": "PIF 50, bits",
    "pif95": "PIF 95, bits",
    "pif99": "PIF 99, bits",
    **{
        f"{key}_{measure}": f"{name} of {measure.upper()}{unit}"
        for measure, unit in (("cig", ", bits"), ("csf", ""))
        for key, name in (("p50", "median"), ("p95", "95 %"), ("p99", "99 %"), ("max", "highest"))
    },
    "k": "k, rows of the smallest class",
    "uniques": "unique rows",
    "unique_share": "share of unique rows",
    "distinct_l": "distinct l",
    "t": "t",
    "homogeneous_classes": "classes of one sensitive value",
    "homogeneous_rows": "rows in these",
}
READINGS = {
    "before": "before",
    "after_category": "missing is a value",
    "after_wildcard": "missing matches all",
    "after": "after: the worse",
    "worse_reading": "by which",
}
SHORT_READINGS = {"category": "a value", "wildcard": "matches all", "both": "both"}
# What is said below the table of risk where cells were suppressed.
BOTH_READINGS = (
    'Suppressed cells are read in two ways. "missing is a value": a missing value is a value of its own, the same in '
    'all rows that lack one. "missing matches all": it matches every value. Neither is always the safer one.'
)


def heading(rows: int, taken_away: int, columns: int, seconds: Mapping[str, float]) -> str:
    """What was compared, and in what time."""
    spent = ", ".join(f"{stage} {took:.2f} s" for stage, took in seconds.items())
    lacking = f" ([bold]{taken_away:,}[/] taken away)" if taken_away else ""
    return f"[bold]{rows:,}[/] {plural(rows, 'row')}{lacking} x [bold]{columns}[/] {plural(columns, 'column')}: {spent}"


def _value(value: Any) -> str:
    if isinstance(value, str):
        return SHORT_READINGS[value]
    if value is None or value != value:
        return ""
    return f"{int(value):,}" if float(value).is_integer() else f"{value:,.4g}"


def risk_table(risk: pd.DataFrame) -> Table:
    """Draw risk side by side; both readings of suppressed cells, and which is worse, where there are such."""
    shown = ["before", "after"] if "after_wildcard" not in risk else list(READINGS)
    said = READINGS if "after_wildcard" in risk else {name: name for name in shown}
    headings = [Heading("", text=True), *(Heading(said[name], folds=True, show=_value) for name in shown)]
    rows = [
        [FIGURES.get(str(name), str(name)), *(row[key] for key in shown)] for name, row in risk.to_dict("index").items()
    ]
    return draw_table("Risk", headings, rows)


def utility_table(utility: Utility, linkage: Linkage | None) -> Table:
    """What the table lost over all columns, and who is found again."""
    facts = [
        ("entropy lost, bits a row", as_cell(utility.entropy_lost)),
        ("information kept", _percent(utility.information_kept)),
        ("non-uniform entropy loss, bits", f"{utility.nonuniform_entropy_loss:,.2f}"),
        ("equivalence classes", f"{utility.classes:,}"),
        ("rows a class", f"{utility.average_class_size:,.2f}"),
        ("that over k", _value(utility.normalized_class_size)),
        ("discernibility", f"{utility.discernibility:,}"),
        ("as if no row was suppressed", f"{utility.discernibility_unsuppressed:,}"),
        ("precision", _value(utility.precision)),
        ("mutual information kept", _percent(utility.mutual_information_kept)),
        ("total variation, worst column", as_cell(utility.total_variation)),
        ("total variation, worst pair", _value(utility.pair_total_variation)),
        ("earth mover's distance, worst column", as_cell(utility.emd)),
        ("cells changed", f"{utility.cells_changed:,} of {utility.cells:,}"),
        ("cells suppressed", f"{utility.cells_suppressed:,}"),
        ("rows changed", f"{utility.rows_changed:,}"),
        ("rows suppressed", f"{utility.rows_suppressed:,}"),
    ]
    if linkage is not None:
        of = f"{linkage.rows:,} {plural(linkage.rows, 'row')}"
        of += "" if linkage.seed is None else f" drawn with seed {linkage.seed}"
        error = "" if linkage.standard_error is None else f" +- {100 * linkage.standard_error:.2g}"
        facts.append(("linked to their nearest row", f"{100 * linkage.share:.4g}{error} % of {of}"))
    headings = [Heading("", text=True), Heading("", show=str)]
    return draw_table("Utility", headings, [fact for fact in facts if fact[1]], show_headings=False)


def _percent(share: float | None) -> str:
    return "" if share is None or share != share else as_part(share)


COLUMNS = {
    "entropy_before": "entropy, bits",
    "entropy_after": "after",
    "entropy_lost": "lost",
    "information_kept": "kept",
    "total_variation": "total var.",
    "emd": "EMD",
    "precision": "precision",
    "cells_changed": "changed",
    "cells_suppressed": "suppressed",
}


KEPT = "information_kept"


def columns_table(columns: pd.DataFrame) -> Table:
    """What each column lost."""
    shown = [name for name in COLUMNS if columns[name].notna().any()]
    headings = [
        Heading("column", text=True, show=as_text),
        Heading("detail", text=True),
        *(Heading(COLUMNS[name], folds=True, show=_percent if name == KEPT else _value) for name in shown),
    ]
    rows = [
        [name, row["detail"], *(row[key] for key in shown)]
        for name, row in zip(columns.index, _rows(columns), strict=True)
    ]
    return draw_table("Columns", headings, rows)


def _rows(frame: pd.DataFrame) -> list[dict[Any, Any]]:
    return frame.to_dict("records")


def pairs_table(pairs: pd.DataFrame) -> Table:
    """The pairs of columns whose mutual information went most."""
    lost = pairs["mutual_information_before"] - pairs["mutual_information_after"]
    shown = pairs.loc[lost.sort_values(ascending=False, kind="stable").index[:SHOWN_PAIRS]]
    more = f" (the first {len(shown)} of {len(pairs)})" if len(shown) < len(pairs) else ""
    headings = [
        Heading("pair", text=True),
        Heading("mutual inf., bits", folds=True, show=_value),
        Heading("after", folds=True, show=_value),
        Heading("kept", folds=True, show=_percent),
        Heading("total var.", folds=True, show=_value),
    ]
    rows = [
        [
            f"{as_text(row['column_1'])} + {as_text(row['column_2'])}",
            row["mutual_information_before"],
            row["mutual_information_after"],
            row["mutual_information_kept"],
            row["total_variation"],
        ]
        for row in _rows(shown)
    ]
    return draw_table(f"Pairs of columns that lost most{more}", headings, rows)
