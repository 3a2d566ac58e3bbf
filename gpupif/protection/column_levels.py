"""A column at each level of its hierarchy, as codes, and the information that each level loses.

With the levels as codes the search needs no pass over the rows of the table.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..criteria.counted_table import CountedTable
from ..encoding.column import Column
from ..encoding.merge import label_array
from ..errors import InputError, listed
from ..hierarchies.hierarchy import Hierarchy
from ..hierarchies.proposals import propose_hierarchy
from ..rows.keys import code_type
from ..utils.validation import brief


def with_proposed(
    given: Mapping[Hashable, Hierarchy], table: CountedTable, names: Sequence[Hashable]
) -> dict[Hashable, Hierarchy]:
    """Return the hierarchy of each column in `names`, proposed if none is given, from the population if it has one."""
    proposed_from = {column.name: column for own in (table, table.population) if own for column in own.columns}
    return {name: given.get(name) or propose_hierarchy(proposed_from[name]) for name in names}


@dataclass(frozen=True)
class CodedLevel:
    """The groups of a column at one level of its hierarchy.

    codes: array (codes of the column, missing values too). The number of the group of each value: 0, 1, 2, ...
    labels: array of text. The names of the groups, ascending; at level 0 the values, in the order of the column.
        Missing values are a group of their own, the last, without a label. At the top all cells are one group.
    counts: int64 array (groups). How many rows each group has.
    """

    codes: npt.NDArray[Any]
    labels: pa.Array
    counts: npt.NDArray[np.int64]

    @property
    def cardinality(self) -> int:
        """The number of groups."""
        return len(self.counts)


@dataclass(frozen=True)
class ColumnLevels:
    """A column at each level of its hierarchy.

    levels: from level 0, at which each value is a group, to the lowest level at which all cells of the column are one
        group. This level may be below the top of the hierarchy: higher levels would give the same table. A column that
        has to stay as it is has level 0 alone.
    losses: by level the information that is lost, in bits over all rows, without importance.
    population: the column of the population at the same levels; the highest level then makes one group of both columns.
        None without one.
    """

    column: Column
    levels: Sequence[CodedLevel]
    losses: Sequence[float]
    population: ColumnLevels | None = None

    @classmethod
    def from_hierarchy(cls, column: Column, hierarchy: Hierarchy, population: Column | None = None) -> ColumnLevels:
        """Return the levels of a column. population: the same column of the population.

        Raises InputError for a value that has no place in the hierarchy, and for two levels that do not nest.
        """
        levels = cls._every_level(column, hierarchy)
        if population is None:
            top = next(level for level, coded in enumerate(levels) if coded.cardinality == 1)
            return cls._up_to(top, column, levels)
        try:
            theirs = cls._every_level(population, hierarchy)
        except InputError as error:
            raise InputError(f"population: {error}") from None
        both = list(zip(levels, theirs, strict=True))
        top = next(
            level
            for level, (own, other) in enumerate(both)
            if own.cardinality == other.cardinality == 1 and own.labels.equals(other.labels)
        )
        return replace(cls._up_to(top, column, levels), population=cls._up_to(top, population, theirs))

    @classmethod
    def _up_to(cls, top: int, column: Column, levels: Sequence[CodedLevel]) -> ColumnLevels:
        """Return the levels of a column up to a highest level."""
        used = levels[: top + 1]
        return cls(column, used, [entropy_loss(column.counts, coded.codes) for coded in used])

    @staticmethod
    def _every_level(column: Column, hierarchy: Hierarchy) -> list[CodedLevel]:
        """Return a column at every level of its hierarchy. Raises InputError as `from_hierarchy`."""
        hierarchy = hierarchy.for_column(column.name)
        values = label_array(column)
        levels = [CodedLevel(np.arange(column.cardinality, dtype=code_type(column.cardinality)), values, column.counts)]
        for level in range(1, hierarchy.height):
            levels.append(_coded_level(column, hierarchy.groups(values, level)))
            _check_nested(hierarchy, level, values, levels)
        hierarchy.groups(values, hierarchy.height)
        everything = np.zeros(column.cardinality, np.uint8)
        levels.append(CodedLevel(everything, pa.array([hierarchy.root]), np.array([column.counts.sum()], np.int64)))
        return levels

    @property
    def name(self) -> Hashable:
        """The name of the column."""
        return self.column.name

    @property
    def height(self) -> int:
        """The highest level, at which all cells are one group."""
        return len(self.levels) - 1

    def as_it_is(self) -> ColumnLevels:
        """Return the column at level 0 alone."""
        population = None if self.population is None else self.population.as_it_is()
        return ColumnLevels(self.column, self.levels[:1], self.losses[:1], population)

    def described(self, level: int, most: int) -> str:
        """Return the groups at a level in words, the `most` groups of most rows by name."""
        if level in (0, self.height):
            return "all one group" if level else "as it is"
        coded = self.levels[level]
        labels = [*coded.labels.to_pylist(), *(["(missing)"] if self.column.missing else [])]
        order = np.argsort(-coded.counts, kind="stable")
        return listed([labels[place] for place in order], most, str)

    def upwards(self, low: int, high: int) -> npt.NDArray[Any]:
        """Return for each group at level `low` its group at level `high`, which is at least `low`."""
        below, above = self.levels[low], self.levels[high]
        group = np.zeros(below.cardinality, above.codes.dtype)
        group[below.codes] = above.codes
        return group


def column_levels(table: CountedTable, hierarchies: Mapping[Hashable, Hierarchy]) -> list[ColumnLevels]:
    """Return the levels of each column that has a hierarchy, in the order of the hierarchies.

    Raises InputError for a value that has no place in its hierarchy, and for levels that do not nest.
    """
    population = {} if table.population is None else {column.name: column for column in table.population.columns}
    return [
        ColumnLevels.from_hierarchy(table.columns[table.place(name)], hierarchy, population.get(name))
        for name, hierarchy in hierarchies.items()
    ]


def entropy_loss(counts: npt.NDArray[np.int64], group: npt.NDArray[Any]) -> float:
    """Return the loss n H(X|X'), in bits, of values that become groups. counts: rows by value. group: its group.

    The loss is non-uniform entropy: Gionis & Tassa, k-Anonymization with Minimal Loss of Information (2009). It is the
    same in any order of the values.
    """
    sizes = np.bincount(group, counts)[group]
    return math.fsum(
        count * math.log2(size / count) for count, size in zip(counts.tolist(), sizes.tolist(), strict=True) if count
    )


def _coded_level(column: Column, groups: pa.Array) -> CodedLevel:
    """Return a level as codes. groups: the name of the group of each value."""
    encoded = groups.dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary)
    size = len(order)
    rank = np.empty(size, np.int64)
    rank[order.to_numpy()] = np.arange(size)
    codes = rank[encoded.indices.to_numpy()]
    if column.missing:
        codes = np.append(codes, size)
    # The weights of the sums are whole numbers below 2^53, so that the sums are exact.
    counts = np.bincount(codes, column.counts, size + column.missing).astype(np.int64)
    return CodedLevel(codes.astype(code_type(max(1, len(counts)))), encoded.dictionary.take(order), counts)


def _check_nested(hierarchy: Hierarchy, level: int, values: pa.Array, levels: Sequence[CodedLevel]) -> None:
    """Raise InputError for two values that are one group below a level, but not at the level."""
    below, above = levels[-2], levels[-1]
    first = np.full(below.cardinality, -1)
    # Assignments to one place overwrite each other. In reverse order the first value of each group is left.
    first[below.codes[::-1]] = np.arange(len(below.codes))[::-1]
    other = first[below.codes]
    apart = np.flatnonzero(above.codes[other] != above.codes)
    if len(apart):
        places = int(other[apart[0]]), int(apart[0])
        first_value, second_value = (brief(values[place].as_py()) for place in places)
        names = [brief(above.labels[int(above.codes[place])].as_py()) for place in places]
        group = brief(below.labels[int(below.codes[places[0]])].as_py())
        raise InputError(
            f"{hierarchy.said}: its levels do not nest: {first_value} and {second_value} are both {group} at level "
            f"{level - 1}, but {names[0]} and {names[1]} at level {level}. Values of one group at a level have to be "
            "one group at all higher levels."
        )
