"""Checks that fields of dataclasses declare: `base: Annotated[float, positive]`. Each raises InputError."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, get_type_hints

from ..errors import InputError, did_you_mean
from ..utils.validation import MOST, brief, is_number, whole_number, within

# A function of the words that begin its error, and of the value of a field.
Check = Callable[[str, Any], object]


@cache
def checks_of(kind: type[Any]) -> list[tuple[str, Check]]:
    """Return pairs of a field's name and a check that the field declares, for a dataclass."""
    hints = get_type_hints(kind, include_extras=True)
    return [(own.name, check) for own in fields(kind) for check in getattr(hints[own.name], "__metadata__", ())]


def set_checked(instance: Any) -> None:
    """Put what the checks of a dataclass return in the place of its fields. Raises InputError."""
    kind: Any = type(instance)
    for name, check in checks_of(kind):
        object.__setattr__(instance, name, check(name, getattr(instance, name)))


def check_keys(said: str, kind: type[Any], given: Iterable[Any]) -> None:
    """Raise InputError unless keys of a document are fields of a dataclass, with all that have no default.

    said: prefix of errors.
    """
    known = {own.name: own for own in fields(kind)}
    for key in given:
        if key not in known:
            listed, hint = ", ".join(map(repr, known)), did_you_mean(str(key), known)
            raise InputError(f"{said}: there is no key {brief(key)}.{hint} Expected some of {listed}.")
    for name, own in known.items():
        if own.default is MISSING and own.default_factory is MISSING and name not in given:
            raise InputError(f"{said}: expected a key {name!r}, got none. Add it.")


def whole(noun: str, least: int = 1, most: int = MOST) -> Check:
    """Return the check for a whole number from `least` to `most`. noun: the noun of the things that are counted."""
    return lambda argument, value: whole_number(argument, value, noun, least, most)


def is_finite(value: Any) -> bool:
    """Return whether a value is a finite number, of a size that a float can have."""
    try:
        return is_number(value) and math.isfinite(value)
    except OverflowError:
        return False


def finite(argument: str, value: Any) -> None:
    """Raise InputError unless a value is a finite number."""
    if not is_finite(value):
        raise InputError(f"{argument}: expected a number{_bound_words(value)}, got {brief(value)}.")


def _bound_words(value: Any) -> str:
    """Return the words of an error for a number that is larger than every float, else ""."""
    return " of at most 1.8e308" if is_number(value) and value > 0 and not is_finite(value) else ""


def positive(argument: str, value: Any) -> float:
    """Return a finite number above 0 as a float. Raises InputError for any other value."""
    if not is_finite(value) or not value > 0:
        raise InputError(f"{argument}: expected a number above 0{_bound_words(value)}, got {brief(value)}.")
    return float(value)


def probability(argument: str, value: Any) -> float:
    """Return a number from 0 to 1 as a float. Raises InputError for any other value."""
    if not within(value, 0, 1):
        hint = " Divide percentages by 100." if within(value, 1, 100) else ""
        raise InputError(f"{argument}: expected a probability from 0 to 1, got {brief(value)}.{hint}")
    return float(value)


def text_or_number(argument: str, value: Any) -> None:
    """Raise InputError unless a value is a text or a finite number."""
    if not (isinstance(value, str) or is_finite(value)):
        raise InputError(f"{argument}: expected a text or a number{_bound_words(value)}, got {brief(value)}.")


def not_empty(argument: str, value: Any) -> None:
    """Raise InputError for an empty list of columns."""
    if not len(value):
        raise InputError(f"{argument}: expected at least one column, got an empty list.")


def date_format(argument: str, value: Any) -> None:
    """Raise InputError for a format of dates that is no text with %."""
    if not isinstance(value, str) or "%" not in value:
        raise InputError(f"{argument}: expected signs of strptime such as '%m/%d/%Y', got {brief(value)}.")
