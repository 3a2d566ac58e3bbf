"""The mistakes in a configuration, a sentence each: the key, what was expected, what came, how to mend it."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from ...errors import did_you_mean
from ...io.documents import toml_key, toml_text
from ...utils.validation import brief
from .settings import EXPECTED, FAULT, TAGS, Section, Settings

# The location of a value: keys, and places in lists, from 0.
Location = tuple[str | int, ...]

# The expectation, by the type of pydantic's error.
WANTED: Mapping[str, str] = {
    "string_type": "text",
    "string_unicode": "text that UTF-8 can hold",
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "greater_than": "a number above {gt:g}",
    "greater_than_equal": "{ge:g} or more",
    "less_than": "a number below {lt:g}",
    "less_than_equal": "{le:g} or less",
}
PLAIN = ("int_type", "float_type", "bool_type")
TABLES = ("dict_type", "model_type")


def mistakes_in(error: ValidationError, document: Mapping[str, Any]) -> dict[Location, list[str]]:
    """Return the mistakes by location, as sentences without the key. document: the configuration as it is written."""
    found: dict[Location, list[str]] = {}
    for detail in error.errors(include_url=False, include_input=False):
        location = tuple(part for part in detail["loc"] if part not in TAGS)
        sentence = _sentence(detail["type"], detail["msg"], detail.get("ctx", {}), location, document)
        found.setdefault(location, []).append(sentence)
    return found


def key_of(location: Location, document: Mapping[str, Any]) -> str:
    """Return a key as people write it: input.path; for a gate with its name or kind, gates[0].max (gate 'rows')."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{toml_key(part)}" if text else toml_key(part)
    gate = value_at(document, location[:2]) if location[0] == "gates" and len(location) > 1 else None
    if isinstance(gate, Mapping) and ("name" in gate or "kind" in gate):
        text += f" (gate {brief(gate.get('name', gate.get('kind')))})"
    return text


def value_at(document: Any, location: Sequence[str | int]) -> Any:
    """Return the value at a location; None if there is none."""
    for part in location:
        try:
            document = document[part]
        except (KeyError, IndexError, TypeError):
            return None
    return document


def section_of(location: Location) -> type[Section]:
    """Return the section that has a key, by the schema."""
    section: type[Section] = Settings
    for part in location[:-1]:
        if part in section.model_fields:
            section = next(sections_in(section.model_fields[str(part)].annotation), section)
    return section


def sections_in(annotation: Any) -> Iterator[type[Section]]:
    """Yield the sections in the type of a key."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for part in get_args(annotation):
        yield from sections_in(part)


def _sentence(
    kind: str, message: str, context: Mapping[str, Any], location: Location, document: Mapping[str, Any]
) -> str:
    """Return a mistake as a sentence. kind, message, context: of pydantic's error. document: as it is written."""
    came, section, key = value_at(document, location), section_of(location), str(location[-1])
    if kind == FAULT:
        return str(context["said"])
    if kind == "missing" and key == "input":
        return "expected a table [input], got none. Add it, with path = 'data/*.parquet', say."
    if kind == "missing":
        examples = section.model_fields[key].examples
        such = f", such as {key} = {toml_text(examples[0])}" if examples else ""
        return f"expected it, got nothing. Add it{such}."
    if kind == "extra_forbidden":
        return _unknown_key(section, key, location)
    if kind == "literal_error":
        choices = get_args(section.model_fields[key].annotation)
        hint = did_you_mean(came, choices) if isinstance(came, str) else ""
        return f"expected one of {', '.join(map(repr, choices))}; got {said(came)}.{hint}"
    expected = message if kind == EXPECTED else WANTED[kind].format(**context)
    return f"expected {expected}{';' if ',' in expected else ','} got {said(came)}.{_mend(kind, came, location)}"


def _unknown_key(section: type[BaseModel], key: str, location: Location) -> str:
    """Return the sentence for an unknown key, with a similar key, or another table with a key of this name."""
    own = list(section.model_fields)
    hint = did_you_mean(key, own)
    if not hint:
        others = [
            name
            for name, field in Settings.model_fields.items()
            for part in sections_in(field.annotation)
            if key in part.model_fields and part is not section
        ]
        hint = f" Did you mean that of [{others[0]}]?" if others else ""
    of = "this table" if len(location) > 1 else "the configuration"
    return f"expected a key that {of} has, got {key!r}.{hint} Keys that it has: {', '.join(own)}."


def said(value: Any) -> str:
    """Return a value that came, with its type."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return f"text {brief(value)}"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, datetime.date | datetime.time):
        return f"the date or time {value}"
    return brief(value)


def _mend(kind: str, came: Any, location: Location) -> str:
    """Return what to write instead, as a further sentence; no text if the expectation says it."""
    if kind == "string_type" and not isinstance(came, list | dict):
        return " Put it in quotes."
    if kind in PLAIN and isinstance(came, str):
        return " Write it without quotes."
    if kind == "list_type" and isinstance(came, str):
        return f" Write [{toml_text(came)}]."
    keys = ".".join(toml_key(part) for part in location if isinstance(part, str))
    if kind == "list_type" and isinstance(came, dict):
        return f" Write [[{keys}]], in two brackets."
    if kind in TABLES and isinstance(came, list):
        return f" Write [{keys}], in one bracket and once."
    return ""
