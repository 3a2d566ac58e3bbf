"""Documents in JSON, TOML and YAML: read with checks, and TOML written for people to edit."""

from __future__ import annotations

import contextlib
import json
import os
import re
import textwrap
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import InputError, OutputError, reason_of
from ..utils.validation import brief

# By the ending of a file's name what stands in it.
DOCUMENTS: Mapping[str, str] = {".toml": "TOML", ".json": "JSON", ".yaml": "YAML", ".yml": "YAML"}
# Levels of a document at most: what is walked or printed level by level ends in a RecursionError at some hundreds.
MOST_LEVELS = 100
TOO_DEEP = f"values are nested more than {MOST_LEVELS} levels deep; expected at most {MOST_LEVELS}"
# A key or a header of TOML of more parts, which `tomllib` takes seconds to read.
_LONG_KEY = re.compile(
    rf"""^[ \t]*\[{{0,2}}(?:[ \t]*(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.){{{MOST_LEVELS}}}""", re.MULTILINE
)
# Columns of a line of TOML, and keys that need no quotes.
WIDTH = 120
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def document_kind(argument: str, file: Path) -> str:
    """What stands in a file by its name: "TOML", "JSON" or "YAML".

    Raises InputError for another name, and for YAML where PyYAML is not installed. argument: what errors call it.
    """
    kind = DOCUMENTS.get(file.suffix.lower())
    if kind is None:
        raise InputError(f"{argument}: {file}: expected a name ending in {', '.join(DOCUMENTS)}.")
    if kind == "YAML" and find_spec("yaml") is None:
        raise InputError(
            f"{argument}: {file}: YAML needs PyYAML, which is not installed here: pip install pyyaml. Or write TOML."
        )
    return kind


def read_document(argument: str, path: str | os.PathLike[str], kind: str | None = None) -> dict[str, Any]:
    """What stands in a file, of a `kind` or by its name; raises InputError. argument: what errors call it."""
    file = Path(path)
    kind = document_kind(argument, file) if kind is None else kind
    try:
        found = _parse(kind, file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"{argument}: {file}: could not be read: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise InputError(f"{argument}: {file}: expected {kind} in UTF-8, got other bytes. Save it as UTF-8.") from None
    except ValueError as error:
        hint = " A name stands once, in quotes where it has other signs than A-Z, a-z, 0-9, _ and -." * (kind == "TOML")
        raise InputError(f"{argument}: {file}: expected {kind}, got what is none: {reason_of(error)}.{hint}") from None
    if not isinstance(found, dict):
        raise InputError(f"{argument}: {file}: expected keys and their values, got {brief(found)}.")
    return found


def parse_json(text: str | bytes) -> Any:
    """Return what JSON says.

    Raises ValueError where it is none, a name stands twice in an object, or values are nested more than `MOST_LEVELS`
    deep.
    """
    return _not_deep(lambda: json.loads(text, object_pairs_hook=_without_repeats))


def parse_toml(text: str) -> dict[str, Any]:
    """Return what TOML says; raises ValueError where it is none, or is nested more than `MOST_LEVELS` deep."""
    if _LONG_KEY.search(text):
        raise ValueError(TOO_DEEP)
    found: dict[str, Any] = _not_deep(lambda: tomllib.loads(text))
    return found


def _parse(kind: str, text: str) -> Any:
    """Return what a text says; raises ValueError."""
    if kind == "TOML":
        return parse_toml(text)
    if kind == "JSON":
        return parse_json(text)
    import yaml

    try:
        return _not_deep(lambda: yaml.safe_load(text))
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def _not_deep(parse: Callable[[], Any]) -> Any:
    """Return what is parsed; raises ValueError where it has more than `MOST_LEVELS` levels."""
    with contextlib.suppress(RecursionError):
        found = parse()
        level = [found] if isinstance(found, dict | list) else []
        for _ in range(MOST_LEVELS):
            inner = (one for outer in level for one in (outer.values() if isinstance(outer, dict) else outer))
            # YAML may have one list in many places, and in itself.
            level = list({id(one): one for one in inner if isinstance(one, dict | list)}.values())
            if not level:
                return found
    raise ValueError(TOO_DEEP)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, for `json.loads`; raises ValueError where a name stands in it twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        repeated = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise ValueError(f"{repeated!r} stands there twice; expected it once.")
    return found


def toml_key(name: Any) -> str:
    """A key of this name, in quotes where it needs them; raises what `toml_text` does."""
    quoted = toml_text(name)
    return str(name) if BARE_KEY.fullmatch(name) else quoted


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
