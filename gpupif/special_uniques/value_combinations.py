"""Combinations of values of some columns that are looked up among many rows, and matches by missing values.

With missing="ignore" and "wildcard", missing values are no values: they make no row unique. With "wildcard" they match
every value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels.partition import partition_ids

from ..engines.cpu.count_tables import key_layout, key_order
from ..rows.threads import Workers

# Places of the hash table for each combination: with 8, about an eighth of the rows without a combination pass it.
PLACES = 8
FEWEST_PLACES, MOST_PLACES = 1 << 10, 1 << 28


class KeySet:
    """A set of combinations of values.

    codes: by column, array (combinations). cardinalities: of the columns.
    """

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
        """The bytes of the keys and of the hash table."""
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
        """Return the rows with one of the combinations, ascending. codes: by column, array (rows)."""
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
        # The sort is stable: each combination comes before the rows that have it, and heads its run of equal keys.
        both = np.concatenate([self._keys, keys])
        order = key_order(both)
        ordered = both[order]
        run = np.cumsum(np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))) - 1
        heads = order[np.append(True, run[1:] != run[:-1])]
        has = np.empty(len(both), np.bool_)
        has[order] = heads[run] < len(self._keys)
        return rows[has[len(self._keys) :]]


class MissingValues(NamedTuple):
    """The missing values of columns, if they are no values.

    codes: by column the code of its missing values, -1 for none. match: whether they match every value.
    """

    codes: tuple[int, ...]
    match: bool

    def of_columns(self, columns: Sequence[int]) -> MissingValues:
        """Return the missing values of some columns. columns: their places."""
        return MissingValues(tuple(self.codes[column] for column in columns), self.match)

    @property
    def some(self) -> bool:
        """True if any column has missing values."""
        return any(code >= 0 for code in self.codes)

    def lacking(self, codes: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.uint64]:
        """Return for each row the columns with a missing value, as bits. codes: by column, array (rows)."""
        pattern = np.zeros(len(codes[0]), np.uint64)
        for place, (own, missing) in enumerate(zip(codes, self.codes, strict=True)):
            if missing >= 0:
                pattern |= (own == missing).astype(np.uint64) << np.uint64(place)
        return pattern


class IncompleteRows:
    """Rows with missing values in a set of columns. Missing values match every value.

    codes: by column, array (rows). cardinalities, missing: of the columns.
    """

    def __init__(self, codes: Sequence[npt.NDArray[Any]], cardinalities: Sequence[int], missing: MissingValues) -> None:
        pattern = missing.lacking(codes)
        # Rows that lack the same columns match by the other columns: for each such case, these and their combinations.
        self._matched: list[tuple[list[int], KeySet | None]] = []
        for lacked in np.unique(pattern).tolist():
            rows = np.flatnonzero(pattern == lacked)
            there = [place for place in range(len(codes)) if not lacked >> place & 1]
            own = [codes[place][rows] for place in there]
            self._matched.append((there, KeySet(own, [cardinalities[place] for place in there]) if there else None))

    @property
    def nbytes(self) -> int:
        """The bytes of all combinations."""
        return sum(keys.nbytes for _, keys in self._matched if keys is not None)

    def unmatched(self, codes: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.bool_]:
        """Return which complete rows no incomplete row matches. codes: of complete rows, by column, array (rows)."""
        out = np.ones(len(codes[0]), np.bool_)
        for there, keys in self._matched:
            if keys is None:
                out[:] = False
            else:
                out[keys.find([codes[place] for place in there])] = False
        return out
