"""The check of a node of the lattice: whether the table at its levels meets k and the other criteria.

Criteria on class sizes, such as k, need only the equivalence classes at the node (`class_roll_up`). For all other
criteria the table at the node is scored.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..attack.attackers import AnyKnown
from ..criteria.counted_table import CountedTable
from ..criteria.criterion import Criterion
from ..criteria.criterion_set import CriterionSet, CriterionValue, value_of_classes
from ..criteria.quantities import ModelQuantity
from ..disclosure.class_sizes import ClassSizes
from ..encoding.column import Column
from ..engines.base import Engine
from ..rows.threads import Workers
from .class_roll_up import ClassRollUp, ClassRows
from .column_levels import ColumnLevels
from .lattice import Levels, Window


class Suppression(NamedTuple):
    """The rows that may be suppressed: at most `most` rows, in classes of fewer than `k`."""

    k: int
    most: int


class NodeChecks:
    """Checks of nodes; a context manager that ends its threads.

    table: distinct rows over all columns that the criteria need.
    levels: of the columns that may be made coarser.
    suppression: the rows that may be suppressed, None for none. All criteria except k are then for the rows left.
    prunes: whether any criterion is pruning: coarser values never break it. selects: whether any criterion is not.
    values: by node the values of the criteria that were measured.
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
        # The population is taken to the same levels as the table.
        self._population = None
        if table.population is not None:
            self._population = NodeChecks(
                table.population, [own.population or own for own in levels], criteria.with_criteria([]), engine
            )
        self._roll_ups: dict[tuple[Hashable, ...], ClassRollUp] = {}
        self._pruning = [criterion for criterion in criteria.criteria if self._prunes(criterion)]
        self._selecting = [criterion for criterion in criteria.criteria if not self._prunes(criterion)]
        self.prunes, self.selects = bool(self._pruning), bool(self._selecting)
        # The class that was found to be too small last: its columns, its node, and how many rows it needs.
        self._small: tuple[tuple[Hashable, ...], Levels, int] | None = None
        self.values: dict[Levels, dict[Criterion, CriterionValue]] = {}

    def __enter__(self) -> NodeChecks:
        return self

    def __exit__(self, *error: object) -> None:
        self._workers.__exit__(*error)
        if self._population is not None:
            self._population.__exit__(*error)

    def _prunes(self, criterion: Criterion) -> bool:
        if self._suppression is not None:
            # The rows that are left have other priors at each node; only the sizes of their classes do not change.
            return criterion.smallest_class is not None
        return self._criteria.only_improves(criterion)

    def holds(self, node: Levels) -> bool:
        """Return whether a node meets the criteria that coarser values never break."""
        self._small = None
        if self._suppression is not None:
            return self._count_suppressed(node, self._suppression) is not None
        return self._meets(self._pruning, node)

    def failing(self, window: Window) -> npt.NDArray[np.bool_] | None:
        """Return by node of a window whether the class that was too small at the last node is too small there.

        None if the last node failed for another reason.
        """
        if self._small is None:
            return None
        columns, node, least = self._small
        roll_up = self._roll_ups[columns]
        classes = roll_up.classes(node)
        assert classes is not None
        return roll_up.sizes_of_smallest(node, classes, window) < least

    def is_met(self, node: Levels) -> bool:
        """Return whether a node meets the criteria that coarser values may break."""
        return self._meets(self._selecting, node)

    def values_of_all_rows(self, node: Levels) -> list[CriterionValue]:
        """Return the value of each criterion at a node, with no row suppressed."""
        return self._criteria.measure(self.at_levels(node), self._engine)

    def suppressed_rows(self, node: Levels) -> int:
        """Return how many rows are suppressed at a node that holds."""
        return 0 if self._suppression is None else self._count_suppressed(node, self._suppression) or 0

    def _count_suppressed(self, node: Levels, suppression: Suppression) -> int | None:
        """Return how many rows are in classes of fewer than k at a node, None for more than may be suppressed."""
        k, most = suppression
        most_classes = most + (self._table.rows - most) // k
        classes = self._classes(tuple(self._criteria.quasi_identifiers), node, most_classes)
        if classes is None:
            return None
        rows = int(classes.counts[classes.counts < k].sum())
        if rows > most or rows == self._table.rows:
            return None
        self._keep(node, _values_of_classes(self._pruning, classes.counts[classes.counts >= k]))
        return rows

    def _meets(self, criteria: Sequence[Criterion], node: Levels) -> bool:
        by_classes: dict[tuple[Hashable, ...], list[Criterion]] = {}
        others = []
        for criterion in criteria:
            known = self._criteria.known(criterion)
            measured = self._suppression or self._criteria.missing == "wildcard"
            if measured or isinstance(known, AnyKnown) or not known or not criterion.is_of_sizes:
                others.append(criterion)
            else:
                by_classes.setdefault(tuple(sorted(known, key=self._criteria.columns.index)), []).append(criterion)
        for columns, of_classes in by_classes.items():
            least = max(criterion.smallest_class_of_all or 0 for criterion in of_classes)
            classes = self._classes(columns, node, self._table.rows // least if least > 1 else None)
            if classes is None:
                return False
            values = _values_of_classes(of_classes, classes.counts)
            self._keep(node, values)
            if not all(value.is_met for value in values):
                if int(classes.counts.min()) < least:
                    self._small = (columns, node, least)
                return False
        if not others:
            return True
        table = self._without_suppressed(self.at_levels(node))
        if table is None:
            return False
        values = self._criteria.with_criteria(others).measure(table, self._engine)
        self._keep(node, values)
        return all(value.is_met for value in values)

    def _keep(self, node: Levels, values: Sequence[CriterionValue]) -> None:
        self.values.setdefault(node, {}).update({value.criterion: value for value in values})

    def _classes(self, columns: tuple[Hashable, ...], node: Levels, most: int | None) -> ClassRows | None:
        """Return the equivalence classes over columns at a node, None for more than `most`."""
        if columns not in self._roll_ups:
            places = [self._table.place(name) for name in columns]
            self._roll_ups[columns] = ClassRollUp(self._table, places, self._levels, self._workers)
        return self._roll_ups[columns].classes(node, most)

    def _without_suppressed(self, table: CountedTable) -> CountedTable | None:
        """Return a table without the rows that are suppressed; None if all are."""
        if self._suppression is None:
            return table
        kept = table.class_sizes(self._criteria.quasi_identifiers, self._workers) >= self._suppression.k
        return table.kept(kept) if kept.any() else None

    def at_levels(self, node: Levels) -> CountedTable:
        """Return the table at a node, with its distinct rows found anew."""
        names = tuple(self._table.names)
        rows = self._classes(names, node, None)
        assert rows is not None
        levels = {column.name: column.levels[level] for column, level in zip(self._levels, node, strict=True)}
        columns = []
        for column, codes in zip(self._table.columns, self._roll_ups[names].codes(rows), strict=True):
            at = levels.get(column.name)
            if at is None:
                columns.append(Column(column.name, codes, column.counts, column.labels, column.missing))
            else:
                missing = column.missing and len(at.counts) > len(at.labels)
                columns.append(Column(column.name, codes, at.counts, at.labels, missing))
        coarser = {column.name for column, level in zip(self._levels, node, strict=True) if level}
        # Ordered categories that stay as they are keep their order.
        orders = {name: order for name, order in self._table.orders.items() if name not in coarser}
        population = None if self._population is None else self._population.at_levels(node)
        return CountedTable(columns, rows.counts, self._table.rows, orders, True, population)


def _values_of_classes(criteria: Sequence[Criterion], counts: npt.NDArray[np.int64]) -> list[CriterionValue]:
    """Return the values of criteria on class sizes. counts: the rows of each class."""
    if all(isinstance(criterion.quantity, ModelQuantity) for criterion in criteria):
        k = int(counts.min())
        return [CriterionValue(criterion, k, criterion.is_met(k)) for criterion in criteria]
    sizes, multiplicities = np.unique(counts, return_counts=True)
    class_sizes = ClassSizes.from_classes(dict(zip(sizes.tolist(), multiplicities.tolist(), strict=True)))
    return [value_of_classes(criterion, class_sizes) for criterion in criteria]
