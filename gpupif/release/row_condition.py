"""Conditions on the values of a row, as text: ``sex = 'F' and age >= 30 and not (county in ('Kent', 'Essex'))``.

The grammar is that of conditions on scores (see `results.cell_condition`), with other comparisons, and with "not":

    one        = "not" one | comparison | "(" condition ")"
    comparison = name ("=" | "!=" | "<" | "<=" | ">" | ">=") value | name ["not"] "in" "(" value {"," value} ")"
                 | name "is" ["not"] "missing"
    value      = number | text in single quotes, '' for a quote in it | "true" | "false"

A date is a text, '2026-01-31'. A missing value meets no comparison, so that "not", "!=" and "not in" are true for it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..encoding.column import Column, numbers_of
from ..errors import InputError, marked
from ..results.cell_condition import MOST_NESTED, Condition, ConditionParser
from ..utils.validation import brief


@dataclass(frozen=True)
class Places:
    """The places of values among the constants of a column, see `Constants`.

    places: integers, of any shape. constants: the constants of the column, ascending.
    """

    places: npt.NDArray[np.int64]
    constants: Sequence[Any]


@dataclass(frozen=True)
class Comparison(Condition):
    """A column compared with values. sign: =, <, <=, >, >=, in, or missing, which compares with nothing."""

    name: str
    sign: str
    values: Sequence[Any] = ()

    @property
    def names(self) -> list[str]:
        return [self.name]

    def holds(self, scores_of: Any) -> npt.NDArray[np.bool_]:
        """Return for each row whether the comparison is true. scores_of: returns the `Places` of a column."""
        column: Places = scores_of(self.name)
        places, missing = column.places, 2 * len(column.constants) + 1
        if self.sign == "missing":
            return np.equal(places, missing)
        at = [2 * bisect_left(column.constants, value) + 1 for value in self.values]
        if self.sign in ("=", "in"):
            return np.equal(places, at[0]) if len(at) == 1 else np.isin(places, at)
        low = {"<": 0, "<=": 0, ">": at[0] + 1, ">=": at[0]}[self.sign]
        high = {"<": at[0] - 1, "<=": at[0], ">": missing - 1, ">=": missing - 1}[self.sign]
        return (places >= low) & (places <= high)


@dataclass(frozen=True)
class Not(Condition):
    """A condition that must not be true."""

    part: Condition

    @property
    def names(self) -> list[str]:
        return self.part.names

    def holds(self, scores_of: Any) -> npt.NDArray[np.bool_]:
        return ~self.part.holds(scores_of)


class _RowParser(ConditionParser):
    """A reader of conditions on rows."""

    token = re.compile(
        r"\s*(?:(?P<name>[^\W\d][\w.]*)|\"(?P<quoted>[^\"]+)\"|'(?P<text>(?:[^']|'')*)'|(?P<comparison>[<>]=?|!=|=)"
        r"|(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])|(?P<bracket>[(),]))"
    )
    tokens = "a name, a number, a text in single quotes, or one of = != > >= < <= ( ) ,"
    words = ("and", "or", "not", "in", "is", "true", "false")
    instead: Mapping[str, str] = {
        r"[&|]": "Comparisons are joined by 'and' and 'or'.",
        r"=": "Equal is one '=' sign.",
        r"[\"\w]": "Texts stand in single quotes.",
        r"null": "Write 'is missing'.",
    }
    example = "such as \"sex = 'F' and age >= 30\" or \"not county in ('Kent', 'Essex')\""

    def _one(self, depth: int) -> Condition:
        if self._take("name", "not"):
            if depth == MOST_NESTED:
                raise self._unexpected(f"at most {MOST_NESTED} brackets and 'not' within each other")
            return Not(self._one(depth + 1))
        return super()._one(depth)

    def _comparison(self) -> Condition:
        is_word = self._at("name") and self._tokens[self._next][1].lower() in self.words
        name = None if is_word else self._take("name") or self._take("quoted")
        if name is None:
            raise self._unexpected("the name of a column first, or '('")
        sign = self._take("comparison")
        if sign is not None:
            found: Condition = Comparison(name, sign.removeprefix("!"), (self._value(),))
            return Not(found) if sign == "!=" else found
        is_missing = bool(self._take("name", "is"))
        negated = bool(self._take("name", "not"))
        if is_missing:
            self._need("name", "missing", "'missing'")
            found = Comparison(name, "missing")
        else:
            self._need("name", "in", f"'in'{'' if negated else ', is, or one of = != > >= < <='} behind {name!r}")
            self._need("bracket", "(", "'(' and a list of values")
            values = [self._value()]
            while self._take("bracket", ","):
                values.append(self._value())
            self._need("bracket", ")", "',' or ')'")
            found = Comparison(name, "in", tuple(values))
        return Not(found) if negated else found

    def _need(self, kind: str, text: str, expected: str) -> None:
        """Go on behind the next token if it is this text. Raises InputError, which says what was expected."""
        if not self._take(kind, text):
            raise self._unexpected(expected)

    def _value(self) -> Any:
        """Return the number or the text that comes next."""
        number = self._take("number")
        if number is not None and np.isfinite(float(number)):
            return int(number) if re.fullmatch(r"[+-]?\d+", number) else float(number)
        self._next -= number is not None
        text = self._take("text")
        if text is not None:
            return text.replace("''", "'")
        word = self._take("name", "true") or self._take("name", "false")
        if word is None:
            raise self._unexpected("a number, or a text in single quotes,")
        return word.lower()


@lru_cache(1 << 16)
def parse_row_condition(text: Any) -> Condition:
    """Return the condition on rows in a text. Raises InputError for a text that is none."""
    if not isinstance(text, str):
        raise InputError(f"where: expected a condition as text, {_RowParser.example}; got {brief(text)}.")
    return _RowParser(text).parse()


def comparisons_in(condition: Condition | None) -> Iterator[Comparison]:
    """Yield the comparisons in a condition. None, the condition of all rows, has none."""
    if isinstance(condition, Comparison):
        yield condition
    for part in (condition.part,) if isinstance(condition, Not) else getattr(condition, "parts", ()):
        yield from comparisons_in(part)


class Constants:
    """The constants that conditions compare a column with, and the places of values among them.

    With m constants in ascending order, a value has place 2i + 1 if it equals constant i, and the even place between
    if it lies between two constants; a missing value has place 2m + 1. All comparisons of a condition follow from the
    place. *Classes* are the places that no comparison tells apart.

    name: the column. values: the constants, ascending. first: by class, its first place. class_of: by place, its class.
    """

    def __init__(self, name: Hashable, comparisons: Sequence[Comparison]) -> None:
        given = {value for comparison in comparisons for value in comparison.values}
        if len({isinstance(value, str) for value in given}) > 1:
            text = next(value for value in given if isinstance(value, str))
            raise InputError(
                f"queries: column {str(name)!r} is compared with numbers and with the text {text!r}. Compare it with "
                "numbers only, or with texts only."
            )
        self.name, self.values = name, sorted(given)
        self.first, self.class_of = self.told_apart(comparisons)

    def told_apart(self, comparisons: Sequence[Comparison]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the first place of each class that some comparisons tell apart, and the class of each place."""
        places = np.arange(2 * len(self.values) + 2)
        own = Places(places, self.values)
        told = np.array([comparison.holds(lambda _: own) for comparison in comparisons]).reshape(-1, len(places))
        _, first, inverse = np.unique(np.packbits(told, axis=0), axis=1, return_index=True, return_inverse=True)
        order = np.argsort(first)
        return first[order], np.argsort(order)[inverse.reshape(-1)]

    def describe(self, places: Sequence[int]) -> str:
        """Return some places as a condition in words, or in words what the other places are, with "not" before it."""
        others = sorted({*range(2 * len(self.values) + 2)} - {*places})
        parts, negated = self._intervals(places), self._intervals(others)
        least = min(parts, negated, key=len)
        joined = least[0] if len(least) == 1 else f"({' or '.join(least)})"
        return joined if least is parts else f"not {joined}"

    def _intervals(self, places: Sequence[int]) -> list[str]:
        """Return in words the intervals of values that some places are, and whether missing values are among them."""
        name, values, missing = self.name, self.values, 2 * len(self.values) + 1
        known, said = np.array([own for own in places if own != missing], np.int64), []
        for run in np.split(known, np.flatnonzero(np.diff(known) != 1) + 1) if len(known) else ():
            first, last = int(run[0]), int(run[-1])
            low = [f"{name} {'>=' if first % 2 else '>'} {values[(first - 1) // 2]}"] if first else []
            high = [f"{name} {'<=' if last % 2 else '<'} {values[last // 2]}"] if last < missing - 1 else []
            is_value = first == last and first % 2
            ends = [f"{name} = {values[first // 2]}"] if is_value else [*low, *high]
            said.append(" and ".join(ends or [f"{name} is not missing"]))
        return said + [f"{name} is missing"] * (missing in places)

    def classes(self, column: Column) -> npt.NDArray[np.int64]:
        """Return the class of each code of a column. Raises InputError for values of another type than the constants.

        Dates and truth values are compared by their text.
        """
        places = np.full(column.cardinality, 2 * len(self.values) + 1)
        if self.values:
            labels = self._comparable(column)
            constants = np.array(self.values, object if labels.dtype.kind == "O" else None)
            left = np.searchsorted(constants, labels)
            places[: len(labels)] = left + np.searchsorted(constants, labels, side="right")
        else:
            places[: len(column.labels)] = 0
        classes: npt.NDArray[np.int64] = self.class_of[places]
        return classes

    def _comparable(self, column: Column) -> npt.NDArray[Any]:
        """Return the labels as they are compared: numbers, or objects that are texts."""
        kind = getattr(column.labels, "dtype", None)
        numbers = numbers_of(column.labels)
        plain = column.values([0])[0] if len(numbers) else 0
        if isinstance(self.values[0], str):
            if len(numbers) and not isinstance(plain, str | bool) and not np.isnan(numbers[0]):
                raise self._refusal("texts", f"the number {marked(brief(plain))}", "Leave the single quotes out.")
            texts = [str(text).removesuffix(" 00:00:00") for text in column.texts()[:-1]]
            return np.array([*texts, None], object)[:-1]
        if np.isnan(numbers).any():
            place = int(np.argmax(np.isnan(numbers)))
            value = brief(column.values([place])[0])
            raise self._refusal("numbers", marked(value), "Compare it with texts in single quotes.")
        exact = all(isinstance(value, int) for value in self.values) and getattr(kind, "kind", "") in "iu"
        return np.asarray(column.labels) if exact else numbers

    def _refusal(self, expected: str, came: str, mend: str) -> InputError:
        return InputError(
            f"queries: column {str(self.name)!r} is compared with {expected}, such as {brief(self.values[0])}, but the "
            f"table has {came} there. {mend}"
        )
