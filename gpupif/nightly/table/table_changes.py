"""Changes of a table since another run: its files, and its columns with their types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class InputFile:
    """A file of the table, or the result of a query (path: its name, size and mtime_ns 0).

    path: below the folder that all lie in. digest: of its content, BLAKE2b in hexadecimal. rows: of it.
    """

    path: str
    size: int
    mtime_ns: int
    digest: str
    rows: int


@dataclass(frozen=True)
class InputChanges:
    """How the files differ from those of the last good run; paths. read: those whose values were read this time."""

    added: Sequence[str] = ()
    removed: Sequence[str] = ()
    changed: Sequence[str] = ()
    renamed: Sequence[tuple[str, str]] = ()
    unchanged: int = 0
    read: Sequence[str] = ()


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


def input_changes(before: Sequence[InputFile], now: Sequence[InputFile], read: Sequence[str] = ()) -> InputChanges:
    """How the files of a table differ from those of another run; read: those whose values were read this time."""
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
