"""Criteria that each equivalence class meets or breaks on its own, so that its rows can be suppressed."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels.class_bounds import ENTROPY, RECURSIVE, SHARES, SLACK

from ..disclosure.models import Model
from ..engines.base import Engine
from ..measures import Measure, find_measure
from ..rows.threads import Workers
from .counted_scores import score_counted
from .counted_table import CountedTable
from .criterion import Criterion
from .criterion_set import CriterionSet, CriterionValue, worst_of
from .quantities import ModelQuantity

# A share that is below the share of any value.
LEAST_SHARE = 1e-300

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ClassCriteria:
    """Criteria on each equivalence class over the quasi-identifiers.

    sizes: criteria on the sizes of classes. models: criteria on sensitive attributes, each with its attributes.
    """

    sizes: Sequence[Criterion]
    models: Sequence[tuple[Criterion, Sequence[Hashable]]]

    @classmethod
    def from_set(cls, criteria: CriterionSet) -> ClassCriteria:
        """Return the criteria of a set that are on each class."""
        own = [criterion for criterion in criteria.criteria if criterion.of_each_class]
        models = []
        for criterion in own:
            quantity = criterion.quantity
            if isinstance(quantity, ModelQuantity) and quantity.sensitive:
                named = [name for name in criteria.sensitive if quantity.column in (None, str(name))]
                models.append((criterion, named))
        return cls([criterion for criterion in own if criterion.smallest_class is not None], models)

    @property
    def criteria(self) -> list[Criterion]:
        """All criteria."""
        return [*self.sizes, *(criterion for criterion, _ in self.models)]

    @property
    def k(self) -> int:
        """The fewest rows of a class."""
        return max((criterion.smallest_class or 1 for criterion in self.sizes), default=1)

    @property
    def columns(self) -> list[Hashable]:
        """The sensitive attributes of the criteria."""
        return list(dict.fromkeys(name for _, columns in self.models for name in columns))

    @property
    def measures(self) -> list[Measure]:
        """The measures of cells that have one value in a class, by which the criteria on attributes are judged."""
        return list(dict.fromkeys(_measure(criterion) for criterion, _ in self.models))

    def bounds(self, name: Hashable, shares: Floats, longest: int) -> tuple[npt.NDArray[Any], ...]:
        """Return the criteria on an attribute as arrays, by which `kernels.class_bounds` bounds the rows that are left.

        shares: of the values of the attribute in the table. longest: the longest distance of two values.
        """
        bounds = [_bound(own, shares, longest) for own, columns in self.models if name in columns]
        return tuple(map(np.array, zip(*bounds, strict=True)))

    def failing(
        self,
        class_sizes: npt.NDArray[Any],
        scores: Callable[[Measure, Hashable], npt.NDArray[Any]],
        longest: Mapping[Hashable, int],
    ) -> tuple[Bools, list[CriterionValue]]:
        """Return whether the class of each row breaks a criterion, and the value of each criterion in other classes.

        class_sizes: by row. scores: returns by row the score of its cell. longest: by attribute the longest
        distance of two values, for criteria on distances.
        """
        failing = np.asarray(class_sizes) < self.k
        values: list[tuple[Criterion, dict[Hashable, Floats]]] = []
        for criterion, columns in self.models:
            assert isinstance(criterion.quantity, ModelQuantity)
            model = criterion.quantity.model
            by_column = {}
            for name in columns:
                found, place = np.unique(scores(_measure(criterion), name), return_inverse=True)
                finished = [_finish(model, own, longest.get(name, 1)) for own in found.tolist()]
                met = np.array([criterion.is_met(own) for own in finished], bool)
                failing = failing | ~met[place]
                by_column[name] = np.array(finished, float)[place]
            values.append((criterion, by_column))
        left = ~failing
        if not left.any():
            return failing, []
        reached = self.reached(int(np.asarray(class_sizes)[left].min()))
        for criterion, by_column in values:
            worst = np.max if criterion.at_most else np.min
            reached.append(worst_of(criterion, {name: float(worst(own[left])) for name, own in by_column.items()}))
        return failing, reached

    def failing_rows(
        self,
        table: CountedTable,
        known: Sequence[Hashable],
        distances: Mapping[Any, Any],
        longest: Mapping[Hashable, int],
        engine: Engine,
        workers: Workers,
    ) -> tuple[Bools, list[CriterionValue]]:
        """Return the result of `failing` for the distinct rows of a table. known: the quasi-identifiers."""
        columns, measures = self.columns, self.measures
        scores = score_counted(table, known, columns, measures, distances, engine)[1] if measures else {}
        return self.failing(
            table.class_sizes(known, workers),
            lambda measure, name: np.asarray(scores[measure.name][columns.index(name)].scores),
            longest,
        )

    def reached(self, k: int) -> list[CriterionValue]:
        """Return the value of each criterion on sizes. k: the rows of the smallest class that is left."""
        # The limit of other figures of sizes, such as unique rows, is 0: no class that is left breaks it.
        return [CriterionValue(own, k if isinstance(own.quantity, ModelQuantity) else 0, True) for own in self.sizes]


def _finish(model: Model, score: float, longest: int) -> float:
    """Return the value of a class from the score of its cells."""
    if math.isnan(score):
        return score
    return score / longest if model.name == "t" else float(model.finish(score, None))


def _measure(criterion: Criterion) -> Measure:
    """Return the measure of cells that has one value in a class, the value of the class."""
    quantity = criterion.quantity
    assert isinstance(quantity, ModelQuantity)
    return find_measure(quantity.model.measure(quantity.l_values, True))


def _bound(criterion: Criterion, shares: Floats, longest: int) -> tuple[int, float, int, float, Floats, Floats]:
    """Return bounds on the values of each class that meets a criterion: see `kernels.class_bounds.bound_classes`."""
    quantity, limit = criterion.quantity, criterion.limit
    assert isinstance(quantity, ModelQuantity)
    name, lowest, needed = quantity.model.name, np.zeros(len(shares)), 1.0
    if name in ("distinct_l", "entropy_l", "recursive_c"):
        kind = {"distinct_l": SHARES, "entropy_l": ENTROPY, "recursive_c": RECURSIVE}[name]
        least = quantity.l_values or max(1, math.ceil(limit * (1 - SLACK)))
        return kind, math.log2(max(limit, 1)) if kind == ENTROPY else limit, least, needed, lowest + 1, lowest
    if name == "alpha":
        highest = np.full(len(shares), limit)
    elif name == "t":
        # Mass moves at least one step: the shares up to those of the table have to sum to what need not move.
        highest, needed = shares, 1 - limit * longest
    elif name == "delta":
        highest, lowest = shares * math.exp(min(limit, 700)), shares * math.exp(-limit)
    else:
        assert name in ("basic_beta", "enhanced_beta")
        rise = np.minimum(limit, -np.log(np.maximum(shares, LEAST_SHARE))) if name == "enhanced_beta" else limit
        highest = shares * (1 + rise)
    if needed <= 0:
        return SHARES, limit, 1, 1.0, lowest + 1, lowest
    # The shares of the values of a class sum to 1: without the highest shares allowed they cannot.
    reached = np.cumsum(np.sort(highest)[::-1])
    least = int((reached < needed - SLACK).sum()) + 1
    return SHARES, limit, least, needed, np.minimum(highest, 1), lowest
