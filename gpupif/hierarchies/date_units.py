"""Hierarchies of dates: months, quarters, years, ..., and the names of these units."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError, did_you_mean
from ..utils.validation import brief
from .hierarchy import Hierarchy, everything

# Each unit consists of whole earlier units, except that no larger unit consists of whole weeks.
UNITS = ("hour", "day", "week", "month", "quarter", "year", "decade", "century")
WEEK = "week"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME = _DATE[:-1] + r"[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?$"
DATE = "a date or time (as text 2001-05-17, 2001-05-17T10:30)"


@dataclass(frozen=True)
class DateUnits(Hierarchy):
    """Dates grouped by a unit of time, a larger unit at each level: 2001-05, 2001-Q2, 2001, 2000-2009.

    Values are dates, times with a date (in their own time zone), or their texts in ISO form.

    dates: list of str, by level. "hour", "day", "week" (of ISO 8601), "month", "quarter", "year", "decade", "century".

    Raises InputError for an unknown unit, and for units that do not nest.
    """

    dates: Sequence[str]
    column: Hashable = field(default=None, repr=False, compare=False)

    expected = DATE
    mend = "Write dates so, or treat the column by date_part, such as with format = '%d.%m.%Y', in place of a hierarchy"

    def __post_init__(self) -> None:
        units = [self.dates] if isinstance(self.dates, str) else self.dates
        listed = ", ".join(map(repr, UNITS))
        if not isinstance(units, Sequence):
            raise InputError(f"{self.said}: dates: expected a list of units ({listed}), got {brief(units)}.")
        for unit in units:
            if not isinstance(unit, str) or unit not in UNITS:
                hint = did_you_mean(unit, UNITS) if isinstance(unit, str) else ""
                raise InputError(f"{self.said}: dates: expected units among {listed}; got {brief(unit)}.{hint}")
        for level, (unit, larger) in enumerate(pairwise(units), 1):
            if UNITS.index(larger) <= UNITS.index(unit) or unit == WEEK:
                raise InputError(
                    f"{self.said}: dates: {unit!r} (level {level}) and {larger!r} (level {level + 1}) do not nest: "
                    f"expected larger units at each level, of {listed}"
                    f"{', and none above weeks, which months and years cut' * (unit == WEEK)}."
                )
        object.__setattr__(self, "dates", tuple(units))

    @property
    def height(self) -> int:
        return len(self.dates) + 1

    def find(self, values: pa.Array, level: int) -> pa.Array:
        times = moments(values)
        if level == self.height:
            return everything(times.is_valid())
        return unit_names(times, self.dates[level - 1])

    def to_plan(self) -> Any:
        return {"dates": list(self.dates)}


def moments(values: pa.Array) -> pa.Array:
    """Return values as dates, or as times by the clock of their time zone; null for a value that is neither.

    Texts have a form of ISO 8601: 2001-05-17, 20010517, 2001-05-17T10:30, 2001-05-17 10:30:00+02:00.
    """
    kind = values.type
    if pa.types.is_date32(kind):
        return values
    if pa.types.is_date64(kind):
        return values.cast(pa.date32())
    if pa.types.is_timestamp(kind):
        return pc.local_timestamp(values) if kind.tz else values
    if not pa.types.is_string(kind):
        return pa.nulls(len(values), pa.date32())
    for form, arrow in ((_DATE, pa.date32()), (_TIME, pa.timestamp("us"))):
        if pc.all(pc.match_substring_regex(values, form)).as_py():
            with contextlib.suppress(pa.ArrowInvalid):
                return values.cast(arrow)
    return pa.array(map(_moment, values.to_pylist()), pa.timestamp("us"))


def _moment(text: str | None) -> datetime.datetime | None:
    try:
        return None if text is None else datetime.datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        return None


def unit_names(times: pa.Array, unit: str) -> pa.Array:
    """Return the name of the unit of time that each moment is in; null for null.

    times: dates or times, as `moments` returns them. unit: one of `UNITS`.
    """
    if unit == "day":
        return times.cast(pa.date32(), safe=False).cast(pa.string())
    if unit == "hour":
        hours = pc.hour(times) if pa.types.is_timestamp(times.type) else pa.array([0] * len(times), pa.int64())
        day = times.cast(pa.date32(), safe=False).cast(pa.string())
        return pc.binary_join_element_wise(day, _padded(hours, 2), "T")
    if unit == WEEK:
        calendar = pc.iso_calendar(times)
        year, week = calendar.field("iso_year"), calendar.field("iso_week")
        named = pc.binary_join_element_wise(_padded(year, 4), _padded(week, 2), "-W")
        return pc.if_else(times.is_valid(), named, pa.scalar(None, pa.string()))
    year = pc.year(times)
    if unit == "month":
        return pc.binary_join_element_wise(_padded(year, 4), _padded(pc.month(times), 2), "-")
    if unit == "quarter":
        return pc.binary_join_element_wise(_padded(year, 4), _padded(pc.quarter(times), 1), "-Q")
    if unit == "year":
        return _padded(year, 4)
    years = {"decade": 10, "century": 100}[unit]
    first = pa.array(year.to_numpy(zero_copy_only=False) // years * years, pa.int64(), from_pandas=True)
    return pc.binary_join_element_wise(_padded(first, 4), _padded(pc.add(first, years - 1), 4), "-")


def _padded(numbers: pa.Array, digits: int) -> pa.Array:
    """Return numbers as texts, with zeros in front up to a number of digits."""
    return pc.utf8_lpad(numbers.cast(pa.string()), digits, "0")
