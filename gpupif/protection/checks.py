"""Whether the nodes of a lattice meet targets, from classes and scores of the table at their levels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..attack.known_subsets import AnyKnown
from ..disclosure.class_sizes import ClassSizes
from ..encoding.column import Column
from ..engines.base import Engine
from ..rows.threads import Workers
from ..targets.counted import CountedTable
from ..targets.quantities import OfModel
from ..targets.target import Target
from ..targets.target_set import TargetSet, TargetValue, value_of_classes
from .lattice import Levels, Window
from .levels import ColumnLevels
from .roll_up import Classes, RollUp


class Suppression(NamedTuple):
    """Rows that may be suppressed at most: those of classes of fewer than k."""

    k: int
    most: int


@dataclass(frozen=True)
class _Part:
    """Targets that are checked together: of classes by the columns that are known, by these; others as a set."""

    of_classes: dict[tuple[Hashable, ...], list[Target]]
    others: TargetSet | None

    @classmethod
    def of(cls, targets: Sequence[Target], every: TargetSet) -> _Part:
        """Of some targets of a set."""
        classes: dict[tuple[Hashable, ...], list[Target]] = {}
        others = []
        for target in targets:
            known = every.known(target)
            if isinstance(known, AnyKnown) or not known or not target.is_of_sizes:
                others.append(target)
            else:
                classes.setdefault(tuple(sorted(known, key=every.columns.index)), []).append(target)
        return cls(classes, every.with_targets(others) if others else None)


class Checks:
    """Checks of nodes; a context manager, for the threads that it works with.

    table: over all columns that targets need. levels: of the columns that may be made coarser. suppression: what may be
    suppressed, if anything; targets are then of the rows that are left.
    """

    def __init__(
        self,
        table: CountedTable,
        levels: Sequence[ColumnLevels],
        targets: TargetSet,
        engine: Engine,
        suppression: Suppression | None = None,
    ) -> None:
        self._table, self._levels, self._targets, self._engine = table, levels, targets, engine
        self._suppression = suppression
        self._workers = Workers()
        self._rolled: dict[tuple[Hashable, ...], RollUp] = {}
        # Rows that are left have other priors, which only the sizes of their classes do not depend on.
        pruning = [one for one in targets.targets if self._prunes(one)]
        others = [one for one in targets.targets if one not in pruning]
        self._pruning, self._others = _Part.of(pruning, targets), _Part.of(others, targets)
        self.prunes, self.selects = bool(pruning), bool(others)
        # Where a class of fewer rows than it must have was found last: the columns, the node and how many it must have.
        self._small: tuple[tuple[Hashable, ...], Levels, int] | None = None
        self.values: dict[Levels, dict[Target, TargetValue]] = {}

    def __enter__(self) -> Checks:
        return self

    def __exit__(self, *error: object) -> None:
        self._workers.__exit__(*error)

    def _prunes(self, target: Target) -> bool:
        if self._suppression is not None:
            return target.smallest_class is not None
        return self._targets.only_improves(target)

    def holds(self, node: Levels) -> bool:
        """See `NodeChecks`."""
        self._small = None
        if self._suppression is not None:
            return self._suppressed(node) is not None
        return self._meets(self._pruning, node)

    def failing(self, window: Window) -> npt.NDArray[np.bool_] | None:
        """See `NodeChecks`."""
        if self._small is None:
            return None
        columns, node, least = self._small
        rolled = self._rolled[columns]
        found = rolled.classes(node)
        assert found is not None
        return rolled.sizes_of_smallest(node, found, window) < least

    def is_met(self, node: Levels) -> bool:
        """See `NodeChecks`."""
        return self._meets(self._others, node)

    def values_of_all_rows(self, node: Levels) -> list[TargetValue]:
        """What the table has of each target at a node, with all its rows."""
        return self._targets.measure(self.at_levels(node), self._engine)

    def suppressed_rows(self, node: Levels) -> int:
        """How many rows are suppressed at a node that holds."""
        return (self._suppressed(node) or 0) if self._suppression is not None else 0

    def _suppressed(self, node: Levels) -> int | None:
        """Rows in classes of fewer than k at a node, None for more than may be suppressed."""
        k, most = self._suppression  # type: ignore[misc]
        found = self._classes(tuple(self._targets.quasi_identifiers), node, most + (self._table.rows - most) // k)
        if found is None:
            return None
        rows = int(found.counts[found.counts < k].sum())
        if rows > most or rows == self._table.rows:
            return None
        pruning = [one for one in self._targets.targets if self._prunes(one)]
        self._keep(node, _values(pruning, found.counts[found.counts >= k]))
        return rows

    def _meets(self, part: _Part, node: Levels) -> bool:
        if self._suppression is None:
            for known, targets in part.of_classes.items():
                least = _least(targets)
                found = self._classes(known, node, self._table.rows // least if least > 1 else None)
                if found is None:
                    return False
                values = _values(targets, found.counts)
                self._keep(node, values)
                if not all(one.is_met for one in values):
                    if int(found.counts.min()) < least:
                        self._small = (known, node, least)
                    return False
            if part.others is None:
                return True
            others = part.others
        else:
            others = self._targets.with_targets([one for one in self._targets.targets if not self._prunes(one)])
        table = self._at(node)
        if table is None:
            return False
        values = others.measure(table, self._engine)
        self._keep(node, values)
        return all(one.is_met for one in values)

    def _keep(self, node: Levels, values: Sequence[TargetValue]) -> None:
        self.values.setdefault(node, {}).update({one.target: one for one in values})

    def _classes(self, columns: tuple[Hashable, ...], node: Levels, most: int | None) -> Classes | None:
        if columns not in self._rolled:
            places = [self._table.place(name) for name in columns]
            self._rolled[columns] = RollUp(self._table, places, self._levels, self._workers)
        return self._rolled[columns].classes(node, most)

    def _at(self, node: Levels) -> CountedTable | None:
        """The table at a node, without the rows that are suppressed; None where all are."""
        table = self.at_levels(node)
        if self._suppression is None:
            return table
        kept = table.sizes(self._targets.quasi_identifiers, self._workers) >= self._suppression.k
        return table.kept(kept) if kept.any() else None

    def at_levels(self, node: Levels) -> CountedTable:
        """The table at a node, its different rows found anew."""
        names = tuple(self._table.names)
        found = self._classes(names, node, None)
        assert found is not None
        axis = {one.name: place for place, one in enumerate(self._levels)}
        columns = []
        for column, codes in zip(self._table.columns, self._rolled[names].codes(found), strict=True):
            if column.name in axis:
                level = node[axis[column.name]]
                levels = self._levels[axis[column.name]]
                at = levels.coded.levels[level]
                missing = column.missing and len(at.counts) > len(at.labels)
                columns.append(Column(column.name, codes, at.counts, at.labels, missing))
            else:
                columns.append(Column(column.name, codes, column.counts, column.labels, column.missing))
        return CountedTable(columns, found.counts, self._table.rows, self._orders(node), is_distinct=True)

    def _orders(self, node: Levels) -> dict[Hashable, Sequence[object]]:
        """Of ordered categories that are as they were."""
        coarser = {one.name for one, level in zip(self._levels, node, strict=True) if level}
        return {name: order for name, order in self._table.orders.items() if name not in coarser}


def _least(targets: Sequence[Target]) -> int:
    """How many rows each class must have, at least; 0: any number."""
    return max(one.smallest_class_of_all or 0 for one in targets)


def _values(targets: Sequence[Target], counts: npt.NDArray[np.int64]) -> list[TargetValue]:
    """What classes of so many rows have of targets that are of sizes."""
    if all(isinstance(one.quantity, OfModel) for one in targets):
        k = int(counts.min())
        return [TargetValue(one, k, one.is_met(k)) for one in targets]
    sizes, times = np.unique(counts, return_counts=True)
    found = ClassSizes.of_classes(dict(zip(sizes.tolist(), times.tolist(), strict=True)))
    return [value_of_classes(one, found) for one in targets]
