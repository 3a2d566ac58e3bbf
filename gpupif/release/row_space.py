"""The atoms whose sums follow from the answers to queries: those whose unit vector is in the row space, exactly.

The matrix is that of queries x atoms, over the rational numbers. Three steps find the unit vectors in its row space:

1. *Peel*, with sparse products only. A query that is left with one atom gives this atom away, and the atom is taken out
   of all queries. An atom that is in one query only makes this query independent of all others, and both are set aside.
2. What is left, the *core*, is eliminated modulo a prime. If a core has more atoms than queries, random sums of atoms
   stand for them. A random null vector of the matrix then is 0 at every atom that is given away.
3. Each candidate gets its combination of queries, in rational numbers, which is checked over all atoms in whole
   numbers. Each query of the core that depends on others modulo the prime is checked likewise. So the rank over the
   rational numbers equals the rank modulo the prime, and each null vector modulo the prime is that of a rational one:
   an atom at which it is not 0 is not given away. Nothing rests on the prime or on random numbers but the time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd, isqrt, lcm
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels.modular import BLOCK, PRIME, add_reduced, eliminate_panel

from .query_sets import Membership, Numbers

# Random sums that stand for the atoms of a core, beside one for each query. Null vectors that are tried.
SPARE, VECTORS = 64, 2
# Whole numbers above this are left to Python's.
LARGE = 1 << 36


class Combination(NamedTuple):
    """A combination of queries that gives an atom away: sum of numbers x answers = denominator x the atom's sum.

    atom: its number. numbers: by query, without zeros.
    """

    atom: int
    numbers: dict[int, int]
    denominator: int


class _Pivots(NamedTuple):
    """Queries and atoms of a round of peeling, in pairs. by_query: whether the queries had no other atom."""

    by_query: bool
    queries: Numbers
    atoms: Numbers


@dataclass
class RowSpace:
    """The row space of a matrix of queries x atoms."""

    matrix: Membership
    _rounds: list[_Pivots] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._queries = np.ones(self.matrix.queries, np.int64)
        self._atoms = np.ones(len(self.matrix.sizes), np.int64)
        self._peel()
        self._core_queries, self._core_atoms = np.flatnonzero(self._queries), np.flatnonzero(self._atoms)
        self._random = np.random.default_rng(0)
        sums = len(self._core_queries) + SPARE
        while not self._eliminate(sums):
            sums *= 2

    def _peel(self) -> None:
        """Take out queries with a single atom and atoms in a single query, until there are none."""
        matrix, queries, atoms = self.matrix, self._queries, self._atoms
        while True:
            left = matrix.times(atoms) * queries
            # Queries without atoms are sums of queries that are taken out.
            queries[left == 0] = 0
            chosen = np.flatnonzero(left == 1)
            if len(chosen):
                pairs = chosen, matrix.times(atoms * np.arange(len(atoms)))[chosen]
                kept = np.unique(pairs[1], return_index=True)[1]
            else:
                degrees = matrix.combine(queries) * atoms
                atoms[degrees == 0] = 0
                single = np.flatnonzero(degrees == 1)
                if not len(single):
                    return
                pairs = matrix.combine(queries * np.arange(len(queries)), single), single
                kept = np.unique(pairs[0], return_index=True)[1]
            pivots = _Pivots(bool(len(chosen)), pairs[0][kept], pairs[1][kept])
            self._rounds.append(pivots)
            queries[pivots.queries] = 0
            atoms[pivots.atoms] = 0

    def _eliminate(self, sums: int) -> bool:
        """Eliminate the core; return whether its rank over the rational numbers is known. sums: of atoms that are used."""
        from scipy.sparse import csr_array

        queries, atoms = self._core_queries, self._core_atoms
        if sums < len(atoms):
            to, factors = self._random.integers(0, sums, len(atoms)), self._random.integers(1, PRIME, len(atoms))
        else:
            sums, to, factors = len(atoms), np.arange(len(atoms)), np.ones(len(atoms), np.int64)
        self._to, self._factors, self._sums = to, factors, sums
        whole = np.zeros((self.matrix.queries, sums), np.int64)
        for group in self.matrix.groups:
            classes = csr_array((factors, (group.place[atoms], to)), shape=(group.matrix.shape[1], sums))
            whole[group.queries] = (group.matrix @ classes).toarray()
        self._whole = whole[queries]
        self._inverse, self._pivot_rows, self._pivot_columns = inverse_of(self._whole)
        dependent = np.setdiff1d(np.arange(len(queries)), self._pivot_rows)
        return all(self._depends(int(row)) for row in dependent)

    def _depends(self, row: int) -> bool:
        """Return whether a query of the core is a rational combination of those with pivots."""
        target = np.zeros(self.matrix.queries, np.int64)
        target[self._core_queries[row]] = 1
        wanted = self.matrix.combine(target, self._core_atoms)
        return self._solve(wanted) is not None

    def _reduce(self, wanted: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the sums, at pivots, of a vector over the atoms of the core."""
        sums = np.zeros(self._sums, wanted.dtype)
        np.add.at(sums, self._to, wanted * self._factors.astype(wanted.dtype))
        return sums[self._pivot_columns]

    def _solve(self, wanted: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], int] | None:
        """Return a combination of core queries whose row at core atoms is `wanted`: numbers and denominator, or None."""
        queries = self._core_queries[self._pivot_rows]
        result = np.zeros(self.matrix.queries, np.int64)
        if not wanted.any():
            return result, 1
        right = self._reduce(wanted.astype(object))
        result[queries] = _times(np.array([right % PRIME], np.float64), self._inverse)[0]
        if ((self.matrix.combine(result, self._core_atoms) - wanted % PRIME) % PRIME).any():
            return None
        matrix = self._whole[np.ix_(self._pivot_rows, self._pivot_columns)]
        for numbers, denominator in lifted(right, matrix, self._inverse):
            exact = result.astype(numbers.dtype)
            exact[queries] = numbers
            if (self.matrix.combine(exact, self._core_atoms) == denominator * wanted.astype(numbers.dtype)).all():
                return exact, denominator
        return None

    def candidates(self) -> Numbers:
        """Return the atoms at which random null vectors are 0: all that are given away, and by chance others."""
        shape = (VECTORS, len(self.matrix.sizes))
        vectors = np.zeros(shape, np.int64)
        # Atoms that lost all their queries are free, as those of the core without a pivot.
        unused = np.flatnonzero(self._atoms == 0)
        unused = np.setdiff1d(unused, np.concatenate([unused[:0], *(own.atoms for own in self._rounds)]))
        core = self._random.integers(0, PRIME, (VECTORS, len(self._core_atoms)))
        for own, free in zip(vectors, core, strict=True):
            own[self._core_atoms] = free
            answers = self.matrix.times(own)[self._core_queries][self._pivot_rows] % PRIME
            sums = np.zeros(self._sums, np.int64)
            sums[self._pivot_columns] = _times(self._inverse, np.array(answers, np.float64)[:, None])[:, 0]
            own[self._core_atoms] = (free - sums[self._to] * self._factors) % PRIME
            own[unused] = self._random.integers(1, PRIME, len(unused))
            for pivots in reversed(self._rounds):
                if not pivots.by_query:
                    own[pivots.atoms] = -self.matrix.times(own)[pivots.queries] % PRIME
        return np.flatnonzero(~vectors.any(axis=0))

    @property
    def certain(self) -> Numbers:
        """The atoms that peeling gives away."""
        return np.concatenate([np.zeros(0, np.int64), *(own.atoms for own in self._rounds if own.by_query)])

    def combination(self, atom: int) -> Combination | None:
        """Return the combination of queries that gives an atom away; None if there is none."""
        return self._combination(atom, np.dtype(np.int64)) or self._combination(atom, np.dtype(object))

    def _combination(self, atom: int, dtype: np.dtype[Any]) -> Combination | None:
        """Return the combination, computed in numbers of a type; None if there is none, or if numbers are too large."""
        matrix = self.matrix
        unit = np.zeros(len(matrix.sizes), dtype)
        unit[atom] = 1
        numbers = np.zeros(matrix.queries, dtype)
        for pivots in self._rounds:
            if not pivots.by_query:
                numbers[pivots.queries] = unit[pivots.atoms] - matrix.combine(numbers, pivots.atoms)
                if _is_too_large(numbers):
                    return None
        solved = self._solve(unit[self._core_atoms] - matrix.combine(numbers, self._core_atoms))
        if solved is None:
            return None
        core, denominator = solved
        if dtype != object and (core.dtype == object or _is_too_large(numbers, denominator)):
            return None
        numbers = numbers * denominator + core
        for pivots in reversed(self._rounds):
            if pivots.by_query:
                numbers[pivots.queries] = denominator * unit[pivots.atoms] - matrix.combine(numbers, pivots.atoms)
                if _is_too_large(numbers):
                    return None
        if (matrix.combine(numbers) != denominator * unit).any():
            return None
        used = np.flatnonzero(numbers)
        whole = [int(number) for number in numbers[used]]
        common = gcd(denominator, *whole)
        return Combination(
            atom,
            {int(query): number // common for query, number in zip(used, whole, strict=True)},
            denominator // common,
        )


def _is_too_large(numbers: npt.NDArray[Any], factor: int = 1) -> bool:
    """Return whether sums of numbers of 64 bits, times a factor, could overflow."""
    return numbers.dtype != object and int(np.abs(numbers).max()) * factor > LARGE


def inverse_of(matrix: Numbers) -> tuple[npt.NDArray[np.float64], Numbers, Numbers]:
    """Return the inverse, modulo `PRIME`, of a largest square part of a matrix that has one; its rows, its columns."""
    work = (matrix % PRIME).astype(np.float64)
    rows, columns = work.shape
    free = np.ones(rows, np.uint8)
    of_column = np.full(columns, -1, np.int64)
    for start in range(0, columns, BLOCK):
        stop = min(columns, start + BLOCK)
        if not free.any():
            break
        panel, pivots = work[:, start:stop].astype(np.int64), np.empty(stop - start, np.int64)
        eliminate_panel(panel, free, pivots)
        of_column[start:stop] = pivots
        chosen = np.flatnonzero(pivots >= 0)
        own = pivots[chosen]
        added = panel[:, chosen].astype(np.float64)
        for part in (slice(0, start), slice(stop, columns)):
            sources = work[own, part]
            work[own, part] = 0
            add_reduced(work[:, part], added @ sources)
        work[:, start:stop] = panel
    pivot_columns = np.flatnonzero(of_column >= 0)
    pivot_rows = of_column[pivot_columns]
    return work[np.ix_(pivot_rows, pivot_columns)], pivot_rows, pivot_columns


def _times(left: npt.NDArray[np.float64], right: npt.NDArray[np.float64]) -> Numbers:
    """Return the product of two matrices modulo `PRIME`."""
    result = np.zeros((len(left), right.shape[1]))
    for start in range(0, len(right), BLOCK):
        add_reduced(result, left[:, start : start + BLOCK] @ right[start : start + BLOCK])
    return result.astype(np.int64)


def lifted(right: npt.NDArray[Any], matrix: Numbers, inverse: npt.NDArray[np.float64]) -> Any:
    """Yield rational solutions of x matrix = right that agree with it modulo ever higher powers of `PRIME` (Dixon 1982).

    Each is an array of numbers and their denominator. The last one is the solution; an earlier one may be.
    """
    power, solution = 1, np.zeros(len(right), object)
    # Hadamard's bound on determinants: numerators and denominators have no more digits.
    norms = [float(np.log2(max(1.0, np.linalg.norm(row.astype(np.float64))))) for row in (*matrix, right)]
    steps, tried = int(2 * sum(norms) / np.log2(PRIME)) + 3, 1
    rest = right
    for step in range(1, steps + 1):
        digits = _times(np.array([rest % PRIME], np.float64), inverse)[0].astype(object)
        solution, power = solution + digits * power, power * PRIME
        if step == tried or step == steps:
            tried *= 2
            found = _rational(solution, power)
            if found is not None:
                yield found
        rest = (rest - digits @ matrix.astype(object)) // PRIME


def _rational(values: npt.NDArray[Any], modulus: int) -> tuple[npt.NDArray[Any], int] | None:
    """Return numbers and a denominator, all below the root of half of the modulus, equal to values modulo it."""
    most = isqrt(modulus // 2)
    denominator = 1
    for value in values:
        # The extended algorithm of Euclid, until the rest is small.
        before, rest, factor_before, factor = modulus, int(value * denominator % modulus), 0, 1
        while rest > most:
            quotient = before // rest
            before, rest = rest, before - quotient * rest
            factor_before, factor = factor, factor_before - quotient * factor
        denominator = lcm(denominator, denominator * abs(factor))
        if denominator > most:
            return None
    numbers = values * denominator % modulus
    numbers = np.where(numbers > modulus // 2, numbers - modulus, numbers)
    if max(map(abs, numbers), default=0) > most:
        return None
    is_large = max([denominator, *map(abs, numbers)]) > LARGE
    return (numbers if is_large else numbers.astype(np.int64)), denominator
