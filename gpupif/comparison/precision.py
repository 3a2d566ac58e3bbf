"""Sweeney's precision: how far up their hierarchies a plan moves the values of columns."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from ..hierarchies.hierarchy import Hierarchy
from ..treatment.plan import Plan
from ..treatment.treatment import Treatment, ValueMap
from ..treatment.value_maps.recode_rows import RecodeRows
from .released_values import ReleasedColumn, with_groups, with_levels


@dataclass(frozen=True)
class Levels:
    """The level of the values of each column with a hierarchy.

    levels: by column the level, and the height of the hierarchy. perturbed: columns whose values are drawn anew: the
    released value is no function of the value before. several: columns that are recoded row by row, and the levels.
    """

    levels: Mapping[Hashable, tuple[int, int]]
    perturbed: frozenset[Hashable] = frozenset()
    several: Mapping[Hashable, Collection[int]] = field(default_factory=dict)

    @classmethod
    def from_plan(cls, plan: Plan, hierarchies: Mapping[Hashable, Hierarchy]) -> Levels:
        """Return the levels that a plan names. hierarchies: by column, including the hierarchies of the plan."""
        levels = {name: (0, hierarchy.height) for name, hierarchy in hierarchies.items()}
        perturbed: set[Hashable] = set()
        several: dict[Hashable, Collection[int]] = {}
        for treatment in plan.treatments:
            columns = treatment_columns(treatment)
            level = getattr(treatment, "level", None)
            if level is not None:
                for name in columns:
                    if name in levels:
                        levels[name] = max(levels[name][0], level), levels[name][1]
            if treatment.is_random and not isinstance(treatment, ValueMap):
                perturbed |= set(columns)
            if isinstance(treatment, RecodeRows):
                several |= {name: set(own) for name, own in treatment.levels.items() if name in hierarchies}
        return cls(levels, frozenset(perturbed), several)

    def with_released(self, columns: Sequence[ReleasedColumn], hierarchies: Mapping[Hashable, Hierarchy]) -> Levels:
        """Return these levels, and the levels of columns for which the plan names none, from their released values.

        Raises InputError for a value that is not in its hierarchy.
        """
        levels = dict(self.levels)
        for column in columns:
            if column.name in hierarchies and column.kind != "dropped" and not levels.get(column.name, (0, 0))[0]:
                several = column.kind == "perturbed" and column.name not in self.perturbed
                level = None if several else _level(column, hierarchies[column.name])
                if level is None:
                    levels.pop(column.name, None)
                else:
                    levels[column.name] = level, hierarchies[column.name].height
        return replace(self, levels=levels)

    def with_unchanged(self, columns: Sequence[ReleasedColumn], known: Sequence[Hashable]) -> Levels:
        """Return these levels, and level 0 of quasi-identifiers that stayed as they were and have no hierarchy.

        A plan holds no hierarchy of such a column. Without hierarchies nothing is added.

        known: the quasi-identifiers.
        """
        unchanged = [column.name for column in columns if column.name in known and column.kind == "same"]
        return replace(self, levels={**dict.fromkeys(unchanged, (0, 1)), **self.levels}) if self.levels else self

    def at_groups(self, column: ReleasedColumn, hierarchies: Mapping[Hashable, Hierarchy]) -> ReleasedColumn:
        """Return a column whose values that were never released are at the level of its other values.

        A column that the plan recodes row by row gets the groups of all its levels.
        """
        if column.kind == "perturbed" and column.name in self.several.keys() - self.perturbed:
            return with_levels(column, hierarchies[column.name], self.several[column.name])
        level = self.levels.get(column.name, (0, 0))[0]
        return with_groups(column, hierarchies[column.name], level) if level else column

    def _lost(self, column: ReleasedColumn, rows: int) -> int:
        """Return the sum of the levels of all cells of a column. Suppressed and dropped cells count as the top."""
        level, height = self.levels[column.name]
        if column.kind == "dropped":
            return rows * height
        return level * (rows - column.joint.suppressed) + height * column.joint.suppressed

    def precision(self, column: ReleasedColumn, rows: int) -> float | None:
        """Return the precision of a column: 1 for unchanged values, 0 for the top; None without a hierarchy.

        rows: the rows of the table before.
        """
        if not self.levels.get(column.name, (0, 0))[1]:
            return None
        return 1 - self._lost(column, rows) / (rows * self.levels[column.name][1])

    def mean_precision(self, columns: Sequence[ReleasedColumn], rows: int) -> float | None:
        """Return the mean precision of the columns that have a hierarchy, None if none has."""
        own = [precision for column in columns if (precision := self.precision(column, rows)) is not None]
        return sum(own) / len(own) if own else None


def treatment_columns(treatment: Treatment) -> Sequence[Hashable]:
    """Return the columns that a treatment names."""
    if hasattr(treatment, "column"):
        return [treatment.column]
    return list(getattr(treatment, "columns", None) or [])


def _level(column: ReleasedColumn, hierarchy: Hierarchy) -> int | None:
    """Return the lowest level of a hierarchy that gives the released values of a column; None if no level does."""
    labels, missing = column.shared.labels, column.shared.missing
    there = np.flatnonzero(column.before[:missing] > 0)
    # Values that were suppressed in all rows do not show the level.
    there = there[column.after[column.detail[there]] > 0]
    if (column.detail[there] == there).all():
        return 0
    released = [str(value) for value in labels.take(pa.array(column.detail[there])).to_pylist()]
    values = labels.take(pa.array(there))
    for level in range(1, hierarchy.height + 1):
        if hierarchy.groups(values, level).to_pylist() == released:
            return level
    return None
