"""The worst equivalence class for k, and for distinct l and t of each sensitive attribute."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels import walks

from ..engines.base import Axis
from ..engines.cpu.counting import NumberedRows
from ..engines.kernel_inputs import kernel_axes
from ..utils.display import Record
from .homogeneous_classes import PLACES, ClassValues
from .models import MODELS, Model

# The disclosure measures whose worst class is named.
NAMED = ("k", "distinct_l", "t")


@dataclass(frozen=True)
class WorstClass(Record):
    """The equivalence class that decides a disclosure measure; of several that are equally bad, the lowest values.

    measure: str. "k", "distinct_l" or "t".
    attribute: column name or None. The sensitive attribute. None for k.
    value: float. The disclosure measure of the class, in the measure's unit.
    quasi_identifiers: mapping of column name to value. The values that the rows agree on, None for missing.
    rows: int. Rows of the class.
    classes: int. How many classes are equally bad, this one included.

    If missing values match every value, the class is all rows that match these values.
    """

    measure: str
    attribute: Hashable
    value: float
    quasi_identifiers: Mapping[Hashable, Any]
    rows: int
    classes: int


class FirstClass(NamedTuple):
    """The first of the worst classes of a partition for a disclosure measure.

    score: the score of its cells, without digits that differ by rounding. of_class: the rank of the value of each
    quasi-identifier. rows: rows of the class. classes: the number of classes of this score.
    """

    score: float
    of_class: tuple[int, ...]
    rows: int
    classes: int


def worst_classes(
    models: Iterable[Model],
    scores: Mapping[str, npt.NDArray[Any]],
    classes: npt.NDArray[np.integer],
    numbered: NumberedRows,
    sizes: npt.NDArray[np.int64],
) -> dict[str, FirstClass]:
    """Return the first of the worst classes for each disclosure measure of which there are scores.

    scores: scores of classes by measure of cells; 0 values or NaN for a class without a known value, which is left out.
    classes: the number of each of these classes. numbered: the classes of the partition, in the order of their values.
    sizes: their rows.
    """
    worst = {}
    for model in models:
        if model.cell in scores:
            own = np.round(scores[model.cell], PLACES)
            known = ~np.isnan(own) if model.highest else own > 0
            if known.any():
                extreme = own[known].max() if model.highest else own[known].min()
                equal = np.zeros(len(sizes), np.bool_)
                equal[classes[known & (own == extreme)]] = True
                number = int(equal.argmax())
                of_class = tuple(int(codes[number]) for codes in numbered.combinations.codes)
                worst[model.name] = FirstClass(float(extreme), of_class, int(sizes[number]), int(equal.sum()))
    return worst


def scores_of_classes(
    cells: ClassValues, axis: Axis | None, order: npt.NDArray[np.int64]
) -> dict[str, npt.NDArray[Any]]:
    """Return distinct l and, where there is an axis, the distance of t-closeness of each class.

    axis: of the attribute's values. order: the `value_order` of the attribute.
    """
    scores: dict[str, npt.NDArray[Any]] = {MODELS["distinct_l"].cell: cells.numbers}
    if axis is not None and len(cells.starts):
        shares = cells.counts / np.repeat(cells.totals, cells.numbers)
        places = axis.rank[np.argsort(order)]
        of_cell = places[cells.values]
        if (places[1:] < places[:-1]).any():
            sorted_cells = np.lexsort((of_cell, np.repeat(cells.classes, cells.numbers)))
            of_cell, shares = of_cell[sorted_cells], shares[sorted_cells]
        distances = np.empty(len(cells.starts))
        walks.move_classes(np.append(cells.starts, len(of_cell)), kernel_axes([axis]), of_cell, shares, distances)
        scores[MODELS["t"].cell] = distances
    return scores


def first_of(parts: Sequence[Mapping[str, FirstClass]]) -> dict[str, FirstClass]:
    """Return the first of the worst classes of several partitions, by disclosure measure."""
    first: dict[str, FirstClass] = {}
    for part in parts:
        for model, own in part.items():
            sign = -1 if MODELS[model].highest else 1
            before = first.get(model, own._replace(classes=0))
            worst = min(before, own, key=lambda one: (sign * one.score, one.of_class))
            equal = sum(one.classes for one in (before, own) if one.score == worst.score)
            first[model] = worst._replace(classes=equal)
    return first
