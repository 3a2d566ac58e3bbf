"""Risk by the sizes of equivalence classes: rows that agree on all quasi-identifiers."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gpupif.errors import InputError
from gpupif.quantities import share, whole_number

from .checks import histogram_of, size_array


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
class ClassRisks:
    """Equivalence classes of a table and the risk that follows from their sizes; made by `class_risks`.

    rows, classes: how many. k: rows of the smallest class; the table is k-anonymous. largest: rows of the largest.
    average_size: rows per class. uniques: classes of one row; unique_share: rows that are alone, in [0, 1].
    discernibility: for each row the rows of its class, added up. wanted_k: the k asked for; classes_below,
    rows_below, share_below: classes with fewer rows, their rows, and these as a share of all rows;
    normalized_average_size: average_size / wanted_k. threshold: a risk above it counts as at risk. prosecutor: the
    attacker knows that the person is in the table. marketer: expected share of the rows that are re-identified when
    the attacker tries all.
    """

    rows: int
    classes: int
    k: int
    largest: int
    average_size: float
    uniques: int
    unique_share: float
    discernibility: int
    wanted_k: int
    classes_below: int
    rows_below: int
    share_below: float
    normalized_average_size: float
    threshold: float
    prosecutor: AttackRisk
    marketer: float

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain numbers and dictionaries, ready for JSON."""
        return asdict(self)


def class_risks(class_sizes: Any, rows: int | None = None, *, k: int = 5, threshold: float | None = None) -> ClassRisks:
    """Risk of a table from the sizes of its equivalence classes alone, exact.

    Parameters
    ----------
    class_sizes:
        Rows of each class: a list, array or Series; or a mapping of size to number of classes; or
        `gpupif.information.Sizes`.
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
    wanted = whole_number("k", k, "rows")
    limit = 1 / wanted if threshold is None else share("threshold", threshold)
    found = histogram_of(class_sizes, rows)
    total = sum(size * times for size, times in found.items())
    classes = sum(found.values())
    below = sum(size * times for size, times in found.items() if size < wanted)
    at_risk = sum(size * times for size, times in found.items() if 1 / size > limit)
    uniques = found.get(1, 0)
    smallest = min(found)
    return ClassRisks(
        rows=total,
        classes=classes,
        k=smallest,
        largest=max(found),
        average_size=total / classes,
        uniques=uniques,
        unique_share=uniques / total,
        discernibility=sum(size * size * times for size, times in found.items()),
        wanted_k=wanted,
        classes_below=sum(times for size, times in found.items() if size < wanted),
        rows_below=below,
        share_below=below / total,
        normalized_average_size=total / (classes * wanted),
        threshold=limit,
        prosecutor=AttackRisk(1 / smallest, classes / total, at_risk / total),
        marketer=classes / total,
    )


@dataclass(frozen=True)
class PopulationRisks:
    """Risk of a sample whose equivalence classes are known in the population, too; made by `population_risks`.

    rows, classes: of the sample. k_map: people in the smallest of these classes in the population. threshold: a risk
    above it counts as at risk. journalist: the attacker does not know who is in the sample and looks for anyone.
    marketer: expected share of the sample's rows that are re-identified when the attacker tries all.
    """

    rows: int
    classes: int
    k_map: int
    threshold: float
    journalist: AttackRisk
    marketer: float

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain numbers and dictionaries, ready for JSON."""
        return asdict(self)


def population_risks(sample_sizes: Any, population_sizes: Any, *, threshold: float = 0.2) -> PopulationRisks:
    """Journalist and marketer risk of a sample, from the sizes of its equivalence classes there and in the population.

    Parameters
    ----------
    sample_sizes, population_sizes:
        For each equivalence class of the sample its rows f and its people in the population F >= f, aligned. Classes of
        the population that are not in the sample are left out.
    threshold:
        Highest acceptable probability of re-identification, in (0, 1].

    Returns
    -------
    PopulationRisks
        With n rows and J classes: k-map min F; journalist risk of a row 1/F, so highest 1 / min F, at risk the share of
        rows with 1/F > threshold, average max(J / sum F, (1/n) sum f/F); marketer risk (1/n) sum f/F. All risks in
        (0, 1], at_risk in [0, 1]. The order of classes does not matter, to the last bit.

    Raises
    ------
    InputError
        Sizes that are no whole numbers from 1 on, of different number, or smaller in the population than in the sample.

    References
    ----------
    El Emam 2013, Guide to the De-Identification of Personal Health Information, as ARX has it.

    Examples
    --------
    A class of one row of four people, and one of two rows of two people:

    >>> risks = population_risks([1, 2], [4, 2])
    >>> risks.journalist
    AttackRisk(highest=0.5, average=0.4166666666666667, at_risk=1.0)
    >>> risks.k_map, risks.marketer
    (2, 0.4166666666666667)

    """
    limit = share("threshold", threshold)
    sample = size_array("sample_sizes", sample_sizes)
    population = size_array("population_sizes", population_sizes)
    if len(sample) != len(population):
        raise InputError(
            f"population_sizes: expected one size for each of the {len(sample):,} classes of the sample, "
            f"got {len(population):,}."
        )
    smaller = np.flatnonzero(population < sample)
    if len(smaller):
        place = int(smaller[0])
        raise InputError(
            f"population_sizes: expected no class smaller than in the sample, got {population[place]} people for "
            f"{sample[place]} rows at position {place}. The sample has to be part of the population."
        )
    # Rows by the size of their class in the population: sums of integers, then one that is rounded once.
    order = np.argsort(population, kind="stable")
    sizes, starts, times = np.unique(population[order], return_index=True, return_counts=True)
    of_size = dict(zip(sizes.tolist(), np.add.reduceat(sample[order], starts).tolist(), strict=True))
    rows, classes = sum(of_size.values()), len(sample)
    people = sum(size * number for size, number in zip(sizes.tolist(), times.tolist(), strict=True))
    marketer = math.fsum(found / size for size, found in of_size.items()) / rows
    at_risk = sum(found for size, found in of_size.items() if 1 / size > limit)
    smallest = min(of_size)
    return PopulationRisks(
        rows=rows,
        classes=classes,
        k_map=smallest,
        threshold=limit,
        journalist=AttackRisk(1 / smallest, max(classes / people, marketer), at_risk / rows),
        marketer=marketer,
    )
