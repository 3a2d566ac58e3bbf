"""The check of a node of the lattice: whether the table at its levels meets k and the other criteria.

Criteria on class sizes, such as k, need only the equivalence classes at the node (`class_roll_up`). For all other
criteria the table at the node is scored.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

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


@dataclass(frozen=True)
class NodeClasses:
    """The equivalence classes over the quasi-identifiers at a node.

    counts: int64 array (classes), how many rows each has. codes: by axis the group of each class. kept: bool array
    (classes), False for classes whose rows are suppressed.
    With a further column, the rows of each class by its value: counts_by_value, their class `number`, their `values`.
    """

    counts: npt.NDArray[np.int64]
    codes: Sequence[npt.NDArray[Any]]
    kept: npt.NDArray[np.bool_]
    counts_by_value: npt.NDArray[np.int64]
    number: npt.NDArray[np.int64]
    values: npt.NDArray[Any]


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

    def classes_at(self, node: Levels, column: Hashable = None) -> NodeClasses:
        """Return the equivalence classes over the quasi-identifiers at a node, and which of them are suppressed.

        column: a further column, by whose values the rows of each class are counted too; None for none.
        """
        names = tuple(column.name for column in self._levels)
        classes = self._classes(names, node, None)
        assert classes is not None
        nothing = np.zeros(0, np.int64)
        found = NodeClasses(
            classes.counts, self._roll_ups[names].codes(classes), self._kept(node, classes), nothing, nothing, nothing
        )
        if column is None:
            return found
        by_value = self._classes((*names, column), node, None)
        assert by_value is not None
        *codes, values = self._roll_ups[*names, column].codes(by_value)
        number = self._class_numbers(classes, codes)
        return replace(found, counts_by_value=by_value.counts, number=number, values=values)

    def _class_numbers(self, classes: ClassRows, codes: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.int64]:
        """Return for each of some rows the number of its class. codes: by axis, at the node of the classes.

        Every class has a row, so that rows and classes have the same places in the order of their keys.
        """
        layout = self._roll_ups[tuple(column.name for column in self._levels)].layout
        keys = layout.pack(codes, self._workers)
        order = np.lexsort(keys.T)
        changes = (keys[order][1:] != keys[order][:-1]).any(axis=1)
        number = np.empty(len(keys), np.int64)
        number[order] = np.lexsort(classes.keys.T)[np.append(0, np.cumsum(changes))]
        return number

    def _kept(self, node: Levels, classes: ClassRows) -> npt.NDArray[np.bool_]:
        """Return for each class over the quasi-identifiers at a node whether its rows are not suppressed."""
        if self._suppression is None:
            return np.ones(len(classes.counts), bool)
        return classes.counts >= self._suppression.k

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
            if self._suppression or isinstance(known, AnyKnown) or not known or not criterion.is_of_sizes:
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
        return CountedTable(columns, rows.counts, self._table.rows, orders, is_distinct=True)


def _values_of_classes(criteria: Sequence[Criterion], counts: npt.NDArray[np.int64]) -> list[CriterionValue]:
    """Return the values of criteria on class sizes. counts: the rows of each class."""
    if all(isinstance(criterion.quantity, ModelQuantity) for criterion in criteria):
        k = int(counts.min())
        return [CriterionValue(criterion, k, criterion.is_met(k)) for criterion in criteria]
    sizes, multiplicities = np.unique(counts, return_counts=True)
    class_sizes = ClassSizes.from_classes(dict(zip(sizes.tolist(), multiplicities.tolist(), strict=True)))
    return [value_of_classes(criterion, class_sizes) for criterion in criteria]
