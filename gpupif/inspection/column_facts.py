"""The facts of a column, from its values and how often each occurs: the same for tables in memory, in files, on Dask.

The distinct values may come in several partitions, each value in one of them. The facts of all partitions add up to the
facts of the column.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..encoding.column import Column, amounts
from ..encoding.device import DeviceColumn, encode_on_device
from ..encoding.encode import encode_column
from ..encoding.merge import ValueCounts, label_array
from ..errors import ColumnTypeError
from ..utils.exact_sums import ExactSum
from ..utils.information import LogSum, Sizes

# The most distinct values of a column whose texts are searched for patterns: the values of lowest hashes.
SAMPLE_SIZE = 1000
# Texts that often stand for a missing value, in lower case.
MISSING_CODES = {"?", ".", "-", "--", "*", "n/a", "#n/a", "na", "nan", "null", "unknown", "missing", "not known"}
# The most characters of a text that are kept in a sample.
LONGEST = 10_000
# The number of values that are hashed at once. As objects of Python, texts take several times their memory.
HASHED = 1 << 16

# The form of a number. A text that begins with 0 is none: it may be an identifier or a postcode.
NUMBER_TEXT = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
# The form of a number with a decimal comma, in German fashion: 0,5 or 1.234,50. Between digits, it may have full stops
# before each three.
COMMA_TEXT = r"^-?(0|[1-9][0-9]*|[1-9][0-9]{0,2}(\.[0-9]{3})+),[0-9]+$"
# The form of 1,234, which may be a number with a decimal comma or a whole number of thousands.
THOUSANDS_TEXT = r"^-?[1-9][0-9]{0,2},[0-9]{3}$"

TEXT, CATEGORY, WHOLE, NUMBER, BOOLEAN = "text", "category", "whole number", "number", "boolean"
DATE, MOMENT, TIME, SPAN, NOTHING, OTHER = "date", "date and time", "time", "time span", "nothing", "other"
# Kinds of values, and the types of Arrow that each is for.
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
    """A sample of the distinct values of a column as texts, at most `SAMPLE_SIZE`.

    The values with the lowest hashes are in it, in the order of hashes. A hash depends on its value alone, so the
    sample does not depend on the order of rows, or on the cut of the table. It is as good as drawn at random.
    """

    hashes: list[int]
    texts: list[str]

    @classmethod
    def from_values(cls, values: pa.Array, kind: str) -> Sample:
        """Return a sample of distinct values. It is empty if they are neither text nor numbers."""
        if kind not in (TEXT, WHOLE, NUMBER) or not len(values):
            return cls([], [])
        hashes = value_hashes(values)
        if len(hashes) > SAMPLE_SIZE:
            least = np.flatnonzero(hashes <= np.partition(hashes, SAMPLE_SIZE - 1)[SAMPLE_SIZE - 1])
            hashes, values = hashes[least], values.take(pa.array(least))
        return cls._lowest(zip(hashes.tolist(), map(_as_text, values.to_pylist()), strict=True))

    @classmethod
    def total(cls, parts: Iterable[Sample]) -> Sample:
        """Return the sample of the values of several partitions."""
        return cls._lowest(pair for part in parts for pair in zip(part.hashes, part.texts, strict=True))

    @classmethod
    def _lowest(cls, pairs: Iterable[tuple[int, str]]) -> Sample:
        """Return the values with the lowest hashes. pairs: hash and text of each value."""
        lowest = heapq.nsmallest(SAMPLE_SIZE, pairs)
        return cls([number for number, _ in lowest], [text for _, text in lowest])


def value_hashes(values: pa.Array) -> npt.NDArray[np.uint64]:
    """Return a hash of each value, of any type. Equal numbers have equal hashes, whole numbers and floats alike."""
    hashes = np.empty(len(values), np.uint64)
    for start in range(0, len(values), HASHED):
        some = values.slice(start, HASHED)
        hashes[start : start + HASHED] = pd.util.hash_array(_hashable(some), categorize=False)
    return hashes


def _hashable(values: pa.Array) -> npt.NDArray[Any]:
    """Return values as a NumPy array: numbers as floats, times and spans as whole numbers, others as objects."""
    kind = kind_of(values.type)
    if kind in (WHOLE, NUMBER, BOOLEAN):
        values = values.cast(pa.float64(), safe=False)
    elif kind in (DATE, MOMENT, TIME, SPAN):
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    return values.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _as_text(value: Any) -> str:
    """Return a value as text; whole floats as whole numbers."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)[:LONGEST]


class DecimalMarks(NamedTuple):
    """Numbers of distinct texts that are written with a decimal point or exponent, and with a decimal comma.

    thousands: of the texts with a comma, the number that may have it after thousands, as 1,234 has.
    """

    points: int = 0
    commas: int = 0
    thousands: int = 0

    @classmethod
    def from_texts(cls, texts: pa.Array) -> DecimalMarks:
        """Return the marks of texts that are numbers."""
        forms = COMMA_TEXT, THOUSANDS_TEXT, "[.eE]"
        commas, thousands, points = (pc.match_substring_regex(texts, form) for form in forms)
        points = pc.and_not(points, commas)
        return cls(*(int(pc.sum(own).as_py() or 0) for own in (points, commas, thousands)))

    @property
    def are_clear(self) -> bool:
        """True if the texts are numbers of one notation."""
        return not self.commas or (not self.points and self.thousands < self.commas)


class Range(NamedTuple):
    """The range of some numbers.

    low, high: the lowest and the highest. whole: True if all are whole numbers. total: their sum over the rows, without
    infinite numbers. marks: of texts, how their fractions are written.
    """

    low: float
    high: float
    whole: bool
    total: ExactSum
    marks: DecimalMarks

    @classmethod
    def from_labels(cls, labels: pa.Array, kind: str, counts: npt.NDArray[np.int64]) -> Range | None:
        """Return the range of distinct values, None if they are no numbers. counts: rows of each value.

        Infinite numbers are not whole, and are left out of the sum.
        """
        numbers = _numbers(labels, kind)
        if numbers is None:
            return None
        marks = DecimalMarks.from_texts(labels) if kind == TEXT else DecimalMarks()
        finite = np.isfinite(numbers)
        whole = bool(finite.all() and (numbers == np.floor(numbers)).all())
        total = ExactSum.from_numbers(numbers[finite], counts[finite])
        return cls(float(numbers.min()), float(numbers.max()), whole, total, marks)

    @classmethod
    def combine(cls, parts: Iterable[Range | None]) -> Range | None:
        """Return the range of several partitions; None if a partition has values that are no numbers."""
        every = list(parts)
        ranges = [part for part in every if part is not None]
        if not ranges or len(ranges) < len(every):
            return None
        low, high = min(part.low for part in ranges), max(part.high for part in ranges)
        marks = DecimalMarks(*map(sum, zip(*(part.marks for part in ranges), strict=True)))
        total = ExactSum.total(part.total for part in ranges)
        return cls(low, high, all(part.whole for part in ranges), total, marks)


NO_LOGS, NO_SAMPLE = LogSum(0), Sample([], [])


@dataclass(frozen=True)
class ColumnFacts:
    """The facts of a column.

    kind: str. The kind of the values, such as `TEXT`.
    distinct: int. Distinct values, without missing values.
    once: int. Distinct values that occur once.
    missing: int. Rows without a value.
    log_sum: LogSum. The sum of c log2 c over the counts c of values; missing values are one value.
    rows: int. Rows of the column.
    every_number: Range or None. The range of the values if all are numbers, in any notation.
    sample: Sample. A sample of the distinct values.
    days: bool. True if all points in time are midnights.
    """

    kind: str
    distinct: int = 0
    once: int = 0
    missing: int = 0
    log_sum: LogSum = NO_LOGS
    rows: int = 0
    every_number: Range | None = None
    sample: Sample = NO_SAMPLE
    days: bool = True

    @classmethod
    def from_values(cls, values: ValueCounts) -> ColumnFacts:
        """Return the facts of the distinct values of a column, or of a partition."""
        labels, counts = values.labels, values.counts
        kind = kind_of(labels.type) if len(labels) else NOTHING
        occurs = counts if values.missing == 0 else np.append(counts, values.missing)
        return cls(
            kind,
            len(labels),
            int((counts == 1).sum()),
            values.missing,
            Sizes.from_counts(occurs).log_sum(),
            int(occurs.sum()),
            Range.from_labels(labels, kind, counts),
            Sample.from_values(labels, kind),
            kind != MOMENT or _are_days(labels),
        )

    @classmethod
    def total(cls, parts: Sequence[ColumnFacts]) -> ColumnFacts:
        """Return the facts of values of one type from partitions, at least one. Each value is in one partition only."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            next((part.kind for part in parts if part.kind != NOTHING), NOTHING),
            sum(part.distinct for part in parts),
            sum(part.once for part in parts),
            sum(part.missing for part in parts),
            LogSum.total(part.log_sum for part in parts),
            sum(part.rows for part in parts),
            Range.combine(part.every_number for part in parts if part.distinct),
            Sample.total(part.sample for part in parts),
            all(part.days for part in parts),
        )

    @property
    def range(self) -> Range | None:
        """The range of the values if all are numbers, and texts of one notation: 1.5 and 1,5 together are none."""
        return self.every_number if self.every_number is not None and self.every_number.marks.are_clear else None

    @property
    def has_decimal_comma(self) -> bool:
        """True for texts of numbers with a decimal comma."""
        return self.range is not None and self.range.marks.commas > 0

    @property
    def type(self) -> str:
        """The type of the values.

        Texts of numbers are numbers. Numbers are whole numbers if all are whole and none has a decimal comma. Midnights
        are dates. Texts that occur at least twice on average are categories.
        """
        if self.range is not None:
            return WHOLE if self.range.whole and not self.has_decimal_comma else NUMBER
        if self.kind == TEXT and 2 * self.distinct <= self.rows - self.missing:
            return CATEGORY
        return DATE if self.kind == MOMENT and self.days else self.kind

    @property
    def missing_code(self) -> str | None:
        """A text of the sample that may stand for a missing value; None if there is none."""
        return next((text for text in sorted(self.sample.texts) if text.strip().lower() in MISSING_CODES), None)

    @property
    def is_text(self) -> bool:
        """True for texts that are not all texts of numbers."""
        return self.kind == TEXT and self.range is None

    @property
    def cardinality(self) -> int:
        """The number of distinct values; missing values are one value."""
        return self.distinct + (self.missing > 0)

    @property
    def alpha_distinction(self) -> float:
        """The largest share of the rows that can be kept so that no two values are equal: distinct values over rows."""
        return self.cardinality / self.rows if self.rows else 0.0

    @property
    def unique_share(self) -> float:
        """The share of the rows whose value no other row has."""
        return (self.once + (self.missing == 1)) / self.rows if self.rows else 0.0

    @property
    def entropy(self) -> float:
        """The entropy in bits, as in `gpupif.information.entropy`."""
        whole = Sizes.from_counts(np.array([self.rows])).sum_log()
        return max(0.0, (whole - self.log_sum.sum_log()) / self.rows)

    @property
    def is_running_number(self) -> bool:
        """True if the column numbers the rows: it has each whole number from 0 or 1 on once, without a gap."""
        numbers = self.range
        return (
            self.type == WHOLE
            and numbers is not None
            and self.distinct == self.once == self.rows
            and numbers.low in (0, 1)
            and numbers.high - numbers.low == self.rows - 1
        )


def column_values(name: Hashable, array: Any) -> ValueCounts | None:
    """Return the distinct values of a column in memory; None if they cannot be compared."""
    try:
        if isinstance(array, DeviceColumn):
            column = encode_on_device([name], [array], encode_column)[0]
        else:
            column = encode_column(name, array)
        values = label_array(column)
    except ColumnTypeError:
        return None
    return ValueCounts(values, column.counts[: len(values)], column.missing_rows)


def facts_of(values: ValueCounts | None, rows: int) -> ColumnFacts:
    """Return the facts of a column. values: None if they cannot be compared. rows: of the table."""
    return ColumnFacts(OTHER, rows=rows) if values is None else ColumnFacts.from_values(values)


def _numbers(labels: pa.Array, kind: str) -> npt.NDArray[np.float64] | None:
    """Return values as floats if all are numbers, or texts of numbers as in files of text; else None."""
    if kind == TEXT:
        with_comma = pc.match_substring_regex(labels, COMMA_TEXT)
        if not pc.all(pc.or_(with_comma, pc.match_substring_regex(labels, NUMBER_TEXT))).as_py():
            return None
        if pc.any(with_comma).as_py():
            plain = pc.replace_substring(pc.replace_substring(labels, ".", ""), ",", ".")
            labels = pc.if_else(with_comma, plain, labels)
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
