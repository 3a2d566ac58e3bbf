"""The smallest groups that queries isolate by their definitions alone, whatever rows a table has.

A set of atoms is *isolated* if its 0/1 vector is in the row space of queries x atoms. A smallest set has no other
such set inside. Each may be a small group, for without a table its rows are not known. But a set that was asked for
itself is taken to be large enough, unless the answer followed from queries that were asked before.

What is given away so stays given away when queries are added: parts of a smallest set are isolated, of which the last
that is asked for follows from the others. And a query that isolates a set after some queries does so after these and
more, unless its answer then follows from theirs and says nothing new.

1. Queries are left out that have an atom of their own, and no atom in common with a query that has none of its own. The
   number of a query with an atom of its own is 0 or 1 in each isolated set. If it is 1 the whole set of the query is
   inside, unless a query with a negative number takes some of it away.
2. Vectors of the row space, modulo a prime, follow from their values at as many atoms as the rank is. These values are
   0 or 1. They are chosen one after the other, with all values that follow. Choices are dropped that lead to other
   values, or to a set around one that is known to be isolated.
3. Each set gets its combination of queries in whole numbers. So does each query that depends on others modulo the
   prime: then the rank modulo the prime is the rational one, and no set is missed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from .query_sets import Membership, Numbers, distinct_in_matrix
from .row_space import PRIMES, Combination, RowSpace, inverse_of, product_modulo

# The most ones in the matrix, and the most entries that are eliminated at once.
MOST_ONES, MOST_ENTRIES = 20_000_000, 4_000_000
# The most choices in a search, and the most entries that are looked at for all choices together.
MOST_STEPS, MOST_WORK = 20_000, 4_000_000_000

Sets = npt.NDArray[np.bool_]


def isolated_groups(matrix: Membership) -> tuple[list[tuple[tuple[int, ...], Combination]], bool]:
    """Return the smallest isolated sets of atoms that no query asks for first, each with its combination of queries.

    Returns also whether these are all. If queries overlap in too many ways, they are some, and maybe not the smallest.
    Raises InputError if the matrix is too large.
    """
    if matrix.times(np.ones(len(matrix.sizes), np.int64)).sum() > MOST_ONES:
        raise refusal()
    whole = matrix.columns(np.arange(len(matrix.sizes)))
    first = distinct_in_matrix(whole)[0]
    first = first[np.diff(whole.indptr)[first] > 0]
    chosen = first[_taking_part(whole[first])]
    parts = [chosen[part] for part in _parts(whole[chosen])]
    for prime in PRIMES:
        candidates, dependent, are_all = list[tuple[int, ...]](), list[int](), True
        for queries in parts:
            own = whole[queries]
            atoms = np.unique(own.indices)
            kept, of_atom = distinct_in_matrix(own[:, atoms].T.tocsr())
            if len(queries) * len(kept) > MOST_ENTRIES:
                raise refusal()
            sets, others, is_complete = _smallest_sets(own[:, atoms[kept]].toarray(), prime)
            are_all &= is_complete
            dependent += queries[others].tolist()
            candidates += [tuple(atoms[held[of_atom]].tolist()) for held in sets]
        basis = np.setdiff1d(first, dependent)
        asked = {_atoms_of(matrix, query) for query in basis.tolist()} if candidates else set()
        groups = [atoms for atoms in candidates if atoms not in asked]
        if not groups and not dependent:
            return [], are_all
        space = RowSpace(matrix.chosen(basis))
        combinations = [space.combination(atoms) for atoms in groups]
        if all(combinations) and all(space.combination(_atoms_of(matrix, query)) for query in dependent):
            return [
                (atoms, Combination({int(basis[query]): n for query, n in own.numbers.items()}, own.denominator))
                for atoms, own in zip(groups, combinations, strict=True)
                if own
            ], are_all
    raise refusal()


def _atoms_of(matrix: Membership, query: int) -> tuple[int, ...]:
    """Return the atoms in the set of a query."""
    return tuple(np.flatnonzero(matrix.holds(query)).tolist())


def refusal() -> InputError:
    """Return the error for queries that overlap in too many ways."""
    return InputError(
        "table: expected a table, since the queries overlap in so many ways that their definitions alone do not show "
        "within reasonable time what they isolate. Give the table: then groups are looked for by their rows."
    )


def _parts(rows: Any) -> list[Numbers]:
    """Return the rows of each part of a matrix that has no atom in common with other parts."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    entries = csr_array(rows, dtype=bool).astype(np.int64)
    number, part = connected_components(entries @ entries.T, directed=False)
    return [np.flatnonzero(part == own) for own in range(number)]


def _taking_part(rows: Any) -> Numbers:
    """Return the queries that can take part in isolating a set. rows: sparse 0/1 matrix, queries x atoms."""
    left = np.arange(rows.shape[0])
    while len(left):
        own = rows[left]
        has_own_atom = own @ (own.sum(axis=0) == 1) > 0
        near = own @ (own[~has_own_atom].sum(axis=0) > 0) > 0
        if near.all():
            break
        left = left[near]
    return left


def _smallest_sets(rows: Numbers, prime: int) -> tuple[Sets, Numbers, bool]:
    """Return the smallest sets that are isolated modulo a prime, and the queries that depend on others before them.

    Returns also whether these are all the sets.

    rows: 0/1 matrix, queries x atoms. The sets: (sets, atoms). Sets that queries ask for are among them.
    """
    inverse, _, queries = inverse_of(rows.T, prime)
    basis = product_modulo(inverse.T, rows[queries].astype(np.float64), prime)
    isolated, are_all = list[Sets](), True
    for part in _parts(basis):
        own = basis[part]
        held: Sets = (own != 0).any(axis=0)
        known = np.vstack([rows[:, held] == 1, own[(own <= 1).all(axis=1)][:, held] == 1])
        known = np.unique(known[known.any(axis=1)], axis=0)
        others, is_complete = _other_sets(own[:, held], known, prime)
        more, are_all = np.vstack([known, others]), are_all and is_complete
        sets = np.zeros((len(more), len(held)), bool)
        sets[:, held] = more
        overlap = more.astype(np.int64) @ more.T
        # The atoms that two sets have in common are all atoms of the second: it is inside the first.
        isolated.append(sets[(overlap == overlap.diagonal()).sum(axis=1) == 1])
    return np.vstack(isolated), np.setdiff1d(np.arange(len(rows)), queries), are_all


def _other_sets(basis: Numbers, known: Sets, prime: int) -> tuple[Sets, bool]:
    """Return the 0/1 vectors in a row space, modulo a prime, that have no known set inside, but for 0; and if all are.

    basis: (rank, atoms), of which each row has an atom where it is 1 and others are 0. known: (sets, atoms).
    """
    found = [np.zeros((0, basis.shape[1]), bool)]
    # Rows with many atoms first: choices that go wrong are dropped early.
    basis = basis[np.argsort(-(basis != 0).sum(axis=1), kind="stable")]
    steps = min(MOST_STEPS, MOST_WORK // (known.size + basis.size))
    waiting = [np.full(len(basis), -1)]
    while waiting and steps:
        numbers = waiting.pop()
        steps -= 1
        if not _settle(numbers, basis, known, prime):
            continue
        still_open = np.flatnonzero(numbers < 0)
        if len(still_open):
            for number in (1, 0):
                waiting.append(numbers.copy())
                waiting[-1][still_open[0]] = number
        elif numbers.any():
            found.append((numbers @ basis % prime == 1)[None])
    return np.vstack(found), not waiting


def _settle(numbers: Numbers, basis: Numbers, known: Sets, prime: int) -> bool:
    """Set open numbers that follow from those that are chosen; return False if the choice leads to no set that counts.

    numbers: by row of the basis, 0 or 1; -1 if open. Other arguments as of `_other_sets`.
    """
    while True:
        values = basis[numbers == 1].sum(axis=0) % prime
        open_rows = np.flatnonzero(numbers < 0)
        is_open = basis[open_rows] != 0
        rows_left = is_open.sum(axis=0)
        settled = rows_left == 0
        if (values[settled] > 1).any() or not (known & ~(settled & (values == 1))).any(axis=1).all():
            return False
        # At an atom with a single open row, this row's number has to make the value 0 or 1.
        atoms = np.flatnonzero(rows_left == 1)
        row = open_rows[is_open[:, atoms].argmax(axis=0)] if len(atoms) else atoms
        is_one, is_zero = (
            np.unique(row[values_then > 1])
            for values_then in (values[atoms], (values[atoms] + basis[row, atoms]) % prime)
        )
        if len(np.intersect1d(is_one, is_zero)):
            return False
        if not len(is_one) and not len(is_zero):
            return True
        numbers[is_one], numbers[is_zero] = 1, 0
