"""The docstrings of functions that share parameters with another function: shared entries are written once."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def documented_as(source: Callable[..., Any]) -> Callable[[Function], Function]:
    """Return a decorator that completes the docstring of a function from the docstring of `source`.

    The decorator adds parameters that the section "Parameters" leaves out, and the sections "Raises" and "Warns" if the
    function has no such section. It raises LookupError for a parameter that neither docstring documents.
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
        # A title keeps the place of its first occurrence here, so that sections have this order.
        sections = {"": "", "Parameters": "", "Returns": "", **shared, **own}
        sections["Parameters"] = "\n".join(dict.fromkeys(entries[name] for name in names))
        titled = [f"{title}\n{'-' * len(title)}\n{text}" if title else text for title, text in sections.items() if text]
        function.__doc__ = "\n\n".join(titled) + "\n"
        return function

    return complete


def _sections(document: str) -> dict[str, str]:
    """Return the sections of a docstring by title. The text before the first title has the title ""."""
    first, *others = re.split(r"^(\w+)\n-+\n", inspect.cleandoc(document), flags=re.MULTILINE)
    return {"": first.strip(), **dict(zip(others[::2], map(str.strip, others[1::2]), strict=True))}


def _entries(parameters: str) -> dict[str, str]:
    """Return for each parameter the entry that documents it. An entry may document several parameters."""
    _, *parts = re.split(r"^([\w, ]+):\n", parameters, flags=re.MULTILINE)
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return {name: f"{names}:\n{text.rstrip()}" for names, text in pairs for name in names.split(", ")}
