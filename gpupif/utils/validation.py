"""Arguments checked: names of columns, numbers, words."""

from __future__ import annotations

import datetime
import os
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from ..errors import ColumnNotFoundError, InputError

# Columns as functions take them: a single name, or several.
Columns = Hashable | Sequence[Hashable]
# Rows and people are counted up to it, in 64 bits.
MOST = 2**62
LENGTH = 60


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


def as_list(argument: str, columns: Any, repeats: bool = False) -> list[Hashable]:
    """Return column names as a list; a single name may stand alone, and a tuple is several.

    repeats: whether names that repeat are kept. Raises InputError for what is no name.
    """
    if columns is None:
        raise InputError(f"{argument}: expected the name of a column, or a list of them, got None.")
    alone = isinstance(columns, str | bytes) or not isinstance(columns, Iterable)
    names = [columns] if alone else list(columns)
    for name in names:
        if not is_hashable(name):
            raise InputError(f"{argument}: expected a list of column names, got {name!r} in it.")
    return names if repeats else list(dict.fromkeys(names))


def as_columns(argument: str, columns: Any, table: Any, empty: bool = False) -> list[Hashable]:
    """Return what `as_list` does, but a tuple is one name where a column of that name exists.

    table: as of `gpupif.score`. empty: whether the list may be. Raises InputError.
    """
    names = as_list(argument, [columns] if _names_a_column(columns, table) else columns)
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


def is_number(value: Any) -> bool:
    """Whether it is a real number, NaN and infinities too; a boolean is none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: Any) -> bool:
    """Whether it is a whole number, also one written as 3e7."""
    if not is_number(value) or isinstance(value, Integral):
        return is_number(value)
    try:
        return float(value).is_integer()
    except OverflowError:
        # A fraction that no float is as large as.
        return False


def within(value: Any, low: float, high: float) -> bool:
    """Whether it is a number from `low` to `high`."""
    return is_number(value) and bool(low <= value <= high)


def brief(value: Any) -> str:
    """What came, or a value of a table, as messages say it: however long, and alike in whatever library's type."""
    import numpy as np

    # These say their type beside their value: Timestamp('1999-12-31 00:00:00'), np.int64(3).
    typed = isinstance(value, (datetime.date, datetime.time, datetime.timedelta, np.generic))
    try:
        text = str(value) if typed and not isinstance(value, (str, bytes)) else repr(value)
    except ValueError:
        # Python writes no numbers of thousands of digits.
        return "a number of thousands of digits"
    return text if len(text) <= LENGTH else f"{text[:LENGTH]}..."


def whole_number(argument: str, value: Any, of: str, least: int = 1, most: int = MOST) -> int:
    """A whole number from `least` to `most`; raises InputError otherwise. of: what it counts, "" for nothing."""
    if not is_whole(value) or not least <= value <= most:
        bound = f", at most {most:.3g}" if is_whole(value) and value > most else ""
        counted = f" of {of}" if of else ""
        raise InputError(f"{argument}: expected a whole number{counted}, {least} or more{bound}; got {brief(value)}.")
    return int(value)


def share(argument: str, value: Any) -> float:
    """A number above 0 and up to 1; raises InputError otherwise."""
    if not within(value, 0, 1) or value == 0:
        raise InputError(
            f"{argument}: expected a number above 0 and up to 1, got {brief(value)}."
            + (" Divide percentages by 100." if within(value, 1, 100) else "")
        )
    return float(value)


def percents(argument: str, given: Any) -> Any:
    """Numbers from 0 to 100, one or several, as an array of so many dimensions; raises InputError otherwise."""
    import numpy as np

    try:
        array = np.asarray(given)
    except ValueError:
        # Lists of different lengths.
        array = np.asarray(None)
    if array.dtype.kind not in "iuf" or not ((array >= 0) & (array <= 100)).all():
        raise InputError(f"{argument}: expected percentiles from 0 to 100, got {brief(given)}.")
    return array.astype(np.float64)


def check_path(argument: str, path: Any, of: str) -> None:
    """Raise InputError where an argument is no path. of: what it is to be the path of."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"{argument}: expected the path of {of}, got {brief(path)}.")


def check_word(argument: str, word: Any, words: Sequence[str]) -> None:
    """Raise InputError where an argument is none of the words it may be."""
    if not isinstance(word, str) or word not in words:
        raise InputError(f"{argument}: expected {' or '.join(map(repr, words))}, got {word!r}.")


def is_hashable(value: Any) -> bool:
    """Whether a value can be a key: a list, or a tuple with one in it, cannot."""
    try:
        hash(value)
    except TypeError:
        return False
    return True
