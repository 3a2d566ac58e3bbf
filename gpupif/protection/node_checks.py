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
from ..criteria.class_criteria import ClassCriteria
from ..criteria.counted_scores import CellScores, score_counted
from ..criteria.counted_table import CountedTable
from ..criteria.criterion import Criterion
from ..criteria.criterion_set import CriterionSet, CriterionValue, value_of_classes
from ..criteria.quantities import ModelQuantity
from ..disclosure.class_sizes import ClassSizes
from ..encoding.column import Column
from ..engines.base import Engine, Job
from ..rows.distinct import distinct_rows
from ..rows.partition import Rows
from ..rows.threads import Workers
from .class_roll_up import ClassRollUp, ClassRows
from .column_levels import ColumnLevels
from .lattice import Levels, Reason


class Suppression(NamedTuple):
    """The rows that may be suppressed: at most `most` rows, in classes that break any of `criteria`.

    The criteria hold classes against the distribution of the whole table, suppressed rows among them, as ARX does.
    """

    criteria: ClassCriteria
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
    suppression: the rows that may be suppressed, None for none. All other criteria are then for the rows left.
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
        if suppression is None:
            self._pruning = [criterion for criterion in criteria.criteria if criteria.only_improves(criterion)]
            self._selecting = [criterion for criterion in criteria.criteria if not criteria.only_improves(criterion)]
            self.prunes, self.selects = bool(self._pruning), bool(self._selecting)
        else:
            # Rows are suppressed by the criteria on classes; the rows that are left have to meet the others.
            self._selecting = [criterion for criterion in criteria.criteria if not criterion.of_each_class]
            self._longest = self._find_longest(suppression.criteria)
            self._least_values = self._find_least_values(suppression.criteria)
            self.prunes = suppression.criteria.k > 1 or bool(self._least_values)
            self.selects = bool(self._selecting) or not suppression.criteria.count_alone
        # The class that was found to be too small last: its columns, its node, and how many rows it needs.
        self._small: tuple[tuple[Hashable, ...], Levels, int] | None = None
        self.values: dict[Levels, dict[Criterion, CriterionValue]] = {}

    def __enter__(self) -> NodeChecks:
        return self

    def __exit__(self, *error: object) -> None:
        self._workers.__exit__(*error)
        if self._population is not None:
            self._population.__exit__(*error)

    def holds(self, node: Levels) -> bool:
        """Return whether a node meets the criteria that coarser values never break."""
        self._small = None
        if self._suppression is not None:
            return self._fewest_suppressed(node, self._suppression) is not None
        return self._meets(self._pruning, node)

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
        if self._suppression is None:
            return self._meets(self._selecting, node)
        table = self.at_levels(node)
        failing = self._failing_rows(table, self._suppression.criteria, node)
        if int(table.multiplicities[failing].sum()) > self._suppression.most:
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
        table = self.at_levels(node)
        return int(table.multiplicities[self._failing_rows(table, self._suppression.criteria, node)].sum())

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
        criteria = self._suppression.criteria
        if not criteria.measures:
            return classes.counts >= criteria.k
        table = self.at_levels(node)
        failing = self._failing_rows(table, criteria, node)
        codes = [table.columns[table.place(column.name)].codes for column in self._levels]
        kept = np.ones(len(classes.counts), bool)
        kept[self._class_numbers(classes, codes)[failing]] = False
        return kept

    def _failing_rows(self, table: CountedTable, criteria: ClassCriteria, node: Levels) -> npt.NDArray[np.bool_]:
        """Return for each distinct row of the table at a node whether its class breaks a criterion on classes."""
        known = self._criteria.quasi_identifiers
        sizes = table.class_sizes(known, self._workers)
        columns, measures = criteria.columns, criteria.measures
        scores = self._score(table, criteria)[1] if measures else {}
        by_column = {
            (measure, name): np.asarray(scores[measure.name][slot].scores)
            for measure in measures
            for slot, name in enumerate(columns)
        }
        failing, values = criteria.failing(sizes, lambda measure, name: by_column[measure, name], self._longest)
        self._keep(node, values)
        return failing

    def _score(self, table: CountedTable, criteria: ClassCriteria) -> tuple[Job, dict[str, list[CellScores]]]:
        known, distances = self._criteria.quasi_identifiers, self._criteria.distances
        return score_counted(table, known, criteria.columns, criteria.measures, distances, self._engine)

    def _find_longest(self, criteria: ClassCriteria) -> dict[Hashable, int]:
        """Return by sensitive attribute the longest distance of two values, where a criterion is on distances."""
        if not any(measure.walks for measure in criteria.measures):
            return {}
        job, _ = self._score(self._table, criteria)
        assert job.axes is not None
        axes = [job.axes[place] for place in job.scored_columns]
        return {name: axis.longest for name, axis in zip(criteria.columns, axes, strict=True) if axis is not None}

    def _find_least_values(self, criteria: ClassCriteria) -> dict[Hashable, int]:
        """Return by sensitive attribute how many values a class has at least that meets the criteria; 1 is left out."""
        found = {}
        for name in criteria.columns:
            counts = self._table.columns[self._table.place(name)].counts
            shares = counts[counts > 0] / self._table.rows
            least = criteria.least_values(name, shares, self._longest.get(name, 1))
            if least > 1:
                found[name] = least
        return found

    def _fewest_suppressed(self, node: Levels, suppression: Suppression) -> int | None:
        """Return how many rows are in classes that are too small or have too few values; None for too many.

        Coarser values never make a class smaller, nor take a value away from it.
        """
        criteria, most = suppression
        known, names = tuple(self._criteria.quasi_identifiers), tuple(self._least_values)
        classes = self._classes(known, node, most + (self._table.rows - most) // criteria.k)
        if classes is None:
            return None
        sizes, values = classes.counts, dict[Hashable, npt.NDArray[np.int64]]()
        if names:
            sizes, values = self._values_by_class(known, names, node)
        failing = sizes < criteria.k
        for name, least in self._least_values.items():
            failing |= values[name] < least
        rows = int(sizes[failing].sum())
        if rows > most:
            return None
        if not self.selects or not criteria.models:
            least_of = {name: int(own[~failing].min()) for name, own in values.items()}
            self._keep(
                node, criteria.reached(int(sizes[~failing].min()), dict.fromkeys(criteria.columns, 1) | least_of)
            )
        return rows

    def _values_by_class(
        self, known: tuple[Hashable, ...], names: tuple[Hashable, ...], node: Levels
    ) -> tuple[npt.NDArray[np.int64], dict[Hashable, npt.NDArray[np.int64]]]:
        """Return the size of each equivalence class at a node, and by attribute how many different values it has."""
        columns = (*known, *names)
        rows = self._classes(columns, node, None)
        assert rows is not None
        roll_up = self._roll_ups[columns]
        layout, keys = roll_up.layout, rows.keys.copy()
        codes = roll_up.codes(rows)
        for place in range(len(known), len(columns)):
            word, shift, mask = layout.fields[place]
            keys[:, word] &= ~np.uint64(mask << shift)
        one_each = np.ones(len(keys), np.int64)
        number = distinct_rows(Rows(keys, one_each), len(keys), self._workers).number.astype(np.int64)
        sizes = np.bincount(number, rows.counts).astype(np.int64)
        values = {}
        for place, name in enumerate(names, len(known)):
            values_of_column = layout.fields[place].mask + 1
            pairs = number * values_of_column + codes[place]
            # Rows differ in these columns alone: with one attribute each row is a value of its class.
            different = pairs if len(names) == 1 else np.unique(pairs)
            values[name] = np.bincount(different // values_of_column, minlength=len(sizes))
        return sizes, values

    def _meets(self, criteria: Sequence[Criterion], node: Levels) -> bool:
        by_classes: dict[tuple[Hashable, ...], list[Criterion]] = {}
        others = []
        for criterion in criteria:
            known = self._criteria.known(criterion)
            matching = self._criteria.missing == "wildcard"
            if matching or isinstance(known, AnyKnown) or not known or not criterion.is_of_sizes:
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
        values = self._criteria.with_criteria(others).measure(self.at_levels(node), self._engine)
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
