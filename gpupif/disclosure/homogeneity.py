"""Group privacy: equivalence classes of several rows that nearly agree on a sensitive attribute.

Whoever is known to be in such a class has nothing to hide in: the attribute of all its people is told without anybody
being told from the others.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engines.cpu.counting import Numbered, SubsetCounter, number_rows
from ..utils.display import json_value

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..encoding.column import Column
    from ..rows.threads import Workers

# Entropies that agree to so many places are equal: they differ by rounding.
PLACES = 12


@dataclass(frozen=True)
class Group:
    """An equivalence class of at least two rows.

    quasi_identifiers: the values that its rows agree on, by column, None for missing. rows: how many. attribute: the
    sensitive attribute; value: its most frequent value there; share: of the rows that have it, in (0, 1]; entropy: of
    the attribute's values there, bits.
    """

    quasi_identifiers: Mapping[Hashable, Any]
    rows: int
    attribute: Hashable
    value: Any
    share: float
    entropy: float

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain numbers, text and dictionaries, ready for JSON."""
        return {
            "quasi_identifiers": {str(name): json_value(value) for name, value in self.quasi_identifiers.items()},
            **{key: json_value(value) for key, value in vars(self).items() if key != "quasi_identifiers"},
        }


# The order of groups: the highest share, the lowest entropy, the most rows, the first attribute, the lowest values.
Rank = tuple[float, float, int, int, tuple[int, ...]]


@dataclass(frozen=True)
class Homogeneous:
    """Of a sensitive attribute in some of a table's classes, or of several attributes, in all of it.

    first: the most homogeneous classes of several rows, in their order. classes: how many classes of several rows have
    one value; rows: theirs.
    """

    first: Sequence[tuple[Rank, Group]]
    classes: int
    rows: int

    @classmethod
    def total(cls, parts: Sequence[Homogeneous], most: int) -> Homogeneous:
        """Of several together; most: how many groups are wanted."""
        first = sorted((one for part in parts for one in part.first), key=lambda one: one[0])
        return cls(first[:most], sum(part.classes for part in parts), sum(part.rows for part in parts))


def find_homogeneous(
    columns: Sequence[Column],
    known: int,
    targets: Sequence[int],
    orders: Sequence[npt.NDArray[np.int64]],
    most: int,
    workers: Workers,
    times: npt.NDArray[np.int64] | None = None,
) -> dict[int, Homogeneous]:
    """The most homogeneous classes of several rows, `most` of them, for each of some sensitive attributes.

    columns: the quasi-identifiers, the first `known` of them, then sensitive attributes; targets: places of these.
    orders: of each column the `value_order`. times: how often each row occurs, None: once.

    The highest share comes first, of equal ones the lowest entropy, then the most rows, then the lowest values of the
    quasi-identifiers.
    """
    codes = [_in_order(columns[place], orders[place]) for place in range(known)]
    numbered = number_rows(codes, [column.cardinality for column in columns[:known]], workers, times)
    back = {place: np.argsort(orders[place]) for place in (*range(known), *targets)}
    found = {}
    for target in targets:
        column = columns[target]
        share = _Shares(numbered, _in_order(column, orders[target]), column.cardinality, workers, times)
        groups: list[tuple[Rank, Group]] = []
        for number in share.first(most):
            of_class = tuple(int(part[share.classes[number]]) for part in numbered.combinations.codes)
            values = {
                columns[place].name: columns[place].values([int(back[place][code])])[0]
                for place, code in enumerate(of_class)
            }
            value = column.values([int(back[target][share.values[number]])])[0]
            size, bits = int(share.sizes[number]), float(share.entropies[number])
            part = int(share.tops[number]) / size
            rank = (-part, float(share.rounded[number]), -size, target, of_class)
            groups.append((rank, Group(values, size, column.name, value, part, bits)))
        whole = share.tops == share.sizes
        found[target] = Homogeneous(groups, int(whole.sum()), int(share.sizes[whole].sum()))
    return found


def _in_order(column: Column, order: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """The codes of a column renumbered in the order of its values."""
    codes = column.on_host().codes
    return codes if (order == np.arange(len(order))).all() else order.astype(codes.dtype)[codes]


class _Shares:
    """Of each class of several rows: which it is, its rows, the rows of its most frequent value, that, the entropy."""

    def __init__(
        self,
        numbered: Numbered,
        codes: npt.NDArray[Any],
        cardinality: int,
        workers: Workers,
        times: npt.NDArray[np.int64] | None,
    ) -> None:
        sizes = numbered.combinations.counts
        counter = SubsetCounter([[0, 1]], [len(sizes), cardinality], len(codes), workers)
        counter.add([numbered.number, codes], times)
        cells = counter.combinations(0)
        starts = np.searchsorted(cells.codes[0], np.arange(len(sizes), dtype=cells.codes[0].dtype))
        tops = np.maximum.reduceat(cells.counts, starts)
        sums = np.add.reduceat(cells.counts * np.log2(cells.counts), starts)
        firsts = np.flatnonzero(cells.counts == tops[cells.codes[0]])
        _, place = np.unique(cells.codes[0][firsts], return_index=True)
        several = np.flatnonzero(sizes > 1)
        self.classes = several
        self.sizes, self.tops = sizes[several], tops[several]
        self.values = cells.codes[1][firsts[place]][several]
        bits = np.maximum(0.0, np.log2(self.sizes) - sums[several] / self.sizes)
        self.entropies = np.where(self.tops == self.sizes, 0.0, bits)
        self.rounded = np.round(self.entropies, PLACES)

    def first(self, most: int) -> list[int]:
        """The places of the most homogeneous."""
        shares = self.tops / self.sizes
        kept = np.arange(len(shares))
        if most < len(shares):
            kept = np.flatnonzero(shares >= np.partition(shares, -most)[-most])
        order = np.lexsort((-self.sizes[kept], self.rounded[kept], -shares[kept]))
        return kept[order][:most].tolist()  # type: ignore[no-any-return]
