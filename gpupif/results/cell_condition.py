"""Conditions on the scores of a cell, as text: ``cig >= 3 and (csf > 0.9 or cohort_size < 5)``.

    condition  = all {"or" all}
    all        = one {"and" one}
    one        = comparison | "(" condition ")"
    comparison = name (">" | ">=" | "<" | "<=") number
    name       = letters, digits, "_" and ".", not first a digit or "."; or anything but quotes, in double quotes
    number     = digits with a point and an exponent or without, and perhaps a sign: 3, -0.5, 1e-3

"and" binds closer than "or"; both may be in capitals. Nothing else is understood or evaluated. Signs of other languages
("not", "==", "&", a decimal comma) are refused, and the error says what to write.
"""

from __future__ import annotations

import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..utils.validation import brief

COMPARISONS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
TOKEN = re.compile(
    r"\s*(?:(?P<name>[^\W\d][\w.]*)|\"(?P<quoted>[^\"]+)\"|(?P<comparison>[<>]=?)"
    r"|(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])|(?P<bracket>[()]))"
)
# The most brackets within brackets.
MOST_NESTED = 100
EXAMPLE = "such as 'cig >= 3' or 'csf > 0.9 and cohort_size < 5'"

# Words that are names only in double quotes.
WORDS = ("and", "or", "not")
# Signs that are not understood, and what to write in their place.
INSTEAD = {
    r"not\b": "There is no 'not': turn the comparison around, '<' in place of '>='.",
    r"[=!]": "There is no '==' and no '!=': give the lowest and the highest, 'cohort_size >= 2 and cohort_size <= 2'.",
    r"[&|]": "Comparisons are joined by 'and' and 'or'.",
    r",": "A number has a decimal point: 0.5, not 0,5.",
}

# Returns the scores with a name.
ScoresOf = Callable[[str], Any]


class Condition(ABC):
    """A condition on the scores of a cell, which is true or false."""

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """The names of scores in the condition, in order."""

    @abstractmethod
    def holds(self, scores_of: ScoresOf) -> npt.NDArray[np.bool_]:
        """Return for each of some cells whether the condition is true; no comparison is, for an unknown score (NaN)."""


@dataclass(frozen=True)
class Comparison(Condition):
    """A score compared with a number."""

    name: str
    sign: str
    number: float

    @property
    def names(self) -> list[str]:
        return [self.name]

    def holds(self, scores_of: ScoresOf) -> npt.NDArray[np.bool_]:
        # NumPy before 2 rounds a number alone to the type of the scores; an array keeps its own type.
        found: npt.NDArray[np.bool_] = COMPARISONS[self.sign](scores_of(self.name), np.array([self.number]))
        return found


@dataclass(frozen=True)
class Joined(Condition):
    """Several conditions: all have to be true ("and"), or any ("or")."""

    word: str
    parts: Sequence[Condition]

    @property
    def names(self) -> list[str]:
        return [name for part in self.parts for name in part.names]

    def holds(self, scores_of: ScoresOf) -> npt.NDArray[np.bool_]:
        join: Any = operator.and_ if self.word == "and" else operator.or_
        found: npt.NDArray[np.bool_] = reduce(join, (part.holds(scores_of) for part in self.parts))
        return found


def parse_condition(text: Any) -> Condition:
    """Return the condition in a text. Raises InputError for a text that is none."""
    if not isinstance(text, str):
        raise InputError(f"where: expected a condition as text, {EXAMPLE}; got {brief(text)}.")
    return ConditionParser(text).parse()


class ConditionParser:
    """A reader of conditions, from left to right.

    token: the pattern of tokens. tokens: the tokens in words. words: names that have to be quoted. instead: by pattern,
    what to write in place of a sign that is not understood. example: ends the errors.
    """

    token = TOKEN
    tokens = "a name, a number, or one of > >= < <= ( )"
    words: Sequence[str] = WORDS
    instead: Mapping[str, str] = INSTEAD
    example = EXAMPLE

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str, int]] = []
        place = 0
        while text[place:].strip():
            token = self.token.match(text, place)
            if token is None:
                raise self._error(self.tokens, len(text) - len(text[place:].lstrip()))
            kind = str(token.lastgroup)
            self._tokens.append((kind, token[kind], token.start(kind) - (kind == "quoted")))
            place = token.end()
        self._next = 0

    def parse(self) -> Condition:
        """Return the condition of the whole text."""
        condition = self._any(0)
        if self._next < len(self._tokens):
            raise self._unexpected("'and', 'or', or the end")
        return condition

    def _any(self, depth: int) -> Condition:
        return self._joined("or", lambda: self._joined("and", lambda: self._one(depth)))

    def _joined(self, word: str, part: Callable[[], Condition]) -> Condition:
        parts = [part()]
        while self._take("name", word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Joined(word, tuple(parts))

    def _one(self, depth: int) -> Condition:
        if self._take("bracket", "("):
            if depth == MOST_NESTED:
                raise self._unexpected(f"at most {MOST_NESTED} brackets within each other")
            inner = self._any(depth + 1)
            if not self._take("bracket", ")"):
                raise self._unexpected("')'")
            return inner
        return self._comparison()

    def _comparison(self) -> Condition:
        if any(self._at("name", word) for word in self.words):
            raise self._unexpected("the name of a measure first, or '('")
        name = self._take("name") or self._take("quoted")
        if name is None:
            raise self._unexpected("the name of a measure first, or '('")
        sign = self._take("comparison")
        if sign is None:
            raise self._unexpected(f"one of > >= < <= behind {name!r}")
        number = self._take("number")
        if number is None or not np.isfinite(float(number)):
            self._next -= number is not None
            raise self._unexpected(f"a number behind {name} {sign}")
        return Comparison(name, sign, float(number))

    def _at(self, kind: str, text: str | None = None) -> bool:
        """Return whether the next token is of this kind, and is this text."""
        if self._next == len(self._tokens):
            return False
        found, value, _ = self._tokens[self._next]
        return found == kind and text in (None, value.lower())

    def _take(self, kind: str, text: str | None = None) -> str | None:
        """Return the next token and go on, if it is of this kind and is this text; else return None."""
        if not self._at(kind, text):
            return None
        self._next += 1
        return self._tokens[self._next - 1][1]

    def _unexpected(self, expected: str) -> InputError:
        places = [place for _, _, place in self._tokens]
        return self._error(expected, [*places, len(self._text)][self._next])

    def _error(self, expected: str, place: int) -> InputError:
        rest = self._text[place:].strip()
        came = f"got {brief(rest)} at character {place + 1}" if rest else "it ends there"
        instead = "".join(f"{said} " for sign, said in self.instead.items() if re.match(sign, rest, re.IGNORECASE))
        return InputError(
            f"where: expected {expected} in {brief(self._text)}, {came}. {instead}Write a condition {self.example}; "
            "names with other characters stand in double quotes."
        )
