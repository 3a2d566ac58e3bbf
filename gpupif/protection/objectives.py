"""The objectives of `protect`: the cost of a node, and the bounds on it by which the search rules nodes out.

Each objective is one class, found by its name in `OBJECTIVES`. Costs are on the scale of the search; `value` turns them
into the figure that is reported. Lower is better.

The search needs lower bounds that are known by the levels of columns. The cost of a node is at least the sum of the
bounds of its levels, and at least each of their floors. A node that was priced gives a floor for all nodes above it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import InputError, did_you_mean
from ..hierarchies.hierarchy import Hierarchy
from ..marginals.count_statistics import CountSums
from ..utils.validation import brief
from .column_levels import ColumnLevels, entropy_loss
from .lattice import Levels
from .lattice_search import Price
from .node_checks import NodeChecks

# The kinds of prediction of `utility`: shares of information, or of rows.
TASKS = ("information", "classify")


class ObjectiveChoice(NamedTuple):
    """An objective as it was asked for. column: the column that is predicted, as text. task: one of `TASKS`."""

    kind: type[Objective]
    column: str | None = None
    task: str = TASKS[0]

    def __str__(self) -> str:
        return self.kind.name if self.column is None else f"{self.kind.name}({self.column}, {self.task})"


class Bounds(NamedTuple):
    """Lower bounds on the cost of nodes, by axis and level. sums: they add up. floors: each holds by itself."""

    sums: Sequence[Sequence[float]]
    floors: Sequence[Sequence[float]] | None = None


class Objective(ABC):
    """An objective for one table.

    name: str. The name in `objective=`. unit: str. The unit of the loss. source: str. The definition. weighs_columns:
    whether `importance=` applies.
    levels: of the quasi-identifiers. importance: by axis. hierarchies: by axis. rows: of the table. checks: count the
    classes at a node. suppresses: whether rows may be suppressed. predicted: the column that is predicted, None for
    objectives that predict none. task: one of `TASKS`.
    """

    name: ClassVar[str]
    unit: ClassVar[str]
    source: ClassVar[str]
    weighs_columns: ClassVar[bool] = True

    def __init__(
        self,
        levels: Sequence[ColumnLevels],
        importance: Mapping[Hashable, float],
        hierarchies: Sequence[Hierarchy],
        rows: int,
        checks: NodeChecks,
        suppresses: bool,
        predicted: Hashable = None,
        task: str = TASKS[0],
    ) -> None:
        self.levels, self.hierarchies, self.rows, self.checks = levels, hierarchies, rows, checks
        self.importance = [importance.get(column.name, 1.0) for column in levels]
        self.suppresses, self.predicted, self.task = suppresses, predicted, task

    @abstractmethod
    def bounds(self, is_over: Callable[[], bool]) -> Bounds:
        """Return the bounds. is_over: returns whether the time is over: bounds that are not known then may be lower."""

    @property
    def pricing(self) -> Callable[[Levels], Price] | None:
        """The function `price`, None if the sums of the bounds are the costs."""
        return self.price

    @abstractmethod
    def price(self, node: Levels) -> Price:
        """Return the cost of a node, and a cost that no node above it is below."""

    def value(self, cost: float) -> float:
        """Return the loss that is reported for a cost."""
        return cost


class ColumnObjective(Objective):
    """An objective that is a sum over columns: of all rows at their level, and of the rows that are suppressed."""

    @abstractmethod
    def _cost(self, axis: int, level: int, hidden: npt.NDArray[np.int64] | None) -> float:
        """Return the cost of a column at a level. hidden: by group its rows that are suppressed, None for none."""

    @cached_property
    def _sums(self) -> list[list[float]]:
        return [
            [self._cost(axis, level, None) for level in range(column.height + 1)]
            for axis, column in enumerate(self.levels)
        ]

    def bounds(self, is_over: Callable[[], bool]) -> Bounds:
        return Bounds(self._sums)

    @property
    def pricing(self) -> Callable[[Levels], Price] | None:
        return self.price if self.suppresses else None

    def price(self, node: Levels) -> Price:
        classes = self.checks.classes_at(node)
        gone = classes.counts - classes.left
        cost = floor = 0.0
        for axis, level in enumerate(node):
            groups = self.levels[axis].levels[level].cardinality
            # The weights of the sums are whole numbers below 2^53, so that the sums are exact.
            hidden = np.bincount(classes.codes[axis], gone, groups).astype(np.int64)
            cost += self._cost(axis, level, hidden)
            floor += self._sums[axis][level]
        return Price(cost, floor)


class Entropy(ColumnObjective):
    """Non-uniform entropy: n H(X|X') bits of each column, times its importance. Suppressed rows cost nothing."""

    name, unit = "entropy", "bits"
    source = "non-uniform entropy, Gionis & Tassa 2009"

    @property
    def pricing(self) -> Callable[[Levels], Price] | None:
        return None

    def _cost(self, axis: int, level: int, hidden: npt.NDArray[np.int64] | None) -> float:
        return self.importance[axis] * self.levels[axis].losses[level]


class EntropyAndSuppression(Entropy):
    """Non-uniform entropy, and for s suppressed rows s H(X' in them) bits of each column more, times its importance."""

    name, unit = "entropy+suppression", "bits"
    source = "non-uniform entropy with suppressed rows, Gionis & Tassa 2009, Prasser et al. 2014"
    pricing = ColumnObjective.pricing

    def _cost(self, axis: int, level: int, hidden: npt.NDArray[np.int64] | None) -> float:
        lost = 0.0 if hidden is None else entropy_loss(hidden, np.zeros(len(hidden), np.uint8))
        return super()._cost(axis, level, None) + self.importance[axis] * lost


class Loss(ColumnObjective):
    """Iyengar's loss, 0 to 1: the mean over the cells of (values in the group - 1) / (values of the column - 1).

    Values are the values that the hierarchy lists, also those that are not in the table. If it lists none, such as
    widths, they are the distinct values of the table. A missing value is a value of its own. Suppressed cells have loss
    1. Columns are weighted by their importance.
    """

    name, unit = "loss", "share of the values, arithmetic mean"
    source = "LM, Iyengar 2002"

    def _shares(self, axis: int, level: int) -> npt.NDArray[np.float64]:
        """Return the loss of a cell in each group."""
        column, coded = self.levels[axis], self.levels[axis].levels[level]
        leaves = self.hierarchies[axis].leaves(level) if level else None
        sizes, whole = np.bincount(coded.codes), len(coded.codes)
        if leaves is not None:
            whole = sum(leaves.values()) + column.column.missing
            top = level == self.hierarchies[axis].height
            # Missing values are a group of their own below the top, without a label.
            sizes = np.ones(coded.cardinality, np.int64)
            sizes[: len(coded.labels)] = [whole] if top else [leaves[label] for label in coded.labels.to_pylist()]
        return (sizes - 1) / max(1, whole - 1)

    def _cost(self, axis: int, level: int, hidden: npt.NDArray[np.int64] | None) -> float:
        kept, suppressed = self.levels[axis].levels[level].counts, 0
        if hidden is not None:
            kept, suppressed = kept - hidden, int(hidden.sum())
        mean = (math.fsum((kept * self._shares(axis, level)).tolist()) + suppressed) / self.rows
        return self.importance[axis] / math.fsum(self.importance) * self._scaled(mean)

    def _scaled(self, mean: float) -> float:
        """Return the mean loss of a column on the scale on which columns add up."""
        return mean


class LossByGeometricMean(Loss):
    """Iyengar's loss by column, 0 to 1, as a weighted geometric mean: the product of (1 + loss) ^ weight, minus 1.

    The weights are the importances, divided by their sum. One is added because the loss of a single column that stays
    as it is would make every product 0.
    """

    name, unit = "loss_gm", "share of the values, geometric mean"

    def _scaled(self, mean: float) -> float:
        return math.log1p(mean)

    def value(self, cost: float) -> float:
        return math.expm1(cost)


class Precision(Loss):
    """Imprecision, 0 to 1: 1 - the mean over columns of 1 - level / height of the hierarchy. Suppressed cells lose 1.

    Columns are weighted by their importance.
    """

    name, unit = "precision", "1 - precision"
    source = "Prec, Sweeney 2002"

    def _shares(self, axis: int, level: int) -> npt.NDArray[np.float64]:
        return np.full(self.levels[axis].levels[level].cardinality, level / self.hierarchies[axis].height)


class Height(Entropy):
    """The sum of the levels of all columns, each times its importance. Suppressed rows cost nothing."""

    name, unit = "height", "levels"
    source = "height of a node, Samarati 2001"

    def _cost(self, axis: int, level: int, hidden: npt.NDArray[np.int64] | None) -> float:
        return self.importance[axis] * level


class ClassObjective(Objective):
    """An objective of equivalence classes: coarser values never lower it, but for the rows that are suppressed."""

    weighs_columns = False

    def bounds(self, is_over: Callable[[], bool]) -> Bounds:
        """Return as floors of a level the floor of the node with all other columns at level 0."""
        bottom = [0] * len(self.levels)
        least = 0.0 if is_over() else self.price(tuple(bottom)).floor
        floors = []
        for axis, column in enumerate(self.levels):
            own = [least]
            for level in range(1, column.height + 1):
                node = (*bottom[:axis], level, *bottom[axis + 1 :])
                own.append(own[-1] if is_over() else self.price(node).floor)
            floors.append(own)
        return Bounds([[0.0] * len(own) for own in floors], floors)

    def price(self, node: Levels) -> Price:
        # If some rows of a class are suppressed, and others not, the class may cost less than with all its rows.
        price = self._price(node)
        return price._replace(floor=0.0) if self.checks.splits_classes else price

    @abstractmethod
    def _price(self, node: Levels) -> Price:
        """Return the result of `price`, as if classes were suppressed as a whole."""


class Discernibility(ClassObjective):
    """Discernibility: the sum of the squares of the sizes of classes, and n for each suppressed row."""

    name, unit = "discernibility", "pairs of rows"
    source = "DM, Bayardo & Agrawal 2005"

    def bounds(self, is_over: Callable[[], bool]) -> Bounds:
        """Return as sums by how much each level alone raises the figure.

        Pairs of rows that a level of one column makes equal differ in this column alone, so that no other column makes
        them equal too.
        """
        floors = super().bounds(is_over).floors
        assert floors is not None
        sums = [[floor - own[0] for floor in own] for own in floors]
        sums[0] = list(floors[0])
        return Bounds(sums)

    def _price(self, node: Levels) -> Price:
        classes = self.checks.classes_at(node)
        gone = self.rows - int(classes.left.sum())
        return Price(float(int(classes.left @ classes.left) + self.rows * gone), float(classes.counts @ classes.counts))


class AverageClassSize(ClassObjective):
    """The average class size: n rows / classes. All suppressed rows are one class."""

    name, unit = "average_class_size", "rows"
    source = "C_avg, LeFevre, DeWitt & Ramakrishnan 2006, without the divisor k"

    def _price(self, node: Levels) -> Price:
        classes = self.checks.classes_at(node)
        left = int((classes.left > 0).sum())
        left += bool((classes.left < classes.counts).any())
        return Price(self.rows / left, self.rows / len(classes.counts))


class Utility(ClassObjective):
    """The share of what the quasi-identifiers do not say of a column Y, 0 to 1.

    information: 1 - I(Y; X') / H(Y), where X' is the class and all suppressed rows are one class. classify: the share
    of the rows that have another value of Y than most of their class; suppressed rows count in full (CM).
    """

    name, unit = "utility", "share that is not predicted"
    source = "normalised mutual information; CM, Iyengar 2002"

    def _price(self, node: Levels) -> Price:
        classes = self.checks.classes_at(node, self.predicted)
        counts, number, values = classes.counts_by_value, classes.number, classes.values
        if self.task == "classify":
            most, most_left = np.zeros((2, len(classes.counts)), np.int64)
            np.maximum.at(most, number, counts)
            np.maximum.at(most_left, number, classes.left_by_value)
            return Price(1 - int(most_left.sum()) / self.rows, 1 - int(most.sum()) / self.rows)
        whole = _units([self.rows]) - _units(np.bincount(values, counts))
        of_gone = np.bincount(values, counts - classes.left_by_value)
        left = _units(np.append(classes.left, self.rows - classes.left.sum()))
        left -= _units(np.append(classes.left_by_value, of_gone))
        return Price(left / whole, (_units(classes.counts) - _units(counts)) / whole)


def _units(counts: Any) -> int:
    """Return the sum of c log2 c over counts, a whole number in units of bits: the same in any order."""
    return CountSums.from_counts(np.asarray(counts, np.int64)).logs.units


_KINDS: Sequence[type[Objective]] = (
    Entropy,
    EntropyAndSuppression,
    Loss,
    LossByGeometricMean,
    Discernibility,
    AverageClassSize,
    Precision,
    Height,
    Utility,
)
OBJECTIVES: Mapping[str, type[Objective]] = {kind.name: kind for kind in _KINDS}


def as_objective(objective: Any) -> ObjectiveChoice:
    """Return an objective by its name, such as "loss" or "utility(income, classify)". Raises InputError."""
    listed = ", ".join([*(name for name in OBJECTIVES if name != Utility.name), "utility(COLUMN)"])
    if not isinstance(objective, str):
        raise InputError(f"objective: expected the name of an objective, got {brief(objective)}. There are: {listed}.")
    name, bracket, inside = (part.strip() for part in objective.partition("("))
    if name not in OBJECTIVES:
        hint = did_you_mean(name, OBJECTIVES)
        raise InputError(f"objective: there is no objective {name!r}.{hint} There are: {listed}.")
    if name != Utility.name:
        if bracket:
            raise InputError(f"objective: {name!r} is of all quasi-identifiers. Write it without brackets.")
        return ObjectiveChoice(OBJECTIVES[name])
    column, comma, task = (part.strip() for part in inside.removesuffix(")").rpartition(","))
    if not comma:
        column, task = task, TASKS[0]
    if not column or not inside.endswith(")"):
        raise InputError(
            "objective: utility needs the column that is predicted, such as 'utility(income)' or "
            f"'utility(income, classify)'; got {objective!r}."
        )
    if task not in TASKS:
        hint = did_you_mean(task, TASKS)
        raise InputError(
            f"objective: there is no task {task!r} of utility.{hint} There are: {', '.join(TASKS)}. Put one behind the "
            "column, with a comma."
        )
    return ObjectiveChoice(Utility, column, task)
