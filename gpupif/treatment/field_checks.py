"""Checks that the fields of treatments declare: `base: Annotated[float, positive]`. Each raises InputError."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from typing import Any, get_type_hints

from ..errors import InputError
from ..utils.validation import MOST, brief, is_number, whole_number, within

# A function of the words that begin its error, and of the value of a field.
Check = Callable[[str, Any], object]


@cache
def checks_of(kind: type[Any]) -> list[tuple[str, Check]]:
    """Return pairs of a field's name and a check that the field declares, for a class of treatments."""
    hints = get_type_hints(kind, include_extras=True)
    return [(own.name, check) for own in fields(kind) for check in getattr(hints[own.name], "__metadata__", ())]


def whole(noun: str, least: int = 1, most: int = MOST) -> Check:
    """Return the check for a whole number from `least` to `most`. noun: the noun of the things that are counted."""
    return lambda argument, value: whole_number(argument, value, noun, least, most)


def is_finite(value: Any) -> bool:
    """Return whether a value is a finite number."""
    return is_number(value) and math.isfinite(value)


def finite(argument: str, value: Any) -> None:
    """Raise InputError unless a value is a finite number."""
    if not is_finite(value):
        raise InputError(f"{argument}: expected a number, got {brief(value)}.")


def positive(argument: str, value: Any) -> None:
    """Raise InputError unless a value is a finite number above 0."""
    if not is_finite(value) or not value > 0:
        raise InputError(f"{argument}: expected a number above 0, got {brief(value)}.")


def probability(argument: str, value: Any) -> None:
    """Raise InputError unless a value is a number from 0 to 1."""
    if not within(value, 0, 1):
        hint = " Divide percentages by 100." if within(value, 1, 100) else ""
        raise InputError(f"{argument}: expected a probability from 0 to 1, got {brief(value)}.{hint}")


def text_or_number(argument: str, value: Any) -> None:
    """Raise InputError unless a value is a text or a finite number."""
    if not (isinstance(value, str) or is_finite(value)):
        raise InputError(f"{argument}: expected a text or a number, got {brief(value)}.")


def not_empty(argument: str, value: Any) -> None:
    """Raise InputError for an empty list of columns."""
    if not len(value):
        raise InputError(f"{argument}: expected at least one column, got an empty list.")


def date_format(argument: str, value: Any) -> None:
    """Raise InputError for a format of dates that is no text with %."""
    if not isinstance(value, str) or "%" not in value:
        raise InputError(f"{argument}: expected signs of strptime such as '%m/%d/%Y', got {brief(value)}.")
