"""Documents that people write: TOML, JSON, and YAML where PyYAML is installed."""

from __future__ import annotations

import json
import os
import tomllib
from collections import Counter
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import InputError, reason_of
from ..utils.validation import brief

# By the ending of a file's name what stands in it.
DOCUMENTS: Mapping[str, str] = {".toml": "TOML", ".json": "JSON", ".yaml": "YAML", ".yml": "YAML"}


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
    except (ValueError, RecursionError) as error:
        hint = " A name stands once, in quotes where it has other signs than A-Z, a-z, 0-9, _ and -." * (kind == "TOML")
        raise InputError(f"{argument}: {file}: expected {kind}, got what is none: {reason_of(error)}.{hint}") from None
    if not isinstance(found, dict):
        raise InputError(f"{argument}: {file}: expected keys and their values, got {brief(found)}.")
    return found


def _parse(kind: str, text: str) -> Any:
    """What a text says; raises ValueError."""
    if kind == "TOML":
        return tomllib.loads(text)
    if kind == "JSON":
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
