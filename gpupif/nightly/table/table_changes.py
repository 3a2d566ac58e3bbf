"""Changes of a table since another run: its files, and its columns with their types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class InputFile:
    """A file of the table, or the result of a query (path: its name, size and mtime_ns 0).

    path: relative to the folder that contains all files. size: in bytes. digest: BLAKE2b of its content, in
    hexadecimal.
    """

    path: str
    size: int
    mtime_ns: int
    digest: str
    rows: int


@dataclass(frozen=True)
class InputChanges:
    """The paths of files that differ from the last good run. read: the files that were read this time."""

    added: Sequence[str] = ()
    removed: Sequence[str] = ()
    changed: Sequence[str] = ()
    renamed: Sequence[tuple[str, str]] = ()
    unchanged: int = 0
    read: Sequence[str] = ()


# The type of a column in which all values are missing, or of texts that were not read.
NO_TYPE = "null"


@dataclass(frozen=True)
class SchemaChange:
    """The columns that came and went, and the types, before and now, of columns that changed theirs, by name.

    A column without any known value has no type that could change.
    """

    came: tuple[str, ...]
    went: tuple[str, ...]
    changed: Mapping[str, tuple[str, str]]

    @classmethod
    def between(cls, before: Mapping[str, str], now: Mapping[str, str]) -> SchemaChange:
        """Return the change between two tables, from their types by column."""
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


def input_changes(before: Sequence[InputFile], now: Sequence[InputFile], read: Sequence[str] = ()) -> InputChanges:
    """Return how the files of a table differ from those of another run. read: the files that were read this time."""
    old, new = ({file.path: file.digest for file in files} for files in (before, now))
    added, removed = ([path for path in one if path not in other] for one, other in ((new, old), (old, new)))
    gone: dict[str, list[str]] = {}
    for path in removed:
        gone.setdefault(old[path], []).append(path)
    renamed = [(gone[new[path]].pop(0), path) for path in added if gone.get(new[path])]
    moved: set[Any] = {path for pair in renamed for path in pair}
    both = [path for path in new if path in old]
    changed = [path for path in both if new[path] != old[path]]
    return InputChanges(
        added=[path for path in added if path not in moved],
        removed=[path for path in removed if path not in moved],
        changed=changed,
        renamed=renamed,
        unchanged=len(both) - len(changed),
        read=list(read),
    )
