"""The one rule by which a redacted result shows a figure, so that many tables have what is shown.

A reader who knows the number of rows, the classes and how entropies, means and percentiles are made can count back from
an exact figure. So figures become two numbers that they are between, and counts a range of counts. How far apart these
are follows from the number of rows that a figure is of.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from .display import as_cell

# What stands for what a redacted result does not show.
HIDDEN = "hidden"
# So many neighbouring counts of the rarest value have the same interval of entropy. Of fewer rows nothing is shown.
COUNTS = 20
# The least width of a range of counts.
LEAST_WIDTH = 10
# Parts into which the unit of a figure (1 bit, or all of a share) is cut: the more rows, the more of them.
PARTS = (100, 50, 20, 10, 5, 2, 1)
# Figures of the sizes of classes, which a redacted report promises.
OF_CLASSES = {"k", "rows", "uniques", "unique_rows", "unique_share", "rows_below_k", "share_below_k", "classes"}
OF_CLASSES |= {"classes_below_k", "largest_class", "average_class", "discernibility", "highest_risk", "average_risk"}
OF_CLASSES |= {"share_at_risk"}


def parts_of(rows: float) -> int:
    """Return into how many parts the unit of a figure is cut, if the figure is of so many rows."""
    share = min(0.5, COUNTS / max(rows, 1))
    # The entropy of two values, one of which has COUNTS rows: no other COUNTS steps of a count change entropy as much.
    width = -share * math.log2(share) - (1 - share) * math.log2(1 - share)
    return next(parts for parts in PARTS if parts * width <= 1)


def lower_end(value: float, rows: float) -> float:
    """Return the lower of the two numbers that `as_interval` shows."""
    parts = parts_of(rows)
    # A figure at an end is the upper one: the entropy of equally frequent values has an interval with lower entropies.
    place = max(0, math.ceil(value * parts - 1e-9) - 1) if value >= 0 else math.floor(value * parts)
    return place / parts


def as_interval(value: float | None, rows: float, percent: bool = False) -> str:
    """Return two numbers that a figure is between. rows: that it is of; of fewer than COUNTS it is hidden."""
    if value is None or not math.isfinite(value):
        return "" if value is None else as_cell(value)
    if rows < COUNTS:
        return HIDDEN
    low, unit = lower_end(value, rows), 100 if percent else 1
    high = low + 1 / parts_of(rows)
    return f"{unit * low:,.10g} to {unit * high:,.10g}{' %' * percent}"


def as_count(value: int, of: float = math.inf, least: int = 0, width: int = LEAST_WIDTH) -> str:
    """Return a range of counts that a count is in, in two digits and at least `width` wide.

    of, least: the highest and the lowest count that a reader takes for possible.
    """
    above = max(0, value - least)
    widths = {count: max(width, 10 ** (len(f"{count:.0f}") - 2)) for count in (above, of - least) if count < math.inf}
    width = widths[above]
    if of - least < 2 * width:
        return HIDDEN
    # The last range takes in what is left, for it would be narrower.
    widest = widths.get(of - least, 1)
    last = math.inf if of == math.inf else (of - least) // widest * widest - widest
    low = above // width * width
    if above >= last:
        return f"{least + last:,.0f} or more"
    return f"fewer than {least + width:,.0f}" if not low else f"{least + low:,.0f} to {least + low + width - 1:,.0f}"


def as_certain(rows: int, classes: Mapping[str, Any]) -> str:
    """Return a range of the number of certain rows, in which every class of several rows may be certain or not.

    classes: the fields of `ClassRisks`. A row that is alone in its class is always certain. A range of twice the rows
    of the largest class leaves open which classes are: without any one of them others add up to a number in it.
    """
    # Classes that overlap cannot be added up.
    if classes["classes"] is None:
        return HIDDEN
    return as_count(rows, classes["rows"], classes["uniques"], max(LEAST_WIDTH, 2 * classes["largest"]))


def rows_of_percentile(rows: float, percentile: float | str) -> float:
    """Return of how many rows a percentile tells: those above it."""
    return rows * (1 - float(percentile) / 100)


def named_figure(name: str, value: Any, rows: float) -> str:
    """Return a figure of risk by its name: of classes exact, percentiles of rows between two numbers, others hidden.

    The others are of the worst class or of a cell, which few rows make. name: also as the text of a criterion, such as
    "k>=5". rows: of the table.
    """
    (name,) = re.findall(r"^[a-z_]*[\d.]*(?![:\w])", name) or [""]
    if name in OF_CLASSES:
        return "" if value is None else as_cell(value)
    found = re.fullmatch(r"pif_?([\d.]+)", name)
    if found:
        return as_interval(value, rows_of_percentile(rows, float(found[1])))
    return as_interval(value, rows) if name == "mean" else HIDDEN
