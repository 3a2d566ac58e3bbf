"""The levels that columns may be made coarser to, and what each costs."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..criteria.counted import CountedTable
from ..hierarchies.base import Hierarchy
from ..hierarchies.coded import CodedHierarchy


@dataclass(frozen=True)
class ColumnLevels:
    """A column at each level of its hierarchy. losses: by level what is lost, in bits over all rows, not weighted."""

    coded: CodedHierarchy
    losses: Sequence[float]

    @property
    def name(self) -> Hashable:
        """The column's."""
        return self.coded.name

    @property
    def height(self) -> int:
        """The highest level."""
        return len(self.losses) - 1


def levels_of(table: CountedTable, hierarchies: Mapping[Hashable, Hierarchy]) -> list[ColumnLevels]:
    """The levels of the columns that have a hierarchy, in the order of these.

    Raises InputError for a value that has no place in its hierarchy, and for levels that do not nest.
    """
    coded = [CodedHierarchy.of(table.columns[table.place(name)], one) for name, one in hierarchies.items()]
    return [ColumnLevels(one, [entropy_loss(one.column.counts, level.codes) for level in one.levels]) for one in coded]


def entropy_loss(counts: npt.NDArray[np.int64], group: npt.NDArray[Any]) -> float:
    """The loss n H(X|X'), in bits: what is lost where values that occur so often become groups.

    Non-uniform entropy: Gionis & Tassa, k-Anonymization with Minimal Loss of Information (2009); the same whatever the
    order of the values.
    """
    sizes = np.bincount(group, counts)[group]
    return math.fsum(
        count * math.log2(size / count) for count, size in zip(counts.tolist(), sizes.tolist(), strict=True) if count
    )
