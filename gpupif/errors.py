"""What gpupif raises. Every message names what was wrong, what was expected, what came, and how to mend it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

# Columns that an error lists.
MOST_NAMED = 40


def printable(text: str) -> str:
    """Return a text of which no character acts on a terminal: those that Python's `repr` escapes are escaped as there.

    These are control characters (line breaks too), marks that turn the direction of writing, zero-width characters and
    spaces other than the plain one, by which different values would look alike, and lone surrogates, which no terminal
    can be sent. A backslash stays as it is.
    """
    return "".join(own if own.isprintable() else own.encode("unicode_escape").decode() for own in text)


class GpupifError(Exception):
    """Base of all errors that gpupif raises on purpose.

    Arguments are the lines of the message, nearly always one; `str` shows them `printable`.
    """

    def __str__(self) -> str:
        return "\n".join(printable(str(line)) for line in self.args)

    def __reduce__(self) -> tuple[Any, ...]:
        # Made anew from its message, whatever its class makes that of.
        return _with_message, (type(self), *self.args)

    def about(self, argument: str, *words: str) -> GpupifError:
        """Return the same error about what came as an argument, which stands in place of ``table: `` or other words."""
        first, *others = self.args or ("",)
        message = str(first)
        for word in ("table: ", *words):
            message = message.removeprefix(word)
        return _with_message(type(self), f"{argument}: {message}", *others)


def _with_message(kind: type[GpupifError], *message: object) -> GpupifError:
    error = kind.__new__(kind)
    error.args = message
    return error


class InputError(GpupifError, ValueError):
    """A table or an argument that cannot be scored as it is."""


class ColumnNotFoundError(InputError):
    """A column was named that the table, or another one (`where`), does not have."""

    def __init__(
        self, argument: str, missing: Iterable[object], existing: Iterable[object], where: str = "the table"
    ) -> None:
        unknown, have = list(missing), list(existing)
        hint = did_you_mean(str(unknown[0]), [str(name) for name in have])
        super().__init__(f"{argument}: no column {_some(unknown)} in {where}.{hint} Columns that exist: {_some(have)}.")


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Which of some names may have been meant, as a sentence behind another; nothing where none is near."""
    near = get_close_matches(name, list(names), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def _some(names: list[object]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(repr(name) for name in names[:MOST_NAMED]) + more


class ColumnTypeError(InputError, TypeError):
    """A column whose values cannot be compared for equality as categories (lists, structs, ...)."""

    def __init__(
        self,
        column: object,
        came: object,
        expected: str = "plain values (text, numbers, dates, ...)",
        mend: str = "Convert them to text, make columns of their own of them, or leave the column out with columns=.",
    ) -> None:
        super().__init__(f"column {column!r}: expected {expected}, got {came}. {mend}")


class PriorError(InputError):
    """A prior that is no probability distribution over the values of its column."""


class UnreachableError(InputError):
    """A criterion that a table cannot meet, whatever is done to it of what may be done."""


class NotScoredError(InputError, AttributeError):
    """A measure was asked of scores that do not have it; to ``hasattr`` and ``getattr`` it is not there."""


class TableReadError(GpupifError, ValueError):
    """A file that is missing, empty, truncated, or not what its name says."""


class DatabaseUnavailableError(TableReadError):
    """A database that cannot be reached, or that went away while it was read: later it may be there."""


class OutputError(GpupifError, ValueError):
    """An output that cannot be written where it was asked for."""


class AnotherRunError(GpupifError, RuntimeError):
    """A nightly run was asked for while another one is on in the same state folder."""


class DeviceError(GpupifError, RuntimeError):
    """A device was asked for that cannot be used here."""


class DeviceWarning(UserWarning):
    """A GPU that failed when it was tried and is left out: others, or the CPU, do its work."""


class NearlyUniqueWarning(UserWarning):
    """A column in which nearly every value occurs once: every other column then has cohorts of one row."""


class IdentifierWarning(UserWarning):
    """A column that looks as if it named persons, and stays in a table that is to be released."""


class SeedWarning(UserWarning):
    """A key of random treatments that is made from a number, so that others can guess it."""


class NothingKnownWarning(UserWarning):
    """The attacker knows no column, so that every cohort is the whole table and nothing can be learnt."""


def reason_of(error: BaseException) -> str:
    """What an error says, in one line and without its full stop."""
    return " ".join(str(error).split()).rstrip(".")


def warn(message: str, category: type[Warning]) -> None:
    """Warn, as if from the line outside gpupif that called it."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "gpupif":
        level, frame = level + 1, frame.f_back
    warnings.warn(printable(message), category, stacklevel=level)


class WarnOnce:
    """Warns of each thing once, however many attackers it matters to."""

    def __init__(self) -> None:
        self._warned: set[str] = set()

    def __call__(self, message: str, category: type[Warning]) -> None:
        """Warn, but not again."""
        if message not in self._warned:
            self._warned.add(message)
            warn(message, category)
