"""Risk by the sizes of equivalence classes: rows that agree on all quasi-identifiers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..utils.display import Record
from ..utils.validation import share, whole_number
from .class_sizes import ClassSizes, histogram_of


@dataclass(frozen=True)
class AttackRisk:
    """Probability that an attacker finds the person behind a row, in [0, 1], over all rows of a table.

    highest: of the row most at risk. average: over the rows. at_risk: share of the rows for which it is above the
    threshold.
    """

    highest: float
    average: float
    at_risk: float


@dataclass(frozen=True)
class ClassRisks(Record):
    """Equivalence classes of a table and the risk that follows from their sizes; made by `class_risks`.

    rows, classes: how many. k: rows of the smallest class; the table is k-anonymous. largest: rows of the largest.
    average_size: rows per class. uniques: classes of one row; unique_share: rows that are alone, in [0, 1].
    discernibility: for each row the rows of its class, added up. wanted_k: the k asked for; classes_below,
    rows_below, share_below: classes with fewer rows, their rows, and these as a share of all rows;
    normalized_average_size: average_size / wanted_k. threshold: a risk above it counts as at risk. prosecutor: the
    attacker knows that the person is in the table. marketer: expected share of the rows that are re-identified when
    the attacker tries all.

    Where missing values match every value, a row's class is all rows that match it. Classes then overlap, so that
    there is no number of them: classes, average_size, classes_below and normalized_average_size are None.
    """

    rows: int
    classes: int | None
    k: int
    largest: int
    average_size: float | None
    uniques: int
    unique_share: float
    discernibility: int
    wanted_k: int
    classes_below: int | None
    rows_below: int
    share_below: float
    normalized_average_size: float | None
    threshold: float
    prosecutor: AttackRisk
    marketer: float


def class_risks(class_sizes: Any, rows: int | None = None, *, k: int = 5, threshold: float | None = None) -> ClassRisks:
    """Risk of a table from the sizes of its equivalence classes alone, exact.

    Parameters
    ----------
    class_sizes:
        Rows of each class: a list, array or Series; or a mapping of size to number of classes; or
        `gpupif.utils.information.Sizes`.
    rows:
        Rows of the table; needed with `Sizes`, which leaves classes of one row out.
    k:
        Classes of fewer rows are counted apart.
    threshold:
        Highest acceptable probability of re-identification, in (0, 1]; default 1/k.

    Returns
    -------
    ClassRisks
        With n rows and J classes of sizes f: k-anonymity min f; discernibility sum f^2, an exact int from n to n^2;
        normalized average size C_avg = n / J / k, above 0; prosecutor risk of a row 1/f, so highest 1 / min f,
        average J / n, at risk the share of rows with 1/f > threshold; marketer risk J / n. All risks in (0, 1],
        shares in [0, 1].

    Raises
    ------
    InputError
        Sizes that are no whole numbers from 1 on, no class at all, rows that do not fit the classes, k below 1, a
        threshold outside (0, 1].

    References
    ----------
    k-anonymity: Sweeney 2002. Discernibility: Bayardo & Agrawal 2005, Data privacy through optimal k-anonymization, of
    a table without suppressed rows. C_avg: LeFevre, DeWitt & Ramakrishnan 2006, Mondrian multidimensional k-anonymity.
    Prosecutor and marketer risk: El Emam 2013, Guide to the De-Identification of Personal Health Information, as ARX
    has them (records at risk, highest risk, success rate).

    Examples
    --------
    Six rows in three classes, of one, two and three rows:

    >>> risks = class_risks([1, 2, 3], k=2)
    >>> risks.k, risks.uniques, risks.rows_below, risks.discernibility
    (1, 1, 1, 14)
    >>> risks.average_size, risks.normalized_average_size
    (2.0, 1.0)
    >>> risks.prosecutor
    AttackRisk(highest=1.0, average=0.5, at_risk=0.16666666666666666)
    >>> risks.marketer
    0.5

    """
    return risks_of(ClassSizes.from_classes(histogram_of(class_sizes, rows)), k, threshold)


def check_limits(k: Any, threshold: Any) -> tuple[int, float]:
    """K, and the highest acceptable risk, 1/k where none is given; raises InputError as `class_risks`."""
    wanted = whole_number("k", k, "rows")
    return wanted, 1 / wanted if threshold is None else share("threshold", threshold)


def risks_of(sizes: ClassSizes, k: int = 5, threshold: float | None = None) -> ClassRisks:
    """`class_risks` of classes that may overlap; see there."""
    wanted, limit = check_limits(k, threshold)
    found, total = sizes.rows_of_size, sizes.rows
    classes = None if sizes.overlapping else sum(sizes.classes_of_size.values())
    average = (classes or math.fsum(rows / size for size, rows in found.items())) / total
    below = sum(rows for size, rows in found.items() if size < wanted)
    at_risk = sum(rows for size, rows in found.items() if 1 / size > limit)
    uniques = found.get(1, 0)
    return ClassRisks(
        rows=total,
        classes=classes,
        k=sizes.smallest,
        largest=max(found),
        average_size=None if classes is None else total / classes,
        uniques=uniques,
        unique_share=uniques / total,
        discernibility=sum(size * rows for size, rows in found.items()),
        wanted_k=wanted,
        classes_below=(
            None if classes is None else sum(times for size, times in sizes.classes_of_size.items() if size < wanted)
        ),
        rows_below=below,
        share_below=below / total,
        normalized_average_size=None if classes is None else total / (classes * wanted),
        threshold=limit,
        prosecutor=AttackRisk(1 / sizes.smallest, average, at_risk / total),
        marketer=average,
    )


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
