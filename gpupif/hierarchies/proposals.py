"""Hierarchies that are proposed for columns without one, from their values and the number of rows of each value."""

from __future__ import annotations

import sys
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
from .codes import FirstCharacters, MaskedCodes
from .common_values import CommonValues
from .date_units import DateUnits, moments
from .hierarchy import Hierarchy, plain_array
from .intervals import Intervals

MOST_LEVELS = 4
# The middle nine tenths of the rows are in about this number of intervals of the narrowest width.
INTERVALS = 20
# The numbers of common values that may be kept.
KEPT = (100, 50, 20, 10, 5, 2)
# Texts are codes if there are at least LEAST_CODES distinct texts of at most LONGEST_CODE characters, and a form.
LEAST_CODES = 10
LONGEST_CODE = 12
_CODE = r"^[0-9]{3,}$|^[A-Za-z0-9]{2,6}( ?[A-Za-z0-9]{3})?$"
# Codes as of ICD-10, such as E11, E11.9, S72.001A, and the numbers of first characters that are groups.
_DIAGNOSIS = r"^[A-Za-z][0-9][0-9A-Za-z](\.?[0-9Xx]{1,4}[A-Za-z]?)?$"
_OF_DIAGNOSES = (5, 3, 2, 1)
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"


def propose_hierarchy(column: Column) -> Hierarchy:
    """Return a hierarchy for a column, from its values and their numbers of rows. All kinds of tables give the same.

    * Dates are grouped by days, months, quarters, years and decades.
    * Codes, such as postcodes, are masked from the right. Texts of digits are codes if one of them begins with 0.
    * Codes of unequal length like those of ICD-10 are cut after their first characters.
    * Numbers are grouped by intervals of round widths: 1, 2 or 5 times a power of ten. The middle nine tenths of the
      rows are in about twenty intervals of the narrowest width.
    * Of other values the most common ones are kept, and the rest pooled.

    Levels that join no groups, or all groups, are left out. Without other levels there is the top alone.
    """
    values, counts = plain_array(label_array(column)), column.counts[: len(column.labels)]
    for propose in (_dates, _codes, _intervals):
        hierarchy = propose(column.name, values, counts) if len(values) else None
        if hierarchy is not None:
            return hierarchy
    return _common(column.name, values, counts)


def _with_useful_levels(make: Callable[[list[Any]], Hierarchy], steps: Sequence[Any], values: pa.Array) -> Hierarchy:
    """Return the hierarchy of the useful steps: steps that join some groups, but not all. Each step is a level."""
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


def _with_zeros(values: pa.Array) -> bool:
    """Return whether a text is a number with a zero in front, which only codes have."""
    return bool(pc.any(pc.match_substring_regex(values, "^0[0-9]")).as_py())


def _dates(name: Hashable, values: pa.Array, counts: npt.NDArray[np.int64]) -> Hierarchy | None:
    if _is_text(values) and not _all_match(values, _DATE):
        return None
    if moments(values).null_count:
        return None
    units = ["day", "month", "quarter", "year", "decade"]
    return _with_useful_levels(lambda steps: DateUnits(steps, column=name), units, values)


def _codes(name: Hashable, values: pa.Array, counts: npt.NDArray[np.int64]) -> Hierarchy | None:
    if not _is_text(values):
        return None
    lengths = pc.utf8_length(values).to_numpy()
    longest, shortest = int(lengths.max()), int(lengths.min())
    if longest > shortest and len(values) >= LEAST_CODES and _all_match(values, _DIAGNOSIS):
        return _with_useful_levels(lambda kept: FirstCharacters(kept, column=name), _OF_DIAGNOSES, values)
    with_zeros = _with_zeros(values) and _all_match(values, "^[0-9]+$")
    if not with_zeros and (len(values) < LEAST_CODES or not _all_match(values, _CODE)):
        return None
    digits = pc.count_substring_regex(values, "[0-9]").to_numpy()
    # Texts of digits of unequal lengths are numbers, unless some begin with 0.
    numbers = longest > shortest and (digits == lengths).all()
    are_codes = shortest >= 3 and digits.min() >= 2 and longest - shortest <= 2 and not numbers
    if longest > LONGEST_CODE or not (with_zeros or are_codes):
        return None
    step = -(-(longest - 1) // MOST_LEVELS)
    steps = range(step, longest, step)
    return _with_useful_levels(lambda kept: MaskedCodes(kept, column=name), steps, values)


def _intervals(name: Hashable, values: pa.Array, counts: npt.NDArray[np.int64]) -> Hierarchy | None:
    if pa.types.is_boolean(values.type) or (_is_text(values) and _with_zeros(values)):
        return None
    numbers = numbers_of(values)
    if not np.isfinite(numbers).all():
        return None
    steps = round_widths(numbers, counts)
    return _with_useful_levels(lambda kept: Intervals(kept, column=name), steps, values)


def round_widths(numbers: npt.NDArray[np.float64], counts: npt.NDArray[np.int64]) -> list[int | float]:
    """Return round widths of intervals, each dividing the next. numbers: distinct. counts: the rows of each number."""
    order = np.argsort(numbers, kind="stable")
    ascending, rows = numbers[order], np.cumsum(counts[order])
    low, high = (ascending[np.searchsorted(rows, -(-int(rows[-1]) * part // 20))] for part in (1, 19))
    span = float(high - low) or float(ascending[-1] - ascending[0])
    if not 0 < span < np.inf:
        return []
    width = _round_up(Decimal(repr(span)) / INTERVALS)
    if width < Decimal(sys.float_info.min):
        # The widths would be 0 or inexact as float64.
        return []
    if (numbers == np.trunc(numbers)).all():
        width = max(width, Decimal(2))
    widths: list[int | float] = []
    while len(widths) < MOST_LEVELS and (width < Decimal(repr(span)) or not widths):
        widths.append(int(width) if width == width.to_integral_value() else float(width))
        # 1, 2, 10, 20, 100, ...; 5, 10, 20, 100, ...
        width *= 5 if width.normalize().as_tuple().digits == (2,) else 2
    return widths


def _round_up(number: Decimal) -> Decimal:
    """Return the least number that is 1, 2 or 5 times a power of ten, and not below the given number."""
    power = Decimal(10) ** number.adjusted()
    digit = (number / power).to_integral_value(ROUND_CEILING)
    return power * next(step for step in (1, 2, 5, 10) if digit <= step)


def _common(name: Hashable, values: pa.Array, counts: npt.NDArray[np.int64]) -> Hierarchy:
    order = np.argsort(-counts, kind="stable")
    ordered = counts[order]
    sizes = [size for size in KEPT if size <= len(values) - 2] or [1] * (len(values) > 2)
    sizes = sizes[::2] if len(sizes) > MOST_LEVELS else sizes
    # Equally common values are all kept or all pooled: their order would be arbitrary.
    kept = dict.fromkeys(int(np.count_nonzero(ordered[:size] > ordered[size])) for size in sizes)
    steps = [size for size in kept if size]
    most = max(steps, default=0)
    named = texts(values.take(pa.array(order[:most]))).to_pylist()
    common = [text for _, text in sorted(zip((-ordered[:most]).tolist(), named, strict=True))]

    def make(steps: list[Any]) -> Hierarchy:
        return CommonValues(common[: max(steps, default=0)], steps, column=name)

    return _with_useful_levels(make, steps, values) if steps else make([])
