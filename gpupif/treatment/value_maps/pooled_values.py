"""Values that are pooled: numbers above or below a limit (top and bottom coding), ages over 89, rare values."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...encoding.plain_values import text_of, texts
from ...errors import InputError
from ...utils.validation import brief, whole_number
from ..coded_columns import ColumnValues
from ..treatment import Mapper, Tools, TreatedTable, ValueMap
from .new_values import Numbers, is_finite, kept, numbers, typed

# The oldest age that 45 CFR 164.514(b)(2)(i)(C) lets stand.
OLDEST = 89
POOLED = "90+"


@dataclass(frozen=True)
class Limited(ValueMap):
    """A treatment that pools numbers beyond a limit. label: what stands for them; None: the limit."""

    limit: float
    label: float | str | None = None

    @abstractmethod
    def is_pooled(self, found: Numbers) -> npt.NDArray[np.bool_]:
        """Which numbers are beyond the limit."""

    def check(self) -> None:
        check_limit(self.do, self.column, "limit", self.limit)
        check_label(self.do, self.column, self.limit if self.label is None else self.label)

    def mapper(self, table: TreatedTable, tools: Tools) -> Mapper:
        return pooled(self.column, self.is_pooled, self.limit if self.label is None else self.label)


@dataclass(frozen=True)
class TopCode(Limited):
    """Pool numbers above a limit (top coding).

    limit: the largest number that stands as it is. label: what stands for those above it, a number or a text; default
    the limit itself, which then means "this or more".

    The column keeps its type, unless the label is none of it: with a text as label all numbers become texts, and with
    one that has a fraction whole numbers become floats. A text that is a number counts as that, and one that is the
    label stands. Raises InputError for another text, ColumnTypeError for values that are no numbers.
    """

    do: ClassVar[str] = "top_code"

    def is_pooled(self, found: Numbers) -> npt.NDArray[np.bool_]:
        return found.above(self.limit)


@dataclass(frozen=True)
class BottomCode(Limited):
    """Pool numbers below a limit (bottom coding).

    limit: the smallest number that stands as it is. label: what stands for those below it; see `TopCode`.
    """

    do: ClassVar[str] = "bottom_code"

    def is_pooled(self, found: Numbers) -> npt.NDArray[np.bool_]:
        return found.below(self.limit)


@dataclass(frozen=True)
class Cap(ValueMap):
    """Pool ages over 89 in one category, as 45 CFR 164.514(b)(2)(i)(C) of Safe Harbor has it.

    over: the oldest age that stands. label: of those above it; a text, which makes texts of the other ages, or a number
    such as 90, with which they stay numbers. Of ages with a fraction those above `over` itself are pooled.

    Raises ColumnTypeError for dates, of birth perhaps: these are treated by `DatePart` and then `BottomCode`.
    """

    do: ClassVar[str] = "cap"
    over: float = OLDEST
    label: float | str = POOLED

    def check(self) -> None:
        check_limit(self.do, self.column, "over", self.over)
        check_label(self.do, self.column, self.label)

    def mapper(self, table: TreatedTable, tools: Tools) -> Mapper:
        return pooled(self.column, lambda found: found.above(self.over), self.label)


def check_limit(do: str, column: Hashable, name: str, limit: object) -> None:
    """Raise InputError for a limit that is no number."""
    if not is_finite(limit):
        raise InputError(f"{do}: column {column!r}: {name}: expected a number, got {brief(limit)}.")


def check_label(do: str, column: Hashable, label: object) -> None:
    """Raise InputError for a label that is neither a text nor a number."""
    if not (isinstance(label, str) or is_finite(label)):
        raise InputError(f"{do}: column {column!r}: label: expected a text or a number, got {brief(label)}.")


def pooled(column: Hashable, chosen: Callable[[Numbers], npt.NDArray[np.bool_]], label: float | str) -> Mapper:
    """Puts a label in the place of the numbers that are chosen."""
    mend = "Of dates take a part first (date_part), of other values groups (recode)."

    def mapper(values: pa.Array) -> pa.Array:
        if pa.types.is_null(values.type):
            return values
        found = numbers(column, values, mend)
        stand = found.known
        if not stand.all():
            stand = stand | np.asarray(pc.equal(texts(values), text_of(label)))
        if not stand.all():
            strange = values[int(np.argmin(stand))].as_py()
            raise InputError(
                f"column {column!r}: expected numbers, got {brief(strange)}. Recode what is none first, with "
                "unmapped='keep'."
            )
        which = chosen(found)
        new = typed([label], values.type).take(pa.array(np.zeros(len(values), np.int64)))
        return kept(new, which, values)

    return mapper


OTHER = "other"


@dataclass(frozen=True)
class Rare(ValueMap):
    """Pool values that are in few rows.

    below: values in fewer rows are pooled. label: what stands for them, a text or a number; a number leaves a column of
    numbers one.

    Where the pooled values together, and those that were the label before, are in fewer rows than `below` still, the
    next rarest are pooled with them until they are not (of equally rare ones the first in ascending order): a group
    that is rare itself would hide nothing. So every value that there is then, the label too, is in at least `below`
    rows, or it is the only one. Missing values stay missing, however few they are, and count for nothing.
    """

    do: ClassVar[str] = "rare"
    below: int
    label: float | str = OTHER

    def check(self) -> None:
        whole_number(f"rare: column {self.column!r}: below", self.below, "rows")
        check_label(self.do, self.column, self.label)

    def mapper(self, table: TreatedTable, tools: Tools) -> Mapper:
        values = table.values(self.column)
        pool = values.labels.filter(pa.array(pooled_values(values, int(self.below), self.label)))

        def mapper(values: pa.Array) -> pa.Array:
            new = typed([self.label], values.type).take(pa.array(np.zeros(len(values), np.int64)))
            return kept(new, np.asarray(pc.is_in(values, pool)), values)

        return mapper


def pooled_values(values: ColumnValues, below: int, label: float | str) -> npt.NDArray[np.bool_]:
    """Which values are to be pooled, see `Rare`."""
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
