"""Group privacy: equivalence classes of several rows that nearly agree on a sensitive attribute.

Whoever is known to be in such a class has nothing to hide in: the attribute of all its people is told without anybody
being told from the others.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpupif.engines.subsets import Numbered, SubsetCounter, number_rows
from gpupif.engines.workers import Workers
from gpupif.summary import json_value
from gpupif.toxic_values import value_order

if TYPE_CHECKING:
    import numpy.typing as npt

    from gpupif.columns import Column

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


@dataclass(frozen=True)
class Homogeneity:
    """groups: the most homogeneous. classes, rows: by attribute, how many classes of several rows have one value."""

    groups: Sequence[Group]
    classes: Mapping[Hashable, int]
    rows: Mapping[Hashable, int]


def find_homogeneous(known: Sequence[Column], sensitive: Sequence[Column], most: int) -> Homogeneity:
    """The most homogeneous classes of several rows, over all sensitive attributes, `most` of them.

    The highest share first, of equal ones the lowest entropy, then the most rows, then the first attribute, then the
    lowest values of the quasi-identifiers.
    """
    found: list[tuple[tuple[float, float, int, int], Group]] = []
    classes: dict[Hashable, int] = {}
    rows: dict[Hashable, int] = {}
    with Workers() as workers:
        orders = [value_order(column) for column in (*known, *sensitive)]
        codes = [_in_order(column, order) for column, order in zip((*known, *sensitive), orders, strict=True)]
        numbered = number_rows(codes[: len(known)], [column.cardinality for column in known], workers)
        for place, column in enumerate(sensitive):
            share = _Shares(numbered, codes[len(known) + place], column.cardinality, workers)
            whole = share.tops == share.sizes
            classes[column.name], rows[column.name] = int(whole.sum()), int(share.sizes[whole].sum())
            back = [np.argsort(order) for order in orders]
            for number in share.first(most):
                of_class = [int(part[share.classes[number]]) for part in numbered.combinations.codes]
                values = {
                    one.name: one.values([int(order[code])])[0]
                    for one, order, code in zip(known, back, of_class, strict=False)
                }
                value = column.values([int(back[len(known) + place][share.values[number]])])[0]
                size, top, bits = int(share.sizes[number]), int(share.tops[number]), float(share.entropies[number])
                group = Group(values, size, column.name, value, top / size, bits)
                found.append(((-group.share, round(bits, PLACES), -size, place), group))
    # Stable: of equals of one attribute the lower values stay first.
    found.sort(key=lambda one: one[0])
    return Homogeneity([group for _, group in found[:most]], classes, rows)


def _in_order(column: Column, order: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """The codes of a column renumbered in the order of its values."""
    codes = column.on_host().codes
    return codes if (order == np.arange(len(order))).all() else order.astype(codes.dtype)[codes]


class _Shares:
    """Of each class of several rows: which it is, its rows, the rows of its most frequent value, that, the entropy."""

    def __init__(self, numbered: Numbered, codes: npt.NDArray[Any], cardinality: int, workers: Workers) -> None:
        sizes = numbered.combinations.counts
        counter = SubsetCounter([[0, 1]], [len(sizes), cardinality], len(codes), workers)
        counter.add([numbered.number, codes])
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

    def first(self, most: int) -> list[int]:
        """The places of the most homogeneous."""
        shares = self.tops / self.sizes
        kept = np.arange(len(shares))
        if most < len(shares):
            kept = np.flatnonzero(shares >= np.partition(shares, -most)[-most])
        order = np.lexsort((-self.sizes[kept], np.round(self.entropies[kept], PLACES), -shares[kept]))
        return kept[order][:most].tolist()  # type: ignore[no-any-return]
