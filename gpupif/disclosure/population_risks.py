"""Risk of a sample whose equivalence classes are known in the population, too: the journalist's, and presence."""

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
from ..utils.display import Record
from ..utils.validation import MOST, share
from .class_risks import AttackRisk
from .class_sizes import size_array

# Classes that are sorted by size at a time.
BLOCK = 1 << 16


@dataclass(frozen=True)
class PopulationRisks(Record):
    """Risk of a sample whose equivalence classes are known in the population, too; made by `population_risks`.

    rows, classes: of the sample. k_map: people in the smallest of these classes in the population. threshold: a risk
    above it counts as at risk. journalist: the attacker does not know who is in the sample and looks for anyone.
    marketer: expected share of the sample's rows that are re-identified when the attacker tries all. presence: of the
    people of the population in the sample (delta-presence).

    Where missing values match every value, the people of a row are all of the population that match it: F, of which
    k_map is the least and marketer the mean of 1/F over rows. Classes then overlap, so that there is no number of them,
    nor a mean size: classes is None, and the average of the journalist, which takes one, NaN. Nor is a share of a class
    a probability then, for its people are also those of others: presence is None.
    """

    rows: int
    classes: int | None
    k_map: int
    threshold: float
    journalist: AttackRisk
    marketer: float
    presence: Presence | None


def population_risks(sample_sizes: Any, population_sizes: Any, *, threshold: float = 0.2) -> PopulationRisks:
    """Journalist and marketer risk of a sample, and presence, from the sizes of classes there and in the population.

    Parameters
    ----------
    sample_sizes, population_sizes:
        For each equivalence class its rows f in the sample and its people F >= f in the population, aligned. Classes of
        the population that are not in the sample, f = 0, matter for presence only, which is of the classes given.
    threshold:
        Highest acceptable probability of re-identification, and of presence, in (0, 1].

    Returns
    -------
    PopulationRisks
        With n rows and J classes: k-map min F; journalist risk of a row 1/F, so highest 1 / min F, at risk the share of
        rows with 1/F > threshold, average max(J / sum F, (1/n) sum f/F); marketer risk (1/n) sum f/F. All risks in
        (0, 1], at_risk in [0, 1]. Presence of a class f/F, in [0, 1]: see `Presence`. The order of classes does not
        matter, to the last bit.

    Raises
    ------
    InputError
        Sizes that are no whole numbers, in the population from 1 on, of different number, or smaller in the population
        than in the sample; a sample without rows.

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
    """Equivalence classes by their size in a sample and in the population: integers, so that parts add up exactly.

    people: of a class in the population, ascending. sampled: its rows in the sample, 0 where it has none; None where
    classes overlap, for missing values match every value. times: how many classes have these sizes; where they
    overlap, how many rows of the sample have such a class.
    """

    people: npt.NDArray[np.int64]
    sampled: npt.NDArray[np.int64] | None
    times: npt.NDArray[np.int64]

    @classmethod
    def from_sizes(cls, sampled: npt.NDArray[np.int64], there: npt.NDArray[np.int64]) -> PopulationClasses:
        """Return classes by their rows in the sample and their people in the population, at least as many."""
        blocks = [slice(start, start + BLOCK) for start in range(0, len(sampled) or 1, BLOCK)]
        return cls.total(*(cls._of_block(sampled[block], there[block]) for block in blocks))

    @classmethod
    def _of_block(cls, sampled: npt.NDArray[np.int64], there: npt.NDArray[np.int64]) -> PopulationClasses:
        people, numbers = np.maximum(sampled, there), int(sampled.max(initial=0)) + 1
        if int(people.max(initial=0)) * numbers > MOST:
            return cls(people, sampled, np.ones(len(sampled), np.int64))._added_up()
        # Both sizes as one number: sorted in half of the time.
        pairs, times = np.unique(people * numbers + sampled, return_counts=True)
        return cls(pairs // numbers, pairs % numbers, times)

    @classmethod
    def from_rows(cls, sampled: npt.NDArray[np.int64], people: npt.NDArray[np.int64]) -> PopulationClasses:
        """Return the classes of distinct rows, one for each, which overlap; sampled: multiplicities in the sample.

        people: of the population, in the class of each. Rows that are not in the sample are left out.
        """
        found = np.flatnonzero(sampled)
        return cls(people[found], None, sampled[found])._added_up()

    @classmethod
    def total(cls, *parts: PopulationClasses) -> PopulationClasses:
        """Classes of several parts together, which overlap in all of them or in none."""
        people, times = (
            np.concatenate(several) for several in zip(*((one.people, one.times) for one in parts), strict=True)
        )
        sampled = [one.sampled for one in parts if one.sampled is not None]
        return cls(people, np.concatenate(sampled) if sampled else None, times)._added_up()

    def _added_up(self) -> PopulationClasses:
        """The same with each pair of sizes once."""
        sizes = [self.people] if self.sampled is None else [self.people, self.sampled]
        order = np.lexsort(sizes[::-1])
        arranged = [each[order] for each in sizes]
        differ = np.any([each[1:] != each[:-1] for each in arranged], axis=0)
        starts = np.flatnonzero(np.append(np.ones(min(1, len(order)), bool), differ))
        people, *sampled = (each[starts] for each in arranged)
        return PopulationClasses(people, sampled[0] if sampled else None, np.add.reduceat(self.times[order], starts))

    @property
    def rows_of_size(self) -> dict[int, int]:
        """Size of a class in the population to the rows of the sample in such classes, ascending."""
        rows = self.times if self.sampled is None else self.times * self.sampled
        found: dict[int, int] = {}
        for size, some in zip(self.people.tolist(), rows.tolist(), strict=True):
            if some:
                found[size] = found.get(size, 0) + some
        return found

    def risks(self, threshold: float) -> PopulationRisks:
        """Journalist and marketer risk, and presence: of sums of integers, each rounded once."""
        of_size = self.rows_of_size
        rows = sum(of_size.values())
        marketer = math.fsum(found / size for size, found in of_size.items()) / rows
        at_risk = sum(found for size, found in of_size.items() if 1 / size > threshold)
        smallest = min(of_size)
        classes, average, presence = None, math.nan, None
        if self.sampled is not None:
            numbers = np.where(self.sampled > 0, self.times, 0)
            classes = int(numbers.sum())
            average = max(classes / int((self.people * numbers).sum()), marketer)
            presence = Presence.from_classes(self.sampled, self.people, self.times, threshold)
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
    """The classes of a table, or a part of it, in its population. present: those of the highest presence, in order."""

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
        """Return the classes of several partitions; most: how many of the highest presence are wanted."""
        present = sorted((one for part in parts for one in part.present), key=itemgetter(0))
        return cls(PopulationClasses.total(*(part.sizes for part in parts)), present[:most])


# Between 0 and 1 presence is counted in so many bands of equal width.
BANDS = 10


@dataclass(frozen=True)
class PresenceBand(Record):
    """Classes of the population by their presence in the table.

    least, most: of their presence, which is below `most`, but for the bands of exactly 0 and of exactly 1, where both
    are that. classes: how many; people: of the population that are in them; rows: of the table.
    """

    least: float
    most: float
    classes: int
    people: int
    rows: int


@dataclass(frozen=True)
class Presence(Record):
    """Presence of the people of a population in a table that is a part of it (delta-presence).

    The presence delta of a class is its f rows in the table as a share of its F people in the population: how likely
    one of these is to be in the table, for who knows the classes of both. lowest, highest: over all classes of the
    population; those without a row in the table have 0. The table is (lowest, highest)-present. average: over the
    people of the population, so that it is the share of them that is in the table. classes, people: of the population;
    absent_classes: those without a row. threshold: as of the risk; rows_above, share_above: rows of the table in
    classes of a presence above it, and their share. histogram: classes, people and rows by presence: 0, ten bands
    between 0 and 1, and 1, where everybody is in the table.
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
        times: npt.NDArray[np.int64],
        threshold: float,
    ) -> Presence:
        """Return the presence of classes of these rows in the table and people in the population.

        times: how many classes there are of each.
        """
        presence = sampled / people
        rows = sampled * times
        above = int(rows[presence > threshold].sum())
        all_rows, everybody = int(rows.sum()), int((people * times).sum())
        return cls(
            lowest=float(presence.min()),
            highest=float(presence.max()),
            average=all_rows / everybody,
            classes=int(times.sum()),
            absent_classes=int(times[sampled == 0].sum()),
            people=everybody,
            threshold=threshold,
            rows_above=above,
            share_above=above / all_rows,
            histogram=_histogram(sampled, people, times),
        )


def _histogram(
    sampled: npt.NDArray[np.int64], people: npt.NDArray[np.int64], times: npt.NDArray[np.int64]
) -> list[PresenceBand]:
    """Classes by presence; see `Presence`."""
    band = (sampled > 0).astype(np.int64)
    for step in range(1, BANDS + 1):
        # At least step tenths of the people, in numbers that 64 bits hold.
        band += sampled >= step * (people // BANDS) - (-step * (people % BANDS) // BANDS)
    found = []
    for place, (least, most) in enumerate([(0, 0), *((step, step + 1) for step in range(BANDS)), (BANDS, BANDS)]):
        some = band == place
        counted = [int(each[some].sum()) for each in (times, people * times, sampled * times)]
        found.append(PresenceBand(least / BANDS, most / BANDS, *counted))
    return found


@dataclass(frozen=True)
class PresentClass(Record):
    """An equivalence class of a table that is a part of a population.

    quasi_identifiers: the values that its rows agree on, by column, None for missing. rows: of the table; people: of
    the population; presence: rows / people, in (0, 1].
    """

    quasi_identifiers: Mapping[Hashable, Any]
    rows: int
    people: int
    presence: float


# The order of classes: the highest presence, the most rows, the lowest values.
Rank = tuple[float, int, tuple[int, ...]]
RankedClass = tuple[Rank, PresentClass]


class PresenceRanking(NamedTuple):
    """Classes by presence, the highest first.

    orders: by quasi-identifier the `value_order` of the table's column. most: how many classes are wanted.
    """

    orders: Sequence[npt.NDArray[np.int64]]
    most: int

    @classmethod
    def from_columns(cls, most: int, columns: JoinedColumns) -> PresenceRanking:
        """Return the ranking of classes by the quasi-identifiers of both tables."""
        return cls(list(map(value_order, columns.sample)) if most else [], most)

    def first(self, columns: JoinedColumns, matched: MatchedRows) -> list[RankedClass]:
        """Return the distinct rows of both tables of the highest presence, at most as many as are wanted."""
        if not self.most:
            return []
        found = matched.some(matched.sampled > 0)
        people = np.maximum(found.sampled, found.in_population)
        presence = found.sampled / people
        kept = _highest(presence, np.arange(len(presence)), self.most)
        # Most may be alike, of one row and one person, say, and their values, of which there are many, decide.
        last = presence[kept].min(initial=1.0)
        alike, above = kept[presence[kept] == last], kept[presence[kept] > last]
        kept = np.concatenate([above, _highest(found.sampled, alike, self.most - len(above))])
        # Joined values are the table's first, but for missing ones, which are the last in both.
        both = zip(columns.layout.unpack(found.keys[kept]), self.orders, strict=True)
        codes = [np.minimum(joined, len(order) - 1) for joined, order in both]
        ranks = [order[own] for own, order in zip(codes, self.orders, strict=True)]
        sizes = (found.sampled[kept], people[kept], presence[kept])
        first = np.lexsort((*reversed(ranks), -sizes[0], -sizes[2]))[: self.most]
        ranked = []
        for place in first:
            values = {
                column.name: column.values([int(own[place])])[0]
                for column, own in zip(columns.sample, codes, strict=True)
            }
            one = PresentClass(values, *(each[place].item() for each in sizes))
            ranked.append(((-one.presence, -one.rows, tuple(int(own[place]) for own in ranks)), one))
        return ranked


def _highest(values: npt.NDArray[Any], places: npt.NDArray[np.int64], most: int) -> npt.NDArray[np.int64]:
    """Return the places of the `most` highest values, and of all values as high as the last of these."""
    own = values[places]
    return places if most >= len(own) else places[own >= np.partition(own, -most)[-most]]
