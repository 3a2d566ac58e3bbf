"""Errors and warnings of gpupif. Each message says which value was expected, which came, and how to mend it."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any

# The signs between the words of a name.
WORDS = re.compile(r"[\W_]+")
# The most columns that an error lists.
MOST_NAMED = 40
# The signs before and behind a value of a table in the arguments of an error. Unicode reserves both for use within a
# program; `printable` escapes them in values.
VALUE_BEGINS, VALUE_ENDS = "\ufdd0", "\ufdd1"


def printable(text: str) -> str:
    """Return a text in which no character acts on a terminal. Characters that `repr` escapes are escaped in its way.

    These are control characters, line breaks among them, and marks that change the direction of writing. Zero-width
    characters and unusual spaces are escaped too: with them, different values look alike. Lone surrogates are escaped,
    as no terminal can take them. A backslash stays as it is.
    """
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def listed(names: Sequence[Any], most: int, show: Callable[[Any], str] = repr) -> str:
    """Return the first `most` names, with commas between them, and the number of further names.

    show: returns a name as text. Default: `repr`.
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(show, names[:most])) + more


def marked(text: str) -> str:
    """Return the text of a value of a table, for the message of an error.

    The error remembers which part of its message is the value: `GpupifError.text` can leave it out.
    """
    return f"{VALUE_BEGINS}{printable(text)}{VALUE_ENDS}"


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return a question that suggests the most similar of some names, with a space before it; "" if none is similar.

    Similar are names with few other letters, else the first name that begins or ends with the word, as distinct_l does
    with l.
    """
    known = list(names)
    near = get_close_matches(name, known, n=1)
    near += [own for own in known if name and name in (WORDS.split(own)[0], WORDS.split(own)[-1])]
    return f" Did you mean {near[0]!r}?" if near else ""


class GpupifError(Exception):
    """The base of all errors that gpupif raises on purpose.

    Its arguments are the lines of the message, nearly always a single line; `str` makes them `printable`.
    """

    def __str__(self) -> str:
        return self.text(str)

    def text(self, show: Callable[[str], str]) -> str:
        """Return the message. show: returns what to write for a value of a table, see `marked`."""
        return "\n".join(printable(_with_values(str(line), show)) for line in self.args)

    def __reduce__(self) -> tuple[Any, ...]:
        # Subclasses take other arguments than the message, so an error is unpickled from its message.
        return _with_message, (type(self), *self.args), vars(self) or None

    def about(self, argument: str, *words: str) -> GpupifError:
        """Return the error for another argument: its name replaces ``table: ``, and `words`, at the beginning."""
        first, *others = self.args or ("",)
        message = str(first)
        for word in ("table: ", *words):
            message = message.removeprefix(word)
        made = _with_message(type(self), f"{argument}: {message}", *others)
        vars(made).update(vars(self))
        return made


def _with_message(kind: type[GpupifError], *message: object) -> GpupifError:
    error = kind.__new__(kind)
    error.args = message
    return error


def _with_values(line: str, show: Callable[[str], str]) -> str:
    """Return a line of a message with `show(value)` in place of each value of a table."""
    before, *parts = line.split(VALUE_BEGINS)
    shown = [before]
    for part in parts:
        # If a value was cut short, its end is missing: all that follows counts as the value.
        value, _, behind = part.partition(VALUE_ENDS)
        shown += [show(value), behind]
    return "".join(shown).replace(VALUE_ENDS, "")


class InputError(GpupifError, ValueError):
    """A table or an argument that cannot be scored as it is."""


class ColumnNotFoundError(InputError):
    """The name of a column that a table does not have. where: the table in the message. Default: "the table"."""

    def __init__(
        self, argument: str, missing: Iterable[object], existing: Iterable[object], where: str = "the table"
    ) -> None:
        unknown, have = list(missing), list(existing)
        alike = [name for name in have if str(name) == str(unknown[0])]
        hint = did_you_mean(str(unknown[0]), [str(name) for name in have])
        if alike:
            hint = f" There is {alike[0]!r}, a name of another type: name it so, or rename the column."
        super().__init__(
            f"{argument}: no column {listed(unknown, MOST_NAMED)} in {where}.{hint} Columns that exist: "
            f"{listed(have, MOST_NAMED)}."
        )


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


class NoValueError(InputError):
    """A sensitive attribute without a known value, if missing values match every value."""


class UnmetError(GpupifError, ValueError):
    """Criteria that the treated table breaks, or that no treatment was found to meet. The exit code is 3.

    nearest: the `gpupif.protection.result.Protection` that came nearest, or None.
    """

    nearest: Any = None


class NotScoredError(InputError, AttributeError):
    """A measure that some scores do not have. It is an AttributeError, so that ``hasattr`` returns False for it."""


class TableReadError(GpupifError, ValueError):
    """A file that is missing, empty, truncated, or not of the format that its name says."""


class DatabaseUnavailableError(TableReadError):
    """A database that cannot be reached, or whose connection was lost while it was read. Trying later may help."""


class OutputError(GpupifError, ValueError):
    """An output that cannot be written to the path that was given."""


class ReplacedInputError(OutputError, InputError):
    """An output that is an input or another output of the same run, inside it or around it."""


class AnotherRunError(GpupifError, RuntimeError):
    """A nightly run that is started while another run works in the same state folder."""


class DeviceError(GpupifError, RuntimeError):
    """A device that cannot be used here."""


class DeviceWarning(UserWarning):
    """A GPU that failed when it was tried, and is not used: other GPUs, or the CPU, do its work."""


class NearlyUniqueWarning(UserWarning):
    """A column in which nearly every value occurs once: all other columns then have cohorts of a single row."""


class IdentifierWarning(UserWarning):
    """A column that seems to name persons, and stays in a table that will be released."""


class SeedWarning(UserWarning):
    """A key of random treatments that is made from a number, which others can guess."""


class NothingKnownWarning(UserWarning):
    """An attacker who knows no column. Every cohort is then the whole table, and the attacker learns nothing."""


def reason_of(error: BaseException, has_values: bool = True) -> str:
    """Return the message of an error for the message of another error: in one line and without its full stop.

    Values of a table stay marked, see `marked`. A message of another library is marked as a whole: it may have a value
    of the table anywhere, with or without quotation marks. Messages of the system have none.

    has_values: whether the message may have values. Default: True.
    """
    lines = map(str, error.args) if isinstance(error, GpupifError) else [str(error)]
    text = " ".join("\n".join(lines).split()).rstrip(".")
    # Arrow raises OSError, too, but without a number.
    of_system = isinstance(error, OSError) and error.errno is not None
    return marked(text) if text and has_values and not of_system and not isinstance(error, GpupifError) else text


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning that points to the line outside gpupif from which gpupif was called."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "gpupif":
        level, frame = level + 1, frame.f_back
    warnings.warn(printable(message), category, stacklevel=level)


class WarnOnce:
    """A callable that issues each warning once, whatever the number of attackers that it concerns."""

    def __init__(self) -> None:
        self._warned: set[str] = set()

    def __call__(self, message: str, category: type[Warning]) -> None:
        """Issue a warning, unless its message was issued before."""
        if message not in self._warned:
            self._warned.add(message)
            warn(message, category)
