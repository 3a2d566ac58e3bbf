"""The levels that a column may be made coarser to, and what each costs."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..encoding.column import Column
from ..errors import InputError
from ..hierarchies.base import Hierarchy
from ..rows.keys import code_type
from ..targets.counted import ColumnGroups, CountedTable, in_groups


@dataclass(frozen=True)
class ColumnLevels:
    """A column at each level of its hierarchy. column: at level 0. groups: by level what its values are in, the first of
    level 0. losses: by level what is lost, in bits over all rows, not weighted.
    """

    column: Column
    groups: Sequence[ColumnGroups]
    losses: Sequence[float]

    @classmethod
    def of(cls, column: Column, hierarchy: Hierarchy) -> ColumnLevels:
        """Of a column of a counted table; raises InputError for a value without a place, and levels that do not nest."""
        groups = [ColumnGroups(np.arange(column.cardinality), column.labels)]
        for level in range(1, hierarchy.height + 1):
            found = _groups_of(column, hierarchy.groups(column.labels, level))
            _check_nested(column, groups[-1], found, level)
            groups.append(found)
        return cls(column, groups, [entropy_loss(column.counts, one.group) for one in groups])

    @property
    def height(self) -> int:
        """The highest level."""
        return len(self.groups) - 1

    @cached_property
    def at(self) -> list[Column]:
        """The column at each level, its codes of the counted rows left out."""
        bare = Column(self.column.name, self.column.codes[:0], self.column.counts, self.column.labels, self.column.missing)
        return [in_groups(bare, one) for one in self.groups]


def entropy_loss(counts: npt.NDArray[np.int64], group: npt.NDArray[Any]) -> float:
    """n H(X|X'), in bits: what is lost where values that occur so often become groups.

    Non-uniform entropy: Gionis & Tassa, k-Anonymization with Minimal Loss of Information (2009); the same whatever the
    order of the values.
    """
    sizes = np.bincount(group, counts)[group]
    return math.fsum(
        count * math.log2(size / count) for count, size in zip(counts.tolist(), sizes.tolist(), strict=True) if count
    )


def levels_of(table: CountedTable, hierarchies: Mapping[Hashable, Hierarchy]) -> list[ColumnLevels]:
    """The levels of the columns that have a hierarchy, in the order of these; raises InputError as `ColumnLevels.of`."""
    return [ColumnLevels.of(table.columns[table.place(name)], one) for name, one in hierarchies.items()]


def _groups_of(column: Column, names: pa.Array) -> ColumnGroups:
    """Groups by their names, ascending, missing values last."""
    texts = names.to_pylist()
    different = sorted(set(texts))
    number = {text: place for place, text in enumerate(different)}
    group = [number[text] for text in texts] + [len(different)] * column.missing
    return ColumnGroups(np.array(group, code_type(len(different) + 1)), pa.array(different, pa.string()))


def _check_nested(column: Column, finer: ColumnGroups, coarser: ColumnGroups, level: int) -> None:
    """Raise InputError where what is one group at a level is several above."""
    above = np.zeros(int(finer.group.max()) + 1, np.int64)
    above[finer.group] = coarser.group
    apart = np.flatnonzero(above[finer.group] != coarser.group)
    if len(apart):
        value = column.values([int(apart[0])])[0]
        raise InputError(
            f"hierarchies: column {column.name!r}: level {level} does not nest: what is one group with {value!r} at "
            f"level {level - 1} is several at level {level}."
        )
