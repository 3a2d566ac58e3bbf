"""Pooled values: numbers above or below a limit (top and bottom coding), ages over 89, and rare values."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...encoding.plain_values import text_of, texts
from ..coded_columns import ColumnValues
from ..field_checks import finite, text_or_number, whole
from ..labels import UnreadableValueError
from ..treatment import Mapper, NumberMap, Tools, TreatedTable, ValueMap
from .new_values import Numbers, kept, labels_of, numbers, typed

# The oldest age that 45 CFR 164.514(b)(2)(i)(C) allows.
OLDEST = 89
POOLED = "90+"


@dataclass(frozen=True)
class Limited(NumberMap):
    """A treatment that pools numbers beyond a limit. label: replaces the pooled numbers. Default None: the limit."""

    limit: Annotated[float, finite]
    label: Annotated[float | str | None, text_or_number] = None

    @property
    def own_labels(self) -> Sequence[str]:
        return labels_of(self.label)

    @abstractmethod
    def is_pooled(self, values: Numbers) -> npt.NDArray[np.bool_]:
        """Return whether each number is beyond the limit: booleans (values,)."""

    def mapper(self, table: TreatedTable, tools: Tools) -> Mapper:
        return pooled(self.column, self.is_pooled, self.limit if self.label is None else self.label)


@dataclass(frozen=True)
class TopCode(Limited):
    """Pool numbers above a limit (top coding).

    column: name of the column.
    limit: the largest number that is not pooled.
    label: number or text that replaces pooled numbers. Default None: the limit, which then means "this or more".

    The column keeps its type if the type can hold the label. If the label is a text, all numbers become texts. If the
    label is a number with a fraction, whole numbers become floats. Texts that are numbers count as numbers. A text
    equal to the label stays, and so do texts that treatments before put in place of numbers. Missing values stay
    missing.

    Raises InputError for another text, and ColumnTypeError for values that are no numbers.
    """

    do: ClassVar[str] = "top_code"

    def is_pooled(self, values: Numbers) -> npt.NDArray[np.bool_]:
        return values.above(self.limit)


@dataclass(frozen=True)
class BottomCode(Limited):
    """Pool numbers below a limit (bottom coding).

    column: name of the column.
    limit: the smallest number that is not pooled.
    label: number or text that replaces pooled numbers. Default None: the limit, which then means "this or less".

    Types and errors: see `TopCode`.
    """

    do: ClassVar[str] = "bottom_code"

    def is_pooled(self, values: Numbers) -> npt.NDArray[np.bool_]:
        return values.below(self.limit)


@dataclass(frozen=True)
class Cap(NumberMap):
    """Pool ages over 89 in one category, see Safe Harbor, 45 CFR 164.514(b)(2)(i)(C).

    column: name of the column.
    over: the oldest age that is not pooled. Default 89. An age of 89.5 is pooled.
    label: text or number that replaces pooled ages. A text turns all ages into texts; with a number, such as 90, ages
        stay numbers. Default "90+".

    Labels of treatments before stay. Missing values stay missing. Raises InputError for another text. Raises
    ColumnTypeError for dates, such as dates of birth: treat them by `DatePart` and then `BottomCode`.
    """

    do: ClassVar[str] = "cap"
    over: Annotated[float, finite] = OLDEST
    label: Annotated[float | str, text_or_number] = POOLED

    @property
    def own_labels(self) -> Sequence[str]:
        return labels_of(self.label)

    def mapper(self, table: TreatedTable, tools: Tools) -> Mapper:
        return pooled(self.column, lambda values: values.above(self.over), self.label)


def pooled(column: Hashable, chosen: Callable[[Numbers], npt.NDArray[np.bool_]], label: float | str) -> Mapper:
    """Return the mapper that replaces chosen numbers by a label. chosen: returns booleans (values,) for numbers."""
    mend = "Take a part of dates first (date_part), and recode other values (recode)."

    def mapper(values: pa.Array) -> pa.Array:
        if pa.types.is_null(values.type):
            return values
        own_numbers = numbers(column, values, mend)
        allowed = own_numbers.known
        if not allowed.all():
            allowed = allowed | np.asarray(pc.equal(texts(values), text_of(label)))
        if not allowed.all():
            strange = values[int(np.argmin(allowed))].as_py()
            raise UnreadableValueError(column, "numbers", strange, "Recode other values first, with unmapped = 'keep'.")
        new = typed(column, [label], values.type).take(pa.array(np.zeros(len(values), np.int64)))
        return kept(new, chosen(own_numbers), values)

    return mapper


OTHER = "other"


@dataclass(frozen=True)
class Rare(ValueMap):
    """Pool values that occur in few rows.

    column: name of the column.
    below: values in fewer rows are pooled.
    label: text or number that replaces pooled values. A column of numbers stays numeric with a number. Default "other".

    The pooled values, and values equal to the label, form a group. If the group has fewer than `below` rows, the next
    rarest values are pooled, too, until it has enough: a rare group would hide nothing. Of equally rare values, the
    first in ascending order is pooled first. Afterwards every value, and the label, occurs in at least `below` rows, or
    the label is the only value. Missing values stay missing, and are not counted.
    """

    do: ClassVar[str] = "rare"
    below: Annotated[int, whole("rows")]
    label: Annotated[float | str, text_or_number] = OTHER

    @property
    def own_labels(self) -> Sequence[str]:
        return labels_of(self.label)

    @property
    def keeps_numbers(self) -> bool:
        return bool(self.own_labels)

    def mapper(self, table: TreatedTable, tools: Tools) -> Mapper:
        values = table.values(self.column)
        pool = values.labels.filter(pa.array(pooled_values(values, int(self.below), self.label)))

        def mapper(values: pa.Array) -> pa.Array:
            new = typed(self.column, [self.label], values.type).take(pa.array(np.zeros(len(values), np.int64)))
            return kept(new, np.asarray(pc.is_in(values, pool)), values)

        return mapper


def pooled_values(values: ColumnValues, below: int, label: float | str) -> npt.NDArray[np.bool_]:
    """Return whether each value is to be pooled, see `Rare`: booleans (values,)."""
    counts = values.counts
    pooled = counts < below
    if not pooled.any():
        return pooled
    pooled |= np.asarray(pc.equal(texts(values.labels), text_of(label)))
    others = np.flatnonzero(~pooled)
    rarest = others[np.argsort(counts[others], kind="stable")]
    together = np.cumsum(np.append(counts[pooled].sum(), counts[rarest]))
    pooled[rarest[: np.searchsorted(together, below)]] = True
    return pooled
