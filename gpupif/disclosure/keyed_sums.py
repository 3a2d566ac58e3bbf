"""Sums by key, found in parts of a table and put together, whatever the order of the parts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

# Pieces that are kept apart at most.
MOST_PIECES = 64


class KeyedSums(NamedTuple):
    """Whole numbers by key: pieces (keys ascending, sums of each (several, keys)) that are put together now and then.

    Putting pieces together only where they have come to as much as the largest of them takes time for each key that
    grows with the logarithm of their number.
    """

    pieces: tuple[tuple[npt.NDArray[Any], npt.NDArray[np.int64]], ...] = ()

    @classmethod
    def of(cls, keys: npt.NDArray[Any], *amounts: npt.NDArray[np.int64]) -> KeyedSums:
        """The sums of amounts over equal keys."""
        return cls((_added(keys, np.stack(amounts)),))

    @classmethod
    def total(cls, several: Iterable[KeyedSums]) -> KeyedSums:
        """Those of several parts together."""
        pieces = [piece for one in several for piece in one.pieces]
        sizes = [len(keys) for keys, _ in pieces]
        if len(pieces) > 1 and (len(pieces) > MOST_PIECES or sum(sizes) > 2 * max(sizes)):
            pieces = [_put_together(pieces)]
        return cls(tuple(pieces))

    def whole(self) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """All keys, ascending, and their sums."""
        return self.pieces[0] if len(self.pieces) == 1 else _put_together(self.pieces)


def _put_together(
    pieces: Iterable[tuple[npt.NDArray[Any], npt.NDArray[np.int64]]],
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    keys, sums = zip(*pieces, strict=True)
    return _added(np.concatenate(keys), np.concatenate(sums, axis=1))


def _added(keys: npt.NDArray[Any], amounts: npt.NDArray[np.int64]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else np.empty(0, np.int64)
    return keys[first], np.add.reduceat(amounts[:, order], first, axis=1) if len(keys) else amounts
