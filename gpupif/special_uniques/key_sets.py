"""Combinations of values of some columns, to be looked up among many rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels.partition import partition_ids

from ..engines.cpu.count_tables import key_layout, key_order
from ..rows.threads import Workers

# Places of a table of hashes for each combination, so that few rows whose combination is none of them are looked up.
PLACES = 8
FEWEST_PLACES, MOST_PLACES = 1 << 10, 1 << 28


class KeySet:
    """Combinations of some columns. codes: by column. cardinalities: of these columns."""

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
        """What it takes."""
        return self._keys.nbytes + self._there.nbytes

    def _pack(self, codes: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.uint64]:
        # A thread of its own already.
        with Workers(1) as alone:
            return self._layout.pack(codes, alone)

    def _places(self, keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
        places = np.empty(len(keys), np.uint32)
        partition_ids(keys, self._masks, len(self._there), places)
        return places

    def find(self, codes: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.intp]:
        """The rows with one of the combinations, ascending; codes: by column."""
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
        # Sorted together, stably, each of the combinations stands before the rows that have it.
        both = np.concatenate([self._keys, keys])
        order = key_order(both)
        ordered = both[order]
        group = np.cumsum(np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))) - 1
        heads = order[np.append(True, group[1:] != group[:-1])]
        has = np.empty(len(both), np.bool_)
        has[order] = heads[group] < len(self._keys)
        return rows[has[len(self._keys) :]]
