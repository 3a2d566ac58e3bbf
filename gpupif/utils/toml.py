"""TOML to be edited by hand: keys, texts and comments as it has them. Python reads it, `tomllib`, but writes none."""

from __future__ import annotations

import json
import re
import textwrap
from typing import Any

from ..errors import OutputError
from .validation import brief

WIDTH = 120
# What may stand without quotes as a key.
BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_key(name: Any) -> str:
    """A key of this name, in quotes where it needs them; raises what `toml_text` does."""
    quoted = toml_text(name)
    return str(name) if BARE.fullmatch(name) else quoted


def toml_text(text: Any) -> str:
    """A text in quotes; raises OutputError for what is no text, or none that UTF-8 can hold."""
    if not isinstance(text, str):
        raise OutputError(f"TOML: expected a name that is text, got {brief(text)}. Rename it, to {str(text)!r} say.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise OutputError(f"TOML: expected text that UTF-8 can hold, got {brief(text)}. Rename it.") from None
    # JSON escapes what TOML has to, in the same way. What would act on a terminal is escaped too.
    signs = json.dumps(text, ensure_ascii=False)
    return "".join(own if own.isprintable() else f"\\U{ord(own):08x}" for own in signs)


def toml_value(value: Any) -> str:
    """Text, a number, a boolean, or a list or dictionary of such, in one line; keys of None are left out.

    Raises OutputError for anything else.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, dict):
        inner = (f"{toml_key(key)} = {toml_value(own)}" for key, own in value.items() if own is not None)
        return f"{{{', '.join(inner)}}}"
    return toml_text(value)


def toml_comment(text: str, width: int = WIDTH) -> str:
    """A comment of as many lines as the text takes; what may not stand in one, such as line breaks, as spaces."""
    plain = "".join(sign if sign.isprintable() else " " for sign in text)
    return textwrap.fill(plain, width, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
