"""The columns of two tables that are compared, and the row before of each row after."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..encoding.column import Column
from ..errors import InputError
from ..frames.open import held_table, table_names
from ..utils.validation import as_list, brief, check_exist, check_weights
from .released_values import SharedValues


class CompareRequest(NamedTuple):
    """The columns that are compared.

    columns: names, of the table before. dropped: columns among them that the table after lacks. row_id: the column that
    names rows; None if rows are aligned by their order. weights: the column of sampling weights; None without weights.
    weights_after: the same if the table after has it too, else None.
    """

    columns: Sequence[Hashable]
    dropped: Collection[Hashable]
    row_id: Hashable
    weights: Hashable = None
    weights_after: Hashable = None

    def read(self, side: int) -> list[Hashable]:
        """Return the columns to read of the table before (side 0) or after (side 1).

        `row_id` is last. Before it are the weights of the table before.
        """
        own = [name for name in self.columns if not side or name not in self.dropped]
        own += [] if side or self.weights is None else [self.weights]
        return [*own, *([] if self.row_id is None else [self.row_id])]


# A function that returns the mask of the rows of the table before that the plan keeps.
FindKept = Callable[[], npt.NDArray[np.bool_]]


def homes_by_place(rows: int, others: int, find_kept: FindKept | None) -> npt.NDArray[np.int64] | None:
    """Return the row before of each row after, if rows are in the same order in both tables; None for the same rows.

    rows, others: how many rows the tables before and after have. find_kept: None without a plan.
    Raises InputError if the numbers of rows do not fit.
    """
    if rows == others:
        return None
    if find_kept is None:
        raise InputError(
            f"after: expected the {rows:,} rows of the table before, got {others:,}. If a plan removed rows, give "
            "that plan, or the record of the treatment: it says which rows. Else name a column of both tables that "
            "identifies rows: row_id=."
        )
    homes = np.flatnonzero(find_kept())
    if len(homes) != others:
        expected = f"{len(homes):,} rows, which the plan keeps of the {rows:,} rows of the table before"
        if len(homes) == rows:
            expected = f"the {rows:,} rows of the table before, for the plan that is given removes no rows"
        raise InputError(
            f"after: expected {expected}; got {others:,}. Give the plan by which it was treated, or name a column that "
            "identifies rows: row_id=."
        )
    return homes


def homes_by_name(
    before: Column, after: Column, codes_before: npt.NDArray[Any], codes_after: npt.NDArray[Any]
) -> npt.NDArray[np.int64]:
    """Return the row before of each row after, by the names of rows.

    before, after: the columns of names. codes_before, codes_after: the code of the name of each row. Raises InputError
    if a name is missing or repeats, or only the table after has it.
    """
    for column, argument in ((before, "before"), (after, "after")):
        _check_row_names(column, argument)
    shared = SharedValues.from_columns(before, after)
    home_of = np.full(len(shared.labels) + 1, -1, np.int64)
    home_of[shared.before[codes_before]] = np.arange(len(codes_before))
    names = shared.after[codes_after]
    homes: npt.NDArray[np.int64] = home_of[names]
    unknown = np.flatnonzero(homes < 0)
    if len(unknown):
        raise InputError(
            f"row_id: column {before.name!r}: after has {brief(shared.labels[names[unknown[0]]].as_py())}, which "
            f"before lacks, in row {unknown[0]} (from 0). Expected rows of the table before only."
        )
    return homes


def _check_row_names(column: Column, argument: str) -> None:
    """Raise InputError if a name of a row is missing or repeats."""
    if column.missing:
        raise InputError(
            f"row_id: column {column.name!r}: {argument} has {column.missing_rows:,} rows without a value. Expected a "
            "different value in each row."
        )
    most = int(np.argmax(column.counts))
    if column.counts[most] > 1:
        raise InputError(
            f"row_id: column {column.name!r}: {argument} has {brief(column.values([most])[0])} in "
            f"{column.counts[most]:,} rows. Expected a different value in each row."
        )


def hold(table: Any, argument: str) -> Any:
    """Return a table that can be read more than once: a stream of Arrow data becomes a table. Raises InputError.

    argument: the name of the argument, for errors.
    """
    try:
        return held_table(table)
    except InputError as error:
        raise error.about(argument) from None


def choose_columns(before: Any, after: Any, columns: Any, row_id: Hashable, weights: Hashable) -> CompareRequest:
    """Return the columns that are compared. Raises InputError, ColumnNotFoundError.

    columns, row_id, weights: arguments of `gpupif.compare`; no columns are all columns of the table before.
    """
    (first, _), (second, _) = table_names(before, "before"), table_names(after, "after")
    if row_id is not None:
        check_exist("row_id", [row_id], first, "the table before")
        check_exist("row_id", [row_id], second, "the table after")
    check_weights(weights, first)
    if weights is not None and weights == row_id:
        raise InputError(
            f"weights: column {weights!r} is row_id too. Name a column that says how many people a row is."
        )
    aside = [name for name in (row_id, weights) if name is not None]
    if columns is None:
        wanted = [name for name in first if name not in aside]
        unknown = [name for name in second if name not in first]
        if unknown:
            raise InputError(
                f"after: column {brief(unknown[0])}{_more(unknown)} is not in the table before. Give it its old name, "
                "or name the columns to be compared: columns=."
            )
    else:
        wanted = [name for name in as_list("columns", columns) if name not in aside]
        check_exist("columns", wanted, first, "the table before")
    if not wanted:
        raise InputError("columns: expected at least one column to be compared, got none.")
    dropped = [name for name in wanted if name not in second]
    if len(dropped) == len(wanted):
        raise InputError(
            f"after: has none of the columns of the table before ({', '.join(map(str, wanted))}). Expected the same "
            "table, treated."
        )
    return CompareRequest(wanted, dropped, row_id, weights, weights if weights in second else None)


def _more(names: Sequence[Hashable]) -> str:
    return f" (and {len(names) - 1} more)" if len(names) > 1 else ""
