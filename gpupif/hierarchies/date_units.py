"""Hierarchies of dates: months, quarters, years, ..., and the names that these have."""

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

# Each is made of whole ones of those before it; weeks only of hours and days, and nothing of weeks.
UNITS = ("hour", "day", "week", "month", "quarter", "year", "decade", "century")
WEEK = "week"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME = _DATE[:-1] + r"[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?$"
DATE = "a date or time (as text 2001-05-17, 2001-05-17T10:30)"


@dataclass(frozen=True)
class DateUnits(Hierarchy):
    """Dates by the unit of time they are in, a larger one at each level: 2001-05, 2001-Q2, 2001, 2000-2009.

    Values are dates, times with a date (in their own time zone), or texts of such in ISO form.

    Raises InputError for what is no unit, and for units that do not nest.

    dates: "hour", "day", "week" (of ISO 8601), "month", "quarter", "year", "decade", "century", by level.
    """

    dates: Sequence[str]
    column: Hashable = field(default=None, repr=False, compare=False)

    expected = DATE

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
        found = moments(values)
        if level == self.height:
            return everything(found.is_valid())
        return unit_names(found, self.dates[level - 1])

    def to_plan(self) -> Any:
        return {"dates": list(self.dates)}


def moments(values: pa.Array) -> pa.Array:
    """Values as dates, or as times by the clock of their time zone; null for those that are none.

    Texts are of the forms of ISO 8601: 2001-05-17, 20010517, 2001-05-17T10:30, 2001-05-17 10:30:00+02:00.
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


def unit_names(found: pa.Array, unit: str) -> pa.Array:
    """The name of the unit of time, one of `UNITS`, that each of some `moments` is in; null for null."""
    if unit == "day":
        return found.cast(pa.date32(), safe=False).cast(pa.string())
    if unit == "hour":
        hours = pc.hour(found) if pa.types.is_timestamp(found.type) else pa.array([0] * len(found), pa.int64())
        day = found.cast(pa.date32(), safe=False).cast(pa.string())
        return pc.binary_join_element_wise(day, _padded(hours, 2), "T")
    if unit == WEEK:
        calendar = pc.iso_calendar(found)
        year, week = calendar.field("iso_year"), calendar.field("iso_week")
        named = pc.binary_join_element_wise(_padded(year, 4), _padded(week, 2), "-W")
        return pc.if_else(found.is_valid(), named, pa.scalar(None, pa.string()))
    year = pc.year(found)
    if unit == "month":
        return pc.binary_join_element_wise(_padded(year, 4), _padded(pc.month(found), 2), "-")
    if unit == "quarter":
        return pc.binary_join_element_wise(_padded(year, 4), _padded(pc.quarter(found), 1), "-Q")
    if unit == "year":
        return _padded(year, 4)
    years = {"decade": 10, "century": 100}[unit]
    first = pa.array(year.to_numpy(zero_copy_only=False) // years * years, pa.int64(), from_pandas=True)
    return pc.binary_join_element_wise(_padded(first, 4), _padded(pc.add(first, years - 1), 4), "-")


def _padded(numbers: pa.Array, digits: int) -> pa.Array:
    """Numbers as texts of so many digits."""
    return pc.utf8_lpad(numbers.cast(pa.string()), digits, "0")
