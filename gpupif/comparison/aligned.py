"""Two tables whose rows belong together, wherever they lie: what all ways to hold them have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Self

from ..errors import InputError
from ..marginals.base import SetCounts
from .released import ReleasedColumn


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
        """The table of the columns before and, behind them, after."""

    @abstractmethod
    def versions(self, columns: Sequence[ReleasedColumn]) -> AbstractContextManager[SetCounts]:
        """The table of versions, see `versions`."""


def rows_differ(rows: int, others: int) -> InputError:
    """The error of tables whose rows cannot belong together by their places."""
    return InputError(
        f"after: expected the {rows:,} rows of the table before, got {others:,}. Where rows were taken away, as "
        "suppress_rows does, name a column of both tables that tells which is which: row_id=. Or treat with remove = "
        "false in suppress_rows: the rows stay, without their quasi-identifiers."
    )
