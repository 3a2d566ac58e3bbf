"""Documentation of parameters that several functions share, said once."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def documented_as(*sources: Callable[..., Any]) -> Callable[[Function], Function]:
    """Fill in what a docstring says of parameters by "As of `gpupif.score`." alone, from where it is said.

    sources: functions that may be referred to so, by the last part of their names. A docstring's "Parameters" then has
    the whole text for who asks `help`, and the source has it once. Raises LookupError, when the function is made, where
    a parameter is not documented there.
    """
    texts = {source.__name__: _parameters(source) for source in sources}

    def fill_in(function: Function) -> Function:
        document = function.__doc__
        if document is not None:
            own = _parameters(function)
            for names, text in own.items():
                reference = re.fullmatch(r"As of `(?:gpupif\.)?(\w+)`\.", " ".join(text.split()))
                if reference and reference[1] in texts:
                    found = _of(names, texts[reference[1]], f"{function.__name__}, {reference[1]}")
                    document = _replaced(document, names, found)
            function.__doc__ = document
        return function

    return fill_in


def _parameters(function: Callable[..., Any]) -> dict[str, str]:
    """What the docstring of a function says of its parameters, by the line that names them, indented as there."""
    lines = inspect.cleandoc(function.__doc__ or "").split("\n")
    texts: dict[str, list[str]] = {}
    if "Parameters" in lines:
        names = ""
        for line in lines[lines.index("Parameters") + 2 :]:
            if re.fullmatch(r"[\w, ]+:", line):
                names = line[:-1]
                texts[names] = []
            elif line and not line.startswith(" "):
                break
            else:
                texts[names].append(line)
    return {names: "\n".join(text).rstrip() for names, text in texts.items()}


def _of(names: str, texts: dict[str, str], where: str) -> str:
    """The entries, whole, that document some parameters."""
    entries = {}
    for name in names.split(", "):
        entry = next((entry for entry in texts if name in entry.split(", ")), None)
        if entry is None:
            raise LookupError(f"{where}: parameter {name!r} is documented in neither.")
        entries[entry] = texts[entry]
    return "\n".join(f"{entry}:\n{text}" for entry, text in entries.items())


def _replaced(document: str, names: str, entries: str) -> str:
    """A docstring with other entries in place of that of some parameters."""
    place = re.search(rf"^( *){re.escape(names)}:\n(?:\1 +.*\n)+", document, re.MULTILINE)
    assert place is not None
    indented = "\n".join(place[1] + line if line else line for line in entries.split("\n"))
    return document[: place.start()] + indented + "\n" + document[place.end() :]
