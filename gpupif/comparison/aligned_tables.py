"""Two tables with aligned rows: the interface for all kinds of tables, and the columns that are compared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..frames.open import held_table, table_names
from ..marginals.set_counts import SetCounts
from ..utils.validation import as_list, brief, check_exist
from .row_versions import VersionLayout


class CompareRequest(NamedTuple):
    """The columns that are compared.

    columns: names, of the table before. dropped: columns among them that the table after lacks. row_id: the column that
    names rows; None if rows are aligned by their order.
    """

    columns: Sequence[Hashable]
    dropped: Collection[Hashable]
    row_id: Hashable

    def read(self, side: int) -> list[Hashable]:
        """Return the columns to read of the table before (side 0) or after (side 1), `row_id` last."""
        own = [name for name in self.columns if not side or name not in self.dropped]
        return [*own, *([] if self.row_id is None else [self.row_id])]


class AlignedTables(ABC):
    """Two tables with aligned rows; a context manager.

    rows: how many rows the table before has. lacking: how many of them the table after lacks; the values of these rows
    are missing after.
    """

    rows: int
    lacking: int

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(self, *error: object) -> None: ...

    @abstractmethod
    def joined(self) -> AbstractContextManager[SetCounts]:
        """Open the joined table: columns before, columns after, and whether the table after has the row (1, 0)."""

    @abstractmethod
    def versions(self, layout: VersionLayout) -> AbstractContextManager[SetCounts]:
        """Open the table of versions, see `row_versions`."""


# A function that returns the mask of the rows of the table before that the plan keeps.
FindKept = Callable[[], npt.NDArray[np.bool_]]


def kept_rows(rows: int, others: int, find_kept: FindKept | None) -> npt.NDArray[np.bool_] | None:
    """Return the mask of the rows of the table before that the table after has; None for all rows.

    Rows are in the same order in both tables. rows, others: how many rows the tables before and after have. find_kept:
    None without a plan that removes rows. Raises InputError if the numbers of rows do not fit.
    """
    if rows == others:
        return None
    if find_kept is None:
        raise InputError(
            f"after: expected the {rows:,} rows of the table before, got {others:,}. If a plan removed rows, give "
            "that plan, or the record of the treatment: it says which rows. Else name a column of both tables that "
            "identifies rows: row_id=."
        )
    kept = find_kept()
    left = int(kept.sum())
    if left != others:
        raise InputError(
            f"after: expected {left:,} rows, which the plan keeps of the {rows:,} rows of the table before; got "
            f"{others:,}. Give the plan by which it was treated, or name a column that identifies rows: row_id=."
        )
    return kept


def hold(table: Any, argument: str) -> Any:
    """Return a table that can be read more than once: a stream of Arrow data becomes a table. Raises InputError.

    argument: the name of the argument, for errors.
    """
    try:
        return held_table(table)
    except InputError as error:
        raise error.about(argument) from None


def choose_columns(before: Any, after: Any, columns: Any, row_id: Hashable) -> CompareRequest:
    """Return the columns that are compared. Raises InputError, ColumnNotFoundError.

    columns: the argument of `gpupif.compare`; None for all columns of the table before.
    """
    (first, _), (second, _) = table_names(before, "before"), table_names(after, "after")
    if row_id is not None:
        check_exist("row_id", [row_id], first, "the table before")
        check_exist("row_id", [row_id], second, "the table after")
    if columns is None:
        wanted = [name for name in first if row_id is None or name != row_id]
        unknown = [name for name in second if name not in first]
        if unknown:
            raise InputError(
                f"after: column {brief(unknown[0])}{_more(unknown)} is not in the table before. Give it its old name, "
                "or name the columns to be compared: columns=."
            )
    else:
        wanted = [name for name in as_list("columns", columns) if row_id is None or name != row_id]
        check_exist("columns", wanted, first, "the table before")
    if not wanted:
        raise InputError("columns: expected at least one column to be compared, got none.")
    dropped = [name for name in wanted if name not in second]
    if len(dropped) == len(wanted):
        raise InputError(
            f"after: has none of the columns of the table before ({', '.join(map(str, wanted))}). Expected the same "
            "table, treated."
        )
    return CompareRequest(wanted, dropped, row_id)


def _more(names: Sequence[Hashable]) -> str:
    return f" (and {len(names) - 1} more)" if len(names) > 1 else ""
