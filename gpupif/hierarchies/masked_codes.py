"""Hierarchies of codes such as postcodes: masked from the right."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError
from ..utils.validation import brief, is_whole
from .hierarchy import ANYTHING, Hierarchy, everything

# The end of a text, as a slice has it.
_LAST = 2**31 - 1


@dataclass(frozen=True)
class MaskedCodes(Hierarchy):
    """Codes whose last characters are masked, more of them at each level: ``123**``.

    All codes that are masked whole are one group. A whole number counts as the text of its digits.

    digits: int, or list of int by level. How many characters are masked. A number n means 1, 2, ..., n.
    length: int. The length of codes of digits alone: shorter codes get zeros in front, which they lost if they were
        read as numbers. Longer codes, and codes with other characters, stay as they are. Default: all do.

    Raises InputError if `digits` are no numbers from 1 that ascend, or `length` is no whole number from 1.
    """

    digits: int | Sequence[int]
    length: int | None = None
    column: Hashable = field(default=None, repr=False, compare=False)

    expected = "text or a whole number"

    def __post_init__(self) -> None:
        given: Any = self.digits
        numbers: list[Any]
        if is_whole(given):
            numbers = list(range(1, int(given) + 1)) if given > 0 else [0]
        else:
            numbers = list(given) if isinstance(given, Sequence | np.ndarray) else [None]
        good = not isinstance(given, str) and all(is_whole(number) and number > 0 for number in numbers)
        if not good or any(more <= fewer for fewer, more in pairwise(numbers)):
            raise InputError(
                f"{self.said}: digits: expected how many are masked from the right, by level: a number (3: one, two, "
                f"three), or a list that ascends, such as [2, 4]; got {brief(given)}."
            )
        object.__setattr__(self, "digits", tuple(map(int, numbers)))
        if self.length is not None and (not is_whole(self.length) or self.length < 1):
            raise InputError(f"{self.said}: length: expected a whole number of digits, got {brief(self.length)}.")

    @property
    def masked(self) -> Sequence[int]:
        """The number of characters that are masked, by level."""
        assert isinstance(self.digits, tuple)
        return self.digits

    @property
    def height(self) -> int:
        return len(self.masked) + 1

    def find(self, values: pa.Array, level: int) -> pa.Array:
        kind = values.type
        if not (pa.types.is_string(kind) or pa.types.is_integer(kind)):
            return pa.nulls(len(values), pa.string())
        if level == self.height:
            return everything(pa.array(np.ones(len(values), np.bool_)))
        texts = values.cast(pa.string())
        if self.length is not None:
            filled = pc.utf8_lpad(texts, self.length, "0")
            texts = pc.if_else(pc.match_substring_regex(texts, "^[0-9]+$"), filled, texts)
        masked = self.masked[level - 1]
        return pc.utf8_replace_slice(texts, -masked, _LAST, ANYTHING * masked)

    def to_plan(self) -> Any:
        length = {} if self.length is None else {"length": int(self.length)}
        return {"digits": list(self.masked), **length}
