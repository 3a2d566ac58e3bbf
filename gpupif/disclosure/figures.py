"""The figures of equivalence classes by their sizes: one entry each, for gates, scored columns, and whoever asks for
more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .classes import ClassRisks


@dataclass(frozen=True)
class ClassFigure:
    """A figure of the equivalence classes.

    name: as gates and scored columns have it; meaning; unit, range: of its values. find: its value, None where it is
    not defined since classes overlap. high_is_bad: whether the table is at risk where it is high, else where it is low.
    depends: what its meaning depends on, "k" or "threshold". only_improves: whether it never gets worse where values of
    columns are made coarser, so that classes grow together.
    """

    name: str
    meaning: str
    unit: str
    find: Callable[[ClassRisks], float | None]
    range: str = "0 and up"
    high_is_bad: bool = True
    depends: tuple[str, ...] = ()
    only_improves: bool = True


SHARE, SOME = "0 to 1", "1 and up"

CLASS_FIGURES: dict[str, ClassFigure] = {
    figure.name: figure
    for figure in (
        ClassFigure("unique_rows", "rows alone in their equivalence class", "rows", lambda one: one.uniques),
        ClassFigure(
            "unique_share",
            "share of the rows that are alone in their class",
            "share",
            lambda one: one.unique_share,
            SHARE,
        ),
        ClassFigure(
            "rows_below_k",
            "rows in classes of fewer than k rows",
            "rows",
            lambda one: one.rows_below,
            depends=("k",),
        ),
        ClassFigure(
            "share_below_k",
            "share of the rows that are in classes of fewer than k",
            "share",
            lambda one: one.share_below,
            SHARE,
            depends=("k",),
        ),
        ClassFigure(
            "classes_below_k", "classes of fewer than k rows", "classes", lambda one: one.classes_below, depends=("k",)
        ),
        ClassFigure("classes", "equivalence classes", "classes", lambda one: one.classes, SOME),
        ClassFigure("largest_class", "rows of the largest class", "rows", lambda one: one.largest, SOME, False),
        ClassFigure("average_class", "rows per class", "rows", lambda one: one.average_size, SOME, False),
        ClassFigure(
            "discernibility",
            "for each row the rows of its class, added up",
            "rows",
            lambda one: one.discernibility,
            SOME,
            only_improves=False,
        ),
        ClassFigure(
            "highest_risk",
            "prosecutor risk of the row most at risk, 1 / k",
            "probability",
            lambda one: one.prosecutor.highest,
            SHARE,
        ),
        ClassFigure(
            "average_risk",
            "prosecutor risk, mean over the rows; the marketer risk is the same",
            "probability",
            lambda one: one.prosecutor.average,
            SHARE,
        ),
        ClassFigure(
            "share_at_risk",
            "share of the rows whose prosecutor risk is above the threshold",
            "share",
            lambda one: one.prosecutor.at_risk,
            SHARE,
            depends=("k", "threshold"),
        ),
    )
}
