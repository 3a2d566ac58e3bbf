"""What sets of columns of a table tell, together and about each other, from how often their values occur."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..encoding.column import Column
from ..engines.base import Counter
from ..engines.cpu.counting import number_rows
from ..rows.threads import Workers
from ..utils.information import LogSum, Sizes
from ..utils.progress import Reporter, announce_compilation
from ..utils.validation import as_columns
from .base import SetCounts, SetRequest, Total
from .independence import NEARLY_NONE, as_often_as_parts
from .open import open_counts
from .request import CountRequest


def measure_sets(measure: Callable[..., float], table: Any, weights: Hashable, missing: str, **given: Any) -> float:
    """What a method of `ColumnSets` finds of sets of columns of a table.

    given: by the argument that names it, each set's columns (None: all). Others: as of `gpupif.information.entropy`.
    """
    wanted = [
        None if columns is None else as_columns(argument, columns, table, empty=argument == "given")
        for argument, columns in given.items()
    ]
    every = None if None in wanted else list(dict.fromkeys(name for columns in wanted for name in columns or ()))
    request = CountRequest(every, weights, missing, ", ".join(given))
    with Reporter() as report, announce_compilation(), open_counts(table, request, report) as counts:
        names = list(counts.names)
        sets = [[names.index(name) for name in (names if columns is None else columns)] for columns in wanted]
        return measure(ColumnSets(counts), *sets)


class ColumnSets:
    """Sets of columns of one table, by their places there, and their entropies.

    With S(X), the sum of c log2 c over the counts c of the values of X, and N = n log2 n, the entropy of X is
    (N - S(X)) / n; the sums are the same wherever the counts are, so that what must be 0 is 0.
    """

    def __init__(self, counts: SetCounts) -> None:
        self._counts = counts
        self._total = Total(0, 0)

    def _sums(self, sets: Sequence[Sequence[int]]) -> list[float]:
        """N, which is only known when rows were counted, and S of each set of columns."""
        some = [set_ for set_ in sets if set_]
        counted = self._counts.count([SetRequest(set_) for set_ in some], _make_sizes)
        self._total = counted.total
        sums = iter(counted.found)
        whole = Sizes.of(np.array([self._total.units])).sum_log()
        # On no columns all rows agree.
        return [whole, *(LogSum.total(next(sums)).sum_log() if set_ else whole for set_ in sets)]

    def _bits(self, terms: Iterable[float]) -> float:
        return max(0.0, math.fsum(terms) / self._total.units)

    def entropy(self, x: Sequence[int]) -> float:
        """H(X)."""
        whole, own = self._sums([x])
        return self._bits([whole, -own])

    def conditional(self, x: Sequence[int], y: Sequence[int]) -> float:
        """H(X | Y)."""
        _, joint, known = self._sums([_union(x, y), y])
        return self._bits([known, -joint])

    def mutual(self, a: Sequence[int], b: Sequence[int]) -> float:
        """I(A; B)."""
        whole, joint, first, second = self._sums([_union(a, b), a, b])
        bits = self._bits([whole, joint, -first, -second])
        return 0.0 if bits < NEARLY_NONE and self._independent(a, b) else bits

    def total_correlation(self, x: Sequence[int]) -> float:
        """The sum of H(X_i), less H(X)."""
        whole, joint, *alone = self._sums([x, *([column] for column in x)])
        bits = self._bits([*(whole - each for each in alone), joint, -whole])
        return 0.0 if bits < NEARLY_NONE and self._all_independent(x) else bits

    def dual(self, x: Sequence[int]) -> float:
        """H(X), less the residual entropy."""
        whole, joint, *rests = self._sums([x, *_all_but_one(x)])
        bits = self._bits([whole, -joint, *(joint - rest for rest in rests)])
        return 0.0 if bits < NEARLY_NONE and self._all_independent(x) else bits

    def residual(self, x: Sequence[int]) -> float:
        """The sum of H(X_i | others)."""
        _, joint, *rests = self._sums([x, *_all_but_one(x)])
        return self._bits(max(0.0, rest - joint) for rest in rests)

    def _all_independent(self, x: Sequence[int]) -> bool:
        """Whether each column is independent of those before it together: then all are, of each other."""
        return all(self._independent(x[:place], [column]) for place, column in enumerate(x) if place)

    def _independent(self, a: Sequence[int], b: Sequence[int]) -> bool:
        """Whether n c(a, b) = c(a) c(b) for all values of A and B: in whole numbers, so beyond doubt."""
        counted = self._counts.count([SetRequest(a), SetRequest(b)], _make_different)
        first, second = map(sum, counted.found)
        # Every value of A goes with every one of B then, so that one of them has few.
        if first * second > self._total.rows:
            return False
        many, few = (a, b) if first > second else (b, a)
        parts = self._counts.count([SetRequest(few)], _make_combinations).found[0]
        codes = [np.concatenate([part.codes[place] for part in parts]) for place in range(len(few))]
        known = np.concatenate([part.counts for part in parts])[np.lexsort(codes[::-1])]
        joint = SetRequest([*many, *few], many)
        return all(self._counts.count([joint], partial(_Independent, len(many), known)).found[0])


def _make_sizes(columns: Sequence[Column], total: Total) -> Any:
    """Finds the terms of S."""
    return lambda set_, counter, place: counter.sizes(place).log_sum()


def _make_different(columns: Sequence[Column], total: Total) -> Any:
    """Finds how many combinations there are."""
    return lambda set_, counter, place: len(counter.counts(place))


def _make_combinations(columns: Sequence[Column], total: Total) -> Any:
    """Finds the combinations."""
    return lambda set_, counter, place: counter.combinations(place)


class _Independent:
    """Finds whether n c(a, b) = c(a) c(b) in a part that holds all rows with each of its combinations of A.

    A: the first `many` columns of the set. known: c(b) of all B, in their order.
    """

    def __init__(self, many: int, known: npt.NDArray[np.int64], columns: Sequence[Column], total: Total) -> None:
        self._many = many
        self._known = known
        self._cardinalities = [column.cardinality for column in columns]
        self._total = total

    def __call__(self, set_: Sequence[int], counter: Counter, place: int) -> bool:
        found = counter.combinations(place)
        with Workers(1) as workers:
            one, other = (
                number_rows(
                    found.codes[part], [self._cardinalities[column] for column in set_[part]], workers, found.counts
                )
                for part in (slice(self._many), slice(self._many, None))
            )
            counts = one.combinations.counts
            # Of A and B together all that are possible occur, so those of B here are all that there are.
            if len(other.combinations.counts) < len(self._known) or len(found.counts) < len(counts) * len(self._known):
                return False
        parts = counts[one.number], self._known[other.number]
        return as_often_as_parts(found.counts, parts, self._total.units)


def _union(a: Sequence[int], b: Sequence[int]) -> list[int]:
    return sorted({*a, *b})


def _all_but_one(x: Sequence[int]) -> list[list[int]]:
    return [[other for other in x if other != column] for column in x]
