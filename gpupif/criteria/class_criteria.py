"""Criteria that each equivalence class meets or breaks on its own, so that its rows can be suppressed."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..disclosure.models import Model
from ..measures import Measure, find_measure
from .criterion import Criterion
from .criterion_set import CriterionSet, CriterionValue, worst_of
from .quantities import ModelQuantity

# The share by which a bound is relaxed, so that rounding never makes it too strict.
SLACK = 1e-9

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

    @property
    def count_alone(self) -> bool:
        """True if `least_values` and `k` decide whether a class meets the criteria."""
        return all(criterion.quantity.model.name == "distinct_l" for criterion, _ in self.models)  # type: ignore[attr-defined]

    def least_values(self, name: Hashable, shares: Floats, longest: int) -> int:
        """Return a number of different values of an attribute that each class has which meets the criteria.

        Each class that is merged with others keeps its values, so a search may prune by this number.

        shares: of the values of the attribute in the table. longest: the longest distance of two values.
        """
        return max((_least_values(own, shares, longest) for own, columns in self.models if name in columns), default=1)

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
        reached = self._reached_sizes(int(np.asarray(class_sizes)[left].min()))
        for criterion, by_column in values:
            worst = np.max if criterion.at_most else np.min
            reached.append(worst_of(criterion, {name: float(worst(own[left])) for name, own in by_column.items()}))
        return failing, reached

    def reached(self, k: int, values: Mapping[Hashable, int]) -> list[CriterionValue]:
        """Return the value of each criterion if `count_alone`. k: rows of the smallest class that is left.

        values: by attribute the fewest different values of a class that is left.
        """
        models = [worst_of(own, {name: values[name] for name in columns}) for own, columns in self.models]
        return [*self._reached_sizes(k), *models]

    def _reached_sizes(self, k: int) -> list[CriterionValue]:
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


def _least_values(criterion: Criterion, shares: Floats, longest: int) -> int:
    """Return a number of different values that each class has which meets a criterion; see `ClassCriteria`."""
    quantity, limit = criterion.quantity, criterion.limit
    assert isinstance(quantity, ModelQuantity)
    name = quantity.model.name
    if name in ("distinct_l", "entropy_l"):
        return max(1, math.ceil(limit * (1 - SLACK)))
    if name == "recursive_c":
        return quantity.l_values
    if name == "alpha":
        highest, needed = np.full(len(shares), limit), 1.0
    elif name == "t":
        # Mass moves at least one step: no value that a class lacks keeps its share.
        highest, needed = shares, 1 - limit * longest
    elif name == "delta":
        highest, needed = shares * math.exp(min(limit, 700)), 1.0
    else:
        assert name in ("basic_beta", "enhanced_beta")
        rise = np.minimum(limit, -np.log(shares)) if name == "enhanced_beta" else limit
        highest, needed = shares * (1 + rise), 1.0
    # The shares of the values of a class sum to 1: without the highest shares allowed they cannot.
    reached = np.cumsum(np.sort(highest)[::-1])
    return int((reached < needed - SLACK).sum()) + 1
