"""Hierarchies that list the groups of each value: a dictionary, JSON, or a CSV file of ARX."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..attack.hierarchy_files import paths_up
from ..attack.priors import plain_value
from ..errors import InputError
from ..utils.validation import brief, table_value
from .hierarchy import ANYTHING, Hierarchy, as_texts, text_places


@dataclass(frozen=True, eq=False)
class ValueTree(Hierarchy):
    """A hierarchy that lists the groups of each value, the narrowest group first.

    `gpupif.score` takes the same dictionary as a distance. Entries of missing values are left out.

    The top is the lowest level with one group, whatever its name; levels above it are left out. If no level has one
    group, a top with the group ``*`` is added.

    values: dict. For each value, or its text, the names of its groups; the same number for each value.
    file: Path. The file that the hierarchy was read from; None without a file.

    Raises InputError if values have different numbers of names, or levels do not nest.
    """

    values: Mapping[Any, Sequence[Any]]
    file: Path | None = None
    column: Hashable = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.values, Mapping) or all(plain_value(value) is None for value in self.values):
            raise InputError(
                f"{self.said}: values: expected a dictionary of values and the names of the groups of each, got "
                f"{brief(self.values)}."
            )
        paths = paths_up(self.said, self.values, "" if self.file is None else f" in {self.file}")
        # Missing values are in no group.
        known = list(filter(_is_known, paths))
        levels = [as_texts(self.said, names) for names in zip(*(paths[value] for value in known), strict=True)]
        named = list(zip(*levels, strict=True)) if levels else [()] * len(known)
        texts = as_texts(self.said, known)
        tree = dict(zip(texts, named, strict=True))
        if len(tree) < len(known):
            self._refuse_texts_of_two(known, texts, named)
        # The top has all cells: a level with one group of values, and another of missing values, is not the top.
        of_missing = [names for value, names in paths.items() if not _is_known(value)]
        groups = [{*names, *(str(path[level]) for path in of_missing)} for level, names in enumerate(levels)]
        height = next((level for level, names in enumerate(groups, 1) if len(names) == 1), None)
        root = (ANYTHING,) if height is None else ()
        object.__setattr__(self, "values", {text: (*path[:height], *root) for text, path in tree.items()})

    def _refuse_texts_of_two(self, values: Sequence[Any], texts: Sequence[str], named: Sequence[Any]) -> None:
        """Raise InputError if two values have the same text, and different groups."""
        first: dict[str, int] = {}
        for place, text in enumerate(texts):
            other = first.setdefault(text, place)
            if named[other] != named[place]:
                raise InputError(
                    f"{self.said}: {table_value(values[other])} and {table_value(values[place])} have one "
                    f"text, {table_value(text)}, and "
                    "different groups. Keep one of the two."
                )

    @property
    def height(self) -> int:
        return len(self._path)

    @property
    def root(self) -> str:  # type: ignore[override]
        """The name of the group at the top."""
        return str(self._path[-1])

    @property
    def _path(self) -> Sequence[Any]:
        """The names of the groups of the first value: one name for each level, the top last."""
        return next(iter(self.values.values()))

    @property
    def expected(self) -> str:  # type: ignore[override]
        """The values that have a place, in words."""
        some = ", ".join(map(repr, list(self.values)[:3]))
        return f"a value that {self.file or 'it'} names ({some}{', ...' * (len(self.values) > 3)})"

    @cached_property
    def _texts(self) -> pa.Array:
        return pa.array(list(self.values), pa.string())

    @cached_property
    def _names(self) -> list[pa.Array]:
        """The name of the group of each value, by level from 1."""
        columns = zip(*self.values.values(), strict=True)
        return [pa.array(names, pa.string()) for names in columns]

    def find(self, values: pa.Array, level: int) -> pa.Array:
        places = text_places(values, self._texts)
        return self._names[level - 1].take(pa.array(places, mask=places < 0))

    def leaves(self, level: int) -> Mapping[str, int]:
        return Counter(map(str, self._names[level - 1].to_pylist()))

    def to_plan(self) -> Any:
        if self.file is not None:
            return str(self.file)
        tree = {text: list(path) for text, path in self.values.items()}
        return {"values": tree}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValueTree) and self.values == other.values

    __hash__ = None  # type: ignore[assignment]


def _is_known(value: Any) -> bool:
    """Return whether a key of a hierarchy is a value, and not missing."""
    return isinstance(value, str) or plain_value(value) is not None
