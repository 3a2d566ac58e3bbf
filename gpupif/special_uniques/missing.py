"""Missing values that are no values: rows that lack some are not unique by them, and perhaps match every value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .key_sets import KeySet


class MissingValues(NamedTuple):
    """codes: by column the code of its missing values, -1 for none. match: whether they match every value."""

    codes: tuple[int, ...]
    match: bool

    def of(self, columns: Sequence[int]) -> MissingValues:
        """Those of some columns, by their places."""
        return MissingValues(tuple(self.codes[column] for column in columns), self.match)

    @property
    def some(self) -> bool:
        """Whether there are any."""
        return any(code >= 0 for code in self.codes)

    def lacking(self, codes: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.uint64]:
        """Of rows with these codes, by column, which columns each lacks: bit c for the c-th."""
        pattern = np.zeros(len(codes[0]), np.uint64)
        for place, (own, missing) in enumerate(zip(codes, self.codes, strict=True)):
            if missing >= 0:
                pattern |= (own == missing).astype(np.uint64) << np.uint64(place)
        return pattern


class IncompleteRows:
    """What is matched by rows that lack values of a set of columns, by which of them these are.

    codes: of such rows, by column. cardinalities, missing: of these columns.
    """

    def __init__(self, codes: Sequence[npt.NDArray[Any]], cardinalities: Sequence[int], missing: MissingValues) -> None:
        pattern = missing.lacking(codes)
        # By the columns that rows do not lack, what they have there.
        self._matched: list[tuple[list[int], KeySet | None]] = []
        for lacked in np.unique(pattern).tolist():
            rows = np.flatnonzero(pattern == lacked)
            there = [place for place in range(len(codes)) if not lacked >> place & 1]
            own = [codes[place][rows] for place in there]
            self._matched.append((there, KeySet(own, [cardinalities[place] for place in there]) if there else None))

    @property
    def nbytes(self) -> int:
        """What it takes."""
        return sum(keys.nbytes for _, keys in self._matched if keys is not None)

    def unmatched(self, codes: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.bool_]:
        """Which rows with these codes, by column, that lack none of them, none of the lacking ones matches."""
        out = np.ones(len(codes[0]), np.bool_)
        for there, keys in self._matched:
            if keys is None:
                out[:] = False
            else:
                out[keys.find([codes[place] for place in there])] = False
        return out
