"""The abstract class of hierarchies, texts of values, and the check of a level."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..attack.priors import plain_value, texts_of
from ..encoding.plain_values import text_of, texts
from ..errors import InputError, did_you_mean
from ..utils.validation import brief, is_whole, table_value

# The name of the group of all cells, unless a hierarchy has its own name for it. ARX uses it too.
ANYTHING = "*"


class Hierarchy(ABC):
    """Groups of the values of a column, level by level. The groups depend on the values alone, not on a table.

    At level 0 each value stays as it is. At level `height`, the top, all cells are one group, also cells without a
    value. Levels nest: values of one group at a level are one group at all higher levels. Below the top, missing values
    stay missing.

    height: int. The highest level, at least 1.
    root: str. The name of the group at the top.
    column: The column that has the values; errors name it.
    expected: str. The values that have a place, in words.
    mend: str. What to do about values without a place, in words, without a full stop.
    """

    root: str = ANYTHING
    column: Hashable = None
    expected: str = "another value"
    mend: str = "Give values that have none a place there"

    @property
    @abstractmethod
    def height(self) -> int:
        """The level at which all cells are one group."""

    @abstractmethod
    def find(self, values: pa.Array, level: int) -> pa.Array:
        """Return the group of each value as `groups` does, null for a value without a place, also at the top.

        values: at least one, none missing.
        """

    @abstractmethod
    def to_plan(self) -> Any:
        """Return the hierarchy as it is written in a plan: text, numbers, lists and dictionaries."""

    def groups_or_null(self, values: pa.Array, level: int) -> pa.Array:
        """Return the group of each value as `groups` does, null for a value without a place in the hierarchy."""
        if not len(values):
            return pa.array([], pa.string())
        return self.find(plain_array(values), level)

    def groups(self, values: pa.Array, level: int, mend: str = "") -> pa.Array:
        """Return the name (text) of the group of each value at a level from 1 to `height`.

        values: distinct, none missing. mend: more advice on a value without a place, for the error.
        Raises InputError for a value that has no place in the hierarchy.
        """
        names = self.groups_or_null(values, level)
        if names.null_count:
            self._refuse(values.filter(pc.is_null(names)), mend)
        return names

    def _refuse(self, values: pa.Array, mend: str) -> None:
        more = f" and {len(values) - 1:,} more" if len(values) > 1 else ""
        raise InputError(
            f"{self.said}: {table_value(values[0].as_py())}{more} {'have' if more else 'has'} no place in its "
            f"hierarchy; expected {self.expected}. {self.mend}{mend}."
        )

    def leaves(self, level: int) -> Mapping[str, int] | None:
        """Return how many values each group at a level from 1 has; None if the hierarchy does not list its values."""
        return None

    @property
    def said(self) -> str:
        """The name of the hierarchy in errors."""
        return "hierarchies" if self.column is None else f"hierarchies: column {self.column!r}"

    def for_column(self, column: Hashable) -> Self:
        """Return the same hierarchy for another column."""
        named = copy.copy(self)
        object.__setattr__(named, "column", column)
        return named


def plain_array(values: pa.Array) -> pa.Array:
    """Return the values without extension types, views and dictionaries."""
    if isinstance(values.type, pa.BaseExtensionType):
        return plain_array(values.storage)
    if pa.types.is_dictionary(values.type):
        return plain_array(values.dictionary_decode())
    if pa.types.is_string_view(values.type) or pa.types.is_large_string(values.type):
        return values.cast(pa.string())
    return values


def everything(placed: pa.Array) -> pa.Array:
    """Return the groups at the top: ``*`` for a value that has a place, else null. placed: whether it has, by value."""
    return pc.if_else(placed, pa.scalar(ANYTHING), pa.scalar(None, pa.string()))


def as_texts(said: str, given: Iterable[Hashable]) -> list[str]:
    """Return values, or names, as texts. said: their name in errors. Raises InputError for a value without a text."""
    return [value if isinstance(value, str) else _as_text(said, value) for value in given]


def _as_text(said: str, value: Any) -> str:
    value = plain_value(value)
    try:
        if value is not None:
            return text_of(value)
    except pa.ArrowException:
        pass
    raise InputError(f"{said}: expected text, numbers, dates and the like, got {brief(value)}.")


def text_places(values: pa.Array, keys: pa.Array) -> npt.NDArray[np.int64]:
    """Return for each value the place of its text in `keys`, -1 if its text is not there. keys: distinct texts.

    A value may have more than one text, as in the priors of `gpupif.score`: 39.0 also has the text "39".
    """
    places: npt.NDArray[np.int64] = np.asarray(pc.index_in(texts(values), keys).fill_null(-1)).astype(np.int64)
    kind = values.type
    unknown = np.flatnonzero(places < 0)
    if pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_date32(kind) or not len(unknown):
        return places
    place_of = {text: place for place, text in enumerate(keys.to_pylist())}
    for place, value in zip(unknown, values.take(pa.array(unknown)).to_pylist(), strict=True):
        known = (place_of[text] for text in texts_of(plain_value(value)) if text in place_of)
        places[place] = next(known, -1)
    return places


def hierarchy_with_level(hierarchies: Mapping[Hashable, Hierarchy], column: Hashable, level: Any) -> Hierarchy:
    """Return the hierarchy of a column. Raises InputError if there is none, or if it has no such level."""
    if column not in hierarchies:
        listed = f" There are some for {', '.join(map(repr, hierarchies))}." if hierarchies else ""
        raise InputError(
            f"level: column {column!r} has no hierarchy.{did_you_mean(str(column), map(str, hierarchies))}{listed} If "
            "the name is right, add one to the hierarchies of the plan, such as { widths = [5, 10, 20] } for numbers."
        )
    hierarchy = hierarchies[column]
    if not is_whole(level) or not 0 <= level <= hierarchy.height:
        raise InputError(
            f"level: expected a whole number from 0 to {hierarchy.height}, the top of the hierarchy of {column!r}; got "
            f"{brief(level)}."
        )
    return hierarchy
