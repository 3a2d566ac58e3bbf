"""How far up their hierarchies a plan brings the values of columns: Sweeney's precision."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..hierarchies.base import Hierarchy
from ..treatment.plan import Plan
from ..treatment.treatment import Treatment, ValueMap
from .released import ReleasedColumn, with_groups


@dataclass(frozen=True)
class Levels:
    """Of columns with a hierarchy, the level of their values, and the height; perturbed: columns whose values are drawn
    anew, so that what is released is no function of what they were.
    """

    levels: Mapping[Hashable, tuple[int, int]]
    perturbed: frozenset[Hashable] = frozenset()

    @classmethod
    def of(cls, plan: Plan, hierarchies: Mapping[Hashable, Hierarchy]) -> Levels:
        """Of a plan, and hierarchies of columns, its own among them."""
        levels = {name: (0, hierarchy.height) for name, hierarchy in hierarchies.items()}
        perturbed: set[Hashable] = set()
        for treatment in plan.treatments:
            columns = treatment_columns(treatment)
            level = getattr(treatment, "level", None)
            if level is not None:
                for name in columns:
                    if name in levels:
                        levels[name] = max(levels[name][0], level), levels[name][1]
            if treatment.is_random and not isinstance(treatment, ValueMap):
                perturbed |= set(columns)
        return cls(levels, frozenset(perturbed))

    def with_found(self, columns: Sequence[ReleasedColumn], hierarchies: Mapping[Hashable, Hierarchy]) -> Levels:
        """The same, with the level of columns that have a hierarchy and are at none: that at which their values are.

        Raises InputError for a value that has no place in its hierarchy.
        """
        levels = dict(self.levels)
        for column in columns:
            if column.name in hierarchies and column.kind != "dropped" and not levels.get(column.name, (0, 0))[0]:
                level = _level(column, hierarchies[column.name])
                if level is None:
                    levels.pop(column.name, None)
                else:
                    levels[column.name] = level, hierarchies[column.name].height
        return Levels(levels, self.perturbed)

    def at_groups(self, column: ReleasedColumn, hierarchies: Mapping[Hashable, Hierarchy]) -> ReleasedColumn:
        """Return a column with values that were released nowhere brought to the level at which the others are."""
        level = self.levels.get(column.name, (0, 0))[0]
        return with_groups(column, hierarchies[column.name], level) if level else column

    def _lost(self, column: ReleasedColumn, rows: int) -> int:
        """The levels that a column's values were brought up, over all rows, suppressed and dropped ones to the top."""
        level, height = self.levels[column.name]
        if column.kind == "dropped":
            return rows * height
        return level * (rows - column.joint.suppressed) + height * column.joint.suppressed

    def precision(self, column: ReleasedColumn, rows: int) -> float | None:
        """Of a column: 1 where its values are as they were, 0 at the top; None where it has no hierarchy."""
        if not self.levels.get(column.name, (0, 0))[1]:
            return None
        return 1 - self._lost(column, rows) / (rows * self.levels[column.name][1])

    def mean_precision(self, columns: Sequence[ReleasedColumn], rows: int) -> float | None:
        """Over the columns that have a hierarchy."""
        own = [found for column in columns if (found := self.precision(column, rows)) is not None]
        return sum(own) / len(own) if own else None


def treatment_columns(treatment: Treatment) -> Sequence[Hashable]:
    """The columns that a treatment names."""
    if hasattr(treatment, "column"):
        return [treatment.column]
    return list(getattr(treatment, "columns", None) or [])


def _level(column: ReleasedColumn, hierarchy: Hierarchy) -> int | None:
    """The lowest level of a hierarchy at which the values of a column were released; None: at no single one."""
    labels, missing = column.shared.labels, column.shared.missing
    there = np.flatnonzero(column.before[:missing] > 0)
    # Of what was suppressed wherever it was nothing is known.
    there = there[column.after[column.detail[there]] > 0]
    if (column.detail[there] == there).all():
        return 0
    released = [str(value) for value in labels.take(pa.array(column.detail[there])).to_pylist()]
    values = labels.take(pa.array(there))
    for level in range(1, hierarchy.height + 1):
        if hierarchy.groups(values, level).to_pylist() == released:
            return level
    return None
