"""Documentation that several functions share, said once."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def documented_as(source: Callable[..., Any]) -> Callable[[Function], Function]:
    """Complete the docstring of a function by that of another, for who asks `help`.

    Parameters that its "Parameters" leaves out, and "Raises" and "Warns" where it has none, are as of `source`. Raises
    LookupError, when the function is made, where a parameter is documented in neither.
    """

    def complete(function: Function) -> Function:
        if function.__doc__ is None or source.__doc__ is None:
            return function
        own, theirs = _sections(function.__doc__), _sections(source.__doc__)
        entries = {**_entries(theirs["Parameters"]), **_entries(own.get("Parameters", ""))}
        names = list(inspect.signature(function).parameters)
        lacking = [name for name in names if name not in entries]
        if lacking:
            raise LookupError(
                f"{function.__name__}, {source.__name__}: parameter {lacking[0]!r} is documented in neither."
            )
        shared = {title: theirs.get(title, "") for title in ("Raises", "Warns")}
        # Such a dictionary keeps the places of titles that are there twice.
        sections = {"": "", "Parameters": "", "Returns": "", **shared, **own}
        sections["Parameters"] = "\n".join(dict.fromkeys(entries[name] for name in names))
        titled = [f"{title}\n{'-' * len(title)}\n{text}" if title else text for title, text in sections.items() if text]
        function.__doc__ = "\n\n".join(titled) + "\n"
        return function

    return complete


def _sections(document: str) -> dict[str, str]:
    """The sections of a docstring by their titles, that before the first by ""."""
    first, *others = re.split(r"^(\w+)\n-+\n", inspect.cleandoc(document), flags=re.MULTILINE)
    return {"": first.strip(), **dict(zip(others[::2], map(str.strip, others[1::2]), strict=True))}


def _entries(parameters: str) -> dict[str, str]:
    """By parameter the entry of a section that documents it, perhaps with others."""
    _, *parts = re.split(r"^([\w, ]+):\n", parameters, flags=re.MULTILINE)
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return {name: f"{names}:\n{text.rstrip()}" for names, text in pairs for name in names.split(", ")}
