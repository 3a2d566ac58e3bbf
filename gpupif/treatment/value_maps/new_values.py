"""Values that are given for a column, in the type that it has then."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...encoding.texts import text_of, texts
from ...utils.validation import is_number, is_whole
from .numbers import is_text

# Makes of different values, none missing, the new ones, null where there is none, and whether each old one has a place.
Groups = Callable[[pa.Array], tuple[pa.Array, npt.NDArray[np.bool_]]]


def typed(new: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """New values, None for a missing one, of a column of some type: its type where it holds them, else that of all of
    them, or texts.
    """
    values = [value for value in new if value is not None]
    if not values:
        return pa.nulls(len(new), kind)
    if all(map(is_number, values)):
        if pa.types.is_floating(kind) or (pa.types.is_integer(kind) and all(map(is_whole, values))):
            with contextlib.suppress(pa.ArrowException, OverflowError):
                return pa.array(new, kind)
        return pa.array(new)
    if len({type(value) for value in values}) == 1 and not isinstance(values[0], str):
        return pa.array(new)
    return pa.array(
        [None if value is None else text_of(value) for value in new], kind if is_text(kind) else pa.string()
    )


def kept(new: pa.Array, placed: npt.NDArray[np.bool_], values: pa.Array) -> pa.Array:
    """The new values where there is a place for the old ones, else these; texts unless both are of one type."""
    if new.type != values.type:
        values = texts(values)
        new = texts(new).cast(values.type)
    return pc.if_else(pa.array(placed), new, values)


def is_value(value: Any) -> bool:
    """Whether something given is a single value that a column can have."""
    return isinstance(value, str | bool | datetime.date | Decimal) or (is_number(value) and value == value)
