"""Whether the nodes of a lattice meet criteria, from classes and scores of the table at their levels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..attack.known_subsets import AnyKnown
from ..criteria.counted import CountedTable
from ..criteria.criterion import Criterion
from ..criteria.criterion_set import CriterionSet, CriterionValue, value_of_classes
from ..criteria.quantities import OfModel
from ..disclosure.class_sizes import ClassSizes
from ..encoding.column import Column
from ..engines.base import Engine
from ..rows.threads import Workers
from .lattice import Levels, Window
from .levels import ColumnLevels
from .roll_up import Classes, RollUp


class Suppression(NamedTuple):
    """Rows that may be suppressed at most: those of classes of fewer than k."""

    k: int
    most: int


@dataclass(frozen=True)
class _Part:
    """Criteria that are checked together: of classes by the columns that are known, by these; others as a set."""

    of_classes: dict[tuple[Hashable, ...], list[Criterion]]
    others: CriterionSet | None

    @classmethod
    def of(cls, criteria: Sequence[Criterion], every: CriterionSet) -> _Part:
        """Of some criteria of a set."""
        classes: dict[tuple[Hashable, ...], list[Criterion]] = {}
        others = []
        for criterion in criteria:
            known = every.known(criterion)
            if isinstance(known, AnyKnown) or not known or not criterion.is_of_sizes:
                others.append(criterion)
            else:
                classes.setdefault(tuple(sorted(known, key=every.columns.index)), []).append(criterion)
        return cls(classes, every.with_criteria(others) if others else None)


class Checks:
    """Checks of nodes; a context manager, for the threads that it works with.

    table: over all columns that criteria need. levels: of the columns that may be made coarser. suppression: what may
    be suppressed, if anything; criteria are then of the rows that are left.
    """

    def __init__(
        self,
        table: CountedTable,
        levels: Sequence[ColumnLevels],
        criteria: CriterionSet,
        engine: Engine,
        suppression: Suppression | None = None,
    ) -> None:
        self._table, self._levels, self._criteria, self._engine = table, levels, criteria, engine
        self._suppression = suppression
        self._workers = Workers()
        self._rolled: dict[tuple[Hashable, ...], RollUp] = {}
        # Rows that are left have other priors, which only the sizes of their classes do not depend on.
        pruning = [one for one in criteria.criteria if self._prunes(one)]
        others = [one for one in criteria.criteria if one not in pruning]
        self._pruning, self._others = _Part.of(pruning, criteria), _Part.of(others, criteria)
        self.prunes, self.selects = bool(pruning), bool(others)
        # Where a class of fewer rows than it must have was found last: the columns, the node and how many it must have.
        self._small: tuple[tuple[Hashable, ...], Levels, int] | None = None
        self.values: dict[Levels, dict[Criterion, CriterionValue]] = {}

    def __enter__(self) -> Checks:
        return self

    def __exit__(self, *error: object) -> None:
        self._workers.__exit__(*error)

    def _prunes(self, criterion: Criterion) -> bool:
        if self._suppression is not None:
            return criterion.smallest_class is not None
        return self._criteria.only_improves(criterion)

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

    def values_of_all_rows(self, node: Levels) -> list[CriterionValue]:
        """What the table has of each criterion at a node, with all its rows."""
        return self._criteria.measure(self.at_levels(node), self._engine)

    def suppressed_rows(self, node: Levels) -> int:
        """How many rows are suppressed at a node that holds."""
        return (self._suppressed(node) or 0) if self._suppression is not None else 0

    def _suppressed(self, node: Levels) -> int | None:
        """Rows in classes of fewer than k at a node, None for more than may be suppressed."""
        k, most = self._suppression  # type: ignore[misc]
        found = self._classes(tuple(self._criteria.quasi_identifiers), node, most + (self._table.rows - most) // k)
        if found is None:
            return None
        rows = int(found.counts[found.counts < k].sum())
        if rows > most or rows == self._table.rows:
            return None
        pruning = [one for one in self._criteria.criteria if self._prunes(one)]
        self._keep(node, _values(pruning, found.counts[found.counts >= k]))
        return rows

    def _meets(self, part: _Part, node: Levels) -> bool:
        if self._suppression is None:
            for known, criteria in part.of_classes.items():
                least = _least(criteria)
                found = self._classes(known, node, self._table.rows // least if least > 1 else None)
                if found is None:
                    return False
                values = _values(criteria, found.counts)
                self._keep(node, values)
                if not all(one.is_met for one in values):
                    if int(found.counts.min()) < least:
                        self._small = (known, node, least)
                    return False
            if part.others is None:
                return True
            others = part.others
        else:
            others = self._criteria.with_criteria([one for one in self._criteria.criteria if not self._prunes(one)])
        table = self._at(node)
        if table is None:
            return False
        values = others.measure(table, self._engine)
        self._keep(node, values)
        return all(one.is_met for one in values)

    def _keep(self, node: Levels, values: Sequence[CriterionValue]) -> None:
        self.values.setdefault(node, {}).update({one.criterion: one for one in values})

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
        kept = table.sizes(self._criteria.quasi_identifiers, self._workers) >= self._suppression.k
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


def _least(criteria: Sequence[Criterion]) -> int:
    """How many rows each class must have, at least; 0: any number."""
    return max(one.smallest_class_of_all or 0 for one in criteria)


def _values(criteria: Sequence[Criterion], counts: npt.NDArray[np.int64]) -> list[CriterionValue]:
    """What classes of so many rows have of criteria that are of sizes."""
    if all(isinstance(one.quantity, OfModel) for one in criteria):
        k = int(counts.min())
        return [CriterionValue(one, k, one.is_met(k)) for one in criteria]
    sizes, times = np.unique(counts, return_counts=True)
    found = ClassSizes.from_classes(dict(zip(sizes.tolist(), times.tolist(), strict=True)))
    return [value_of_classes(one, found) for one in criteria]
