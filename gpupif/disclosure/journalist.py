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
    """

    rows: int
    classes: int
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

    sizes: people of a class in the population, ascending. classes: how many classes have so many; rows: of the sample,
    in these together.
    """

    sizes: npt.NDArray[np.int64]
    classes: npt.NDArray[np.int64]
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
    def total(cls, *parts: PopulationClasses) -> PopulationClasses:
        """Classes of several parts together."""
        return cls(*(np.concatenate(several) for several in zip(*parts, strict=True)))._added_up()

    def _added_up(self) -> PopulationClasses:
        """The same with each size once."""
        order = np.argsort(self.sizes, kind="stable")
        sizes, starts = np.unique(self.sizes[order], return_index=True)
        return PopulationClasses(sizes, *(np.add.reduceat(one[order], starts) for one in (self.classes, self.rows)))

    def risks(self, threshold: float) -> PopulationRisks:
        """Journalist and marketer risk: of sums of integers, each rounded once."""
        of_size = dict(zip(self.sizes.tolist(), self.rows.tolist(), strict=True))
        rows, classes = sum(of_size.values()), int(self.classes.sum())
        people = sum(size * number for size, number in zip(self.sizes.tolist(), self.classes.tolist(), strict=True))
        marketer = math.fsum(found / size for size, found in of_size.items()) / rows
        at_risk = sum(found for size, found in of_size.items() if 1 / size > threshold)
        smallest = min(of_size)
        return PopulationRisks(
            rows=rows,
            classes=classes,
            k_map=smallest,
            threshold=threshold,
            journalist=AttackRisk(1 / smallest, max(classes / people, marketer), at_risk / rows),
            marketer=marketer,
        )
