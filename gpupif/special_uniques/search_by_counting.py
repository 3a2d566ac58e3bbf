"""Minimal sample uniques found by counting combinations of values: rows of the table need not be in memory.

A combination that occurs once is unique. It is minimal if it contains no minimal combination of fewer columns. Sets are
counted by size, and only the minimal combinations of each size are kept. A last pass over the table finds their rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from itertools import accumulate, combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..encoding.column import Column
from ..engines.base import Counter
from ..engines.cpu.counting import number_rows
from ..errors import InputError
from ..marginals.set_counts import Find, SetCounts, SetRequest, Total
from ..rows.threads import Workers
from ..utils.memory import shown
from .minimal_uniques import FewRows, MsuCounts, Uniques
from .request import SudaRequest, sample_units
from .value_combinations import IncompleteRows, KeySet, MissingValues

# The minimal combinations of each set of columns.
Minimal = dict[tuple[int, ...], KeySet]


class MinimalUniques(NamedTuple):
    """The minimal sample uniques of a table.

    minimal: the combinations by set of columns. columns: the key variables. rows: how many rows the table has. unique:
    rows that differ from all other rows. pairs: rows that are equal to exactly one other row. pair_people: the sum of
    the sampling weights of the rows in pairs; None without sampling weights.
    """

    minimal: Minimal
    columns: Sequence[Column]
    rows: int
    unique: int
    pairs: int
    pair_people: float | None


def make_minimal(
    minimal: Minimal,
    missing: MissingValues | None,
    incomplete: Mapping[tuple[int, ...], IncompleteRows],
    columns: Sequence[Column],
    total: Total,
) -> Find:
    """Return the function that finds the minimal combinations of a set of columns in a partition: codes by column.

    They occur once, and have no part among the minimal combinations of fewer columns. minimal: of fewer columns.
    missing: missing values that are no values; combinations with them are not minimal. incomplete: by set of columns
    the combinations with missing values, if these match every value.
    """

    def find(set_: Sequence[int], counter: Counter, place: int) -> list[npt.NDArray[Any]]:
        counted = counter.combinations(place)
        keep = counted.counts == 1
        if missing is not None:
            keep &= missing.of_columns(set_).lacking(counted.codes) == 0
        codes = [values[keep] for values in counted.codes]
        for size in range(1, len(set_)):
            for part in combinations(range(len(set_)), size):
                fewer = minimal.get(tuple(set_[at] for at in part))
                if fewer is not None:
                    keep = np.ones(len(codes[0]), np.bool_)
                    keep[fewer.find([codes[at] for at in part])] = False
                    codes = [values[keep] for values in codes]
        if tuple(set_) in incomplete:
            keep = incomplete[tuple(set_)].unmatched(codes)
            codes = [values[keep] for values in codes]
        return codes

    return find


def make_incomplete(missing: MissingValues, columns: Sequence[Column], total: Total) -> Find:
    """Return the function that finds the combinations with missing values in a partition: codes by column."""

    def find(set_: Sequence[int], counter: Counter, place: int) -> list[npt.NDArray[Any]]:
        codes = counter.combinations(place).codes
        lacks = missing.of_columns(set_).lacking(codes) > 0
        return [values[lacks] for values in codes]

    return find


def make_rare(keys: int, weights: int | None, columns: Sequence[Column], total: Total) -> Find:
    """Return the function that counts the combinations of key variables in a partition that occur once, and twice.

    It returns an array of three numbers: how many combinations occur once, how many twice, and the sum of the sampling
    weights of the rows with a combination that occurs twice, in units. keys: the number of key variables, the first
    columns of the set. weights: the place of the sampling weights in the set; None without weights.
    """
    units = None if weights is None else sample_units(columns[weights])

    def find(set_: Sequence[int], counter: Counter, place: int) -> npt.NDArray[np.int64]:
        if weights is None or units is None:
            counts = counter.counts(place)
            return np.array([(counts == 1).sum(), (counts == 2).sum(), 0])
        counted = counter.combinations(place)
        cardinalities = [columns[column].cardinality for column in set_[:keys]]
        with Workers(1) as alone:
            rows = number_rows(counted.codes[:keys], cardinalities, alone, counted.counts)
        counts = rows.combinations.counts
        twice = (counts == 2)[rows.number]
        people = units.multiplicities(counted.codes[weights][twice]) * counted.counts[twice]
        return np.array([(counts == 1).sum(), (counts == 2).sum(), people.sum()])

    return find


def find_minimal(
    counts: SetCounts, keys: Sequence[Hashable], request: SudaRequest, memory: int | None = None
) -> MinimalUniques:
    """Find all minimal sample uniques of a table.

    counts: counts rows of the table; its first columns are the key variables `keys`. memory: bytes for the minimal
    combinations, None for any number. Raises InputError if they take more.
    """
    everything = list(range(len(keys)))
    weights = None if request.reads.weights is None else list(counts.names).index(request.reads.weights)
    wanted = SetRequest(list(range(len(counts.names))), everything)
    whole = counts.count([wanted], partial(make_rare, len(keys), weights))
    unique, twice, units = np.sum(whole.found[0], axis=0).tolist()
    people = None if weights is None else units * sample_units(whole.columns[weights]).unit
    columns = whole.columns[: len(keys)]
    missing = request.missing_values(columns)
    minimal: Minimal = {}
    for size in range(1, request.max_size + 1):
        sets = list(combinations(everything, size))
        lacking = _lacking(counts, sets, columns, missing)
        make = partial(make_minimal, dict(minimal), missing, lacking)
        by_set = counts.count([SetRequest(set_) for set_ in sets], make).found
        for set_, partitions in zip(sets, by_set, strict=True):
            codes = [np.concatenate(arrays) for arrays in zip(*partitions, strict=True)]
            if len(codes[0]):
                minimal[set_] = KeySet(codes, [columns[column].cardinality for column in set_])
        taken = sum(each.nbytes for each in minimal.values()) + sum(each.nbytes for each in lacking.values())
        if memory is not None and taken > memory:
            matching = " and combinations that missing values match" if lacking else ""
            raise InputError(
                f"memory_limit: of up to {size} columns there are {sum(map(len, minimal.values())):,} minimal sample "
                f"uniques{matching}, which take {shown(taken)}; {shown(memory)} are there for them. Name fewer columns "
                "with columns=, lower max_size, or raise it."
            )
    return MinimalUniques(minimal, columns, whole.total.rows, unique, 2 * twice, people)


def _lacking(
    counts: SetCounts, sets: Sequence[tuple[int, ...]], columns: Sequence[Column], missing: MissingValues | None
) -> dict[tuple[int, ...], IncompleteRows]:
    """Return the combinations with missing values of each set of columns; none unless these match every value."""
    if missing is None or not missing.match:
        return {}
    some = [set_ for set_ in sets if missing.of_columns(set_).some]
    by_set = counts.count([SetRequest(set_) for set_ in some], partial(make_incomplete, missing)).found if some else []
    return {
        set_: IncompleteRows(
            [np.concatenate(arrays) for arrays in zip(*partitions, strict=True)],
            [columns[column].cardinality for column in set_],
            missing.of_columns(set_),
        )
        for set_, partitions in zip(some, by_set, strict=True)
    }


# The rows of a chunk with a minimal combination, by set of columns.
Hits = dict[tuple[int, ...], Any]


def find_hits(minimal: Minimal, codes: Sequence[npt.NDArray[Any]], workers: Workers) -> Hits:
    """Return by set of columns the rows of a chunk with a minimal combination. codes: by column, array (rows)."""

    def find(set_: tuple[int, ...], combinations_of_set: KeySet) -> npt.NDArray[np.intp]:
        return combinations_of_set.find([codes[column] for column in set_])

    rows = zip(minimal, workers.run(find, minimal.items()), strict=True)
    return {set_: own for set_, own in rows if len(own)}


def assemble(uniques: MinimalUniques, chunks: Sequence[tuple[int, Hits]], request: SudaRequest) -> Uniques:
    """Return the minimal sample uniques of the rows of a table. chunks: the rows of each chunk, and its hits."""
    columns, weights = len(uniques.columns), request.set_weights(len(uniques.columns))
    starts = accumulate((rows for rows, _ in chunks), initial=0)
    hits = [
        {set_: own + start for set_, own in by_set.items()} for start, (_, by_set) in zip(starts, chunks, strict=False)
    ]
    nothing = np.empty(0, np.int64)
    rows = np.unique(np.concatenate([nothing, *(own for chunk in hits for own in chunk.values())]))
    of_rows = MsuCounts.nothing(len(weights), len(rows) + 1, columns, request.contributions)
    for size, weight in enumerate(weights, 1):
        level = np.zeros(of_rows.shares.shape, np.uint32)
        for chunk in hits:
            for set_ in (set_ for set_ in chunk if len(set_) == size):
                # A row has one combination of a set: no place occurs twice, so += counts each row.
                at = np.searchsorted(rows, chunk[set_]) + 1
                of_rows.counts[size - 1, at] += 1
                for column in set_ if request.contributions else ():
                    level[at, column] += 1
        of_rows.shares[:] += weight * level
    for set_, minimal in uniques.minimal.items():
        of_rows.by_column[len(set_) - 1, list(set_)] += len(minimal)
    return Uniques(FewRows(rows), uniques.unique, uniques.pairs, of_rows, uniques.pair_people)
