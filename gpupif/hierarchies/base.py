"""What a hierarchy of the values of a column is."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError
from ..utils.validation import brief

# The name of the group of all cells, unless a hierarchy has its own; ARX's convention.
ANYTHING = "*"


class Hierarchy(ABC):
    """The groups of the values of a column, level by level; a function of the values alone, whatever table has them.

    At level 0 values stay as they are. At level `height`, the top, all cells are one group, those without a value too.
    Levels nest: what is one group at a level is one at all above. Below the top, missing values stay missing.

    height: of the top, at least 1. root: the name of the group at the top. column: whose values they are, which errors
    name. expected: what a value has to be, in words.
    """

    root: str = ANYTHING
    column: Hashable = None
    expected: str = "another value"

    @property
    @abstractmethod
    def height(self) -> int:
        """The level at which all cells are one group."""

    @abstractmethod
    def find(self, values: pa.Array, level: int) -> pa.Array:
        """As `groups`, null for a value that has no place in the hierarchy, at the top too; values: at least one."""

    @abstractmethod
    def to_plan(self) -> Any:
        """What stands for it in a plan: text, numbers, lists and dictionaries of such."""

    def groups_or_null(self, values: pa.Array, level: int) -> pa.Array:
        """As `groups`, null for a value that has no place in the hierarchy."""
        if not len(values):
            return pa.array([], pa.string())
        return self.find(plain_array(values), level)

    def groups(self, values: pa.Array, level: int, mend: str = "") -> pa.Array:
        """Return the names (text) of the groups of some different values, none missing, at level 1 to `height`.

        Raises InputError for a value that has no place in the hierarchy, naming it. mend: what else can be done then.
        """
        found = self.groups_or_null(values, level)
        if found.null_count:
            self._refuse(values.filter(pc.is_null(found)), mend)
        return found

    def _refuse(self, values: pa.Array, mend: str) -> None:
        more = f" and {len(values) - 1:,} more" if len(values) > 1 else ""
        raise InputError(
            f"{self.said}: {brief(values[0].as_py())}{more} {'have' if more else 'has'} no place in its hierarchy; "
            f"expected {self.expected}. Give values that have none a place there{mend}."
        )

    @property
    def said(self) -> str:
        """What errors call it."""
        return "hierarchies" if self.column is None else f"hierarchies: column {self.column!r}"

    def of(self, column: Hashable) -> Self:
        """The same hierarchy, of a column."""
        named = copy.copy(self)
        object.__setattr__(named, "column", column)
        return named


def plain_array(values: pa.Array) -> pa.Array:
    """Values without extension types, views and dictionaries."""
    if isinstance(values.type, pa.BaseExtensionType):
        return plain_array(values.storage)
    if pa.types.is_dictionary(values.type):
        return plain_array(values.dictionary_decode())
    if pa.types.is_string_view(values.type) or pa.types.is_large_string(values.type):
        return values.cast(pa.string())
    return values


def everything(placed: pa.Array) -> pa.Array:
    """Return the groups at the top: ``*`` for each value that is placed, null for others. placed: booleans."""
    return pc.if_else(placed, pa.scalar(ANYTHING), pa.scalar(None, pa.string()))
