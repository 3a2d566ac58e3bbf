"""Column names in arguments, checked against those of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from ..errors import ColumnNotFoundError, InputError


def check_unique(names: Sequence[Hashable], argument: str = "table") -> None:
    """Raise InputError where column names repeat. argument: whose names they are."""
    repeated = [str(name) for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise InputError(
            f"{argument}: expected different column names, repeated are {', '.join(repeated)}. Rename them."
        )


def check_exist(argument: str, given: Iterable[Hashable], names: Sequence[Hashable], where: str = "the table") -> None:
    """Raise ColumnNotFoundError for names in `given` that are not among `names`, those of `where`."""
    existing = set(names)
    unknown = [name for name in given if name not in existing]
    if unknown:
        raise ColumnNotFoundError(argument, unknown, names, where)


def as_list(argument: str, columns: Sequence[Hashable]) -> list[Hashable]:
    """Column names as a list without repeats; a bare string is more likely a slip than a list of letters."""
    if isinstance(columns, str | bytes) or not isinstance(columns, Iterable):
        raise InputError(f"{argument}: expected a list of column names, got {columns!r}. Write [{columns!r}].")
    columns = list(columns)
    for column in columns:
        if not isinstance(column, Hashable):
            raise InputError(f"{argument}: expected a list of column names, got {column!r} in it.")
    return list(dict.fromkeys(columns))


def as_columns(argument: str, columns: Any, table: Any, empty: bool = False) -> list[Hashable]:
    """As `as_list`, but a single name may stand alone; a tuple is a list of names, unless a column of that name exists.

    table: as of `gpupif.score`. empty: whether the list may be. Raises InputError.
    """
    alone = isinstance(columns, str | bytes) or not isinstance(columns, Iterable) or _names_a_column(columns, table)
    names = as_list(argument, [columns] if alone else columns)
    if not names and not empty:
        raise InputError(f"{argument}: expected at least one column, got an empty list.")
    return names


def _names_a_column(columns: Any, table: Any) -> bool:
    """Whether it is a tuple that a column is named by, which only DataFrames of pandas and cuDF have."""
    return isinstance(columns, tuple) and hasattr(table, "iloc") and columns in list(table.columns)


def as_mapping(
    argument: str, given: Any, names: Sequence[Hashable], used: Sequence[Hashable], table: bool = True
) -> Mapping[Any, Any]:
    """A dictionary by column name (None: an empty one), all of columns that are scored or known.

    table: whether it might also have come as a table.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError(
            f"{argument}: expected a dictionary by column name{', or a table or the path of one' * table}, got "
            f"{type(given).__name__}."
        )
    check_exist(argument, given, names)
    idle = [name for name in given if name not in used]
    if idle:
        raise InputError(
            f"{argument}: column {idle[0]!r} is neither scored nor known, so it would be ignored. "
            "Add it to columns= or leave it out."
        )
    return given


def check_weights(weights: Any, names: Sequence[Hashable]) -> None:
    """Raise InputError where `weights` is no column's name."""
    if weights is None:
        return
    if not isinstance(weights, Hashable):
        raise InputError(
            f"weights: expected the name of a column of the table, got {type(weights).__name__}. Add the weights to "
            "the table as a column."
        )
    check_exist("weights", [weights], names)
