"""Group privacy: equivalence classes of several rows that nearly agree on a sensitive attribute.

Whoever is known to be in such a class has nothing to hide in: the attribute of all its people is told without anybody
being told from the others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..encoding.column import Column
from ..engines.cpu.counting import NumberedRows, SubsetCounter, number_rows
from ..rows.threads import Workers
from ..utils.arrays import on_host
from ..utils.display import Record

# Entropies that agree to so many places are equal: they differ by rounding.
PLACES = 12


@dataclass(frozen=True)
class Group(Record):
    """An equivalence class of at least two rows.

    quasi_identifiers: the values that its rows agree on, by column, None for missing. rows: how many. attribute: the
    sensitive attribute; value: its most frequent value there; share: of the rows that have it, in (0, 1]; entropy: of
    the attribute's values there, bits. With sampling weights share and entropy are of the people that rows stand for.
    Where missing values match every value, it is all rows that match these values, and share and entropy are of the
    known values of the attribute.
    """

    quasi_identifiers: Mapping[Hashable, Any]
    rows: int
    attribute: Hashable
    value: Any
    share: float
    entropy: float


# The order of groups: the highest share, the lowest entropy, the most rows, the first attribute, the lowest values.
Rank = tuple[float, float, int, int, tuple[int, ...]]


@dataclass(frozen=True)
class Homogeneous:
    """The homogeneous classes of a sensitive attribute in a partition, or of several attributes in a table.

    first: the most homogeneous classes of several rows, in their order. classes: how many classes of several rows have
    one value; rows: theirs.
    """

    first: Sequence[tuple[Rank, Group]]
    classes: int
    rows: int

    @classmethod
    def total(cls, parts: Sequence[Homogeneous], most: int) -> Homogeneous:
        """Return the classes of several partitions or attributes; most: how many groups are wanted."""
        first = sorted((one for part in parts for one in part.first), key=lambda one: one[0])
        return cls(first[:most], sum(part.classes for part in parts), sum(part.rows for part in parts))


class Ranking(NamedTuple):
    """Sensitive attributes and quasi-identifiers as groups are ranked by them.

    columns: the quasi-identifiers, the first `known` of them, then sensitive attributes; with codes. orders: of each
    column the `value_order`. most: how many groups are wanted.
    """

    columns: Sequence[Column]
    known: int
    orders: Sequence[npt.NDArray[np.int64]]
    most: int

    def with_codes(self, codes: Sequence[npt.NDArray[Any]]) -> Ranking:
        """Return the ranking with these codes of the columns."""
        return self._replace(
            columns=[replace(column, codes=on_host(own)) for column, own in zip(self.columns, codes, strict=True)]
        )

    def in_order(self, place: int) -> npt.NDArray[Any]:
        """The codes of a column renumbered in the order of its values."""
        codes, order = self.columns[place].codes, self.orders[place]
        return codes if (order == np.arange(len(order))).all() else order.astype(codes.dtype)[codes]

    def value(self, place: int, rank: int) -> Any:
        """The value of a column at a place in the order of its values, None for missing."""
        return self.columns[place].values([int(np.flatnonzero(self.orders[place] == rank)[0])])[0]

    def group(self, scored_column: int, shares: ValueShares, number: int) -> tuple[Rank, Group]:
        """Return the class at a place in `shares`, and its rank."""
        of_class = tuple(int(codes[number]) for codes in shares.codes)
        values = {self.columns[place].name: self.value(place, code) for place, code in enumerate(of_class)}
        size, share, bits = int(shares.rows[number]), float(shares.shares[number]), float(shares.entropies[number])
        rank = (-share, float(shares.rounded[number]), -size, scored_column, of_class)
        value = self.value(scored_column, shares.value(number))
        return rank, Group(values, size, self.columns[scored_column].name, value, share, bits)

    def homogeneous(self, scored_column: int, shares: ValueShares) -> Homogeneous:
        """The most homogeneous of some classes."""
        groups = [self.group(scored_column, shares, number) for number in shares.first(self.most)]
        whole = shares.shares == 1.0
        return Homogeneous(groups, int(whole.sum()), int(shares.rows[whole].sum()))


class ValueShares(NamedTuple):
    """Classes of several rows in which an attribute has a value.

    codes: by quasi-identifier, in the order of values, by which classes are sorted. rows: how many; shares: of the most
    frequent value; entropies: of the values, bits. value: finds the most frequent value of a class, by its place, in
    the order of values.
    """

    codes: Sequence[npt.NDArray[Any]]
    rows: npt.NDArray[np.int64]
    shares: npt.NDArray[np.float64]
    entropies: npt.NDArray[np.float64]
    value: Callable[[int], int]

    @property
    def rounded(self) -> npt.NDArray[np.float64]:
        """Entropies without what differs by rounding."""
        return np.round(self.entropies, PLACES) + 0.0

    def first(self, most: int) -> list[int]:
        """The places of the most homogeneous."""
        kept = np.arange(len(self.shares))
        if most < len(kept):
            kept = np.flatnonzero(self.shares >= np.partition(self.shares, -most)[-most])
        order = np.lexsort((-self.rows[kept], self.rounded[kept], -self.shares[kept]))
        return kept[order][:most].tolist()  # type: ignore[no-any-return]


def find_homogeneous(
    ranking: Ranking,
    scored_columns: Sequence[int],
    workers: Workers,
    times: npt.NDArray[np.int64] | None = None,
    people: npt.NDArray[np.int64] | None = None,
) -> dict[int, Homogeneous]:
    """The most homogeneous classes of several rows for each of some sensitive attributes.

    scored columns: their places among the columns. times: how often each row occurs, None: once. people: how many
    people, in
    units, these rows stand for together, where they have weights: shares are then of people, in classes that have any.

    The highest share comes first, of equal ones the lowest entropy, then the most rows, then the lowest values of the
    quasi-identifiers.
    """
    columns, known = ranking.columns, ranking.known
    codes = [ranking.in_order(place) for place in range(known)]
    numbered = number_rows(codes, [column.cardinality for column in columns[:known]], workers, times)
    amounts = times if people is None else people
    found = {}
    for scored_column in scored_columns:
        values, cardinality = ranking.in_order(scored_column), columns[scored_column].cardinality
        found[scored_column] = ranking.homogeneous(
            scored_column, _shares(numbered, values, cardinality, workers, amounts)
        )
    return found


def _shares(
    numbered: NumberedRows,
    values: npt.NDArray[Any],
    cardinality: int,
    workers: Workers,
    amounts: npt.NDArray[np.int64] | None,
) -> ValueShares:
    """The shares of values in classes that have any; amounts: what each row counts, None: 1."""
    sizes = numbered.combinations.counts
    counter = SubsetCounter([[0, 1]], [len(sizes), cardinality], len(values), workers)
    counter.add([numbered.number, values], amounts)
    found = counter.combinations(0)
    counted = np.flatnonzero(found.counts)
    # By class, and by value within each.
    of_class, of_value, counts = (array[counted] for array in (*found.codes, found.counts))
    if not len(counts):
        nothing = np.empty(0)
        return ValueShares([], np.empty(0, np.int64), nothing, nothing, int)
    starts = np.concatenate([[0], np.flatnonzero(np.diff(of_class)) + 1])
    tops, totals = np.maximum.reduceat(counts, starts), np.add.reduceat(counts, starts)
    sums = np.add.reduceat(counts * np.log2(counts), starts)
    firsts = np.flatnonzero(counts == np.repeat(tops, np.diff(starts, append=len(counts))))
    classes, place = np.unique(of_class[firsts], return_index=True)
    tops_of = of_value[firsts[place]]
    several = np.flatnonzero(sizes[classes] > 1)
    tops, totals, classes = tops[several], totals[several], classes[several]
    bits = np.maximum(0.0, np.log2(totals) - sums[several] / totals)
    return ValueShares(
        [codes[classes] for codes in numbered.combinations.codes],
        sizes[classes],
        tops / totals,
        np.where(tops == totals, 0.0, bits),
        lambda number: int(tops_of[several[number]]),
    )


def homogeneous_matches(
    ranking: Ranking,
    scored_column: int,
    wild: Sequence[int],
    amounts: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
    scores: Mapping[str, npt.NDArray[np.float64]],
    workers: Workers,
) -> Homogeneous:
    """The most homogeneous classes for an attribute where missing values match every value.

    Each combination of quasi-identifiers that occurs has a class, all rows that match it. wild: the columns whose
    missing values do, the last code. amounts: what each row counts, of values. sizes, scores: of the class of each row
    how many rows it has, and the measures "recursive_1", the highest share of a value, and "entropy".
    """
    codes = [ranking.in_order(place) for place in range(ranking.known)]
    numbered = number_rows(codes, [column.cardinality for column in ranking.columns[: ranking.known]], workers)
    shares = scores["recursive_1"]
    # Rows of weight 0 are no class's first.
    counted = np.flatnonzero(amounts)
    _, place = np.unique(numbered.number[counted], return_index=True)
    first = counted[place]
    first = first[(sizes[first] > 1) & ~np.isnan(shares[first])]
    missing = {column: ranking.orders[column][len(ranking.columns[column].counts) - 1] for column in wild}
    values = ranking.in_order(scored_column)

    def value(number: int) -> int:
        matching = amounts > 0
        for column, own in enumerate(codes):
            if column not in missing:
                matching &= own == own[first[number]]
            elif own[first[number]] != missing[column]:
                matching &= (own == own[first[number]]) | (own == missing[column])
        if scored_column in missing:
            matching &= values != missing[scored_column]
        totals = np.zeros(len(ranking.orders[scored_column]), np.int64)
        np.add.at(totals, values[matching], amounts[matching])
        return int(totals.argmax())

    entropies = np.where(shares[first] == 1.0, 0.0, scores["entropy"][first])
    of_class = [own[first] for own in codes]
    return ranking.homogeneous(scored_column, ValueShares(of_class, sizes[first], shares[first], entropies, value))
