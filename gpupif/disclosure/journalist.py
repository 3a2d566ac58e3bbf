"""Journalist risk: of a sample whose equivalence classes are known in the population, too."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..utils.display import Record
from ..utils.validation import share
from .class_sizes import size_array
from .classes import AttackRisk

# Classes that are sorted by size at a time.
BLOCK = 1 << 16


@dataclass(frozen=True)
class PopulationRisks(Record):
    """Risk of a sample whose equivalence classes are known in the population, too; made by `population_risks`.

    rows, classes: of the sample. k_map: people in the smallest of these classes in the population. threshold: a risk
    above it counts as at risk. journalist: the attacker does not know who is in the sample and looks for anyone.
    marketer: expected share of the sample's rows that are re-identified when the attacker tries all.

    Where missing values match every value, the people of a row are all of the population that match it: F, of which
    k_map is the least and marketer the mean of 1/F over rows. Classes then overlap, so that there is no number of them,
    nor a mean size: classes is None, and the average of the journalist, which takes one, NaN.
    """

    rows: int
    classes: int | None
    k_map: int
    threshold: float
    journalist: AttackRisk
    marketer: float


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
    return PopulationClasses.of(sample, population).risks(limit)


class PopulationClasses(NamedTuple):
    """Equivalence classes of a sample by their size in the population: integers, so that parts add up exactly.

    sizes: people of a class in the population, ascending. classes: how many classes have so many, None where they
    overlap, for missing values match every value; rows: of the sample, whose class is one of these.
    """

    sizes: npt.NDArray[np.int64]
    classes: npt.NDArray[np.int64] | None
    rows: npt.NDArray[np.int64]

    @classmethod
    def of(cls, sampled: npt.NDArray[np.int64], there: npt.NDArray[np.int64]) -> PopulationClasses:
        """Of classes with so many rows in the sample and in the population, which has those of the sample at least.

        Classes without a row in the sample are left out.
        """
        blocks = [slice(start, start + BLOCK) for start in range(0, len(sampled) or 1, BLOCK)]
        return cls.total(*(cls._of_block(sampled[block], there[block]) for block in blocks))

    @classmethod
    def _of_block(cls, sampled: npt.NDArray[np.int64], there: npt.NDArray[np.int64]) -> PopulationClasses:
        found = np.flatnonzero(sampled)
        people = np.maximum(sampled, there)[found]
        return cls(people, np.ones(len(found), np.int64), sampled[found])._added_up()

    @classmethod
    def of_rows(cls, sampled: npt.NDArray[np.int64], people: npt.NDArray[np.int64]) -> PopulationClasses:
        """Of distinct rows, each so often in the sample, with a class of its own, which overlaps others.

        people: of the population, in the class of each. Rows that are not in the sample are left out.
        """
        found = np.flatnonzero(sampled)
        return cls(people[found], None, sampled[found])._added_up()

    @classmethod
    def total(cls, *parts: PopulationClasses) -> PopulationClasses:
        """Classes of several parts together, which overlap in all of them or in none."""
        sizes, rows = (
            np.concatenate(several) for several in zip(*((one.sizes, one.rows) for one in parts), strict=True)
        )
        classes = [one.classes for one in parts if one.classes is not None]
        return cls(sizes, np.concatenate(classes) if classes else None, rows)._added_up()

    def _added_up(self) -> PopulationClasses:
        """The same with each size once."""
        order = np.argsort(self.sizes, kind="stable")
        sizes, starts = np.unique(self.sizes[order], return_index=True)
        classes, rows = (
            None if one is None else np.add.reduceat(one[order], starts) for one in (self.classes, self.rows)
        )
        assert rows is not None
        return PopulationClasses(sizes, classes, rows)

    def risks(self, threshold: float) -> PopulationRisks:
        """Journalist and marketer risk: of sums of integers, each rounded once."""
        of_size = dict(zip(self.sizes.tolist(), self.rows.tolist(), strict=True))
        rows = sum(of_size.values())
        marketer = math.fsum(found / size for size, found in of_size.items()) / rows
        at_risk = sum(found for size, found in of_size.items() if 1 / size > threshold)
        smallest = min(of_size)
        classes, average = None, math.nan
        if self.classes is not None:
            numbers = self.classes.tolist()
            people = sum(size * number for size, number in zip(self.sizes.tolist(), numbers, strict=True))
            classes = sum(numbers)
            average = max(classes / people, marketer)
        return PopulationRisks(
            rows=rows,
            classes=classes,
            k_map=smallest,
            threshold=threshold,
            journalist=AttackRisk(1 / smallest, average, at_risk / rows),
            marketer=marketer,
        )
