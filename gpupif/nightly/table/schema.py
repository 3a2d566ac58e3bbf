"""How the columns of a table differ from those of the last good run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Of a column in which all values are missing, or of texts that were not read.
NO_TYPE = "null"


@dataclass(frozen=True)
class SchemaChange:
    """Columns that came and went; and by name the types, before and now, of those that changed theirs.

    A column of which no value is known has no type that could change.
    """

    came: tuple[str, ...]
    went: tuple[str, ...]
    changed: Mapping[str, tuple[str, str]]

    @classmethod
    def between(cls, before: Mapping[str, str], now: Mapping[str, str]) -> SchemaChange:
        """From types by column."""
        return cls(
            tuple(name for name in now if name not in before),
            tuple(name for name in before if name not in now),
            {
                name: types
                for name in now
                if name in before and len({*(types := (before[name], now[name]))} - {NO_TYPE}) > 1
            },
        )

    def __bool__(self) -> bool:
        return bool(self.came or self.went or self.changed)

    def __str__(self) -> str:
        parts = [
            f"{word} {', '.join(map(repr, names))}"
            for word, names in (("new", self.came), ("gone", self.went))
            if names
        ]
        parts += [f"{name!r} was {before}, is {now}" for name, (before, now) in self.changed.items()]
        return "; ".join(parts)
