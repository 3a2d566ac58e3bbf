"""Hierarchies of codes whose beginning is a group, such as diagnoses of ICD-10: cut after their first characters."""

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
from .hierarchy import Hierarchy, everything


@dataclass(frozen=True)
class FirstCharacters(Hierarchy):
    """Codes by their first characters, fewer of them at each level: `E11` for E11 and E11.90.

    A code that has no more characters stays as it is. A whole number counts as the text of its digits.

    first: int, or list of int by level. How many characters are left. A number n means n, n - 1, ..., 1.

    Raises InputError if `first` are no numbers from 1 that descend.
    """

    first: int | Sequence[int]
    column: Hashable = field(default=None, repr=False, compare=False)

    expected = "text or a whole number"

    def __post_init__(self) -> None:
        given: Any = self.first
        numbers: list[Any]
        if is_whole(given):
            numbers = list(range(int(given), 0, -1)) or [0]
        else:
            numbers = list(given) if isinstance(given, Sequence | np.ndarray) else [None]
        good = not isinstance(given, str) and all(is_whole(number) and number > 0 for number in numbers)
        if not good or any(fewer >= more for more, fewer in pairwise(numbers)):
            raise InputError(
                f"{self.said}: first: expected how many first characters are left, by level: a number (3: three, two, "
                f"one), or a list that descends, such as [3, 1]; got {brief(given)}."
            )
        object.__setattr__(self, "first", tuple(map(int, numbers)))

    @property
    def left(self) -> Sequence[int]:
        """The number of characters that are left, by level."""
        assert isinstance(self.first, tuple)
        return self.first

    @property
    def height(self) -> int:
        return len(self.left) + 1

    def find(self, values: pa.Array, level: int) -> pa.Array:
        kind = values.type
        if not (pa.types.is_string(kind) or pa.types.is_integer(kind)):
            return pa.nulls(len(values), pa.string())
        if level == self.height:
            return everything(pa.array(np.ones(len(values), np.bool_)))
        return pc.utf8_slice_codeunits(values.cast(pa.string()), 0, self.left[level - 1])

    def to_plan(self) -> Any:
        return {"first": list(self.left)}
