"""Combinations of values of some columns that are looked up among many rows, also by rows that lack values.

Missing values may be no values: a row is then not unique by them, and with "wildcard" they match every value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels.partition import partition_ids

from ..engines.cpu.count_tables import key_layout, key_order
from ..rows.threads import Workers

# Places of a table of hashes for each combination: few rows without one of the combinations pass it.
PLACES = 8
FEWEST_PLACES, MOST_PLACES = 1 << 10, 1 << 28


class KeySet:
    """A set of combinations of values. codes: by column, an array (combinations). cardinalities: of the columns."""

    def __init__(self, codes: Sequence[npt.NDArray[Any]], cardinalities: Sequence[int]) -> None:
        self._layout = key_layout(cardinalities)
        keys = self._pack(codes)
        self._keys = keys[key_order(keys)]
        self._masks = np.full(self._layout.words, ~np.uint64(0))
        places = 1 << max(0, PLACES * len(keys) - 1).bit_length()
        self._there = np.zeros(min(MOST_PLACES, max(FEWEST_PLACES, places)), np.bool_)
        self._there[self._places(self._keys)] = True

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def nbytes(self) -> int:
        """Return the bytes that it takes."""
        return self._keys.nbytes + self._there.nbytes

    def _pack(self, codes: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.uint64]:
        # The caller runs in a thread already.
        with Workers(1) as alone:
            return self._layout.pack(codes, alone)

    def _places(self, keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
        places = np.empty(len(keys), np.uint32)
        partition_ids(keys, self._masks, len(self._there), places)
        return places

    def find(self, codes: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.intp]:
        """Return the rows with one of the combinations, ascending. codes: by column, an array (rows)."""
        if not len(codes[0]):
            return np.empty(0, np.intp)
        keys = self._pack(codes)
        rows = np.flatnonzero(self._there[self._places(keys)])
        keys = keys[rows]
        if self._layout.words == 1:
            place = np.searchsorted(self._keys[:, 0], keys[:, 0])
            place[place == len(self._keys)] = 0
            there: npt.NDArray[np.bool_] = self._keys[place, 0] == keys[:, 0]
            return rows[there]
        # Sorted together, stably: each combination comes before the rows that have it.
        both = np.concatenate([self._keys, keys])
        order = key_order(both)
        ordered = both[order]
        group = np.cumsum(np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))) - 1
        heads = order[np.append(True, group[1:] != group[:-1])]
        has = np.empty(len(both), np.bool_)
        has[order] = heads[group] < len(self._keys)
        return rows[has[len(self._keys) :]]


class MissingValues(NamedTuple):
    """Missing values. codes: by column the code of its missing values, -1 for none. match: they match every value."""

    codes: tuple[int, ...]
    match: bool

    def of_columns(self, columns: Sequence[int]) -> MissingValues:
        """Return the missing values of some columns. columns: their places."""
        return MissingValues(tuple(self.codes[column] for column in columns), self.match)

    @property
    def some(self) -> bool:
        """Return whether any column has missing values."""
        return any(code >= 0 for code in self.codes)

    def lacking(self, codes: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.uint64]:
        """Return the columns that each row lacks, as bits. codes: by column, an array (rows)."""
        pattern = np.zeros(len(codes[0]), np.uint64)
        for place, (own, missing) in enumerate(zip(codes, self.codes, strict=True)):
            if missing >= 0:
                pattern |= (own == missing).astype(np.uint64) << np.uint64(place)
        return pattern


class IncompleteRows:
    """Rows that lack values of a set of columns, by the columns that they lack.

    codes: of these rows, by column. cardinalities, missing: of the columns.
    """

    def __init__(self, codes: Sequence[npt.NDArray[Any]], cardinalities: Sequence[int], missing: MissingValues) -> None:
        pattern = missing.lacking(codes)
        # By the columns that rows do not lack, their combinations there.
        self._matched: list[tuple[list[int], KeySet | None]] = []
        for lacked in np.unique(pattern).tolist():
            rows = np.flatnonzero(pattern == lacked)
            there = [place for place in range(len(codes)) if not lacked >> place & 1]
            own = [codes[place][rows] for place in there]
            self._matched.append((there, KeySet(own, [cardinalities[place] for place in there]) if there else None))

    @property
    def nbytes(self) -> int:
        """Return the bytes that it takes."""
        return sum(keys.nbytes for _, keys in self._matched if keys is not None)

    def unmatched(self, codes: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.bool_]:
        """Return which rows, which lack no value, are matched by none of the incomplete rows. codes: by column."""
        out = np.ones(len(codes[0]), np.bool_)
        for there, keys in self._matched:
            if keys is None:
                out[:] = False
            else:
                out[keys.find([codes[place] for place in there])] = False
        return out
