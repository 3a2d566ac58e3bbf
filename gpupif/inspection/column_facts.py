"""The facts of a column, from its values and how often each occurs: the same for tables in memory, in files, on Dask.

The different values may come in several parts, each value in one part; the facts of all parts add up to the same.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..encoding.column import Column, amounts
from ..encoding.merge import ValueCounts
from ..utils.exact_sums import ExactSum
from ..utils.information import LogSum, Sizes

# Of a column so many different values are looked at, where it has more: those of the lowest hashes.
LOOKED_AT = 1000
# So much of a text is looked at.
LONGEST = 10_000
# Values that are hashed at once: as objects of Python, for texts, they take several times the memory.
HASHED = 1 << 16

# How a number is written: an identifier or a postcode may begin with 0.
NUMBER_TEXT = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"

TEXT, CATEGORY, WHOLE, NUMBER, BOOLEAN = "text", "category", "whole number", "number", "boolean"
DATE, MOMENT, TIME, SPAN, NOTHING, OTHER = "date", "date and time", "time", "time span", "nothing", "other"
# Of which kind values are, by Arrow's type.
KINDS: Sequence[tuple[str, Callable[[pa.DataType], bool]]] = (
    (BOOLEAN, pa.types.is_boolean),
    (WHOLE, pa.types.is_integer),
    (NUMBER, pa.types.is_floating),
    (NUMBER, pa.types.is_decimal),
    (TEXT, pa.types.is_string),
    (TEXT, pa.types.is_large_string),
    (DATE, pa.types.is_date),
    (MOMENT, pa.types.is_timestamp),
    (TIME, pa.types.is_time),
    (SPAN, pa.types.is_duration),
    (NOTHING, pa.types.is_null),
)


class Sample(NamedTuple):
    """Different values of a column, as texts: those of the lowest hashes, in their order, at most `LOOKED_AT`.

    The hashes are of the values alone, so it is the same sample whatever the order of the rows and the parts of the
    table, and as good as drawn at random.
    """

    hashes: list[int]
    texts: list[str]

    @classmethod
    def from_values(cls, values: pa.Array, kind: str) -> Sample:
        """Return the sample of different values that are text or numbers; an empty one for others."""
        if kind not in (TEXT, WHOLE, NUMBER) or not len(values):
            return cls([], [])
        hashes = value_hashes(values)
        if len(hashes) > LOOKED_AT:
            least = np.flatnonzero(hashes <= np.partition(hashes, LOOKED_AT - 1)[LOOKED_AT - 1])
            hashes, values = hashes[least], values.take(pa.array(least))
        return cls._lowest(zip(hashes.tolist(), map(_as_text, values.to_pylist()), strict=True))

    @classmethod
    def total(cls, parts: Iterable[Sample]) -> Sample:
        """Return the sample of the values of several parts."""
        return cls._lowest(pair for part in parts for pair in zip(part.hashes, part.texts, strict=True))

    @classmethod
    def _lowest(cls, pairs: Iterable[tuple[int, str]]) -> Sample:
        lowest = heapq.nsmallest(LOOKED_AT, pairs)
        return cls([one for one, _ in lowest], [text for _, text in lowest])


def value_hashes(values: pa.Array) -> npt.NDArray[np.uint64]:
    """A hash of each value, of any type; the same for numbers that are equal, whole or not."""
    hashes = np.empty(len(values), np.uint64)
    for start in range(0, len(values), HASHED):
        some = values.slice(start, HASHED)
        hashes[start : start + HASHED] = pd.util.hash_array(_hashable(some), categorize=False)
    return hashes


def _hashable(values: pa.Array) -> npt.NDArray[Any]:
    """Values as NumPy has them: numbers as floats, points in time and spans as whole numbers, others as objects."""
    kind = kind_of(values.type)
    if kind in (WHOLE, NUMBER, BOOLEAN):
        values = values.cast(pa.float64(), safe=False)
    elif kind in (DATE, MOMENT, TIME, SPAN):
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    return values.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _as_text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)[:LONGEST]


class Range(NamedTuple):
    """The least and the greatest of some numbers, whether all are whole, and their sum over the rows; None of none."""

    low: float
    high: float
    whole: bool
    total: ExactSum

    @classmethod
    def from_numbers(cls, numbers: npt.NDArray[np.float64] | None, counts: npt.NDArray[np.int64]) -> Range | None:
        """Return the range of numbers, at least one, with their counts; infinite ones are not whole, and in no sum."""
        if numbers is None:
            return None
        finite = np.isfinite(numbers)
        whole = bool(finite.all() and (numbers == np.floor(numbers)).all())
        total = ExactSum.of(numbers[finite], counts[finite])
        return cls(float(numbers.min()), float(numbers.max()), whole, total)

    @classmethod
    def combine(cls, parts: Iterable[Range | None]) -> Range | None:
        """Return the range of several parts; None if a part has other values than numbers."""
        every = list(parts)
        some = [part for part in every if part is not None]
        if not some or len(some) < len(every):
            return None
        low, high = min(part.low for part in some), max(part.high for part in some)
        return cls(low, high, all(part.whole for part in some), ExactSum.total(part.total for part in some))


NO_LOGS, NO_SAMPLE = LogSum(0), Sample([], [])


@dataclass(frozen=True)
class ColumnFacts:
    """The facts of a column.

    kind: of the values, such as `TEXT`. distinct: how many differ, missing ones left out; once: how many of these
    occur once. missing: rows without a value. log_sum: of how often each occurs, all missing ones as one value. range:
    of numbers. sample: see `Sample`. days: whether all points in time are midnights.
    """

    kind: str
    distinct: int = 0
    once: int = 0
    missing: int = 0
    log_sum: LogSum = NO_LOGS
    rows: int = 0
    range: Range | None = None
    sample: Sample = NO_SAMPLE
    days: bool = True

    @classmethod
    def from_values(cls, values: ValueCounts) -> ColumnFacts:
        """Return the facts of different values, or of a part of them."""
        labels, counts = values.labels, values.counts
        kind = kind_of(labels.type) if len(labels) else NOTHING
        occurs = counts if values.missing == 0 else np.append(counts, values.missing)
        return cls(
            kind,
            len(labels),
            int((counts == 1).sum()),
            values.missing,
            Sizes.of(occurs).log_sum(),
            int(occurs.sum()),
            Range.from_numbers(_numbers(labels, kind), counts),
            Sample.from_values(labels, kind),
            kind != MOMENT or _are_days(labels),
        )

    @classmethod
    def total(cls, parts: Sequence[ColumnFacts]) -> ColumnFacts:
        """Return the facts of values of one type that came in several parts, at least one, each value in one part."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            next((part.kind for part in parts if part.kind != NOTHING), NOTHING),
            sum(part.distinct for part in parts),
            sum(part.once for part in parts),
            sum(part.missing for part in parts),
            LogSum.total(part.log_sum for part in parts),
            sum(part.rows for part in parts),
            Range.combine(part.range for part in parts if part.distinct),
            Sample.total(part.sample for part in parts),
            all(part.days for part in parts),
        )

    @property
    def type(self) -> str:
        """The type of the values.

        Texts of numbers are numbers; numbers are whole numbers if all are whole; midnights are dates; texts that occur
        twice or more on average are categories.
        """
        if self.range is not None:
            return WHOLE if self.range.whole else NUMBER
        if self.kind == TEXT and 2 * self.distinct <= self.rows - self.missing:
            return CATEGORY
        return DATE if self.kind == MOMENT and self.days else self.kind

    @property
    def is_text(self) -> bool:
        """True for texts that are not only texts of numbers."""
        return self.kind == TEXT and self.range is None

    @property
    def cardinality(self) -> int:
        """Different values, all missing ones as one."""
        return self.distinct + (self.missing > 0)

    @property
    def alpha_distinction(self) -> float:
        """The largest share of the rows that can be kept so that all differ: different values over rows."""
        return self.cardinality / self.rows if self.rows else 0.0

    @property
    def unique_share(self) -> float:
        """Share of the rows whose value no other row has."""
        return (self.once + (self.missing == 1)) / self.rows if self.rows else 0.0

    @property
    def entropy(self) -> float:
        """Bits, as of `gpupif.information.entropy`."""
        whole = Sizes.of(np.array([self.rows])).sum_log()
        return max(0.0, (whole - self.log_sum.sum_log()) / self.rows)

    @property
    def is_running_number(self) -> bool:
        """True if the column numbers the rows: it has each whole number from 0 or 1 on once, without a gap."""
        found = self.range
        return (
            self.type == WHOLE
            and found is not None
            and self.distinct == self.once == self.rows
            and found.low in (0, 1)
            and found.high - found.low == self.rows - 1
        )


def _numbers(labels: pa.Array, kind: str) -> npt.NDArray[np.float64] | None:
    """Values as floats, where all are numbers; texts, too, as files of text have them, but none that begin with 0."""
    if kind == TEXT:
        if not pc.all(pc.match_substring_regex(labels, NUMBER_TEXT)).as_py():
            return None
        return labels.cast(pa.float64()).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    if kind not in (WHOLE, NUMBER):
        return None
    return amounts(Column(None, np.empty(0, np.uint8), np.ones(len(labels), np.int64), labels, False))


def kind_of(kind: pa.DataType) -> str:
    """Return the kind of values of an Arrow type, such as `TEXT`."""
    return next((name for name, is_one in KINDS if is_one(kind)), OTHER)


def _are_days(labels: pa.Array) -> bool:
    """Return whether all points in time are midnights in their own time zone."""
    local = pc.local_timestamp(labels) if labels.type.tz else labels
    times = local.to_numpy(zero_copy_only=False)
    return bool((times.astype("datetime64[D]") == times).all())
