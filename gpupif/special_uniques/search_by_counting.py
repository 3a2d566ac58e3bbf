"""Minimal sample uniques found by counting: of a table that is wherever it is, without its rows at hand.

A combination of values that occurs once is some row's, whichever; and it is minimal if no part of it is a minimal one
of fewer columns. So of each level only the minimal combinations need be known, which are few; the rows that they belong
to are found in a last pass over the table.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..encoding.column import Column
from ..engines.counting import Counter
from ..engines.cpu.counting import number_rows
from ..errors import InputError
from ..marginals.set_counts import SetCounts, SetRequest, Total
from ..rows.threads import Workers
from ..utils.memory import shown
from .key_sets import KeySet
from .missing import IncompleteRows, MissingValues
from .request import SudaRequest, sample_units
from .uniques import FewRows, Found, Uniques

# By set of columns, its minimal combinations.
Minimal = dict[tuple[int, ...], KeySet]


class MinimalUniques(NamedTuple):
    """minimal: by set of columns. columns: of the table. rows: of it. unique: of these that differ from all others;
    pairs: of these that are equal to one other; pair_people: the sum of the weights of these (None without weights).
    """

    minimal: Minimal
    columns: Sequence[Column]
    rows: int
    unique: int
    pairs: int
    pair_people: float | None


class FindMinimal:
    """Finds the combinations of a set that occur once and have no part among the minimal ones of fewer columns.

    missing: values that are none, if any: combinations with them are not minimal. lacking: where they match every
    value, by set of columns the combinations with them.
    """

    def __init__(
        self,
        minimal: Minimal,
        missing: MissingValues | None,
        lacking: Mapping[tuple[int, ...], IncompleteRows],
        columns: Sequence[Column],
        total: Total,
    ) -> None:
        self._minimal = minimal
        self._missing = missing
        self._lacking = lacking

    def __call__(self, set_: Sequence[int], counter: Counter, place: int) -> list[npt.NDArray[Any]]:
        """Their codes, by column."""
        found = counter.combinations(place)
        keep = found.counts == 1
        if self._missing is not None:
            keep &= self._missing.of(set_).lacking(found.codes) == 0
        codes = [values[keep] for values in found.codes]
        for size in range(1, len(set_)):
            for part in combinations(range(len(set_)), size):
                fewer = self._minimal.get(tuple(set_[at] for at in part))
                if fewer is not None:
                    keep = np.ones(len(codes[0]), np.bool_)
                    keep[fewer.find([codes[at] for at in part])] = False
                    codes = [values[keep] for values in codes]
        lacking = self._lacking.get(tuple(set_))
        if lacking is not None:
            keep = lacking.unmatched(codes)
            codes = [values[keep] for values in codes]
        return codes


class FindLacking:
    """Finds the combinations of a set that lack values."""

    def __init__(self, missing: MissingValues, columns: Sequence[Column], total: Total) -> None:
        self._missing = missing

    def __call__(self, set_: Sequence[int], counter: Counter, place: int) -> list[npt.NDArray[Any]]:
        """Their codes, by column."""
        codes = counter.combinations(place).codes
        lacks = self._missing.of(set_).lacking(codes) > 0
        return [values[lacks] for values in codes]


class FindSeldom:
    """Finds how many combinations of the first `keys` columns of a set occur once, and how many twice.

    weights: the place of the weights in the set (None: there are none).
    """

    def __init__(self, keys: int, weights: int | None, columns: Sequence[Column], total: Total) -> None:
        self._keys = keys
        self._weights = weights
        self._columns = columns
        self._units = None if weights is None else sample_units(columns[weights])

    def __call__(self, set_: Sequence[int], counter: Counter, place: int) -> npt.NDArray[np.int64]:
        """Both numbers, and of those that occur twice the sum of the weights, in units."""
        if self._weights is None or self._units is None:
            counts = counter.counts(place)
            return np.array([(counts == 1).sum(), (counts == 2).sum(), 0])
        found = counter.combinations(place)
        cardinalities = [self._columns[column].cardinality for column in set_[: self._keys]]
        with Workers(1) as alone:
            rows = number_rows(found.codes[: self._keys], cardinalities, alone, found.counts)
        counts = rows.combinations.counts
        twice = (counts == 2)[rows.number]
        units = self._units.times(found.codes[self._weights][twice])
        return np.array([(counts == 1).sum(), (counts == 2).sum(), (units * found.counts[twice]).sum()])


def find_minimal(
    counts: SetCounts, keys: Sequence[Hashable], request: SudaRequest, memory: int | None = None
) -> MinimalUniques:
    """All minimal sample uniques of a table.

    counts: of its rows; its first columns are the key variables `keys`. memory: bytes that what is found may take
    (None: any), else InputError.
    """
    everything = list(range(len(keys)))
    weights = None if request.reads.weights is None else list(counts.names).index(request.reads.weights)
    wanted = SetRequest(list(range(len(counts.names))), everything)
    whole = counts.count([wanted], partial(FindSeldom, len(keys), weights))
    unique, twice, units = np.sum(whole.found[0], axis=0).tolist()
    people = None if weights is None else units * sample_units(whole.columns[weights]).unit
    columns = whole.columns[: len(keys)]
    missing = request.missing_values(columns)
    minimal: Minimal = {}
    for size in range(1, request.max_size + 1):
        sets = list(combinations(everything, size))
        lacking = _lacking(counts, sets, columns, missing)
        find = partial(FindMinimal, dict(minimal), missing, lacking)
        found = counts.count([SetRequest(set_) for set_ in sets], find).found
        for set_, parts in zip(sets, found, strict=True):
            codes = [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]
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
    """Where missing values match every value, by set of columns that has some the combinations with them."""
    if missing is None or not missing.match:
        return {}
    some = [set_ for set_ in sets if missing.of(set_).some]
    found = counts.count([SetRequest(set_) for set_ in some], partial(FindLacking, missing)).found if some else []
    return {
        set_: IncompleteRows(
            [np.concatenate(arrays) for arrays in zip(*parts, strict=True)],
            [columns[column].cardinality for column in set_],
            missing.of(set_),
        )
        for set_, parts in zip(some, found, strict=True)
    }


# Rows with a minimal combination, and the size of its set; by set of columns.
Hits = dict[tuple[int, ...], Any]


def find_hits(minimal: Minimal, codes: Sequence[npt.NDArray[Any]], sets: Sequence[tuple[int, ...]], start: int) -> Hits:
    """By set of columns the rows with a minimal combination of it, counted from `start`."""
    rows = {set_: minimal[set_].find([codes[column] for column in set_]) for set_ in sets}
    return {set_: found + start for set_, found in rows.items() if len(found)}


def assemble(found: MinimalUniques, hits: Sequence[Hits], request: SudaRequest) -> Uniques:
    """What `find_hits` found in all rows, by row."""
    columns, weights = len(found.columns), request.set_weights(len(found.columns))
    nothing = np.empty(0, np.int64)
    rows = np.unique(np.concatenate([nothing, *(found for part in hits for found in part.values())]))
    of_rows = Found.nothing(len(weights), len(rows) + 1, columns, request.contributions)
    for size, weight in enumerate(weights, 1):
        level = np.zeros(of_rows.shares.shape, np.uint32)
        for part in hits:
            for set_ in (one for one in part if len(one) == size):
                # Each row has one combination of a set, so that none is there twice.
                at = np.searchsorted(rows, part[set_]) + 1
                of_rows.counts[size - 1, at] += 1
                for column in set_ if request.contributions else ():
                    level[at, column] += 1
        of_rows.shares[:] += weight * level
    for set_, minimal in found.minimal.items():
        of_rows.by_column[len(set_) - 1, list(set_)] += len(minimal)
    return Uniques(FewRows(rows), found.unique, found.pairs, of_rows, found.pair_people)
