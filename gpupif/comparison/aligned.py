"""Two tables whose rows belong together, wherever they lie: what all ways to hold them have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..marginals.set_counts import SetCounts
from .versions import VersionLayout


class CompareRequest(NamedTuple):
    """What is compared. columns: of the table before; dropped: those of them that the one after lacks. row_id: the
    column that says which rows belong together, None: their places.
    """

    columns: Sequence[Hashable]
    dropped: Collection[Hashable]
    row_id: Hashable

    def read(self, side: int) -> list[Hashable]:
        """Columns that are read of the table before (side 0) or after (1), that of the rows' names last."""
        own = [name for name in self.columns if not side or name not in self.dropped]
        return [*own, *([] if self.row_id is None else [self.row_id])]


class AlignedTables(ABC):
    """Two tables with aligned rows; a context manager. rows: of the first; lacking: of these, how many the second has
    not, whose values are missing there.
    """

    rows: int
    lacking: int

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(self, *error: object) -> None: ...

    @abstractmethod
    def joined(self) -> AbstractContextManager[SetCounts]:
        """Open the table of the columns before, behind them those after, and whether the row is there after (1, 0)."""

    @abstractmethod
    def versions(self, layout: VersionLayout) -> AbstractContextManager[SetCounts]:
        """Open the table of versions, see `versions`."""


# Finds which rows of the table before the plan leaves, as a mask; None where no plan says so.
FindKept = Callable[[], npt.NDArray[np.bool_]]


def kept_rows(rows: int, others: int, find_kept: FindKept | None) -> npt.NDArray[np.bool_] | None:
    """Return which rows of the table before the one after has, where rows lie in order; None for all.

    Raises InputError where the numbers of rows do not fit.
    """
    if rows == others:
        return None
    if find_kept is None:
        raise InputError(
            f"after: expected the {rows:,} rows of the table before, got {others:,}. Where a plan took rows away, give "
            "that plan, or the record of the treatment: it tells which rows these are. Else name a column of both "
            "tables that tells which row is which: row_id=."
        )
    kept = find_kept()
    left = int(kept.sum())
    if left != others:
        raise InputError(
            f"after: expected {left:,} rows, which is what the plan leaves of the {rows:,} of the table before; got "
            f"{others:,}. Give the plan by which it was treated, or name a column that tells which row is which: "
            "row_id=."
        )
    return kept


def places_of(kept: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return by row before its place after, -1 where it is not there."""
    return np.where(kept, np.cumsum(kept) - 1, -1)
