"""The sets of rows that queries ask for, over atoms: rows that are in exactly the same sets.

Queries are grouped by the columns of their conditions. A group's conditions are evaluated on the classes of these
columns that occur together (see `row_condition.Constants`), which are few, and rows keep the number of their class. So
a matrix of queries x rows is never made: a product with it is a product with a small sparse matrix for each group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..encoding.column import Column, amounts
from ..engines.base import Counter
from ..errors import InputError
from ..marginals.open_counts import open_counts
from ..marginals.request import CountRequest
from ..marginals.set_counts import Find, SetRequest, Total
from ..results.cell_condition import Condition, Joined
from ..utils.progress import Reporter
from ..utils.validation import table_value
from .query_file import AuditedQuery
from .row_condition import Comparison, Constants, Not, Places, comparisons_in

Numbers = npt.NDArray[np.int64]
# The most combinations of classes that are looked at without a table.
MOST_COMBINATIONS = 1_000_000
# Parts of a group that are written out.
MOST_PARTS = 3
# Keys stay below this. A table by key has at most so many places for each row.
KEYS, PER_ROW = 1 << 62, 4
# Random numbers whose sums stand for sets of queries are below this.
HASHES = 1 << 40
# Distinct atoms are worth finding if fewer than this share of a sample of so many are distinct.
SHARE, SAMPLE = 0.95, 4096


def distinct(numbers: Sequence[Numbers], rows: int) -> tuple[Numbers, Numbers]:
    """Return the first row of each distinct row over some columns, and for each row the number of its distinct row.

    Distinct rows are numbered in the order of their first rows.
    """
    key, room = np.zeros(rows, np.int64), 1
    for size, own in sorted(((int(own.max(initial=0)) + 1, own) for own in numbers), key=lambda pair: -pair[0]):
        if room * size >= KEYS:
            key, values = pd.factorize(key)
            room = len(values)
            if room == rows:
                break
        key, room = key * size + own, room * size
    if room > PER_ROW * rows:
        key, values = pd.factorize(key)
        room = len(values)
    first = np.full(room, rows)
    first[key[::-1]] = np.arange(rows)[::-1]
    firsts = np.sort(first[first < rows])
    number = np.empty(room, np.int64)
    number[key[firsts]] = np.arange(len(firsts))
    return firsts, number[key]


@dataclass(frozen=True)
class RowsByClass:
    """The distinct rows of a table over the classes of the columns in conditions.

    constants: of each column in conditions, by name. classes: by column, (distinct rows,) its class. counts: (distinct
    rows,) rows; 0 without a table. rows: all rows; None without a table. codes: of columns with bounds, by name,
    (distinct rows,). values: of summed columns, by name, the number of each code.
    """

    constants: Mapping[str, Constants]
    classes: Mapping[str, Numbers]
    counts: Numbers
    rows: int | None
    codes: Mapping[str, Numbers]
    values: Mapping[str, npt.NDArray[np.float64]]

    def places(self, names: Iterable[str], chosen: Numbers) -> dict[str, Places]:
        """Return the places of some columns' values in the distinct rows that are chosen, by column."""
        own = {name: self.constants[name] for name in names}
        return {name: Places(of.first[self.classes[name][chosen]], of.values) for name, of in own.items()}

    def describe(self, chosen: Numbers, conditions: Sequence[Condition | None]) -> str:
        """Return in words the distinct rows that are chosen, which some conditions tell from all others."""
        comparisons = comparisons_by_column(conditions)
        class_of = {name: self.constants[name].told_apart(own)[1] for name, own in comparisons.items()}
        places = self.places(comparisons, chosen)
        numbers = [class_of[name][places[name].places] for name in comparisons]
        said = []
        for number in distinct(numbers, len(chosen))[0].tolist():
            of_columns = zip(comparisons, numbers, strict=True)
            alike = [(name, np.flatnonzero(class_of[name] == own[number]).tolist()) for name, own in of_columns]
            said.append(" and ".join(self.constants[name].describe(own) for name, own in alike))
        if len(said) > MOST_PARTS:
            said[MOST_PARTS:] = [f"{len(said) - MOST_PARTS:,} more"]
        return " or ".join(said) or "all rows"


def condition_of(query: AuditedQuery, has_table: bool) -> Condition | None:
    """Return the condition on the rows that a query looks at. With a table, a sum needs a value; None: all rows."""
    if query.column is None or not has_table:
        return query.condition
    known = Not(Comparison(query.column, "missing"))
    return known if query.condition is None else Joined("and", (query.condition, known))


def comparisons_by_column(conditions: Iterable[Condition | None]) -> dict[str, list[Comparison]]:
    """Return the comparisons in some conditions, by column."""
    comparisons: dict[str, dict[Comparison, None]] = {}
    for condition in conditions:
        for comparison in comparisons_in(condition):
            comparisons.setdefault(comparison.name, {})[comparison] = None
    return {name: list(own) for name, own in comparisons.items()}


def _constants(queries: Sequence[AuditedQuery], has_table: bool) -> dict[str, Constants]:
    """Return the constants of each column in the conditions of queries, by name."""
    comparisons = comparisons_by_column(condition_of(query, has_table) for query in queries)
    return {name: Constants(name, own) for name, own in comparisons.items()}


def formal_rows(queries: Sequence[AuditedQuery]) -> RowsByClass:
    """Return all combinations of classes, as if each had rows. Raises InputError for more than `MOST_COMBINATIONS`."""
    constants = _constants(queries, False)
    sizes = [len(own.first) for own in constants.values()]
    number = int(np.prod([float(size) for size in sizes]))
    if number > MOST_COMBINATIONS:
        raise InputError(
            f"table: expected a table, since the conditions tell {number:.2g} combinations of values apart, and "
            f"without one all are looked at, at most {MOST_COMBINATIONS:,}. Give the table: then those that occur are."
        )
    classes = dict(zip(constants, np.indices(sizes).reshape(len(sizes), -1), strict=True))
    return RowsByClass(constants, classes, np.zeros(number, np.int64), None, {}, {})


def _make_find(used: Sequence[tuple[int, Constants | None]], columns: Sequence[Column], total: Total) -> Find:
    """Return the function that counts the distinct rows of a partition. used: columns by number, and their constants.

    A column without constants keeps its codes.
    """
    classes = [(number, None if own is None else own.classes(columns[number])) for number, own in used]
    return partial(_find_rows, classes)


def _find_rows(
    classes: Sequence[tuple[int, Numbers | None]], columns: Sequence[int], counter: Counter, place: int
) -> tuple[list[Numbers], Numbers]:
    """Count the distinct rows of a partition, see `set_counts.Find`. classes: of columns by number, by code."""
    counted = counter.combinations(place, ordered=False)
    codes = [(np.asarray(counted.codes[list(columns).index(number)], np.int64), own) for number, own in classes]
    return merge([code if own is None else own[code] for code, own in codes], counted.counts)


def merge(numbers: Sequence[Numbers], counts: Numbers) -> tuple[list[Numbers], Numbers]:
    """Return the distinct rows over some columns, and the sum of the counts of each."""
    first, place = distinct(numbers, len(counts))
    return [own[first] for own in numbers], _sums(place, counts)


def _sums(place: Numbers, counts: Numbers) -> Numbers:
    """Return the sums of counts by their place; counts that sum to less than 2^53 are added exactly."""
    return np.bincount(place, counts).astype(np.int64)


def query_request(queries: Sequence[AuditedQuery]) -> CountRequest:
    """Return the request for the columns that queries name."""
    named = ((query.column, *(own.names if (own := query.condition) else ())) for query in queries)
    names = dict.fromkeys(name for own in named for name in own if name is not None)
    return CountRequest(list(names) or None, argument="queries")


def count_rows(table: Any, queries: Sequence[AuditedQuery], bounded: Sequence[str], report: Reporter) -> RowsByClass:
    """Count the distinct rows of any table. bounded: columns whose values are needed. Raises as `gpupif.audit`."""
    constants = _constants(queries, True)
    with open_counts(table, query_request(queries), report) as counts:
        names = [str(name) for name in counts.names]
        constants = constants or {names[0]: Constants(names[0], [])}
        used: list[tuple[int, Constants | None]] = [(names.index(name), own) for name, own in constants.items()]
        used += [(names.index(name), None) for name in bounded]
        # A column that has conditions and bounds is counted once.
        found = counts.count([SetRequest(sorted({number for number, _ in used}))], partial(_make_find, used))
    [parts] = found.found
    numbers = [np.concatenate(own) for own in zip(*(own for own, _ in parts), strict=True)]
    numbers, sizes = merge(numbers, np.concatenate([own for _, own in parts]))
    summed = dict.fromkeys(query.column for query in queries if query.column is not None)
    values = {name: _amounts(name, found.columns[names.index(name)]) for name in summed}
    classes = dict(zip(constants, numbers, strict=False))
    codes = dict(zip(bounded, numbers[len(constants) :], strict=True))
    return RowsByClass(constants, classes, sizes, found.total.rows, codes, values)


def _amounts(name: str, column: Column) -> npt.NDArray[np.float64]:
    """Return the number of each code of a column that is summed. Raises InputError if a value is no number."""
    numbers = amounts(column)
    wrong = np.flatnonzero(~np.isfinite(numbers[: len(column.labels)]))
    if len(wrong):
        came = table_value(column.values([int(wrong[0])])[0])
        raise InputError(
            f"queries: column {name!r}: expected numbers for a sum or mean, got {came}. Correct the table, or ask for "
            "counts."
        )
    return numbers


class _Group(NamedTuple):
    """Queries whose conditions have the same columns.

    queries: (queries of the group,) their numbers. matrix: sparse 0/1 matrix, queries of the group x sets of classes.
    transposed: the same matrix, transposed. place: (atoms,) the set of classes of each atom.
    """

    queries: Numbers
    matrix: Any
    transposed: Any
    place: Numbers


@dataclass(frozen=True)
class Membership:
    """The 0/1 matrix of queries x atoms: whether the rows of an atom are in the set of a query.

    queries: int. The number of queries. sizes: (atoms,) rows. atom: (distinct rows,) the atom of each distinct row.
    """

    queries: int
    groups: Sequence[_Group]
    sizes: Numbers
    atom: Numbers

    @cached_property
    def set_sizes(self) -> Numbers:
        """The rows in the set of each query."""
        return self.times(self.sizes)

    def times(self, vector: Numbers) -> Numbers:
        """Return the product with a vector over atoms, of sum below 2^53: for each query the sum over its set."""
        result = np.zeros(self.queries, np.int64)
        for group in self.groups:
            result[group.queries] = group.matrix @ _sums(group.place, vector)
        return result

    def combine(self, vector: npt.NDArray[Any], atoms: Numbers | slice = slice(None)) -> npt.NDArray[Any]:
        """Return the product of a vector over queries with the matrix: for each atom the sum over its queries.

        atoms: their numbers. Default: all.
        """
        result = np.zeros(len(self.sizes[atoms]), vector.dtype)
        for group in self.groups:
            own = vector[group.queries]
            if own.any():
                result += _product(group.transposed, own)[group.place[atoms]]
        return result

    def chosen(self, queries: Numbers) -> Membership:
        """Return the matrix of some queries, ascending, over the same atoms."""
        groups = []
        for group in self.groups:
            own = np.isin(group.queries, queries)
            if own.any():
                matrix, numbers = group.matrix[own], np.searchsorted(queries, group.queries[own])
                groups.append(_Group(numbers, matrix, matrix.T.tocsr(), group.place))
        return Membership(len(queries), groups, self.sizes, self.atom)

    def columns(self, atoms: Numbers) -> Any:
        """Return the columns of the matrix at some atoms, as a sparse matrix (CSR)."""
        from scipy.sparse import coo_array

        parts = [group.matrix[:, group.place[atoms]].tocoo() for group in self.groups]
        rows = np.concatenate([group.queries[part.row] for group, part in zip(self.groups, parts, strict=True)])
        entries = rows, np.concatenate([part.col for part in parts])
        return coo_array((np.ones(len(rows), np.int64), entries), (self.queries, len(atoms))).tocsr()

    @cached_property
    def _place_of(self) -> dict[int, tuple[_Group, int]]:
        """The group of each query, and its place there."""
        return {query: (group, place) for group in self.groups for place, query in enumerate(group.queries.tolist())}

    def holds(self, query: int, atoms: Numbers | slice = slice(None)) -> npt.NDArray[np.bool_]:
        """Return for each atom whether it is in the set of a query. atoms: their numbers. Default: all."""
        group, place = self._place_of[query]
        held = np.zeros(group.matrix.shape[1], bool)
        held[group.matrix.indices[group.matrix.indptr[place] : group.matrix.indptr[place + 1]]] = True
        return held[group.place[atoms]]

    def vanish(self, vectors: Numbers, atoms: Numbers) -> npt.NDArray[np.bool_]:
        """Return for each vector over queries, a row, whether its product with the matrix is 0 at all these atoms."""
        used = np.array([vectors[:, group.queries].any(axis=1) for group in self.groups]).T
        kinds, kind = np.unique(used, axis=0, return_inverse=True)
        result = np.zeros(len(vectors), bool)
        # One of the atoms that no used group tells apart will do. It is among the distinct atoms of more groups, too.
        known = [(np.ones(len(self.groups), bool), atoms)]
        for number in np.argsort(-kinds.sum(axis=1), kind="stable").tolist():
            own = kinds[number]
            among = min((some for groups, some in known if groups[own].all()), key=len)
            sample = among[:: len(among) // SAMPLE + 1]
            if len(self._distinct(own, sample)) < SHARE * len(sample):
                among = self._distinct(own, among)
                known.append((own, among))
            for place in np.flatnonzero(kind.reshape(-1) == number).tolist():
                result[place] = not self.combine(vectors[place], among).any()
        return result

    def _distinct(self, groups: npt.NDArray[np.bool_], atoms: Numbers) -> Numbers:
        """Return some of these atoms: of those that the queries of some groups do not tell apart, the first."""
        places = [group.place[atoms] for group, used in zip(self.groups, groups, strict=True) if used]
        return atoms[distinct(places, len(atoms))[0]]


def _product(matrix: Any, vector: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the product of a sparse matrix with a vector of any type, also of Python's whole numbers."""
    if vector.dtype != object:
        return matrix @ vector  # type: ignore[no-any-return]
    entries = matrix.tocoo()
    result = np.zeros(matrix.shape[0], object)
    np.add.at(result, entries.row, vector[entries.col])
    return result


def membership(rows: RowsByClass, conditions: Sequence[Condition | None]) -> Membership:
    """Return the matrix of queries with these conditions."""
    from scipy.sparse import csr_array

    number = len(rows.counts)
    by_columns: dict[tuple[str, ...], list[int]] = {}
    for query, condition in enumerate(conditions):
        by_columns.setdefault(tuple(sorted(set(() if condition is None else condition.names))), []).append(query)
    groups = []
    for names, queries in by_columns.items():
        first, place = distinct([rows.classes[name] for name in names], number)
        places = rows.places(names, first)
        holding = (None if (own := conditions[query]) is None else own.holds(places.__getitem__) for query in queries)
        members = [np.arange(len(first)) if held is None else np.flatnonzero(held) for held in holding]
        ends = np.cumsum([0, *map(len, members)])
        ones = np.ones(ends[-1], np.int64)
        matrix = csr_array((ones, np.concatenate(members), ends), shape=(len(queries), len(first)))
        kept, ids = distinct_in_matrix(matrix.T.tocsr())
        matrix = matrix[:, kept]
        groups.append(_Group(np.array(queries), matrix, matrix.T.tocsr(), ids[place]))
    first, atom = distinct([group.place for group in groups], number)
    groups = [group._replace(place=group.place[first]) for group in groups]
    return Membership(len(conditions), groups, _sums(atom, rows.counts), atom)


def distinct_in_matrix(matrix: Any) -> tuple[Numbers, Numbers]:
    """Return the first row of each distinct row of a sparse matrix, and for each row the number of its distinct row."""
    random = np.random.default_rng(0)
    while True:
        # Equal rows have equal products with a random vector. Others hardly ever have; if they do, it is drawn again.
        products = matrix @ random.integers(0, HASHES, matrix.shape[1])
        first, number = distinct([pd.factorize(products)[0]], matrix.shape[0])
        if not (matrix != matrix[first[number]]).nnz:
            return first, number


def nested(matrix: Membership, k: int) -> list[tuple[int, int]]:
    """Return the pairs of queries (outer, inner) whose sets differ by 1 to k - 1 rows, the inner being in the outer."""
    sizes = matrix.set_sizes
    probes = np.zeros((3, matrix.queries), np.int64)
    for group in matrix.groups:
        an_atom = np.zeros(group.matrix.shape[1], np.int64)
        an_atom[group.place] = np.arange(len(group.place))
        first, last = group.matrix.indptr[:-1], group.matrix.indptr[1:] - 1
        has_rows = last >= first
        for probe, place in zip(probes, (first, last, (first + last) // 2), strict=True):
            probe[group.queries[has_rows]] = an_atom[group.matrix.indices[place[has_rows]]]
    columns = [matrix.columns(probe) for probe in probes]
    # An outer set has each atom of the inner set, so also these three.
    found = columns[0].multiply(columns[1]).multiply(columns[2]).tocoo()
    more = sizes[found.row] - sizes[found.col]
    near = (more > 0) & (more < k) & (sizes[found.col] > 0)
    outers, inners = found.row[near], found.col[near]
    pairs = []
    for inner in np.unique(inners).tolist():
        atoms = np.flatnonzero(matrix.holds(inner))
        pairs += [(own, inner) for own in outers[inners == inner].tolist() if matrix.holds(own, atoms).all()]
    return pairs


def overlapping(matrix: Membership, most: int) -> list[tuple[int, int, int]]:
    """Return the pairs of queries whose sets have more than `most` rows in common, and how many."""
    from scipy.sparse import coo_array

    pairs = []
    for number, group in enumerate(matrix.groups):
        for other in matrix.groups[number:]:
            shape = group.matrix.shape[1], other.matrix.shape[1]
            together = coo_array((matrix.sizes, (group.place, other.place)), shape).tocsr()
            common = (group.matrix @ together @ other.transposed).tocoo()
            for a, b, rows in zip(group.queries[common.row], other.queries[common.col], common.data, strict=True):
                if rows > most and (other is not group or a < b):
                    pairs.append((int(a), int(b), int(rows)))
    return pairs
