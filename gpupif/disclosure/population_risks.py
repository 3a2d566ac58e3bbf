"""The risk of a sample whose equivalence classes are known in the population, too: the journalist's, and presence."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..attack.joined_columns import JoinedColumns
from ..attack.population import MatchedRows, class_sizes_there
from ..encoding.column import value_order
from ..engines.base import Engine
from ..errors import InputError
from ..utils.arrays import highest_places
from ..utils.display import Record
from ..utils.validation import MOST, share
from .class_risks import AttackRisk
from .class_sizes import size_array

# The number of classes that are sorted by size at once.
BLOCK = 1 << 16


@dataclass(frozen=True)
class PopulationRisks(Record):
    """The risk of a sample whose equivalence classes are known in the population, too; made by `population_risks`.

    rows: int. Rows of the sample.
    classes: int or None. Classes of the sample.
    k_map: int. People in the smallest of these classes in the population.
    threshold: float. A risk above the threshold counts as at risk.
    journalist: AttackRisk. The risk if the attacker does not know who is in the sample and looks for anyone.
    marketer: float, in (0, 1]. Expected share of the sample's rows that are re-identified if the attacker tries all
        rows.
    presence: Presence or None. The presence of the population's people in the sample (delta-presence).

    If missing values match every value, the F people of a row are all people that match the row. k_map is the least F,
    and marketer the mean of 1/F over the rows. Such classes overlap and cannot be counted: classes is None. The
    journalist's average needs their number, so it is NaN. A share of a class is no probability, as its people are in
    other classes too: presence is None.
    """

    rows: int
    classes: int | None
    k_map: int
    threshold: float
    journalist: AttackRisk
    marketer: float
    presence: Presence | None


def population_risks(sample_sizes: Any, population_sizes: Any, *, threshold: float = 0.2) -> PopulationRisks:
    """Return journalist and marketer risk of a sample, and presence, from sizes of classes in sample and population.

    Parameters
    ----------
    sample_sizes, population_sizes:
        For each equivalence class its rows f in the sample and its people F >= f in the population, in the same order.
        Classes that are not in the sample (f = 0) matter for presence only.
    threshold:
        Highest acceptable probability of re-identification, and of presence, in (0, 1]. Default 0.2.

    Returns
    -------
    PopulationRisks
        With n rows and J classes in the sample: k-map min F; journalist risk of a row 1/F, so highest 1 / min F, at
        risk the share of rows with 1/F > threshold, average max(J / sum F, (1/n) sum f/F); marketer risk (1/n) sum f/F.
        All risks in (0, 1], at_risk in [0, 1]. Presence of a class f/F, in [0, 1]: see `Presence`. The order of classes
        does not matter, to the last bit.

    Raises
    ------
    InputError
        Sizes that are no whole numbers; a population size below 1, or below the sample size; lists of different
        lengths; a sample without rows.

    References
    ----------
    El Emam 2013, Guide to the De-Identification of Personal Health Information, as ARX has it. Presence: Nergiz,
    Atzori & Clifton 2007, Hiding the Presence of Individuals from Shared Databases; its histogram as Google's Sensitive
    Data Protection has it.

    Examples
    --------
    A class of one row of four people, and one of two rows of two people, who are all known to be in the sample:

    >>> risks = population_risks([1, 2], [4, 2])
    >>> risks.journalist
    AttackRisk(highest=0.5, average=0.4166666666666667, at_risk=1.0)
    >>> risks.k_map, risks.marketer
    (2, 0.4166666666666667)
    >>> risks.presence.lowest, risks.presence.highest, risks.presence.average, risks.presence.rows_above
    (0.25, 1.0, 0.5, 3)

    """
    limit = share("threshold", threshold)
    sample = size_array("sample_sizes", sample_sizes, least=0)
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
    return PopulationClasses.from_sizes(sample, population).risks(limit)


class PopulationClasses(NamedTuple):
    """The equivalence classes by their sizes in a sample and in the population. Counts of partitions add up exactly.

    people: size of a class in the population, ascending. sampled: its rows in the sample, 0 if it has none. None if
    classes overlap because missing values match every value. multiplicities: number of classes with these sizes; if
    classes overlap, number of rows of the sample that have such a class.
    """

    people: npt.NDArray[np.int64]
    sampled: npt.NDArray[np.int64] | None
    multiplicities: npt.NDArray[np.int64]

    @classmethod
    def from_sizes(cls, sampled: npt.NDArray[np.int64], there: npt.NDArray[np.int64]) -> PopulationClasses:
        """Return the sizes of classes. sampled: rows in the sample. there: people in the population.

        A class has at least as many people as rows: if `there` is smaller, `sampled` is taken.
        """
        blocks = [slice(start, start + BLOCK) for start in range(0, len(sampled) or 1, BLOCK)]
        return cls.total(*(cls._of_block(sampled[block], there[block]) for block in blocks))

    @classmethod
    def _of_block(cls, sampled: npt.NDArray[np.int64], there: npt.NDArray[np.int64]) -> PopulationClasses:
        """Return the sizes of a block of classes."""
        people, numbers = np.maximum(sampled, there), int(sampled.max(initial=0)) + 1
        if int(people.max(initial=0)) * numbers > MOST:
            return cls(people, sampled, np.ones(len(sampled), np.int64))._added_up()
        # Both sizes packed into one number are sorted in half of the time.
        pairs, multiplicities = np.unique(people * numbers + sampled, return_counts=True)
        return cls(pairs // numbers, pairs % numbers, multiplicities)

    @classmethod
    def from_rows(cls, sampled: npt.NDArray[np.int64], people: npt.NDArray[np.int64]) -> PopulationClasses:
        """Return the sizes of classes that overlap, one class for each distinct row of the sample.

        sampled: multiplicity of each row in the sample. Rows with a multiplicity of 0 are left out. people: people of
        the population in the class of each row.
        """
        occurring = np.flatnonzero(sampled)
        return cls(people[occurring], None, sampled[occurring])._added_up()

    @classmethod
    def total(cls, *parts: PopulationClasses) -> PopulationClasses:
        """Return the sizes of the classes of several partitions. Classes overlap in all partitions or in none."""
        people, multiplicities = (
            np.concatenate(arrays)
            for arrays in zip(*((part.people, part.multiplicities) for part in parts), strict=True)
        )
        sampled = [part.sampled for part in parts if part.sampled is not None]
        return cls(people, np.concatenate(sampled) if sampled else None, multiplicities)._added_up()

    def _added_up(self) -> PopulationClasses:
        """Return the sizes with equal pairs of sizes counted together, in ascending order."""
        sizes = [self.people] if self.sampled is None else [self.people, self.sampled]
        order = np.lexsort(sizes[::-1])
        arranged = [each[order] for each in sizes]
        differ = np.any([each[1:] != each[:-1] for each in arranged], axis=0)
        starts = np.flatnonzero(np.append(np.ones(min(1, len(order)), bool), differ))
        people, *sampled = (each[starts] for each in arranged)
        return PopulationClasses(
            people, sampled[0] if sampled else None, np.add.reduceat(self.multiplicities[order], starts)
        )

    @property
    def rows_of_size(self) -> dict[int, int]:
        """The rows of the sample, by the size of their class in the population, ascending."""
        rows = self.multiplicities if self.sampled is None else self.multiplicities * self.sampled
        rows_by_size: dict[int, int] = {}
        for size, count in zip(self.people.tolist(), rows.tolist(), strict=True):
            if count:
                rows_by_size[size] = rows_by_size.get(size, 0) + count
        return rows_by_size

    def risks(self, threshold: float) -> PopulationRisks:
        """Return journalist and marketer risk, and presence. Sums are of whole numbers, and each is rounded once."""
        of_size = self.rows_of_size
        rows = sum(of_size.values())
        marketer = math.fsum(rows_there / size for size, rows_there in of_size.items()) / rows
        at_risk = sum(rows_there for size, rows_there in of_size.items() if 1 / size > threshold)
        smallest = min(of_size)
        classes, average, presence = None, math.nan, None
        if self.sampled is not None:
            numbers = np.where(self.sampled > 0, self.multiplicities, 0)
            classes = int(numbers.sum())
            average = max(classes / int((self.people * numbers).sum()), marketer)
            presence = Presence.from_classes(self.sampled, self.people, self.multiplicities, threshold)
        return PopulationRisks(
            rows=rows,
            classes=classes,
            k_map=smallest,
            threshold=threshold,
            journalist=AttackRisk(1 / smallest, average, at_risk / rows),
            marketer=marketer,
            presence=presence,
        )


class MatchedClasses(NamedTuple):
    """The classes of a table, or of a partition, in a population.

    present: the classes of highest presence, in order.
    """

    sizes: PopulationClasses
    present: Sequence[RankedClass]

    @classmethod
    def from_matched(
        cls, columns: JoinedColumns, ranking: PresenceRanking, matched: MatchedRows, engine: Engine
    ) -> MatchedClasses:
        """Return the classes of the rows of a partition; if missing values match every value, of all rows."""
        if not any(columns.wildcards):
            sizes = PopulationClasses.from_sizes(matched.sampled, matched.in_population)
            return cls(sizes, ranking.first(columns, matched))
        if not len(matched.keys):
            return cls(PopulationClasses.from_rows(matched.sampled, matched.in_population), [])
        codes = columns.layout.unpack(matched.keys)
        people = class_sizes_there(columns, codes, matched.in_population, engine)
        return cls(PopulationClasses.from_rows(matched.sampled, people), [])

    @classmethod
    def total(cls, most: int, *parts: MatchedClasses) -> MatchedClasses:
        """Return the classes of several partitions. most: how many classes of the highest presence are wanted."""
        present = sorted((ranked for part in parts for ranked in part.present), key=itemgetter(0))
        return cls(PopulationClasses.total(*(part.sizes for part in parts)), present[:most])


# The number of bands of equal width in which presence between 0 and 1 is counted.
BANDS = 10


@dataclass(frozen=True)
class PresenceBand(Record):
    """The classes of the population with a presence in one band.

    A band is from `least` up to, not including, `most`. Two more bands are for a presence of exactly 0 and of exactly
    1; their `least` and `most` are equal. classes: number of classes. people: their people in the population. rows:
    their rows in the table.
    """

    least: float
    most: float
    classes: int
    people: int
    rows: int


@dataclass(frozen=True)
class Presence(Record):
    """The presence of the people of a population in a table that is a part of it (delta-presence).

    The presence of a class is f / F, its f rows in the table as a share of its F people in the population. It is the
    probability that a person of the class is in the table, for an attacker who knows the sizes of classes. The table is
    (lowest, highest)-present.

    lowest: float, in [0, 1]. The lowest presence of a class of the population; 0 for a class without a row.
    highest: float, in (0, 1]. The highest presence of a class.
    average: float, in (0, 1]. The mean over the people of the population: the share of the people that is in the table.
    classes: int. Classes of the population.
    absent_classes: int. Classes without a row in the table.
    people: int. People of the population.
    threshold: float. The highest acceptable presence.
    rows_above: int. Rows of the table in classes with a presence above the threshold.
    share_above: float, in [0, 1]. These rows as a share of all rows.
    histogram: list of PresenceBand. Classes, people and rows by presence: 0, ten bands between 0 and 1, and 1.
    """

    lowest: float
    highest: float
    average: float
    classes: int
    absent_classes: int
    people: int
    threshold: float
    rows_above: int
    share_above: float
    histogram: list[PresenceBand]

    @classmethod
    def from_classes(
        cls,
        sampled: npt.NDArray[np.int64],
        people: npt.NDArray[np.int64],
        multiplicities: npt.NDArray[np.int64],
        threshold: float,
    ) -> Presence:
        """Return the presence of the people of some classes.

        sampled: rows of a class in the table. people: people of the class in the population. multiplicities: number of
        classes with these sizes. threshold: the highest acceptable presence.
        """
        presence = sampled / people
        rows = sampled * multiplicities
        above = int(rows[presence > threshold].sum())
        all_rows, everybody = int(rows.sum()), int((people * multiplicities).sum())
        return cls(
            lowest=float(presence.min()),
            highest=float(presence.max()),
            average=all_rows / everybody,
            classes=int(multiplicities.sum()),
            absent_classes=int(multiplicities[sampled == 0].sum()),
            people=everybody,
            threshold=threshold,
            rows_above=above,
            share_above=above / all_rows,
            histogram=_histogram(sampled, people, multiplicities),
        )


def _histogram(
    sampled: npt.NDArray[np.int64], people: npt.NDArray[np.int64], multiplicities: npt.NDArray[np.int64]
) -> list[PresenceBand]:
    """Return classes, people and rows by presence; see `Presence`."""
    band = (sampled > 0).astype(np.int64)
    for step in range(1, BANDS + 1):
        # Counts a band if sampled >= step / BANDS * people. step * people could overflow 64 bits.
        band += sampled >= step * (people // BANDS) - (-step * (people % BANDS) // BANDS)
    bands = []
    for place, (least, most) in enumerate([(0, 0), *((step, step + 1) for step in range(BANDS)), (BANDS, BANDS)]):
        some = band == place
        counted = [
            int(each[some].sum()) for each in (multiplicities, people * multiplicities, sampled * multiplicities)
        ]
        bands.append(PresenceBand(least / BANDS, most / BANDS, *counted))
    return bands


@dataclass(frozen=True)
class PresentClass(Record):
    """An equivalence class of a table that is a part of a population.

    quasi_identifiers: mapping of column name to value. The values that the rows agree on, None for missing. rows: rows
    of the table. people: people of the population. presence: rows / people, in (0, 1].
    """

    quasi_identifiers: Mapping[Hashable, Any]
    rows: int
    people: int
    presence: float


# The sort key of classes: highest presence, most rows, lowest values.
Rank = tuple[float, int, tuple[int, ...]]
RankedClass = tuple[Rank, PresentClass]


class PresenceRanking(NamedTuple):
    """The ranking of classes by presence, the highest first.

    orders: the `value_order` of each quasi-identifier of the table. most: how many classes are wanted.
    """

    orders: Sequence[npt.NDArray[np.int64]]
    most: int

    @classmethod
    def from_columns(cls, most: int, columns: JoinedColumns) -> PresenceRanking:
        """Return the ranking of classes. most: how many are wanted. columns: the quasi-identifiers of both tables."""
        return cls(list(map(value_order, columns.sample)) if most else [], most)

    def first(self, columns: JoinedColumns, matched: MatchedRows) -> list[RankedClass]:
        """Return the classes of highest presence among distinct rows of both tables, at most as many as are wanted."""
        if not self.most:
            return []
        sampled_rows = matched.some(matched.sampled > 0)
        people = np.maximum(sampled_rows.sampled, sampled_rows.in_population)
        presence = sampled_rows.sampled / people
        kept = highest_places(presence, self.most)
        # Very many classes may share the last presence: classes of one row and one person, for example. Only classes
        # with the most rows are kept, since sorting all by their values takes long.
        last = presence[kept].min(initial=1.0)
        alike, above = kept[presence[kept] == last], kept[presence[kept] > last]
        most_rows = highest_places(sampled_rows.sampled[alike], self.most - len(above))
        kept = np.concatenate([above, alike[most_rows]])
        # Joined codes of the table's values are the table's codes, except that missing is the last code in both.
        both = zip(columns.layout.unpack(sampled_rows.keys[kept]), self.orders, strict=True)
        codes = [np.minimum(joined, len(order) - 1) for joined, order in both]
        ranks = [order[own] for own, order in zip(codes, self.orders, strict=True)]
        sizes = (sampled_rows.sampled[kept], people[kept], presence[kept])
        first = np.lexsort((*reversed(ranks), -sizes[0], -sizes[2]))[: self.most]
        ranked = []
        for place in first:
            values = {
                column.name: column.values([int(own[place])])[0]
                for column, own in zip(columns.sample, codes, strict=True)
            }
            present = PresentClass(values, *(each[place].item() for each in sizes))
            ranked.append(((-present.presence, -present.rows, tuple(int(own[place]) for own in ranks)), present))
        return ranked
