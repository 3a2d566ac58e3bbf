"""Documents that people write: TOML, JSON, and YAML where PyYAML is installed."""

from __future__ import annotations

import json
import os
import tomllib
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import InputError, reason_of
from ..utils.validation import brief

TOML, JSON, YAML = (".toml",), (".json",), (".yaml", ".yml")
DOCUMENTS = (*TOML, *JSON, *YAML)


def check_yaml(argument: str, file: Path) -> None:
    """Raise InputError where a file is YAML, and PyYAML is not installed."""
    if file.suffix.lower() in YAML and find_spec("yaml") is None:
        raise InputError(
            f"{argument}: {file}: YAML needs PyYAML, which is not installed here: pip install pyyaml. Or write TOML."
        )


def read_document(argument: str, path: str | os.PathLike[str]) -> dict[str, Any]:
    """What stands in a .toml, .json, .yaml or .yml file; raises InputError. argument: what errors call it."""
    file = Path(path)
    ending = file.suffix.lower()
    if ending not in DOCUMENTS:
        raise InputError(f"{argument}: {file}: expected a name ending in {', '.join(DOCUMENTS)}.")
    check_yaml(argument, file)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{argument}: {file}: could not be read: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise InputError(f"{argument}: {file}: expected text in UTF-8, got other bytes. Save it as UTF-8.") from None
    what = {".toml": "TOML", ".json": "JSON"}.get(ending, "YAML")
    try:
        found = _parse(what, text)
    except ValueError as error:
        hint = (
            " A name stands once, in quotes where it has other signs than A-Z, a-z, 0-9, _ and -."
            if what == "TOML"
            else ""
        )
        raise InputError(f"{argument}: {file}: expected {what}, got what is none: {reason_of(error)}.{hint}") from None
    if not isinstance(found, dict):
        raise InputError(f"{argument}: {file}: expected keys and their values, got {brief(found)}.")
    return found


def _parse(what: str, text: str) -> Any:
    """What a text says; raises ValueError."""
    if what == "TOML":
        return tomllib.loads(text)
    if what == "JSON":
        return json.loads(text, object_pairs_hook=without_repeats)
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, for `json.loads`; raises ValueError where a name stands in it twice."""
    repeated = [name for name, times in Counter(name for name, _ in pairs).items() if times > 1]
    if repeated:
        raise ValueError(f"{repeated[0]!r} stands there twice; expected it once.")
    return dict(pairs)
