"""Checks of arguments: names of columns, numbers, words and paths; `errors.py` words the error for unknown columns."""

from __future__ import annotations

import datetime
import os
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from ..errors import ColumnNotFoundError, InputError, marked

# Columns as functions take them: a single name, or several.
Columns = Hashable | Sequence[Hashable]
# The most rows or people that are counted, in 64 bits.
MOST = 2**62
# Characters of a value that messages show.
LENGTH = 60


def check_unique(names: Sequence[Hashable], argument: str = "table") -> None:
    """Raise InputError if column names repeat. argument: the name of the table in the message."""
    repeated = [str(name) for name, number in Counter(names).items() if number > 1]
    if repeated:
        raise InputError(
            f"{argument}: expected different column names, repeated are {', '.join(repeated)}. Rename them."
        )


def check_exist(argument: str, given: Iterable[Hashable], names: Sequence[Hashable], where: str = "the table") -> None:
    """Raise ColumnNotFoundError for names in `given` that are not in `names`, the columns of `where`."""
    existing = set(names)
    unknown = [name for name in given if name not in existing]
    if unknown:
        raise ColumnNotFoundError(argument, unknown, names, where)


def as_list(argument: str, columns: Any) -> list[Hashable]:
    """Return column names as a list. columns: a name, or an iterable of names; a tuple is an iterable.

    Raises InputError for None, for a value that cannot be a name, and for a column that is named twice.
    """
    names = list_names(argument, columns)
    twice = [name for name, number in Counter(names).items() if number > 1]
    if twice:
        raise InputError(f"{argument}: column {twice[0]!r} is named twice. Name it once.")
    return names


def list_names(argument: str, columns: Any) -> list[Hashable]:
    """Return column names as `as_list` does, in which a name may stand twice."""
    if columns is None:
        raise InputError(f"{argument}: expected the name of a column, or a list of them, got None.")
    alone = isinstance(columns, str | bytes) or not isinstance(columns, Iterable)
    names = [columns] if alone else list(columns)
    for name in names:
        if not is_hashable(name):
            raise InputError(f"{argument}: expected a list of column names, got {name!r} in it.")
    return names


def as_columns(argument: str, columns: Any, table: Any, empty: bool = False) -> list[Hashable]:
    """Return column names as a list, see `as_list`. A tuple is a single name if the table has a column of that name.

    table: a table as `gpupif.score` takes it. empty: whether the list may be empty. Default: False. Raises InputError.
    """
    # A tuple may be the name of a column, which only DataFrames of pandas and cuDF can have.
    is_name = isinstance(columns, tuple) and hasattr(table, "iloc") and columns in list(table.columns)
    names = as_list(argument, [columns] if is_name else columns)
    if not names and not empty:
        raise InputError(f"{argument}: expected at least one column, got an empty list.")
    return names


def check_not_known(sensitive: Iterable[Hashable], known: Iterable[Hashable]) -> None:
    """Raise InputError for a sensitive attribute that is a quasi-identifier too."""
    quasi_identifiers = set(known)
    for name in sensitive:
        if name in quasi_identifiers:
            raise InputError(
                f"sensitive: column {name!r} is a quasi-identifier too: the attacker knows it, so there is nothing "
                "left to learn. Name it in one of them only."
            )


def as_mapping(
    argument: str, given: Any, names: Sequence[Hashable], used: Sequence[Hashable], table: bool = True
) -> Mapping[Any, Any]:
    """Return a dictionary by column name; None becomes an empty dictionary.

    names: the columns of the table. used: the columns that are scored or known. table: whether the argument may also
    be a table, which the message then says. Raises InputError for another type, and for a column that is not used.
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
    """Raise InputError unless `weights` is None or the name of a column."""
    if weights is None:
        return
    if not isinstance(weights, Hashable):
        raise InputError(
            f"weights: expected the name of a column of the table, got {type(weights).__name__}. Add the weights to "
            "the table as a column."
        )
    check_exist("weights", [weights], names)


def is_number(value: Any) -> bool:
    """Return whether a value is a real number that a float can hold, also NaN or infinite; a boolean is no number.

    10**400 would overflow, and a fraction of one over it would become 0.
    """
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and bool(float(value)) == bool(value)
    except OverflowError:
        return False


def is_whole(value: Any) -> bool:
    """Return whether a value is a whole number, also a float such as 3e7."""
    if isinstance(value, Integral):
        return not isinstance(value, bool)
    return is_number(value) and float(value).is_integer()


def within(value: Any, low: float, high: float) -> bool:
    """Return whether a value is a number from `low` to `high`."""
    return is_number(value) and bool(low <= value <= high)


def brief(value: Any) -> str:
    """Return a value as messages show it: its first `LENGTH` characters, and alike for the types of all libraries."""
    import numpy as np

    # The `repr` of these has their type: Timestamp('1999-12-31 00:00:00'), np.int64(3).
    typed = isinstance(value, (datetime.date, datetime.time, datetime.timedelta, np.generic))
    try:
        text = str(value) if typed and not isinstance(value, (str, bytes)) else repr(value)
    except ValueError:
        # Python refuses to write a number of thousands of digits.
        return "a number of thousands of digits"
    return text if len(text) <= LENGTH else f"{text[:LENGTH]}..."


def table_value(value: Any) -> str:
    """Return a value of a table as messages show it, see `brief`; marked, so that a message can leave it out."""
    return marked(brief(value))


def whole_number(argument: str, value: Any, noun: str, least: int = 1, most: int = MOST) -> int:
    """Return a whole number from `least` to `most` as an int; raises InputError for any other value.

    noun: the noun of the things that are counted, for the message; "" if nothing is counted.
    """
    if not is_whole(value) or not least <= value <= most:
        bound = f", at most {most:.3g}" if is_whole(value) and value > most else ""
        counted = f" of {noun}" if noun else ""
        raise InputError(f"{argument}: expected a whole number{counted}, {least} or more{bound}; got {brief(value)}.")
    return int(value)


def share(argument: str, value: Any) -> float:
    """Return a number above 0 and up to 1 as a float; raises InputError for any other value."""
    if not within(value, 0, 1) or value == 0:
        raise InputError(
            f"{argument}: expected a number above 0 and up to 1, got {brief(value)}."
            + (" Divide percentages by 100." if within(value, 1, 100) else "")
        )
    return float(value)


def percents(argument: str, given: Any) -> Any:
    """Return percentiles as an array of float64, with the dimensions of `given`: none for a number, one for a list.

    Raises InputError for a value that is no number from 0 to 100.
    """
    import numpy as np

    try:
        array = np.asarray(given)
    except ValueError:
        # NumPy refuses lists of different lengths.
        array = np.asarray(None)
    if array.dtype.kind not in "iuf" or not ((array >= 0) & (array <= 100)).all():
        raise InputError(f"{argument}: expected percentiles from 0 to 100, got {brief(given)}.")
    return array.astype(np.float64)


def check_path(argument: str, path: Any, noun: str) -> None:
    """Raise InputError if an argument is no path. noun: the thing that it should be the path of, for the message."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"{argument}: expected the path of {noun}, got {brief(path)}.")


def check_word(argument: str, word: Any, words: Sequence[str]) -> None:
    """Raise InputError unless an argument is a word in `words`."""
    if not isinstance(word, str) or word not in words:
        raise InputError(f"{argument}: expected {' or '.join(map(repr, words))}, got {word!r}.")


def is_hashable(value: Any) -> bool:
    """Return whether a value can be a key of a dictionary: a list cannot, nor a tuple with a list in it."""
    try:
        hash(value)
    except TypeError:
        return False
    return True
