"""Estimates for the population before and after: each row counts as often as its sampling weight."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ..attack.weights import Units, read_weights
from ..encoding.column import Column, amounts, value_order
from ..engines.base import Counter
from ..marginals.set_counts import Find, SetCounts, SetRequest, Total
from ..utils.exact_sums import ExactSum
from .continuous_values import PERCENTS, Estimate, why_no_numbers
from .released_values import ReleasedColumn

# The codes of a column, and the units of people with each.
Weighted = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


def make_weighted(columns: Sequence[Column], total: Total) -> Find:
    """Return the function that finds, in a partition, the codes of a column and the units of people with each code."""
    units: list[Units] = []

    def find(set_: Sequence[int], counter: Counter, place: int) -> Weighted:
        units.extend([] if units else [read_weights(columns[-1])])
        counted = counter.combinations(place, ordered=False)
        codes, which = np.unique(counted.codes[0], return_inverse=True)
        people = np.zeros(len(codes), np.int64)
        np.add.at(people, which.reshape(-1), units[0].of_code[counted.codes[1]] * counted.counts)
        return codes.astype(np.int64), people

    return find


def estimate_weighted(counts: SetCounts, columns: Sequence[ReleasedColumn]) -> list[Estimate]:
    """Return the weighted estimates of the columns of a joined table, rows of the frame of estimates.

    Its last column has the sampling weights. Raises InputError for weights that are missing, negative or no numbers.
    """
    size = len(columns)
    sets = [SetRequest([place, 2 * size + 1], [place]) for place in range(2 * size)]
    counted = counts.count(sets, make_weighted)
    unit = read_weights(counted.columns[-1]).unit
    people = []
    for place, parts in enumerate(counted.found):
        shared = columns[place % size].shared
        numbers, own = shared.numbers(counted.columns[place]), np.zeros(len(shared.labels) + 1, np.int64)
        for codes, units in parts:
            np.add.at(own, numbers[codes], units)
        people.append(own[:-1])
    return [
        row
        for column, before, after in zip(columns, people[:size], people[size:], strict=True)
        if column.kind != "dropped"
        for row in _estimates(column, (before, after), unit)
    ]


def _estimates(column: ReleasedColumn, people: Sequence[npt.NDArray[np.int64]], unit: float) -> Iterator[Estimate]:
    """Yield the weighted estimates of a column. people: units with each value, before and after. unit: people."""
    name = column.name
    if why_no_numbers(column) is None:
        values = amounts(column.shared.column(name))[:-1]
        totals = [_total(values, own) for own in people]
        yield name, "weighted_total", None, *(units * unit for units in totals)
        means = [units / int(own.sum()) if own.any() else math.nan for units, own in zip(totals, people, strict=True)]
        yield name, "weighted_mean", None, *means
        for percent in PERCENTS:
            yield name, f"weighted_q{percent:g}", None, *(_quantile(values, own, percent) for own in people)
        return
    labels = column.shared.labels.to_pylist()
    at_detail = np.zeros(column.size, np.int64)
    np.add.at(at_detail, np.arange(len(labels)) if column.is_lost else column.detail[:-1], people[0])
    people = at_detail[:-1], people[1]
    order = np.argsort(value_order(column.shared.column(name))[:-1])
    for number in order[(people[0] + people[1])[order] > 0].tolist():
        parts = [own[number] / own.sum() if own.any() else math.nan for own in people]
        yield name, "weighted_share", labels[number], *map(float, parts)


def _total(values: npt.NDArray[np.float64], units: npt.NDArray[np.int64]) -> float:
    """Return the sum of numbers times units, rounded once: the units are added up 30 bits at a time."""
    parts = [ExactSum.from_numbers(values, (units >> shift) & ((1 << 30) - 1)).units << shift for shift in (0, 30, 60)]
    return ExactSum(sum(parts), 1).mean


def _quantile(values: npt.NDArray[np.float64], units: npt.NDArray[np.int64], percent: float) -> float:
    """Return the least number that, with all lesser ones, has at least `percent` of the people; NaN for none."""
    if not units.any():
        return math.nan
    order = np.argsort(values)
    below = np.cumsum(units[order])
    # Whole numbers are compared: percents are whole.
    least = -(-int(below[-1]) * int(percent) // 100)
    return float(values[order[np.searchsorted(below, least)]])
