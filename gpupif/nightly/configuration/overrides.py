"""Single keys of a configuration set from outside it: `--set run.device=cpu`."""

from __future__ import annotations

import re
from typing import Any, get_origin

from ...errors import InputError, did_you_mean
from ...io.documents import parse_toml
from ...utils.validation import brief
from ..gates.gate_names import gate_names
from .mistakes import Location, key_of, said, section_of

# A part of a key, in quotes or up to the next full stop, and what is behind it.
PART = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([^."'=\s](?:[^.="']*[^.="'\s])?))\s*([.=])""")
EXAMPLE = "such as run.device=cpu or gates.0.max=3"


def override(document: dict[str, Any], text: str) -> Location:
    """Set in a document what a text says, KEY=VALUE, and say what came into it: a value, or a table with it.

    A key's parts are joined by full stops, those with other signs in quotes; of a list's entries a part is the number,
    from 0, of gates the name too. A value is what TOML makes of it, or else the text. Raises InputError for what is no
    such text, or for a key where none can be; which keys there are is left to the schema.
    """
    keys, value = _taken_apart(text)
    inner: Any = document
    location: Location = ()
    made: Location = ()
    for key in keys:
        if isinstance(inner, list):
            location = (*location, _entry(inner, key, location, text))
        elif isinstance(inner, dict):
            location = (*location, key)
        else:
            at = key_of(location, document)
            raise InputError(f"--set {_shown(text)}: expected a table at {at}, got {said(inner)}. Leave {key!r} out.")
        if isinstance(inner, dict) and key not in inner:
            made = made or location
            inner[key] = [] if _is_list(location) else {}
        outer, inner = inner, inner[location[-1]]
    outer[location[-1]] = value
    return made or location


def _taken_apart(text: Any) -> tuple[list[str], Any]:
    if not isinstance(text, str):
        raise InputError(f"--set: expected text, KEY=VALUE, {EXAMPLE}; got {brief(text)}.")
    keys, end, behind = [], 0, "."
    while behind == ".":
        found = PART.match(text, end)
        if found is None:
            raise InputError(f"--set: expected KEY=VALUE, {EXAMPLE}; got {_shown(text)!r}.")
        keys.append(next(part for part in found.groups()[:3] if part is not None))
        end, behind = found.end(), found[4]
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"--set {_shown(text)}: expected text in UTF-8, got other bytes.") from None
    return keys, _value(text[end:])


def _value(text: str) -> Any:
    """A value of TOML, or else the text itself."""
    try:
        document = parse_toml(f"value = {text}")
    except ValueError:
        return text
    # Behind a line break further keys could stand.
    return document["value"] if len(document) == 1 else text


def _is_list(location: Location) -> bool:
    """Whether the schema has a list of entries there."""
    field = section_of(location).model_fields.get(str(location[-1]))
    return field is not None and get_origin(field.annotation) is list


def _entry(entries: list[Any], key: str, location: Location, text: str) -> int:
    """Which entry of a list a part of a key means."""
    if key.isdecimal() and int(key) < len(entries):
        return int(key)
    names = gate_names(entries) if location == ("gates",) else []
    if key in names:
        return names.index(key)
    count = len(entries)
    named = f" Names of gates: {', '.join(map(repr, names))}." if names else ""
    raise InputError(
        f"--set {_shown(text)}: expected an entry of {key_of(location, {})}, which has {count}, numbered from 0"
        f"{' or by name' * bool(names)}; got {key!r}.{did_you_mean(key, names)}{named}"
    )


def _shown(text: str) -> str:
    """What was to be set, without the value, which may be a secret."""
    return text.partition("=")[0].strip()
