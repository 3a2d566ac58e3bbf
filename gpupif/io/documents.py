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
from ..utils.given_files import read_file
from ..utils.validation import brief, table_value

# The kind of document in a file, by the ending of the file's name.
DOCUMENTS: Mapping[str, str] = {".toml": "TOML", ".json": "JSON", ".yaml": "YAML", ".yml": "YAML"}
# The most levels of a document: code that walks or prints a document raises RecursionError at some hundreds of levels.
MOST_LEVELS = 100
TOO_DEEP = f"values are nested more than {MOST_LEVELS} levels deep; expected at most {MOST_LEVELS}"
# A key or a header of TOML of more than `MOST_LEVELS` parts, which `tomllib` takes seconds to read.
_LONG_KEY = re.compile(
    rf"""^[ \t]*\[{{0,2}}(?:[ \t]*(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.){{{MOST_LEVELS}}}""", re.MULTILINE
)
# Columns of a line of TOML, and keys that need no quotes.
WIDTH = 120
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def document_kind(argument: str, file: Path) -> str:
    """Return the kind of document in a file, by the file's name: "TOML", "JSON" or "YAML".

    argument: the name of the file in errors. Raises InputError for another ending, and for YAML without PyYAML.
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
    """Return the keys and values of a document in a file.

    argument: the name of the file in errors. kind: "TOML", "JSON" or "YAML". Default: by the file's name. Raises
    InputError for a file that cannot be read, or is no document of this kind with keys and values.
    """
    file = Path(path)
    kind = document_kind(argument, file) if kind is None else kind
    try:
        document = _parse(kind, read_file(file).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n"))
    except OSError as error:
        raise InputError(f"{argument}: {file}: could not be read: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise InputError(f"{argument}: {file}: expected {kind} in UTF-8, got other bytes. Save it as UTF-8.") from None
    except ValueError as error:
        hint = (
            " A name stands once, in quotes where it has other signs than A-Z, a-z, 0-9, _ and -. A text with double "
            "quotes in it stands in '''three single ones'''."
        ) * (kind == "TOML")
        raise InputError(
            f"{argument}: {file}: expected {kind}, got what is none: {reason_of(error, has_values=False)}.{hint}"
        ) from None
    if not isinstance(document, dict):
        raise InputError(f"{argument}: {file}: expected keys and their values, got {table_value(document)}.")
    return document


def parse_json(text: str | bytes) -> Any:
    """Return the value of a text in JSON.

    Raises ValueError if the text is no JSON, if an object has a name twice, or if values are nested more than
    `MOST_LEVELS` deep.
    """
    return _not_deep(lambda: json.loads(text, object_pairs_hook=_without_repeats))


def parse_toml(text: str) -> dict[str, Any]:
    """Return the value of a text in TOML.

    Raises ValueError if the text is no TOML, or if values are nested more than `MOST_LEVELS` deep.
    """
    if _LONG_KEY.search(text):
        raise ValueError(TOO_DEEP)
    document: dict[str, Any] = _not_deep(lambda: tomllib.loads(text))
    return document


def _parse(kind: str, text: str) -> Any:
    """Return the value of a text of a kind; raises ValueError if the text is no document of this kind."""
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
    """Return the value that `parse` returns; raises ValueError if it has more than `MOST_LEVELS` levels."""
    with contextlib.suppress(RecursionError):
        try:
            document = parse()
        except ValueError as error:
            # Python's advice is to call a function of its own.
            if "set_int_max_str_digits" not in str(error):
                raise
            raise ValueError("a number has thousands of digits") from None
        level = [document] if isinstance(document, dict | list) else []
        for _ in range(MOST_LEVELS):
            inner = (value for outer in level for value in (outer.values() if isinstance(outer, dict) else outer))
            # YAML may have one list in many places, and in itself.
            level = list({id(value): value for value in inner if isinstance(value, dict | list)}.values())
            if not level:
                return document
    raise ValueError(TOO_DEEP)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, for `json.loads`; raises ValueError if a name occurs in it twice."""
    values = dict(pairs)
    if len(values) < len(pairs):
        repeated = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise ValueError(f"{repeated!r} occurs twice; expected it once")
    return values


def toml_key(name: Any) -> str:
    """Return a name as a key of TOML, in quotes if it needs them; raises OutputError as `toml_text` does."""
    quoted = toml_text(name)
    return str(name) if BARE_KEY.fullmatch(name) else quoted


def toml_text(text: Any) -> str:
    """Return a text in quotes; raises OutputError for a value that is no text, or no text that UTF-8 can hold."""
    if not isinstance(text, str):
        raise OutputError(f"TOML: expected a name that is text, got {brief(text)}. Rename it, to {str(text)!r} say.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise OutputError(f"TOML: expected text that UTF-8 can hold, got {brief(text)}. Rename it.") from None
    # JSON escapes every character that TOML must escape, in the same way. Escape characters that act on a terminal too.
    signs = json.dumps(text, ensure_ascii=False)
    return "".join(own if own.isprintable() else f"\\U{ord(own):08x}" for own in signs)


def toml_value(value: Any) -> str:
    """Return a value in one line of TOML. Keys whose value is None are left out.

    value: a text, number or boolean, or a list or dictionary of such values. Raises OutputError for any other value.
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
    """Return a text as a comment, in lines of up to `width` characters.

    Characters that a comment may not have, such as line breaks, become spaces.
    """
    plain = "".join(sign if sign.isprintable() else " " for sign in text)
    return textwrap.fill(plain, width, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
