"""What sets of columns of a table tell, together and about each other, from how often their values occur."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .coded import code_columns
from .engines.subsets import SubsetCounter, number_rows, sizes_of_sets
from .engines.workers import Workers
from .information import Sizes
from .names import as_columns
from .progress import announce_compilation

# Information below so many bits may be none at all: whether it is, whole numbers decide.
NEARLY_NONE = 1e-6


class ColumnSets:
    """Sets of columns of one table, and their entropies; a context manager.

    sets: the places of the columns of each set that was given.

    With S(X), the sum of c log2 c over the counts c of the values of X, and N = n log2 n, the entropy of X is
    (N - S(X)) / n; the sums are the same wherever the counts are, so that what must be 0 is 0.
    """

    def __init__(self, table: Any, given: Mapping[str, Any], missing: str) -> None:
        wanted = [
            None if columns is None else as_columns(argument, columns, table, empty=argument == "given")
            for argument, columns in given.items()
        ]
        every = None if None in wanted else list(dict.fromkeys(name for columns in wanted for name in columns or ()))
        self._workers = Workers()
        try:
            with announce_compilation():
                self._coded = code_columns(table, every, missing, self._workers, argument=", ".join(given))
        except BaseException:
            self._workers.__exit__()
            raise
        names = self._coded.names
        self.sets = [[names.index(name) for name in (names if columns is None else columns)] for columns in wanted]
        self._rows = self._coded.rows
        self._whole = Sizes.of(np.array([self._rows])).sum_log()

    def __enter__(self) -> ColumnSets:
        return self

    def __exit__(self, *_: object) -> None:
        self._workers.__exit__()

    def _sums(self, sets: Sequence[Sequence[int]]) -> list[float]:
        """S of each set of columns."""
        with announce_compilation():
            sizes = sizes_of_sets(self._coded.codes, self._coded.cardinalities, sets, self._workers)
        return [each.sum_log() for each in sizes]

    def _bits(self, terms: Iterable[float]) -> float:
        return max(0.0, math.fsum(terms) / self._rows)

    def entropy(self, x: Sequence[int]) -> float:
        """H(X)."""
        return self._bits([self._whole, -self._sums([x])[0]])

    def conditional(self, x: Sequence[int], y: Sequence[int]) -> float:
        """H(X | Y)."""
        joint, known = self._sums([_union(x, y), y])
        return self._bits([known, -joint])

    def mutual(self, a: Sequence[int], b: Sequence[int]) -> float:
        """I(A; B)."""
        joint, first, second = self._sums([_union(a, b), a, b])
        bits = self._bits([self._whole, joint, -first, -second])
        return 0.0 if bits < NEARLY_NONE and self._independent(a, b) else bits

    def total_correlation(self, x: Sequence[int]) -> float:
        """The sum of H(X_i), less H(X)."""
        joint, *alone = self._sums([x, *([column] for column in x)])
        bits = self._bits([*(self._whole - each for each in alone), joint, -self._whole])
        return 0.0 if bits < NEARLY_NONE and self._all_independent(x) else bits

    def dual(self, x: Sequence[int]) -> float:
        """H(X), less the residual entropy."""
        joint, *rests = self._sums([x, *_all_but_one(x)])
        bits = self._bits([self._whole, -joint, *(joint - rest for rest in rests)])
        return 0.0 if bits < NEARLY_NONE and self._all_independent(x) else bits

    def residual(self, x: Sequence[int]) -> float:
        """The sum of H(X_i | others)."""
        joint, *rests = self._sums([x, *_all_but_one(x)])
        return self._bits(max(0.0, rest - joint) for rest in rests)

    def _all_independent(self, x: Sequence[int]) -> bool:
        """Whether each column is independent of those before it together: then all are, of each other."""
        return all(self._independent(x[:place], [column]) for place, column in enumerate(x) if place)

    def _independent(self, a: Sequence[int], b: Sequence[int]) -> bool:
        """Whether n c(a, b) = c(a) c(b) for all values of A and B: in whole numbers, so beyond doubt."""
        codes, cardinalities = self._coded.codes, self._coded.cardinalities
        one, other = (
            number_rows([codes[place] for place in set_], [cardinalities[place] for place in set_], self._workers)
            for set_ in (a, b)
        )
        counts = [each.combinations.counts for each in (one, other)]
        possible = math.prod(map(len, counts))
        if possible > self._rows:
            return False
        counter = SubsetCounter([[0, 1]], [len(each) for each in counts], self._rows, self._workers)
        counter.add([one.number, other.number])
        joint = counter.combinations(0)
        expected = counts[0][joint.codes[0]] * counts[1][joint.codes[1]]
        return len(joint.counts) == possible and bool((joint.counts * self._rows == expected).all())


def _union(a: Sequence[int], b: Sequence[int]) -> list[int]:
    return sorted({*a, *b})


def _all_but_one(x: Sequence[int]) -> list[list[int]]:
    return [[other for other in x if other != column] for column in x]
