"""Group privacy: equivalence classes of several rows that nearly agree on a sensitive attribute.

If a person is known to be in such a class, the attribute is nearly known too, although nobody is re-identified.
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
from ..utils.arrays import highest_places, on_host
from ..utils.display import Record

# Decimal places of entropies that are compared: further places differ by rounding.
PLACES = 12


@dataclass(frozen=True)
class Group(Record):
    """An equivalence class of at least two rows.

    quasi_identifiers: mapping of column name to value. The values that the rows agree on, None for missing.
    rows: int. Rows of the class.
    attribute: column name. The sensitive attribute.
    value: the most frequent value of the attribute in the class.
    share: float, in (0, 1]. The share of the rows that have this value.
    entropy: float, bits. The entropy of the attribute's values in the class.

    With sampling weights, share and entropy count people in place of rows. If missing values match every value, the
    class is all rows that match these values. Share and entropy are then of the known values of the attribute.
    """

    quasi_identifiers: Mapping[Hashable, Any]
    rows: int
    attribute: Hashable
    value: Any
    share: float
    entropy: float


# The sort key of groups: highest share, lowest entropy, most rows, first attribute, lowest values.
Rank = tuple[float, float, int, int, tuple[int, ...]]


@dataclass(frozen=True)
class Homogeneous:
    """The homogeneous classes of a sensitive attribute in a partition, or of several attributes in a table.

    first: the most homogeneous classes of several rows, in order. classes: number of classes of several rows that have
    one value. certain: rows whose class has one value, classes of one row too, each row once.
    """

    first: Sequence[tuple[Rank, Group]]
    classes: int
    certain: int

    @classmethod
    def total(cls, parts: Sequence[Homogeneous], most: int) -> Homogeneous:
        """Return the classes of several partitions or attributes together. most: how many groups are wanted."""
        first = sorted((ranked for part in parts for ranked in part.first), key=lambda ranked: ranked[0])
        return cls(first[:most], sum(part.classes for part in parts), sum(part.certain for part in parts))


class Ranking(NamedTuple):
    """Quasi-identifiers and sensitive attributes, with the order of their values, by which groups are ranked.

    columns: columns with codes: first the quasi-identifiers, then sensitive attributes.
    known_count: number of quasi-identifiers.
    orders: the `value_order` of each column.
    most: how many groups are wanted.
    """

    columns: Sequence[Column]
    known_count: int
    orders: Sequence[npt.NDArray[np.int64]]
    most: int

    def with_codes(self, codes: Sequence[npt.NDArray[Any]]) -> Ranking:
        """Return the ranking with other codes of its columns."""
        return self._replace(
            columns=[replace(column, codes=on_host(own)) for column, own in zip(self.columns, codes, strict=True)]
        )

    def in_order(self, place: int) -> npt.NDArray[Any]:
        """Return the codes of a column, renumbered in the order of its values."""
        codes, order = self.columns[place].codes, self.orders[place]
        return codes if (order == np.arange(len(order))).all() else order.astype(codes.dtype)[codes]

    def number_classes(self, workers: Workers, multiplicities: npt.NDArray[np.int64] | None = None) -> NumberedRows:
        """Return the classes, sorted by the values of their quasi-identifiers, and the number of each row's class.

        multiplicities: how often each row occurs. None: once. Values are those of `in_order`.
        """
        codes = [self.in_order(place) for place in range(self.known_count)]
        cardinalities = [column.cardinality for column in self.columns[: self.known_count]]
        return number_rows(codes, cardinalities, workers, multiplicities)

    def values_of(self, of_class: Sequence[int]) -> dict[Hashable, Any]:
        """Return the quasi-identifiers of a class. of_class: the rank of each of its values in the order of values."""
        return {self.columns[place].name: self.value(place, code) for place, code in enumerate(of_class)}

    def value(self, place: int, rank: int) -> Any:
        """Return the value of a column at a rank in the order of its values; None for missing."""
        return self.columns[place].values([int(np.flatnonzero(self.orders[place] == rank)[0])])[0]

    def group(self, scored_column: int, shares: ValueShares, number: int) -> tuple[Rank, Group]:
        """Return one class of `shares`, by its number there, and its rank."""
        of_class = tuple(int(codes[number]) for codes in shares.codes)
        size, share, bits = int(shares.rows[number]), float(shares.shares[number]), float(shares.entropies[number])
        rank = (-share, float(shares.rounded[number]), -size, scored_column, of_class)
        value = self.value(scored_column, shares.value(number))
        return rank, Group(self.values_of(of_class), size, self.columns[scored_column].name, value, share, bits)

    def homogeneous(self, scored_column: int, shares: ValueShares) -> Homogeneous:
        """Return the most homogeneous of some classes, and the number of classes with one value."""
        groups = [self.group(scored_column, shares, number) for number in shares.first(self.most)]
        whole = shares.shares == 1.0
        return Homogeneous(groups, int(whole.sum()), int(shares.rows[whole].sum()) + shares.alone)


class ValueShares(NamedTuple):
    """The classes of several rows in which an attribute has a value, sorted by their quasi-identifiers.

    codes: of each quasi-identifier, in the order of its values. rows: rows of each class. shares: the share of the most
    frequent value. entropies: the entropy of the values, bits. value: returns the rank of the most frequent value of a
    class, by the class's number. alone: the number of rows that have a value and are alone in their class.
    """

    codes: Sequence[npt.NDArray[Any]]
    rows: npt.NDArray[np.int64]
    shares: npt.NDArray[np.float64]
    entropies: npt.NDArray[np.float64]
    value: Callable[[int], int]
    alone: int

    @property
    def rounded(self) -> npt.NDArray[np.float64]:
        """The entropies without digits that differ by rounding."""
        return np.round(self.entropies, PLACES) + 0.0

    def first(self, most: int) -> list[int]:
        """Return the numbers of the `most` most homogeneous classes, in order."""
        kept = highest_places(self.shares, most)
        order = np.lexsort((-self.rows[kept], self.rounded[kept], -self.shares[kept]))
        return kept[order][:most].tolist()  # type: ignore[no-any-return]


class ClassValues(NamedTuple):
    """The values of an attribute in the classes of a partition in which it has one.

    classes: the number of each class, ascending. starts: the place of its first value. numbers: the number of its
    values. values: class after class the ranks of its values, ascending. counts: how often each value occurs.
    """

    classes: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int64]
    values: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    @classmethod
    def from_rows(
        cls,
        numbered: NumberedRows,
        values: npt.NDArray[Any],
        cardinality: int,
        workers: Workers,
        amounts: npt.NDArray[np.int64] | None,
    ) -> ClassValues:
        """Return the values of the classes of some rows.

        numbered: rows numbered by class. values: the rank of the attribute's value in each row. cardinality: number of
        ranks. amounts: how much each row counts. None: 1.
        """
        counter = SubsetCounter([[0, 1]], [len(numbered.combinations.counts), cardinality], len(values), workers)
        counter.add([numbered.number, values], amounts)
        combinations = counter.combinations(0)
        counted = np.flatnonzero(combinations.counts)
        # Sorted by class, then by value, so that the rows from one start to the next are a class.
        of_class, of_value, counts = (array[counted] for array in (*combinations.codes, combinations.counts))
        starts = np.flatnonzero(np.diff(of_class, prepend=-1))
        return cls(of_class[starts], starts, np.diff(starts, append=len(counts)), of_value, counts)

    @property
    def totals(self) -> npt.NDArray[np.int64]:
        """The sum of the counts of each class."""
        return np.add.reduceat(self.counts, self.starts)

    def shares(self, numbered: NumberedRows) -> ValueShares:
        """Return the shares of values in classes of several rows."""
        counts, starts, sizes = self.counts, self.starts, numbered.combinations.counts[self.classes]
        if not len(counts):
            nothing = np.empty(0)
            return ValueShares([], np.empty(0, np.int64), nothing, nothing, int, 0)
        tops, totals = np.maximum.reduceat(counts, starts), self.totals
        sums = np.add.reduceat(counts * np.log2(counts), starts)
        # The first of the most frequent values of each class.
        firsts = np.flatnonzero(counts == np.repeat(tops, self.numbers))
        firsts = firsts[np.searchsorted(firsts, starts)]
        kept = np.flatnonzero(sizes > 1)
        tops, totals = tops[kept], totals[kept]
        bits = np.maximum(0.0, np.log2(totals) - sums[kept] / totals)
        return ValueShares(
            [codes[self.classes[kept]] for codes in numbered.combinations.codes],
            sizes[kept],
            tops / totals,
            np.where(tops == totals, 0.0, bits),
            lambda number: int(self.values[firsts[kept[number]]]),
            int((sizes == 1).sum()),
        )


def homogeneous_matches(
    ranking: Ranking,
    scored_column: int,
    numbered: NumberedRows,
    wild: Sequence[int],
    multiplicities: npt.NDArray[np.int64],
    amounts: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
    scores: Mapping[str, npt.NDArray[np.float64]],
) -> Homogeneous:
    """Return the most homogeneous classes for one attribute if missing values match every value.

    Each combination of quasi-identifiers that occurs has a class: all rows that match it. Classes overlap, so
    `certain` counts the rows that have a combination whose class has one value.

    ranking: columns with codes.
    scored_column: place of the attribute among the columns.
    numbered: the combinations of quasi-identifiers; see `Ranking.number_classes`.
    wild: places of the columns whose missing values, the last code, match every value.
    multiplicities: how often each row occurs.
    amounts: how much each row counts in the shares of values.
    sizes: rows of the class of each row.
    scores: for each row, "recursive_1" (the highest share of a value in its class) and "entropy" (bits).
    """
    codes = [ranking.in_order(place) for place in range(ranking.known_count)]
    shares = scores["recursive_1"]
    # Rows of weight 0 are in no class, so the scores of a class are read at its first row of a weight above 0.
    counted = np.flatnonzero(amounts)
    _, place = np.unique(numbered.number[counted], return_index=True)
    first = counted[place]
    first = first[~np.isnan(shares[first])]
    of_combination = np.bincount(numbered.number, multiplicities)[numbered.number]
    alone = int(of_combination[first[sizes[first] == 1]].sum())
    first = first[sizes[first] > 1]
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
    several = ValueShares(of_class, sizes[first], shares[first], entropies, value, alone)
    certain = int(multiplicities[shares == 1.0].sum())
    return replace(ranking.homogeneous(scored_column, several), certain=certain)
