"""The check of a node of the lattice: whether the table at its levels meets k and the other criteria.

Criteria on class sizes, such as k, need only the equivalence classes at the node (`class_roll_up`). For all other
criteria the table at the node is scored.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels import class_bounds

from ..attack.attackers import AnyKnown
from ..criteria.class_criteria import RELEASED, ClassCriteria, suppress_in_turns
from ..criteria.counted_scores import known_columns, longest_distances, score_counted
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
from .lattice import Levels, Reason

# After PASSED nodes in a row that did not fail by the sizes of their classes, sizes are not looked at first.
PASSED = 4


class Suppression(NamedTuple):
    """The rows that may be suppressed: at most `most` rows, in classes that break a criterion of any of `attackers`.

    reference: the rows with whose distributions classes are compared, see `class_criteria.suppress_in_turns`.
    """

    attackers: Sequence[ClassCriteria]
    most: int
    reference: str = RELEASED

    @property
    def compares(self) -> bool:
        """True if classes are compared with the rows that are left, so that suppressed rows change what fails."""
        return self.reference == RELEASED and any(own.compares for own in self.attackers)

    @property
    def criteria(self) -> list[Criterion]:
        """The criteria of all attackers."""
        return [criterion for own in self.attackers for criterion in own.criteria]


@dataclass(frozen=True)
class NodeClasses:
    """The equivalence classes over the quasi-identifiers at a node.

    counts: int64 array (classes), how many rows each has. codes: by axis the group of each class. left: int64 array
    (classes), how many of its rows are not suppressed.
    With a further column, the rows of each class by its value: counts_by_value and left_by_value, their class `number`,
    their `values`.
    """

    counts: npt.NDArray[np.int64]
    codes: Sequence[npt.NDArray[Any]]
    left: npt.NDArray[np.int64]
    counts_by_value: npt.NDArray[np.int64]
    left_by_value: npt.NDArray[np.int64]
    number: npt.NDArray[np.int64]
    values: npt.NDArray[Any]


class BoundClasses(NamedTuple):
    """The equivalence classes over the quasi-identifiers at a node, with bounds, see `kernels.class_bounds`.

    rows: the classes over the quasi-identifiers and the sensitive attributes. first: by class one of its rows. number:
    by row the number of its class. sizes, kept, failing, open_classes: by class.
    """

    rows: ClassRows
    first: npt.NDArray[np.int64]
    number: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    kept: npt.NDArray[np.int64]
    failing: npt.NDArray[np.bool_]
    open_classes: npt.NDArray[np.bool_]


class NodeChecks:
    """Checks of nodes; a context manager that ends its threads.

    table: distinct rows over all columns that the criteria need.
    levels: of the columns that may be made coarser.
    suppression: the rows that may be suppressed, None for none. All other criteria are then for the rows left.
    prunes: whether any criterion is pruning: coarser values never break it. selects: whether any criterion is not.
    splits_classes: whether some rows of a class over the quasi-identifiers may be suppressed, and others not.
    values: by node the values of the criteria that were measured. suppressed: by node how many rows are suppressed
    there, if any may be.
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
        self._sets: dict[Criterion, list[tuple[Hashable, ...]]] = {}
        self._known = tuple(criteria.quasi_identifiers)
        self._attackers, self._most, _ = suppression or Suppression([], 0)
        self._compares = suppression is not None and suppression.compares
        # The criteria on classes over the quasi-identifiers, of which bounds are made.
        self._on_classes = ClassCriteria.from_set(criteria)
        # The sizes of the classes over the quasi-identifiers alone decide which rows go.
        only = self._attackers[0] if len(self._attackers) == 1 else None
        self._matching = criteria.missing == "wildcard"
        self._sizes_decide = only is not None and only.is_over(self._known) and not only.models and not self._matching
        if self._matching or criteria.given.weights is not None:
            # Classes overlap, or their shares are of weights: the bounds are on numbers of rows.
            self._on_classes = replace(self._on_classes, models=[])
        self.splits_classes = any(not {*known_columns(own.known)} <= {*self._known} for own in self._attackers)
        # The fewest rows of a class over the sets of columns that other attackers may know.
        self._others = dict[tuple[Hashable, ...], int]()
        for own in self._attackers:
            for known in own.sets_of_known() if own.k > 1 else ():
                if known and set(known) != set(self._known):
                    columns = self._in_order(known)
                    self._others[columns] = max(own.k, self._others.get(columns, 1))
        longest = self._find_longest()
        counts = {column.name: column.counts for column in table.columns}
        # How many rows may be gone whose shares classes are compared with.
        gone = self._most if self._compares else 0
        self._bounds = {
            name: self._on_classes.bounds(name, counts[name], table.rows, gone, longest.get(name, 1))
            for name in self._on_classes.columns
        }
        # Whether classes over the quasi-identifiers are suppressed as a whole.
        self._whole_classes = only is not None and only.is_over(self._known)
        # Whether the bounds decide which rows are suppressed, but for classes that they leave open.
        self._bounds_decide = bool(self._bounds) and self._whole_classes and not self._compares
        self._columns_of_bounds = (*self._known, *self._bounds)
        self._last_bounds: tuple[Levels, BoundClasses] | None = None
        self._fewest: dict[Levels, tuple[int, int]] = {}
        # How many nodes in a row did not fail by the sizes of their classes.
        self._passed = 0
        # How many rows a class over the quasi-identifiers has at least that meets the criteria.
        self._least = max([self._on_classes.k, *(int(own[2].max()) for own in self._bounds.values())])
        if suppression is None:
            self._pruning = [criterion for criterion in criteria.criteria if criteria.only_improves(criterion)]
            self._selecting = [criterion for criterion in criteria.criteria if not criteria.only_improves(criterion)]
            self.prunes, self.selects = bool(self._pruning or self._bounds), bool(self._selecting)
        else:
            # Rows are suppressed by the criteria on classes; the rows that are left have to meet the others.
            self._selecting = [criterion for criterion in criteria.criteria if not criterion.of_each_class]
            self.prunes = True
            self.selects = bool(self._selecting) or not self._sizes_decide
        # The last node at which rows were judged, with its table and the rows of classes that break a criterion.
        self._last: tuple[Levels, CountedTable, npt.NDArray[np.bool_], float] | None = None
        # The class that was found to be too small last: its columns, its node, and how many rows it needs.
        self._small: tuple[tuple[Hashable, ...], Levels, int] | None = None
        self.values: dict[Levels, dict[Criterion, CriterionValue]] = {}
        self.suppressed: dict[Levels, int] = {}

    def __enter__(self) -> NodeChecks:
        return self

    def __exit__(self, *error: object) -> None:
        self._workers.__exit__(*error)
        if self._population is not None:
            self._population.__exit__(*error)

    def holds(self, node: Levels) -> bool:
        """Return whether a node meets the criteria that coarser values never break."""
        self._small = None
        if self._suppression is None:
            return self._meets(self._pruning, node)
        return self._fewest_suppressed(node)[0] <= self._most

    def failing(self) -> Reason | None:
        """Return why the class that was too small at the last node fails it, and others.

        None if the last node failed for another reason.
        """
        if self._small is None:
            return None
        columns, node, least = self._small
        roll_up = self._roll_ups[columns]
        classes = roll_up.classes(node)
        assert classes is not None
        return roll_up.why_small(node, classes, least)

    def is_met(self, node: Levels) -> bool:
        """Return whether a node meets the criteria that coarser values may break."""
        if self._bounds and self._fewest_suppressed(node)[1] > self._most:
            return False
        if self._suppression is None:
            return self._meets(self._selecting, node)
        table, failing = self._failing_rows(node, self._most)
        if int(table.multiplicities[failing].sum()) > self._most:
            return False
        if not self._selecting:
            return True
        values = self._criteria.with_criteria(self._selecting).measure(table.kept(~failing), self._engine)
        self._keep(node, values)
        return all(value.is_met for value in values)

    def values_of_all_rows(self, node: Levels) -> list[CriterionValue]:
        """Return the value of each criterion at a node, with no row suppressed."""
        return self._criteria.measure(self.at_levels(node), self._engine)

    def suppressed_rows(self, node: Levels) -> int:
        """Return how many rows are suppressed at a node."""
        if self._suppression is None:
            return 0
        table, failing = self._failing_rows(node)
        return int(table.multiplicities[failing].sum())

    def kept_rows(self, node: Levels) -> npt.NDArray[np.bool_]:
        """Return for each distinct row of the table whether it is not suppressed at a node."""
        levels = {column.name: column.levels[level] for column, level in zip(self._levels, node, strict=True)}
        names = tuple(self._table.names if self.splits_classes else levels)
        classes = self._classes(names, node, None)
        assert classes is not None
        columns = [self._table.columns[self._table.place(name)] for name in names]
        codes = [levels[own.name].codes[own.codes] if own.name in levels else own.codes for own in columns]
        return self._rows_left(names, node, classes)[self._class_numbers(names, classes, codes)] > 0

    def classes_at(self, node: Levels, column: Hashable = None) -> NodeClasses:
        """Return the equivalence classes over the quasi-identifiers at a node, and which of them are suppressed.

        column: a further column, by whose values the rows of each class are counted too; None for none.
        """
        names = tuple(column.name for column in self._levels)
        nothing = np.zeros(0, np.int64)
        if column is None and self._bounds_decide:
            return NodeClasses(*self._decide_classes(node), nothing, nothing, nothing, nothing)
        classes = self._classes(names, node, None)
        assert classes is not None
        left, codes = self._rows_left(names, node, classes), self._roll_ups[names].codes(classes)
        found = NodeClasses(classes.counts, codes, left, nothing, nothing, nothing, nothing)
        if column is None:
            return found
        with_column = (*names, column)
        by_value = self._classes(with_column, node, None)
        assert by_value is not None
        *codes, values = self._roll_ups[with_column].codes(by_value)
        number = self._class_numbers(names, classes, codes)
        left = np.where(left[number] > 0, by_value.counts, 0)
        if self.splits_classes:
            left = self._rows_left(with_column, node, by_value)
        return replace(found, counts_by_value=by_value.counts, left_by_value=left, number=number, values=values)

    def _class_numbers(
        self, names: tuple[Hashable, ...], classes: ClassRows, codes: Sequence[npt.NDArray[Any]]
    ) -> npt.NDArray[np.int64]:
        """Return for each of some rows the number of its class over some columns.

        codes: of the columns, at the node of the classes.

        Every class has a row, so that rows and classes have the same places in the order of their keys.
        """
        keys = self._roll_ups[names].layout.pack(codes, self._workers)
        order = np.lexsort(keys.T)
        changes = (keys[order][1:] != keys[order][:-1]).any(axis=1)
        number = np.empty(len(keys), np.int64)
        number[order] = np.lexsort(classes.keys.T)[np.append(0, np.cumsum(changes))]
        return number

    def _rows_left(self, names: tuple[Hashable, ...], node: Levels, classes: ClassRows) -> npt.NDArray[np.int64]:
        """Return for each class over some columns at a node how many rows are left.

        names: columns, among them all that have levels.
        """
        if self._suppression is None:
            return classes.counts
        if self._sizes_decide:
            return np.where(classes.counts >= self._on_classes.k, classes.counts, 0)
        if self._bounds_decide and len(names) == len(self._levels):
            _, codes, decided = self._decide_classes(node)
            left = np.empty_like(decided)
            left[self._class_numbers(names, classes, codes)] = decided
            return left
        table, failing = self._failing_rows(node)
        number = self._class_numbers(names, classes, [table.columns[table.place(name)].codes for name in names])
        return np.bincount(number, table.multiplicities * ~failing, len(classes.counts)).astype(np.int64)

    def _failing_rows(self, node: Levels, most: float = math.inf) -> tuple[CountedTable, npt.NDArray[np.bool_]]:
        """Return the table at a node, and for each distinct row whether it is suppressed.

        most: if more rows are suppressed, some of them are enough.
        """
        if self._last is not None and self._last[0] == node:
            _, table, failing, stopped = self._last
            if self.suppressed[node] <= stopped or self.suppressed[node] > most:
                return table, failing
        assert self._suppression is not None
        table = self.at_levels(node)
        given = self._criteria.distances, self._engine, self._workers, self._suppression.reference, most
        failing, values = suppress_in_turns(self._attackers, table, *given)
        self._keep(node, values)
        self.suppressed[node] = int(table.multiplicities[failing].sum())
        self._last = node, table, failing, most
        return table, failing

    def _find_longest(self) -> dict[Hashable, int]:
        """Return by sensitive attribute the longest distance of two values, where a criterion is on distances."""
        columns = self._on_classes.columns
        walking = [measure for measure in self._on_classes.measures if measure.walks]
        if not walking:
            return {}
        given = self._table, self._known, columns, walking, self._criteria.distances, self._engine
        job, _ = score_counted(*given, missing=self._criteria.missing)
        return longest_distances(job, columns)

    def _fewest_suppressed(self, node: Levels) -> tuple[int, int]:
        """Return two bounds on the rows of classes that break a criterion on classes at a node.

        The first bound also holds for all nodes below this node, see `kernels.class_bounds`.
        """
        if node not in self._fewest and self._matching:
            # Coarser values make more rows match a row. Of shares nothing is known.
            table = self.at_levels(node)
            short = [own.smallest_classes(table, self._engine, self._workers) < own.k for own in self._attackers]
            fewest = max(int(table.multiplicities[own].sum()) for own in short)
            self._fewest[node] = fewest, fewest
        elif node not in self._fewest:
            bounds = self._bound_suppressed(node) if self._bounds else (self._rows_of_small(node),) * 2
            for columns, k in self._others.items():
                # At its first turn or later, each attacker suppresses these rows, since classes only shrink.
                small = self._rows_of_small(node, columns, k) if bounds[0] <= self._most else 0
                bounds = max(bounds[0], small), max(bounds[1], small)
            self._fewest[node] = bounds
        return self._fewest[node]

    def _rows_of_small(self, node: Levels, columns: tuple[Hashable, ...] = (), least: int = 0) -> int:
        """Return how many rows are in classes that are too small, or more rows than may be suppressed.

        columns: of the classes, by default the quasi-identifiers. least: the fewest rows of a class.
        """
        least = least or self._least
        classes = self._classes(columns or self._known, node, self._most + (self._table.rows - self._most) // least)
        if classes is None:
            return self._most + 1
        small = classes.counts < least
        rows = int(classes.counts[small].sum())
        if rows <= self._most and self._sizes_decide:
            self._keep(node, self._on_classes.reached(int(classes.counts[~small].min())))
            self.suppressed[node] = rows
        return rows

    def _in_order(self, known: Sequence[Hashable]) -> tuple[Hashable, ...]:
        """Return columns in the order of the table, so that their classes are counted once."""
        return tuple(sorted(known, key=self._criteria.columns.index))

    def _bound_suppressed(self, node: Levels) -> tuple[int, int]:
        """Return the result of `_fewest_suppressed` if there are criteria on sensitive attributes."""
        if self._passed < PASSED:
            small = self._rows_of_small(node)
            if small > self._most:
                self._passed = 0
                return small, small
        bounded = self._bound_classes(node)
        sizes = bounded.sizes
        self._passed = 0 if int(sizes[sizes < self._least].sum()) > self._most else self._passed + 1
        fewest = int(sizes.sum() - bounded.kept.sum())
        # If an attacker first suppressed some rows of a class, the rows that are left may be compared anew and meet.
        return fewest, int(sizes[bounded.failing].sum()) if self._whole_classes or not self._compares else fewest

    def _bound_classes(self, node: Levels) -> BoundClasses:
        """Return the classes at a node with bounds, if there are criteria on sensitive attributes."""
        if self._last_bounds is not None and self._last_bounds[0] == node:
            return self._last_bounds[1]
        rows = self._classes(self._columns_of_bounds, node, None)
        assert rows is not None
        layout, size = self._roll_ups[self._columns_of_bounds].layout, len(rows.counts)
        first, following, sizes, number = np.empty((4, size), np.int64)
        slots, masks = np.zeros(1 << max(4, (2 * size).bit_length()), np.uint32), layout.masks(range(len(self._known)))
        classes = class_bounds.number_classes(rows.keys, rows.counts, masks, slots, first, following, sizes, number)
        sizes, (failing, open_classes) = sizes[:classes], np.zeros((2, classes), bool)
        kept = sizes.copy()
        for codes, own in zip(layout.unpack(rows.keys, len(self._known)), self._bounds.values(), strict=True):
            working = np.zeros((4, own[4].shape[1]), np.int64)
            lists = first, following, rows.counts
            class_bounds.bound_classes(lists, codes, own, working, sizes, kept, failing, open_classes)
        failing |= kept < self._on_classes.k
        kept[kept < self._on_classes.k] = 0
        bounded = BoundClasses(rows, first[:classes], number, sizes, kept, failing, open_classes & ~failing)
        self._last_bounds = node, bounded
        return bounded

    def _decide_classes(
        self, node: Levels
    ) -> tuple[npt.NDArray[np.int64], list[npt.NDArray[Any]], npt.NDArray[np.int64]]:
        """Return the rows of each class at a node, by axis its group, and its rows that are not suppressed.

        Only the rows of classes that the bounds leave open are scored.
        """
        rows, first, number, sizes, _, failing, open_classes = self._bound_classes(node)
        codes = self._roll_ups[self._columns_of_bounds].codes(rows)
        if open_classes.any():
            table, scored = self._with_rows(rows, self._columns_of_bounds, node), np.flatnonzero(open_classes[number])
            judged = self._attackers[0].judge_rows(
                table.some(scored), self._criteria.distances, self._engine, self._workers
            )
            failing = failing.copy()
            failing[number[scored[judged.failing]]] = True
        by_axis = [codes[self._known.index(column.name)][first] for column in self._levels]
        return sizes, by_axis, np.where(failing, 0, sizes)

    def _meets(self, criteria: Sequence[Criterion], node: Levels) -> bool:
        by_classes: dict[tuple[Hashable, ...], list[Criterion]] = {}
        others, reached = [], dict[Criterion, CriterionValue]()
        for criterion in criteria:
            sets = self._sets_of_classes(criterion)
            if not sets:
                others.append(criterion)
            for columns in sets:
                by_classes.setdefault(columns, []).append(criterion)
        for columns, of_classes in by_classes.items():
            least = max(criterion.smallest_class_of_all or 0 for criterion in of_classes)
            classes = self._classes(columns, node, self._table.rows // least if least > 1 else None)
            if classes is None:
                return False
            values = _values_of_classes(of_classes, classes.counts)
            if not all(value.is_met for value in values):
                # The value of an attacker who knows any few columns needs all sets.
                known = self._criteria.known
                self._keep(node, [own for own in values if not isinstance(known(own.criterion), AnyKnown)])
                if int(classes.counts.min()) < least:
                    self._small = (columns, node, least)
                return False
            for own in values:
                # Of k over several sets the lowest value counts.
                reached[own.criterion] = min(own, reached.get(own.criterion, own), key=lambda value: value.value or 0)
        self._keep(node, list(reached.values()))
        if self._bounds and self._fewest_suppressed(node)[0] > self._most:
            return False
        if not others:
            return True
        values = self._criteria.with_criteria(others).measure(self.at_levels(node), self._engine)
        self._keep(node, values)
        return all(value.is_met for value in values)

    def _sets_of_classes(self, criterion: Criterion) -> list[tuple[Hashable, ...]]:
        """Return the sets of columns over which classes are counted for a criterion; none if cells have to be scored.

        The sets with the most combinations of values are the first, as they are the likeliest to fail.
        """
        if criterion not in self._sets:
            known, sets = self._criteria.known(criterion), list[Sequence[Hashable]]()
            if self._criteria.missing != "wildcard" and criterion.is_of_sizes:
                if not isinstance(known, AnyKnown):
                    sets = [known]
                elif isinstance(criterion.quantity, ModelQuantity):
                    sets = ClassCriteria([criterion], [], known).sets_of_known()
            of_column = {column.name: column.cardinality for column in self._table.columns}
            sets = sorted(sets, key=lambda own: -math.prod(of_column[name] for name in own))
            self._sets[criterion] = [self._in_order(own) for own in sets if own]
        return self._sets[criterion]

    def _keep(self, node: Levels, values: Sequence[CriterionValue]) -> None:
        self.values.setdefault(node, {}).update({value.criterion: value for value in values})

    def _classes(self, columns: tuple[Hashable, ...], node: Levels, most: int | None) -> ClassRows | None:
        """Return the equivalence classes over columns at a node, None for more than `most`."""
        if columns not in self._roll_ups:
            places = [self._table.place(name) for name in columns]
            self._roll_ups[columns] = ClassRollUp(self._table, places, self._levels, self._workers)
        return self._roll_ups[columns].classes(node, most)

    def at_levels(self, node: Levels) -> CountedTable:
        """Return the table at a node, with its distinct rows found anew."""
        names = tuple(self._table.names)
        rows = self._classes(names, node, None)
        assert rows is not None
        return self._with_rows(rows, names, node)

    def _with_rows(self, rows: ClassRows, names: tuple[Hashable, ...], node: Levels) -> CountedTable:
        """Return a table whose distinct rows are the classes over some columns at a node."""
        levels = {column.name: column.levels[level] for column, level in zip(self._levels, node, strict=True)}
        columns = []
        for name, codes in zip(names, self._roll_ups[names].codes(rows), strict=True):
            column = self._table.columns[self._table.place(name)]
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
        return CountedTable(columns, rows.counts, self._table.rows, orders, True, population, self._table.whole)


def _values_of_classes(criteria: Sequence[Criterion], counts: npt.NDArray[np.int64]) -> list[CriterionValue]:
    """Return the values of criteria on class sizes. counts: the rows of each class."""
    if all(isinstance(criterion.quantity, ModelQuantity) for criterion in criteria):
        k = int(counts.min())
        return [CriterionValue(criterion, k, criterion.is_met(k)) for criterion in criteria]
    sizes, multiplicities = np.unique(counts, return_counts=True)
    class_sizes = ClassSizes.from_classes(dict(zip(sizes.tolist(), multiplicities.tolist(), strict=True)))
    return [value_of_classes(criterion, class_sizes) for criterion in criteria]
