"""Hierarchies proposed for columns without one: by their values and how often each occurs, whatever table has them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from decimal import ROUND_CEILING, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..encoding.column import Column, numbers_of
from ..encoding.merge import label_array
from ..encoding.plain_values import texts
from .common_values import CommonValues
from .date_units import DateUnits, moments
from .hierarchy import Hierarchy, plain_array
from .intervals import Intervals
from .masked_codes import MaskedCodes

MOST_LEVELS = 4
# Intervals of the narrowest width, about, that the middle nine tenths of numbers are in.
INTERVALS = 20
# Sizes of what is kept of categories.
KEPT = (100, 50, 20, 10, 5, 2)
# Of texts that are taken for codes.
LEAST_CODES = 10
LONGEST_CODE = 12
_CODE = r"^[0-9]{3,}$|^[A-Za-z0-9]{2,6}( ?[A-Za-z0-9]{3})?$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"


def propose_hierarchy(column: Column) -> Hierarchy:
    """A hierarchy for a column, of the values that occur and how often; the same whatever kind of table has them.

    Dates are put into months, quarters, years and decades; numbers into intervals of round widths (1, 2 or 5 times a
    power of ten), of which the narrowest cuts the middle nine tenths of rows into some twenty; codes, such as
    postcodes, are masked from the right; of other values the most common ones are kept, and the rest pooled. Levels
    that put nothing together, or everything, are left out. At least there is the top.
    """
    values, counts = plain_array(label_array(column)), column.counts[: len(column.labels)]
    for propose in (_dates, _codes, _intervals):
        found = propose(column.name, values, counts) if len(values) else None
        if found is not None:
            return found
    return _common(column.name, values, counts)


def _with_useful_levels(make: Callable[[list[Any]], Hierarchy], steps: Sequence[Any], values: pa.Array) -> Hierarchy:
    """The hierarchy of those steps, each a level, that put some groups together and not all."""
    full, below, useful = make(list(steps)), len(values), []
    for level, step in enumerate(steps, 1):
        groups = pc.count_distinct(full.groups(values, level)).as_py()
        if 1 < groups < below:
            useful.append(step)
            below = groups
    return make(useful)


def _is_text(values: pa.Array) -> bool:
    return bool(pa.types.is_string(values.type))


def _all_match(values: pa.Array, form: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(values, form)).as_py())


def _dates(name: Hashable, values: pa.Array, counts: npt.NDArray[np.int64]) -> Hierarchy | None:
    if _is_text(values) and not _all_match(values, _DATE):
        return None
    if moments(values).null_count:
        return None
    units = ["day", "month", "quarter", "year", "decade"]
    return _with_useful_levels(lambda steps: DateUnits(steps, column=name), units, values)


def _codes(name: Hashable, values: pa.Array, counts: npt.NDArray[np.int64]) -> Hierarchy | None:
    if not _is_text(values) or len(values) < LEAST_CODES or not _all_match(values, _CODE):
        return None
    lengths = pc.utf8_length(values).to_numpy()
    digits = pc.count_substring_regex(values, "[0-9]").to_numpy()
    longest = int(lengths.max())
    if longest > LONGEST_CODE or lengths.min() < 3 or digits.min() < 2 or longest - lengths.min() > 2:
        return None
    numbers = (digits == lengths).all()
    if numbers and longest > lengths.min() and not _all_match(values, "^0"):
        # Numbers as text: those of codes have zeros in front.
        return None
    step = -(-(longest - 1) // MOST_LEVELS)
    steps = range(step, longest, step)
    return _with_useful_levels(lambda kept: MaskedCodes(kept, column=name), steps, values)


def _intervals(name: Hashable, values: pa.Array, counts: npt.NDArray[np.int64]) -> Hierarchy | None:
    if pa.types.is_boolean(values.type):
        return None
    numbers = numbers_of(values)
    if not np.isfinite(numbers).all():
        return None
    steps = round_widths(numbers, counts)
    return _with_useful_levels(lambda kept: Intervals(kept, column=name), steps, values)


def round_widths(numbers: npt.NDArray[np.float64], counts: npt.NDArray[np.int64]) -> list[int | float]:
    """Round widths for different numbers, of which each divides the next; counts: how often each occurs."""
    order = np.argsort(numbers, kind="stable")
    ascending, rows = numbers[order], np.cumsum(counts[order])
    low, high = (ascending[np.searchsorted(rows, -(-int(rows[-1]) * part // 20))] for part in (1, 19))
    span = float(high - low) or float(ascending[-1] - ascending[0])
    if not 0 < span < np.inf:
        return []
    width = _round_up(Decimal(repr(span)) / INTERVALS)
    if (numbers == np.trunc(numbers)).all():
        width = max(width, Decimal(2))
    widths: list[int | float] = []
    while len(widths) < MOST_LEVELS and (width < Decimal(repr(span)) or not widths):
        widths.append(int(width) if width == width.to_integral_value() else float(width))
        # 1, 2, 10, 20, 100, ...; 5, 10, 20, 100, ...
        width *= 5 if width.normalize().as_tuple().digits == (2,) else 2
    return widths


def _round_up(number: Decimal) -> Decimal:
    """The least of 1, 2 and 5 times a power of ten that is not less."""
    power = Decimal(10) ** number.adjusted()
    digit = (number / power).to_integral_value(ROUND_CEILING)
    return power * next(one for one in (1, 2, 5, 10) if digit <= one)


def _common(name: Hashable, values: pa.Array, counts: npt.NDArray[np.int64]) -> Hierarchy:
    order = np.argsort(-counts, kind="stable")
    ordered = counts[order]
    sizes = [size for size in KEPT if size <= len(values) - 2] or [1] * (len(values) > 2)
    sizes = sizes[::2] if len(sizes) > MOST_LEVELS else sizes
    # Of values that are as common all are kept, or none.
    kept = dict.fromkeys(int(np.count_nonzero(ordered[:size] > ordered[size])) for size in sizes)
    steps = [size for size in kept if size]
    most = max(steps, default=0)
    named = texts(values.take(pa.array(order[:most]))).to_pylist()
    common = [text for _, text in sorted(zip((-ordered[:most]).tolist(), named, strict=True))]

    def make(steps: list[Any]) -> Hierarchy:
        return CommonValues(common[: max(steps, default=0)], steps, column=name)

    return _with_useful_levels(make, steps, values) if steps else make([])
