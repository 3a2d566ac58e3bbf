"""The files of a run: every input, whatever names it, and every output, which must be no input and no other output.

A path names the same file as another path whatever links lead there, and however letters are written on a disk that
ignores their case: a file that exists is told by its device and inode. A file that does not exist yet is told by the
folder that it will be in, and by its name without regard to case: then the disk cannot be asked.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import GpupifError, ReplacedInputError
from .base import Input, Source
from .documents import DOCUMENTS, read_document
from .formats import READ_ENDINGS
from .paths import find_input

# The endings of the texts in a document that may name files.
NAMED_FILES = (*READ_ENDINGS, *DOCUMENTS)
# What a place is to another one.
SAME, INSIDE, AROUND = "is", "is inside", "holds"


def check_apart(outputs: Mapping[str, Any], inputs: Mapping[str, Any], alone: Sequence[Path] = ()) -> None:
    """Refuse an output that is an input or another output, inside it or around it, before anything is read.

    outputs: the path of each output, by the name in errors; what is no path is refused elsewhere. inputs: the inputs by
    their names in errors. An input is a path, an `Input` or a `Source`, a value of Python that may name files, or a
    list of these. If it is a folder, a pattern or a document such as a plan, the files there and the files that it
    names are inputs too. alone: inputs without the files that they name.

    Raises ReplacedInputError.
    """
    places = {name: _Place(path) for name, path in outputs.items() if path and isinstance(path, str | os.PathLike)}
    seen: dict[str, _Place] = {}
    for name, place in places.items():
        for other, own in seen.items():
            if (how := place.relation(own)) is not None:
                said = "names the same file as" if how == SAME else how
                raise ReplacedInputError(f"{name}: {said} {other}, {own.path}. Give each a place of its own.")
        seen[name] = place
        # A file that does not exist is none of the files that a folder or a document names.
        exists = os.path.exists(place.path)
        for source, given in [*inputs.items(), ("", alone)]:
            for path in alone if given is alone else _paths(given, exists):
                if (how := place.relation(_Place(path))) is not None:
                    raise ReplacedInputError(
                        f"{f'{name}: ' * bool(name)}{place.path}: the output {how} the input {path}"
                        f"{f' ({source})' * bool(source)}. Choose another place for it."
                    )


class _Place:
    """A path, and the identities of the file or folder that it names and of all folders that this is in."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        # No file has a name with NUL in it, which texts of a document may have.
        real = Path(os.path.realpath(str(self.path).replace("\0", "")))
        self._above = [_identity(place) for place in (real, *real.parents)]

    def relation(self, other: _Place) -> str | None:
        """Return whether the place is the other, is inside it or holds it, in words; None if it is apart."""
        if self._above[0] == other._above[0]:
            return SAME
        return INSIDE if other._above[0] in self._above else AROUND if self._above[0] in other._above else None


def _identity(place: Path) -> tuple[Any, ...]:
    """Return what tells a file or folder from all others."""
    try:
        found = place.stat()
    except OSError:
        return (*_identity(place.parent), place.name.casefold())
    return found.st_dev, found.st_ino


def _paths(given: Any, every: bool) -> Iterator[Path]:
    """Yield the paths of an input. every: whether also those that a folder, a pattern or a document names."""
    if isinstance(given, Source):
        given = given.input_files
    if isinstance(given, Input):
        yield given.path
        if every:
            yield from given.files
    elif isinstance(given, str | os.PathLike):
        yield (path := Path(given))
        if every:
            yield from _named_by(path)
    elif isinstance(given, list | tuple):
        for own in given:
            yield from _paths(own, every)
    elif every and isinstance(given, Mapping):
        yield from files_in(given, Path())


def _named_by(path: Path) -> Iterator[Path]:
    """Yield the files of a folder or a pattern, or the files that a document names. What is wrong is said later."""
    with contextlib.suppress(GpupifError, OSError, ValueError):
        if not path.is_file():
            yield from find_input(path).files
        elif path.name.lower().endswith(tuple(DOCUMENTS)):
            yield from files_in(read_document("", path), path.parent)


def files_in(document: Any, folder: Path) -> Iterator[Path]:
    """Yield the files that texts of a document name, whatever their keys. folder: where relative paths begin."""
    if isinstance(document, str) and document.lower().endswith(NAMED_FILES):
        yield folder / os.path.expanduser(document)
    elif isinstance(document, Mapping | list):
        for own in document.values() if isinstance(document, Mapping) else document:
            yield from files_in(own, folder)
