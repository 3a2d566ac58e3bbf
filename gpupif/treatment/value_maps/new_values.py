"""Values that are given for a column, in the type that it has then."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...encoding.plain_values import texts, texts_of
from ...utils.validation import is_number, is_whole
from ..base import Mapper
from .numbers import is_finite, is_numeric

# Whole numbers below it fit into 64 bits.
LARGEST = 2**63
# Makes of different values, none missing, the new ones, null where there is none, and whether each old one has a place.
Groups = Callable[[pa.Array], tuple[pa.Array, npt.NDArray[np.bool_]]]


def typed(new: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """New values, None for a missing one, of a column of some type.

    Numbers are of its type where it holds them all, else whole numbers or floats; booleans are these; texts, and what
    is not all of one kind, are texts.
    """
    values = [value for value in new if value is not None]
    if not values:
        return pa.nulls(len(new), kind)
    if all(map(is_number, values)):
        if pa.types.is_floating(kind):
            return pa.array(new, kind)
        if all(is_whole(value) and abs(value) < LARGEST for value in values):
            return pa.array([None if value is None else int(value) for value in new])
        return pa.array(new, pa.float64())
    if all(isinstance(value, bool) for value in values):
        return pa.array(new)
    written = iter(texts_of(values))
    return pa.array([None if value is None else next(written) for value in new])


def kept(new: pa.Array, placed: npt.NDArray[np.bool_], values: pa.Array) -> pa.Array:
    """The new values where there is a place for the old ones, else these.

    Of one type where both are, or numbers; else texts.
    """
    if pa.types.is_integer(new.type) and pa.types.is_integer(values.type):
        with contextlib.suppress(pa.ArrowInvalid):
            new = new.cast(values.type)
    if new.type != values.type:
        if is_numeric(new.type) and is_numeric(values.type):
            new, values = new.cast(pa.float64(), safe=False), values.cast(pa.float64(), safe=False)
        else:
            new, values = texts(new), texts(values)
    return pc.if_else(pa.array(placed), new, values)


def looked_up(old: pa.Array, new: pa.Array) -> Mapper:
    """Puts new values in the place of the old ones of a table."""
    return lambda values: new.take(pc.index_in(values, old.cast(values.type)))


def unchanged(values: pa.Array) -> pa.Array:
    """A mapper of a column that no row has a value of."""
    return values


def is_plain(value: Any) -> bool:
    """Whether something given is a text, a number or a boolean, which every document of a plan can hold."""
    return isinstance(value, str | bool) or is_finite(value)
