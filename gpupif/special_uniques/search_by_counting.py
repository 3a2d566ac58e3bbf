"""Minimal sample uniques found by counting: of a table that is wherever it is, without its rows at hand.

A combination of values that occurs once is some row's, whichever; and it is minimal if no part of it is a minimal one
of fewer columns. So of each level only the minimal combinations need be known, which are few; the rows that they belong
to are found in a last pass over the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..encoding.column import Column
from ..engines.counting import Counter
from ..errors import InputError
from ..marginals.base import SetCounts, Wanted
from ..utils.memory import shown
from .key_sets import KeySet
from .search_in_memory import Uniques

if TYPE_CHECKING:
    import numpy.typing as npt

# By set of columns, its minimal combinations.
Minimal = dict[tuple[int, ...], KeySet]


class Found(NamedTuple):
    """minimal: by set of columns. columns: of the table. rows: of it. unique: of these that differ from all others;
    pairs: of these that are equal to one other.
    """

    minimal: Minimal
    columns: Sequence[Column]
    rows: int
    unique: int
    pairs: int


class FindMinimal:
    """Finds the combinations of a set that occur once and have no part among the minimal ones of fewer columns."""

    def __init__(self, minimal: Minimal, columns: Sequence[Column], rows: int) -> None:
        self._minimal = minimal

    def __call__(self, set_: Sequence[int], counter: Counter, place: int) -> list[npt.NDArray[Any]]:
        """Their codes, by column."""
        found = counter.combinations(place)
        once = found.counts == 1
        codes = [values[once] for values in found.codes]
        for size in range(1, len(set_)):
            for part in combinations(range(len(set_)), size):
                fewer = self._minimal.get(tuple(set_[at] for at in part))
                if fewer is not None:
                    keep = np.ones(len(codes[0]), np.bool_)
                    keep[fewer.find([codes[at] for at in part])] = False
                    codes = [values[keep] for values in codes]
        return codes


class FindSeldom:
    """Finds how many combinations occur once, and how many twice."""

    def __init__(self, columns: Sequence[Column], rows: int) -> None:
        """Nothing of the table is needed."""

    def __call__(self, set_: Sequence[int], counter: Counter, place: int) -> npt.NDArray[np.int64]:
        """Both numbers."""
        counts = counter.counts(place)
        return np.array([(counts == 1).sum(), (counts == 2).sum()])


class MakeMinimal:
    """Makes `FindMinimal`, of what is known so far."""

    def __init__(self, minimal: Minimal) -> None:
        self._minimal = minimal

    def __call__(self, columns: Sequence[Column], rows: int) -> FindMinimal:
        """See `set_counts.MakeFind`."""
        return FindMinimal(self._minimal, columns, rows)


def find_minimal(counts: SetCounts, max_size: int, memory: int | None) -> Found:
    """All minimal sample uniques of up to max_size columns.

    memory: bytes that they may take (None: any), else InputError.
    """
    everything = range(len(counts.names))
    minimal: Minimal = {}
    taken = 0
    whole = counts.count([Wanted(everything)], FindSeldom)
    unique, twice = np.sum(whole.found[0], axis=0).tolist()
    for size in range(1, max_size + 1):
        sets = list(combinations(everything, size))
        found = counts.count([Wanted(set_) for set_ in sets], MakeMinimal(dict(minimal))).found
        for set_, parts in zip(sets, found, strict=True):
            codes = [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]
            if len(codes[0]):
                minimal[set_] = KeySet(codes, [whole.columns[column].cardinality for column in set_])
                taken += minimal[set_].nbytes
        if memory is not None and taken > memory:
            raise InputError(
                f"memory_limit: of up to {size} columns there are {sum(map(len, minimal.values())):,} minimal sample "
                f"uniques, which take {shown(taken)}; {shown(memory)} are there for them. Name fewer columns with "
                "columns=, lower max_size, or raise it."
            )
    return Found(minimal, whole.columns, whole.rows, unique, 2 * twice)


class FewRows:
    """Which record each row has: 1 and more for the `rows`, which ascend, 0 for all others."""

    def __init__(self, rows: npt.NDArray[np.int64]) -> None:
        self.rows = rows

    def __getitem__(self, rows: slice | int) -> Any:
        if not isinstance(rows, slice):
            place = int(np.searchsorted(self.rows, rows))
            return place + 1 if place < len(self.rows) and self.rows[place] == rows else 0
        first, last = np.searchsorted(self.rows, [rows.start, rows.stop])
        out = np.zeros(rows.stop - rows.start, np.uint32)
        out[self.rows[first:last] - rows.start] = np.arange(first + 1, last + 1)
        return out


# Rows with a minimal combination, and the size of its set; by set of columns.
Hits = dict[tuple[int, ...], Any]


def find_hits(minimal: Minimal, codes: Sequence[npt.NDArray[Any]], sets: Sequence[tuple[int, ...]], start: int) -> Hits:
    """By set of columns the rows with a minimal combination of it, counted from `start`."""
    rows = {set_: minimal[set_].find([codes[column] for column in set_]) for set_ in sets}
    return {set_: found + start for set_, found in rows.items() if len(found)}


def assemble(found: Found, hits: Sequence[Hits], weights: Sequence[float], contributions: bool) -> Uniques:
    """What `find_hits` found in all rows, by row; weights: of a set by its size, less 1."""
    nothing = np.empty(0, np.int64)
    rows = np.unique(np.concatenate([nothing, *(found for part in hits for found in part.values())]))
    counts = np.zeros((len(weights), len(rows) + 1), np.uint32)
    shares = np.zeros((len(rows) + 1, len(found.columns)) if contributions else (0, 0))
    for size, weight in enumerate(weights, 1):
        level = np.zeros(shares.shape, np.uint32)
        for part in hits:
            for set_ in (one for one in part if len(one) == size):
                # Each row has one combination of a set, so that none is there twice.
                at = np.searchsorted(rows, part[set_]) + 1
                counts[size - 1, at] += 1
                for column in set_ if contributions else ():
                    level[at, column] += 1
        shares += weight * level
    numbers = {set_: len(combinations) for set_, combinations in found.minimal.items()}
    return Uniques(FewRows(rows), found.unique, found.pairs, counts, shares, numbers)
