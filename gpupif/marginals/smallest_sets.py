"""The smallest sets of columns that tell rows apart well enough: level by level, and none that need not be counted.

More columns tell apart at least as well. So what contains a set that was found is no smallest set; and of a set that
cannot reach what is asked, even if it were cut as finely as its further columns have values, nothing is counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, groupby
from typing import Any, NamedTuple

from ..encoding.column import Column
from ..engines.counting import Counter
from .count_statistics import Separation
from .set_counts import SetCounts, SetRequest, Total

ColumnSet = tuple[int, ...]


@dataclass(frozen=True)
class Criterion:
    """At least `alpha` of the rows distinct (by "distinction"), or of their pairs separated (by "separation").

    Of a set of columns this knows one number, or what that is at best: how many classes there are, or the sum of the
    squares of their sizes.
    """

    alpha: Fraction
    by: str

    def number(self, of: Separation) -> int:
        """The number of a set that was counted."""
        return of.classes if self.by == "distinction" else of.together + of.rows

    def at_best(self, number: int, values: int) -> int:
        """The number if a column, or several, of so many values together cut each class into as many, of equal size."""
        return number * values if self.by == "distinction" else -(-number // values)

    def worst(self, numbers: Sequence[int]) -> int:
        """Of numbers at best, each for a reason of its own, the one that holds."""
        return min(numbers) if self.by == "distinction" else max(numbers)

    def reached(self, number: int, rows: int) -> bool:
        """Whether a set with this number tells so many rows apart well enough."""
        if self.by == "distinction":
            return number >= self.alpha * rows
        pairs = rows * (rows - 1)
        return pairs - max(0, number - rows) >= self.alpha * pairs


class SmallestSets(NamedTuple):
    """found: the smallest sets, by places of columns, and how each tells rows apart. whole: all columns together.

    columns: of the table. counted: how many sets of several columns were.
    """

    found: dict[ColumnSet, Separation]
    whole: Separation
    columns: Sequence[Column]
    counted: int


def find_smallest_sets(counts: SetCounts, criterion: Criterion, max_size: int) -> SmallestSets:
    """All sets of at most `max_size` columns of which none can be left out; those of fewer columns first."""
    every = tuple(range(len(counts.names)))
    counted = counts.count([SetRequest(every)], make_separation)
    columns, rows = counted.columns, counted.total.rows
    whole = Separation.total(counted.found[0])
    if not criterion.reached(criterion.number(whole), rows):
        return SmallestSets({}, whole, columns, 1)
    values = [column.cardinality for column in columns]
    found: dict[ColumnSet, Separation] = {}
    known: dict[ColumnSet, Separation] = {
        (place,): Separation.from_counts(columns[place].counts, rows) for place in every
    }
    at_best: dict[ColumnSet, int] = {}
    sets = 1
    for left in reversed(range(max_size)):
        numbers = at_best | {set_: criterion.number(one) for set_, one in known.items()}
        smallest = {set_: one for set_, one in known.items() if criterion.reached(numbers[set_], rows)}
        found |= smallest
        further = _most_values(values, left)
        open_ = {
            set_: number
            for set_, number in numbers.items()
            if set_ not in smallest and criterion.reached(criterion.at_best(number, further), rows)
        }
        at_best = dict(_candidates(open_, values, criterion))
        wanted = [set_ for set_, number in at_best.items() if criterion.reached(number, rows)]
        parts = counts.count([SetRequest(set_) for set_ in wanted], make_separation).found if wanted else []
        known = {set_: Separation.total(own) for set_, own in zip(wanted, parts, strict=True)}
        sets += len(wanted)
    return SmallestSets(found, whole, columns, sets)


def make_separation(columns: Sequence[Column], total: Total) -> Any:
    """Finds how a set of columns tells rows apart (see `base.MakeFind`)."""

    def find(set_: Sequence[int], counter: Counter, place: int) -> Separation:
        return Separation.from_counts(counter.counts(place), total.rows)

    return find


def _candidates(
    open_: dict[ColumnSet, int], values: Sequence[int], criterion: Criterion
) -> Iterator[tuple[ColumnSet, int]]:
    """Sets of one column more of which each part may still become one that is found, and their numbers at best."""
    for prefix, group in groupby(sorted(open_), key=lambda set_: set_[:-1]):
        for last in combinations([set_[-1] for set_ in group], 2):
            set_ = (*prefix, *last)
            parts = [(column, set_[:at] + set_[at + 1 :]) for at, column in enumerate(set_)]
            if all(part in open_ for _, part in parts):
                yield set_, criterion.worst([criterion.at_best(open_[part], values[column]) for column, part in parts])


def _most_values(values: Sequence[int], columns: int) -> int:
    """How many values so many columns have together at most."""
    return math.prod(sorted(values, reverse=True)[:columns])
