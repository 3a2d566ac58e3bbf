"""The atoms whose sums follow from the answers to queries: those whose unit vector is in the row space, exactly.

The matrix is that of queries x atoms, over the rational numbers. Three steps find the unit vectors in its row space:

1. *Peel*. A query that is left with one atom gives this atom away, and the atom is taken out of all queries. Then the
   matrix is brought into triangular form: a query with an atom that no other query has is set aside with it; where
   there is none, the query with most rows is set aside, and is part of the *core*.
2. The core is small: what is left of it once the atoms set aside are eliminated has a column for each other atom.
   Random sums of these columns stand for them, and are eliminated modulo a prime. A random null vector of the matrix
   then is 0 at every atom that is given away.
3. Each candidate gets its combination of queries, in rational numbers, which is checked over all atoms in whole
   numbers. Each query of the core that depends on others modulo the prime is checked likewise. So the rank over the
   rational numbers equals the rank modulo the prime, and each null vector modulo the prime is that of a rational one:
   an atom at which it is not 0 is not given away. Nothing rests on the prime or on random numbers but the time.

Structured elimination with inactive rows: LaMacchia & Odlyzko 1990, Solving large sparse linear systems over finite
fields. Rational solutions: Dixon 1982, Exact solution of linear equations using p-adic expansions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import combinations, cycle
from math import gcd, isqrt, lcm
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels.modular import BLOCK, add_reduced, back_substitute, eliminate_panel, forward_substitute, peel

from .query_sets import Membership, Numbers

# Primes below 2^23. The others are used in turn where the rank modulo the first is too low.
PRIMES = 8388593, 8388587, 8388581, 8388571
# How often the random sums are doubled before the next prime is tried.
ROUNDS = 4
# The fewest random sums that stand for the atoms of a core. They are doubled until they are more than its rank.
FEWEST_SUMS = 256
# The most atoms of which groups of three and four are looked for, and the most groups of each kind that are returned.
MOST_ATOMS, MOST_GROUPS = 2_000, 10_000
# The most atoms that are looked at as pivots, for each query and for each set of classes.
PER_QUERY, PER_SET = 16, 2
# Whole numbers above this are left to Python's.
LARGE = 1 << 36


class Combination(NamedTuple):
    """A combination of queries that gives an atom away: sum of numbers x answers = denominator x the atom's sum.

    numbers: by query, without zeros.
    """

    numbers: dict[int, int]
    denominator: int


class RowSpace:
    """The row space of a matrix of queries x atoms.

    certain: the atoms that single queries give away once others are taken out.
    """

    def __init__(self, matrix: Membership) -> None:
        self.matrix, self._random = matrix, np.random.default_rng(0)
        # Queries that are left with a single atom each, and these atoms, in the order in which they are taken out.
        self._rounds: list[tuple[Numbers, Numbers]] = []
        self._peel(self._take_single_atoms())
        self.certain = {atom for _, atoms in self._rounds for atom in atoms.tolist()}
        number = len(self._others)
        sums = number if number <= len(self._core) + FEWEST_SUMS else FEWEST_SUMS
        # A prime that divides all largest minors of the core makes its rank too low, however many sums there are.
        for self._prime in cycle(PRIMES):
            if any(self._eliminate(own) for own in sorted({min(sums << more, number) for more in range(ROUNDS)})):
                break
            sums = min(sums << ROUNDS, number)

    def _take_single_atoms(self) -> Numbers:
        """Take out queries that are left with a single atom, and the atom; return the queries that are left."""
        matrix = self.matrix
        queries, atoms = np.ones(matrix.queries, np.int64), np.ones(len(matrix.sizes), np.int64)
        while True:
            left = matrix.times(atoms) * queries
            # Queries without atoms are sums of queries that are taken out.
            queries[left == 0] = 0
            chosen = np.flatnonzero(left == 1)
            if not len(chosen):
                self._left = np.flatnonzero(atoms)
                return np.flatnonzero(queries)
            single = matrix.times(atoms * np.arange(len(atoms)))[chosen]
            single, kept = np.unique(single, return_index=True)
            self._rounds.append((chosen[kept], single))
            queries[chosen[kept]] = 0
            atoms[single] = 0

    def _pivot_candidates(self, active: Numbers) -> Numbers:
        """Return the atoms that are looked at as pivots: for each set of classes some in the fewest queries."""
        atoms, most = self._left, PER_QUERY * len(active)
        if len(atoms) <= most or not most:
            return atoms[:most]
        mask = np.zeros(self.matrix.queries, np.int64)
        mask[active] = 1
        # Later writes win, so the atoms in the fewest queries come last.
        order = atoms[np.argsort(-self.matrix.combine(mask, atoms), kind="stable")]
        chosen = np.zeros(len(self.matrix.sizes), bool)
        for group in self.matrix.groups:
            place = group.place[order]
            for start in range(PER_SET):
                an_atom = np.full(group.matrix.shape[1], order[-1])
                an_atom[place[start::PER_SET]] = order[start::PER_SET]
                chosen[an_atom] = True
        atoms = np.flatnonzero(chosen)
        return atoms[:: -(-len(atoms) // most)]

    def _peel(self, active: Numbers) -> None:
        """Set queries aside, each with an atom that the queries set aside later lack; the others are the core."""
        atoms = self._pivot_candidates(active)
        rows = self.matrix.columns(atoms)[active]
        by_atom = rows.tocsc()
        pivots = np.zeros((2, len(active)), np.int64)
        order = np.argsort(-self.matrix.set_sizes[active], kind="stable")
        lists = [rows.indptr, rows.indices, by_atom.indptr, by_atom.indices, order]
        work = np.ones(len(active), np.uint8), np.diff(by_atom.indptr).astype(np.int64), np.empty(len(atoms), np.int64)
        number = peel(*(own.astype(np.int64) for own in lists), *work, pivots)
        self._peeled, self._peeled_atoms = active[pivots[0, :number]], atoms[pivots[1, :number]]
        self._core = np.setdiff1d(active, self._peeled)
        self._others = np.setdiff1d(self._left, self._peeled_atoms, assume_unique=True)
        pivot_columns = self.matrix.columns(self._peeled_atoms)
        self._core_rows, triangle = pivot_columns[self._core], pivot_columns[self._peeled]
        self._triangle_rows = triangle.indptr.astype(np.int64), triangle.indices.astype(np.int64)

    def _eliminate(self, sums: int) -> bool:
        """Eliminate the core; return whether its rational rank is known. sums: of atoms that are used."""
        from scipy.sparse import csr_array

        number = len(self._others)
        if sums < number:
            to, factors = self._random.integers(0, sums, number), self._random.integers(1, self._prime, number)
        else:
            sums, to, factors = number, np.arange(number), np.ones(number, np.int64)
        self._to, self._factors, self._sums = to, factors, sums
        order, ends = np.argsort(to, kind="stable"), np.cumsum(np.bincount(to + 1, minlength=sums + 1))
        atoms, factors_in_order = self._others[order], factors[order]
        whole = np.zeros((self.matrix.queries, sums), np.int64)
        for group in self.matrix.groups if len(self._core) else ():
            classes = csr_array((factors_in_order, group.place[atoms], ends), shape=(sums, group.matrix.shape[1]))
            whole[group.queries] = (classes @ group.transposed).toarray().T
        left = (whole[self._core] + self._core_rows @ self._pivot_values(whole)) % self._prime
        self._inverse, self._pivot_rows, self._pivot_columns = inverse_of(left, self._prime)
        if len(self._pivot_columns) == sums < min(number, len(self._core)):
            return False
        dependent = np.setdiff1d(np.arange(len(self._core)), self._pivot_rows)
        return self._all_depend(left, dependent)

    def _pivot_values(self, answers: Numbers) -> Numbers:
        """Return the values at peeled atoms that bring the answers to peeled queries to 0, modulo the prime."""
        right = np.ascontiguousarray(-answers[self._peeled])
        back_substitute(*self._triangle_rows, right, self._prime)
        return right

    def _all_depend(self, left: Numbers, dependent: Numbers) -> bool:
        """Return whether all these queries of the core are rational combinations of other queries."""
        if not len(dependent):
            return True
        core = np.zeros((len(self._core), len(dependent)), np.int64)
        right = left[np.ix_(dependent, self._pivot_columns)].astype(np.float64)
        core[self._pivot_rows] = self._prime - product_modulo(right, self._inverse, self._prime).T
        core[dependent, np.arange(len(dependent))] = 1
        peeled = np.ascontiguousarray(-(self._core_rows.T @ core) % self._prime)
        forward_substitute(*self._triangle_rows, peeled, self._prime)
        numbers = np.zeros((len(dependent), self.matrix.queries), np.int64)
        numbers[:, self._core], numbers[:, self._peeled] = core.T % self._prime, peeled.T
        # Most are small whole numbers. Whatever they are, they are checked.
        numbers -= self._prime * (numbers > self._prime // 2)
        unknown = self._core[dependent[~self.matrix.vanish(numbers, self._left)]].tolist()
        return all(self._express(self.matrix.holds(query).astype(object)) for query in unknown)

    def _extended(self, core: npt.NDArray[Any], wanted: dict[int, int]) -> npt.NDArray[Any]:
        """Return numbers of all queries, of which the core has some, such that peeled atoms get what is wanted.

        core: whole numbers of Python, (queries of the core,). wanted: by place among peeled atoms; 0 elsewhere.
        """
        result = np.zeros(self.matrix.queries, object)
        result[self._core] = core
        used = np.flatnonzero(core)
        sums = np.zeros(len(self._peeled), object)
        if len(used):
            part = self._core_rows[used].tocoo()
            np.add.at(sums, part.col, core[used][part.row])
        left = (-sums).tolist()
        for place, value in wanted.items():
            left[place] += value
        # Row by row: what a query adds at later atoms is taken from what is wanted there.
        starts, columns = self._triangle_rows
        for place, value in enumerate(left):
            if value:
                for column in columns[starts[place] : starts[place + 1]].tolist():
                    if column != place:
                        left[column] -= value
        result[self._peeled] = left
        return result

    def _reduce(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the sums, at pivots, of a vector over the atoms that are not peeled."""
        sums = np.zeros(self._sums, object)
        used = np.flatnonzero(values)
        np.add.at(sums, self._to[used], values[used].astype(object) * self._factors[used].astype(object))
        return sums[self._pivot_columns]

    def _solutions(self, right: npt.NDArray[Any]) -> Iterator[tuple[npt.NDArray[Any], int]]:
        """Yield numbers of the core's queries, and their denominator, that have `right` at pivot columns.

        They hold modulo ever higher powers of the prime. The last ones hold; earlier ones may. right: (pivots,) whole
        numbers of Python.
        """
        power, solution = 1, np.zeros(len(self._core), object)
        # The digits that numerators and denominators may have together, by Hadamard's bound.
        rank = self.matrix.queries + 1
        most = int(rank * np.log2(rank) / np.log2(self._prime)) + 3
        for step in range(1, most + 1):
            digits = np.zeros(len(self._core), object)
            digits[self._pivot_rows] = product_modulo(
                np.array([right % self._prime], np.float64), self._inverse, self._prime
            )[0].astype(object)
            solution, power = solution + digits * power, power * self._prime
            if step & (step - 1) == 0 or step == most:
                found = _rational(solution, power)
                if found is not None:
                    yield found
            row = self.matrix.combine(self._extended(digits, {}), self._others)
            right = (right - self._reduce(row)) // self._prime

    @cached_property
    def _null_vectors(self) -> Numbers:
        """Two random null vectors of the matrix, modulo the prime: (atoms, 2)."""
        vectors = np.zeros((2, len(self.matrix.sizes)), np.int64)
        for own in vectors:
            own[self._others] = self._random.integers(0, self._prime, len(self._others))
            answers = self.matrix.times(own)[:, None] % self._prime
            left = (answers[self._core] + self._core_rows @ self._pivot_values(answers))[self._pivot_rows] % self._prime
            sums = np.zeros(self._sums, np.int64)
            sums[self._pivot_columns] = product_modulo(self._inverse, left.astype(np.float64), self._prime)[:, 0]
            own[self._others] = (own[self._others] - sums[self._to] * self._factors) % self._prime
            own[self._peeled_atoms] = self._pivot_values(self.matrix.times(own)[:, None] % self._prime)[:, 0]
        return vectors.T

    def candidates(self) -> Numbers:
        """Return the atoms at which random null vectors are 0: all that are given away, and by chance others."""
        return np.flatnonzero(~self._null_vectors.any(axis=1))

    def small_groups(self, k: int) -> tuple[Iterator[tuple[int, ...]], int]:
        """Return groups of atoms, fewer than k rows together, at which random null vectors sum to 0.

        No part of a group sums to 0. All groups of two that are given away are among them, but for those beyond the
        first `MOST_GROUPS`; and of three and four unless more than `MOST_ATOMS` atoms are small. Returns also how many
        atoms a group may have: 2 or 4.
        """
        sizes, values = self.matrix.sizes, self._null_vectors
        small = np.flatnonzero((sizes > 0) & (sizes < k - 1) & values.any(axis=1))
        single, pairs = small[:, None], np.zeros((0, 2), np.int64)
        together = 4 if len(small) <= MOST_ATOMS else 2
        if k > 3 and together == 4:
            pairs = small[np.column_stack(np.triu_indices(len(small), 1))]
            pairs = pairs[(sizes[pairs].sum(axis=1) < k - 1) & (values[pairs].sum(axis=1) % self._prime).any(axis=1)]
        halves = (single, single), (single, pairs), (pairs, pairs)
        return (tuple(own) for left, right in halves for own in self._opposite(left, right, k).tolist()), together

    def _opposite(self, left: Numbers, right: Numbers, k: int) -> Numbers:
        """Return the groups, a row each, of a row of `left` and a row of `right` whose null vectors sum to 0."""
        keys = [
            ((sign * self._null_vectors[own].sum(axis=1)) % self._prime) @ [self._prime, 1]
            for sign, own in ((1, left), (-1, right))
        ]
        order = np.argsort(keys[1], kind="stable")
        first, last = (np.searchsorted(keys[1][order], keys[0], side) for side in ("left", "right"))
        # Each group comes as often as it can be cut in two.
        number = np.minimum(last - first, np.maximum(0, 6 * MOST_GROUPS - (np.cumsum(last - first) - (last - first))))
        place = np.repeat(first - np.cumsum(number) + number, number) + np.arange(number.sum())
        groups = np.sort(np.hstack([left[np.repeat(np.arange(len(left)), number)], right[order[place]]]), axis=1)
        fits = (np.diff(groups, axis=1) > 0).all(axis=1) & (self.matrix.sizes[groups].sum(axis=1) < k)
        for part in combinations(range(groups.shape[1]), 2) if groups.shape[1] > 2 else ():
            fits &= (self._null_vectors[groups[:, part]].sum(axis=1) % self._prime).any(axis=1)
        return np.unique(groups[fits], axis=0)[:MOST_GROUPS]

    def combination(self, atoms: Sequence[int]) -> Combination | None:
        """Return the combination of queries that gives the sum of some atoms away; None if there is none."""
        target = np.zeros(len(self.matrix.sizes), object)
        target[list(atoms)] = 1
        return self._express(target)

    def _express(self, target: npt.NDArray[Any]) -> Combination | None:
        """Return the combination of queries, of which the core has its pivot rows, whose row is `target`, if any.

        target: whole numbers of Python, (atoms,).
        """
        wanted = {place: value for place, value in enumerate(target[self._peeled_atoms].tolist()) if value}
        none = np.zeros(len(self._core), object)
        numbers = self._extended(none, wanted)
        missing = target[self._others] - self.matrix.combine(_narrow(numbers), self._others)
        for core, denominator in self._solutions(self._reduce(missing)) if missing.any() else [(none, 1)]:
            numbers = self._extended(core, {place: denominator * value for place, value in wanted.items()})
            for queries, atoms in reversed(self._rounds):
                others = self.matrix.combine(_narrow(numbers), atoms)
                numbers[queries] = denominator * target[atoms] - others.astype(object)
            if (self.matrix.combine(_narrow(numbers)) == denominator * target).all():
                used = np.flatnonzero(numbers)
                common = gcd(denominator, *numbers[used])
                return Combination({int(query): int(numbers[query]) // common for query in used}, denominator // common)
        return None


def _narrow(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return whole numbers of Python in 64 bits, if sums of them fit too."""
    return numbers.astype(np.int64) if max(map(abs, numbers.tolist()), default=0) <= LARGE else numbers


def inverse_of(matrix: Numbers, prime: int) -> tuple[npt.NDArray[np.float64], Numbers, Numbers]:
    """Return the inverse, modulo `prime`, of a largest square part of a matrix that has one; its rows, its columns."""
    work = (matrix % prime).astype(np.float64)
    rows, columns = work.shape
    free = np.ones(rows, np.uint8)
    of_column = np.full(columns, -1, np.int64)
    for start in range(0, columns, BLOCK):
        stop = min(columns, start + BLOCK)
        if not free.any():
            break
        panel, pivots = work[:, start:stop].copy(), np.empty(stop - start, np.int64)
        eliminate_panel(panel, free, pivots, prime)
        of_column[start:stop] = pivots
        chosen = np.flatnonzero(pivots >= 0)
        own = pivots[chosen]
        added = panel[:, chosen]
        for part in (slice(0, start), slice(stop, columns)):
            sources = work[own, part]
            work[own, part] = 0
            add_reduced(work[:, part], added @ sources, prime)
        work[:, start:stop] = panel
    pivot_columns = np.flatnonzero(of_column >= 0)
    pivot_rows = of_column[pivot_columns]
    return work[np.ix_(pivot_rows, pivot_columns)], pivot_rows, pivot_columns


def product_modulo(left: npt.NDArray[np.float64], right: npt.NDArray[np.float64], prime: int) -> Numbers:
    """Return the product of two matrices modulo a prime."""
    result = np.zeros((len(left), right.shape[1]))
    for start in range(0, len(right), BLOCK):
        add_reduced(result, left[:, start : start + BLOCK] @ right[start : start + BLOCK], prime)
    return result.astype(np.int64)


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
    return numbers, denominator
