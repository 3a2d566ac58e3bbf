"""Presence: how likely somebody of a population is to be in a table that is a part of it.

Whoever learns that somebody is in a table of patients has learnt enough, without a row of the table to go with it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..attack.joined_columns import JoinedColumns
from ..attack.population import MatchedRows
from ..encoding.column import value_order
from ..utils.display import Record

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
    def of(
        cls,
        sampled: npt.NDArray[np.int64],
        people: npt.NDArray[np.int64],
        times: npt.NDArray[np.int64],
        threshold: float,
    ) -> Presence:
        """Of classes of so many rows in the table and people in the population; times: how many there are of each."""
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
    def of(cls, most: int, columns: JoinedColumns) -> PresenceRanking:
        """Of the quasi-identifiers of both tables."""
        return cls(list(map(value_order, columns.sample)) if most else [], most)

    def first(self, columns: JoinedColumns, matched: MatchedRows) -> list[RankedClass]:
        """Of the distinct rows of both tables those of the highest presence, at most as many as are wanted."""
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
    """Of some places those of the highest values, so many and others whose values are as high as the last of these."""
    own = values[places]
    return places if most >= len(own) else places[own >= np.partition(own, -most)[-most]]
