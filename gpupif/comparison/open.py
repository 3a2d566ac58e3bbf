"""Two tables, of any kinds, as aligned tables, and what is compared of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from ..errors import InputError
from ..frames.dask_frame import is_dask
from ..frames.open import held_table, table_names
from ..utils.progress import Reporter
from ..utils.validation import as_list, brief, check_exist
from .aligned import AlignedTables, CompareRequest, FindKept


def open_aligned(
    before: Any, after: Any, request: CompareRequest, report: Reporter, find_kept: FindKept | None
) -> AlignedTables:
    """Open tables of any kinds, on Dask where either is a Dask frame. Raises what `gpupif.compare` does."""
    if is_dask(before) or is_dask(after):
        from .dask import DaskTables

        return DaskTables(before, after, request, find_kept)
    from .local import LocalTables

    return LocalTables(before, after, request, report, find_kept)


def hold(table: Any, argument: str) -> Any:
    """Return the table, to be read more than once: a stream of Arrow data as a table. Raises InputError."""
    try:
        return held_table(table)
    except InputError as error:
        raise error.about(argument) from None


def request_of(before: Any, after: Any, columns: Any, row_id: Hashable) -> CompareRequest:
    """What is compared; raises InputError, ColumnNotFoundError.

    columns: those that are compared; None: all of the table before.
    """
    (first, _), (second, _) = table_names(before, "before"), table_names(after, "after")
    if row_id is not None:
        check_exist("row_id", [row_id], first, "the table before")
        check_exist("row_id", [row_id], second, "the table after")
    if columns is None:
        wanted = [name for name in first if row_id is None or name != row_id]
        strange = [name for name in second if name not in first]
        if strange:
            raise InputError(
                f"after: column {brief(strange[0])}{_more(strange)} is not among those before. Rename it as it was, or "
                "name the columns to be compared: columns=."
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
