"""A column at each level of its hierarchy, as codes: what a search looks at, without a pass over rows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..encoding.column import Column
from ..errors import ColumnTypeError, InputError
from ..rows.keys import code_type
from ..utils.validation import brief
from .base import Hierarchy


@dataclass(frozen=True)
class CodedLevel:
    """The groups of a column at a level.

    codes: by code of the column, missing values too, the number of its group, 0, 1, 2, ...; labels: the names of the
    groups, ascending, at level 0 the values in the column's order; counts: rows of each group. Missing values are a
    group of their own, the last, without a label. At the top of the hierarchy all cells are one group.
    """

    codes: npt.NDArray[Any]
    labels: pa.Array
    counts: npt.NDArray[np.int64]

    @property
    def cardinality(self) -> int:
        """How many groups there are."""
        return len(self.counts)


@dataclass(frozen=True)
class CodedHierarchy:
    """A column at each level of its hierarchy.

    levels: from 0, where each value is a group, to the lowest level at which all cells of the column are one group.
    That may be below the top of the hierarchy: levels above it would be the same table once more.
    """

    column: Column
    levels: Sequence[CodedLevel]

    @classmethod
    def of(cls, column: Column, hierarchy: Hierarchy) -> CodedHierarchy:
        """Return the levels of a column.

        Raises InputError for a value that has no place in the hierarchy, or where two of its levels do not nest.
        """
        hierarchy = hierarchy.of(column.name)
        values = label_array(column)
        levels = [CodedLevel(np.arange(column.cardinality, dtype=code_type(column.cardinality)), values, column.counts)]
        for level in range(1, hierarchy.height):
            levels.append(_level(column, hierarchy.groups(values, level)))
            _check_nested(hierarchy, level, values, levels)
        hierarchy.groups(values, hierarchy.height)
        everything = np.zeros(column.cardinality, np.uint8)
        levels.append(CodedLevel(everything, pa.array([hierarchy.root]), np.array([column.counts.sum()], np.int64)))
        top = next(level for level, at in enumerate(levels) if at.cardinality == 1)
        return cls(column, levels[: top + 1])

    @property
    def name(self) -> Hashable:
        """The column's."""
        return self.column.name

    @property
    def height(self) -> int:
        """The level at which all cells are one group."""
        return len(self.levels) - 1

    def upwards(self, low: int, high: int) -> npt.NDArray[Any]:
        """By group at a level the group that it is part of at one that is not lower."""
        below, above = self.levels[low], self.levels[high]
        found = np.zeros(below.cardinality, above.codes.dtype)
        found[below.codes] = above.codes
        return found

    def coarsened(self, level: int) -> Column:
        """Return the column as it is at a level; a pass over its rows."""
        if level == 0:
            return self.column
        at = self.levels[level]
        missing = len(at.labels) < at.cardinality
        return Column(self.name, at.codes[self.column.codes], at.counts, at.labels, missing)


def label_array(column: Column) -> pa.Array:
    """The values of a column without missing ones; raises ColumnTypeError where they are of several types."""
    labels = column.labels
    if isinstance(labels, pa.Array):
        return labels
    try:
        return pa.array(labels)
    except pa.ArrowException as error:
        raise ColumnTypeError(column.name, "values of several types", "values of one type") from error


def _level(column: Column, groups: pa.Array) -> CodedLevel:
    encoded = groups.dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary)
    size = len(order)
    rank = np.empty(size, np.int64)
    rank[order.to_numpy()] = np.arange(size)
    codes = rank[encoded.indices.to_numpy()]
    if column.missing:
        codes = np.append(codes, size)
    # Of whole numbers below 2^53, so that sums are exact.
    counts = np.bincount(codes, column.counts, size + column.missing).astype(np.int64)
    return CodedLevel(codes.astype(code_type(max(1, len(counts)))), encoded.dictionary.take(order), counts)


def _check_nested(hierarchy: Hierarchy, level: int, values: pa.Array, levels: Sequence[CodedLevel]) -> None:
    """Raise InputError for two values that are one group below a level, and not at it."""
    below, at = levels[-2], levels[-1]
    first = np.full(below.cardinality, -1)
    # Of several assignments the last stands.
    first[below.codes[::-1]] = np.arange(len(below.codes))[::-1]
    other = first[below.codes]
    apart = np.flatnonzero(at.codes[other] != at.codes)
    if len(apart):
        one, two = int(other[apart[0]]), int(apart[0])
        names = [brief(at.labels[int(at.codes[place])].as_py()) for place in (one, two)]
        group = brief(below.labels[int(below.codes[one])].as_py())
        raise InputError(
            f"{hierarchy.said}: its levels do not nest: {brief(values[one].as_py())} and {brief(values[two].as_py())} "
            f"are both {group} at level {level - 1}, but {names[0]} and {names[1]} at level {level}. What is one group "
            "at a level has to be one at all above."
        )
