"""The oracle for hierarchies: the group of one value, from the definitions."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from fractions import Fraction


def interval(value, width, start=0):
    """The interval of a number, both as they are written."""
    number, width, start = (Fraction(str(one)) for one in (value, width, start))
    low = start + math.floor((number - start) / width) * width
    return f"[{decimal(low)}, {decimal(low + width)})"


def decimal(number):
    """A fraction that has an end as a decimal."""
    text = format(Decimal(number.numerator) / Decimal(number.denominator), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def masked(code, count, length=0):
    """A code without its last characters; those that are not longer than these are one group."""
    text = str(code)
    text = text.rjust(length, "0") if text and all(sign in "0123456789" for sign in text) else text
    return text[: len(text) - count] + "*" * count if len(text) > count else "*" * count


def unit_of_time(moment, unit):
    """The unit that a date or time is in."""
    year, month, day = moment.year, moment.month, moment.day
    hour = moment.hour if isinstance(moment, datetime.datetime) else 0
    iso = moment.isocalendar()
    decade, century = year - year % 10, year - year % 100
    return {
        "hour": f"{year:04}-{month:02}-{day:02}T{hour:02}",
        "day": f"{year:04}-{month:02}-{day:02}",
        "week": f"{iso.year:04}-W{iso.week:02}",
        "month": f"{year:04}-{month:02}",
        "quarter": f"{year:04}-Q{(month + 2) // 3}",
        "year": f"{year:04}",
        "decade": f"{decade:04}-{decade + 9:04}",
        "century": f"{century:04}-{century + 99:04}",
    }[unit]


def level_groups(hierarchy, values, level):
    """The group of each value of a column, None for missing ones below the top."""
    if level == hierarchy.height:
        return [hierarchy.root] * len(values)
    import pyarrow as pa

    return [None if v is None else hierarchy.groups(pa.array([v]), level)[0].as_py() if level else v for v in values]
