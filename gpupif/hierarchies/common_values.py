"""Hierarchies of categories by their frequency: rare values are pooled, more of them at each level."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError
from ..utils.validation import brief, is_whole
from .hierarchy import Hierarchy, as_texts, everything, text_places


@dataclass(frozen=True)
class CommonValues(Hierarchy):
    """The most common values stay as they are, fewer of them at each level; all other values are one group.

    Every value has a place: a value that is not listed is in the group of other values.

    common: list of values or their texts, the most common value first.
    keep: int, or list of int by level. How many of the common values stay as they are; fewer at each level. Default:
        all, at one level.
    label: str. The name of the group of all other values.

    Raises InputError if common values repeat, or `keep` does not descend or is larger than the number of values.
    """

    common: Sequence[Any]
    keep: Sequence[int] | None = None
    label: str = "other"
    column: Hashable = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.common, str) or not isinstance(self.common, Sequence | np.ndarray):
            raise InputError(
                f"{self.said}: common: expected a list of values, the most common one first, got {brief(self.common)}."
            )
        texts = tuple(as_texts(f"{self.said}: common", self.common))
        if len(set(texts)) < len(texts):
            twice = next(text for place, text in enumerate(texts) if text in texts[:place])
            raise InputError(f"{self.said}: common: expected different values, {twice!r} is there twice.")
        if self.keep is None:
            keep: Sequence[Any] = [len(texts)] if texts else []
        else:
            keep = [self.keep] if is_whole(self.keep) else self.keep
        whole = isinstance(keep, Sequence) and all(is_whole(number) and 0 < number <= len(texts) for number in keep)
        if not whole or any(fewer >= more for more, fewer in pairwise(keep)):
            raise InputError(
                f"{self.said}: keep: expected how many of the {len(texts)} common values are kept, fewer at each "
                f"level, such as [20, 10, 5]; got {brief(self.keep)}."
            )
        if not isinstance(self.label, str) or not self.label:
            raise InputError(f"{self.said}: label: expected the name of a group, got {brief(self.label)}.")
        object.__setattr__(self, "common", texts)
        object.__setattr__(self, "keep", tuple(map(int, keep)))

    @property
    def kept(self) -> Sequence[int]:
        """The number of values that are kept, by level."""
        assert isinstance(self.keep, tuple)
        return self.keep

    @property
    def height(self) -> int:
        return len(self.kept) + 1

    @cached_property
    def _texts(self) -> pa.Array:
        return pa.array(self.common, pa.string())

    def find(self, values: pa.Array, level: int) -> pa.Array:
        if level == self.height:
            return everything(pa.array(np.ones(len(values), np.bool_)))
        places = text_places(values, self._texts)
        kept = (places >= 0) & (places < self.kept[level - 1])
        return pc.fill_null(self._texts.take(pa.array(places, mask=~kept)), self.label)

    def to_plan(self) -> Any:
        label = {} if self.label == "other" else {"label": self.label}
        return {"common": list(self.common), "keep": list(self.kept), **label}
