"""Numbers in arguments, of Python or NumPy, checked."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from ..errors import InputError

# Rows and people are counted up to it, in 64 bits.
MOST = 2**62
LENGTH = 60


def is_number(value: Any) -> bool:
    """Whether it is a real number, NaN and infinities too; a boolean is none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: Any) -> bool:
    """Whether it is a whole number, also one written as 3e7."""
    if not is_number(value) or isinstance(value, Integral):
        return is_number(value)
    try:
        return float(value).is_integer()
    except OverflowError:
        # A fraction that no float is as large as.
        return False


def within(value: Any, low: float, high: float) -> bool:
    """Whether it is a number from `low` to `high`."""
    return is_number(value) and bool(low <= value <= high)


def brief(value: Any) -> str:
    """What came, as messages say it, however long it is."""
    try:
        text = repr(value)
    except ValueError:
        # Python writes no numbers of thousands of digits.
        return "a number of thousands of digits"
    return text if len(text) <= LENGTH else f"{text[:LENGTH]}..."


def whole_number(argument: str, value: Any, of: str, least: int = 1, most: int = MOST) -> int:
    """A whole number from `least` to `most`; raises InputError otherwise. of: what it counts, "" for nothing."""
    if not is_whole(value) or not least <= value <= most:
        bound = f", at most {most:.3g}" if is_whole(value) and value > most else ""
        counted = f" of {of}" if of else ""
        raise InputError(f"{argument}: expected a whole number{counted}, {least} or more{bound}; got {brief(value)}.")
    return int(value)


def share(argument: str, value: Any) -> float:
    """A number above 0 and up to 1; raises InputError otherwise."""
    if not within(value, 0, 1) or value == 0:
        raise InputError(
            f"{argument}: expected a number above 0 and up to 1, got {brief(value)}."
            + (" Divide percentages by 100." if within(value, 1, 100) else "")
        )
    return float(value)


def percents(argument: str, given: Any) -> Any:
    """Numbers from 0 to 100, one or several, as an array of so many dimensions; raises InputError otherwise."""
    import numpy as np

    try:
        array = np.asarray(given)
    except ValueError:
        # Lists of different lengths.
        array = np.asarray(None)
    if array.dtype.kind not in "iuf" or not ((array >= 0) & (array <= 100)).all():
        raise InputError(f"{argument}: expected percentiles from 0 to 100, got {brief(given)}.")
    return array.astype(np.float64)
