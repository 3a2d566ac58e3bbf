"""The risk that follows from the sizes of equivalence classes: rows that agree on all quasi-identifiers."""

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
    """The probability that an attacker finds the person of a row, in [0, 1], over all rows of a table.

    highest: float. The risk of the row most at risk.
    average: float. The mean over the rows.
    at_risk: float. The share of the rows with a risk above the threshold.
    """

    highest: float
    average: float
    at_risk: float


@dataclass(frozen=True)
class ClassRisks(Record):
    """The equivalence classes of a table, and the risk that follows from their sizes; made by `class_risks`.

    rows: int. Rows of the table.
    classes: int or None. Equivalence classes.
    k: int. Rows of the smallest class: the table is k-anonymous.
    largest: int. Rows of the largest class.
    average_size: float or None. Mean rows of a class.
    uniques: int. Classes of one row.
    unique_share: float, in [0, 1]. Share of the rows that are alone in their class.
    discernibility: int. Sum over the rows of the rows of their class.
    wanted_k: int. The k that was asked for.
    classes_below: int or None. Classes of fewer than wanted_k rows.
    rows_below: int. Rows of these classes.
    share_below: float, in [0, 1]. Share of the rows that are in these classes.
    normalized_average_size: float or None. average_size / wanted_k.
    threshold: float, in (0, 1]. A risk above the threshold counts as at risk.
    prosecutor: AttackRisk. The risk if the attacker knows that the person is in the table.
    marketer: float, in (0, 1]. Expected share of the rows that are re-identified if the attacker tries all rows.

    If missing values match every value, a row's class is all rows that match the row. Such classes overlap and cannot
    be counted: classes, average_size, classes_below and normalized_average_size are None.
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
    """Return the risk of a table, from the sizes of its equivalence classes alone.

    Parameters
    ----------
    class_sizes:
        Rows of each class: a list, array or Series; or a mapping of size to number of classes; or
        `gpupif.utils.information.Sizes`.
    rows:
        Rows of the table. Needed with `Sizes`, which leaves classes of one row out. Default: the sum of the sizes.
    k:
        Classes of fewer rows are counted apart. Default 5.
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
        Sizes that are no whole numbers from 1 on, no class at all, another number of rows than the classes have, k
        below 1, a threshold outside (0, 1].

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
    """Return k, and the threshold: the highest acceptable risk, default 1/k. Raises InputError as `class_risks`."""
    wanted = whole_number("k", k, "rows")
    return wanted, 1 / wanted if threshold is None else share("threshold", threshold)


def risks_of(sizes: ClassSizes, k: int = 5, threshold: float | None = None) -> ClassRisks:
    """Return the risks of classes that may overlap; see `class_risks`."""
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
            None
            if classes is None
            else sum(classes for size, classes in sizes.classes_of_size.items() if size < wanted)
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
    """A figure of the equivalence classes of a table.

    name: str. The name in gates, criteria and scored columns.
    meaning: str. The meaning in words.
    unit: str. The unit of the values.
    find: callable. Returns the value from `ClassRisks`; None if overlapping classes leave it undefined.
    range: str. The range of the values. Default "0 and up".
    high_is_bad: bool. True if a high value is a high risk, False if a low value is. Default True.
    depends: tuple of "k" and "threshold". The parameters on which the meaning depends. Default none.
    only_improves: bool. True if coarser values of columns, which merge classes, never make it worse. Default True.
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
