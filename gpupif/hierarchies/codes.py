"""Hierarchies of codes: masked from the right, as postcodes are, or cut after their first characters, as ICD-10's."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError
from ..utils.validation import brief, is_whole, whole_number
from .hierarchy import ANYTHING, Hierarchy, everything

# The most characters that are masked or left: a text of so many is made for every code.
MOST_CHARACTERS = 1000
# The end of a text, as a slice has it.
_LAST = 2**31 - 1


class Codes(Hierarchy):
    """Codes that lose characters at their end, more of them at each level. A whole number is the text of its digits."""

    expected = "text or a whole number"

    @property
    @abstractmethod
    def numbers(self) -> Sequence[int]:
        """The number of characters that are masked or left, by level."""

    @abstractmethod
    def shorten(self, codes: pa.Array, number: int) -> pa.Array:
        """Return texts without characters at their end."""

    @property
    def height(self) -> int:
        return len(self.numbers) + 1

    def find(self, values: pa.Array, level: int) -> pa.Array:
        kind = values.type
        if not (pa.types.is_string(kind) or pa.types.is_integer(kind)):
            return pa.nulls(len(values), pa.string())
        if level == self.height:
            return everything(pa.array(np.ones(len(values), np.bool_)))
        return self.shorten(values.cast(pa.string()), self.numbers[level - 1])

    def _by_level(self, given: Any, ascend: bool, expected: str) -> tuple[int, ...]:
        """Return the numbers of a field by level: those given, or all from 1 to a single number.

        ascend: whether they ascend or descend. expected: in words, for the InputError.
        """
        numbers: list[Any]
        if is_whole(given):
            numbers = list(range(1, min(int(given), MOST_CHARACTERS + 1) + 1))[:: 1 if ascend else -1] or [0]
        else:
            numbers = list(given) if isinstance(given, Sequence | np.ndarray) else [None]
        good = not isinstance(given, str) and all(
            is_whole(number) and 0 < number <= MOST_CHARACTERS for number in numbers
        )
        if not good or any((one < next_one) != ascend or one == next_one for one, next_one in pairwise(numbers)):
            raise InputError(f"{self.said}: {expected}, up to {MOST_CHARACTERS:,}; got {brief(given)}.")
        return tuple(map(int, numbers))


@dataclass(frozen=True)
class MaskedCodes(Codes):
    """Codes whose last characters are masked, more of them at each level: ``123**``.

    All codes that are masked whole are one group. A whole number counts as the text of its digits.

    digits: int, or list of int by level. How many characters are masked. A number n means 1, 2, ..., n.
    length: int. The length of codes of digits alone: shorter codes get zeros in front, which they lost if they were
        read as numbers. Longer codes, and codes with other characters, stay as they are. Default: all do.

    Raises InputError if `digits` are no numbers from 1 to 1,000 that ascend, or `length` is no number from 1 to 1,000.
    """

    digits: int | Sequence[int]
    length: int | None = None
    column: Hashable = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        expected = (
            "digits: expected how many are masked from the right, by level: a number (3: one, two, three), or a list "
            "that ascends, such as [2, 4]"
        )
        object.__setattr__(self, "digits", self._by_level(self.digits, True, expected))
        if self.length is not None:
            whole_number(f"{self.said}: length", self.length, "digits", 1, MOST_CHARACTERS)

    @property
    def numbers(self) -> Sequence[int]:
        assert isinstance(self.digits, tuple)
        return self.digits

    def shorten(self, codes: pa.Array, number: int) -> pa.Array:
        if self.length is not None:
            filled = pc.utf8_lpad(codes, self.length, "0")
            codes = pc.if_else(pc.match_substring_regex(codes, "^[0-9]+$"), filled, codes)
        return pc.utf8_replace_slice(codes, -number, _LAST, ANYTHING * number)

    def to_plan(self) -> Any:
        length = {} if self.length is None else {"length": int(self.length)}
        return {"digits": list(self.numbers), **length}


@dataclass(frozen=True)
class FirstCharacters(Codes):
    """Codes by their first characters, fewer of them at each level: `E11` for E11 and E11.90.

    A code that has no more characters stays as it is. A whole number counts as the text of its digits.

    first: int, or list of int by level. How many characters are left. A number n means n, n - 1, ..., 1.

    Raises InputError if `first` are no numbers from 1 to 1,000 that descend.
    """

    first: int | Sequence[int]
    column: Hashable = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        expected = (
            "first: expected how many first characters are left, by level: a number (3: three, two, one), or a list "
            "that descends, such as [3, 1]"
        )
        object.__setattr__(self, "first", self._by_level(self.first, False, expected))

    @property
    def numbers(self) -> Sequence[int]:
        assert isinstance(self.first, tuple)
        return self.first

    def shorten(self, codes: pa.Array, number: int) -> pa.Array:
        return pc.utf8_slice_codeunits(codes, 0, number)

    def to_plan(self) -> Any:
        return {"first": list(self.numbers)}
