"""The files of a nightly run: all paths of its configuration, by the uses that the schema says."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ...attack.hierarchy_files import names_file
from ...errors import InputError
from ...io.databases.address import IN_MEMORY, parse_address
from ...io.documents import toml_key
from ...io.run_files import NAMED_FILES, check_apart
from .config import Config
from .mistakes import sections_in
from .settings import PATH, READ, WRITTEN, Section, Settings

# The databases that are files.
FILE_DATABASES = ("duckdb", "sqlite")


def paths_of(
    document: Mapping[str, Any], use: str, kind: type[Section] = Settings, before: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield the key and the text of each path with a use. Values of wrong types are passed over.

    document: a configuration as plain values; absent keys have their defaults. use: see `settings.setting`. kind: the
    section of the document. before: the beginning of its keys.
    """
    for name, field in kind.model_fields.items():
        key, more, section = f"{before}{name}", field.json_schema_extra, next(sections_in(field.annotation), None)
        value = document.get(name, field.default if section is None else {})
        if isinstance(more, Mapping) and more[PATH] == use:
            if isinstance(value, str):
                yield key, value
            elif isinstance(value, Mapping):
                yield from ((f"{key}.{toml_key(own)}", text) for own, text in value.items() if names_file(text))
        elif section is not None:
            tables = [(f"{key}[{number}].", own) for number, own in enumerate(value)] if isinstance(value, list) else ()
            for start, own in tables or [(f"{key}.", value)]:
                if isinstance(own, Mapping):
                    yield from paths_of(own, use, section, start)


def inputs_of(document: Mapping[str, Any], resolve: Callable[[str], Path]) -> dict[str, Any]:
    """Return the inputs of a run and its state folder, by key. document: see `paths_of`. resolve: see `Config`."""
    inputs: dict[str, Any] = {key: resolve(path) for key, path in paths_of(document, READ)}
    asked = document.get("input")
    asked = asked if isinstance(asked, Mapping) else {}
    with contextlib.suppress(InputError):
        address = parse_address(str(asked.get("connection")))
        if address.scheme in FILE_DATABASES and address.path not in IN_MEMORY:
            inputs["input.connection"] = resolve(unquote(address.path))
    # DuckDB reads files that a query names.
    texts = re.findall("'([^']+)'", str(asked.get("query")))
    inputs["input.query"] = [text for text in texts if text.lower().endswith(NAMED_FILES)]
    return inputs


def check_files(config: Config, report: Path | None = None) -> None:
    """Raise ReplacedInputError for a file that a run writes and that is an input, of the state, or another such file.

    report: the file of the report that a command writes after the run.
    """
    document = config.settings.model_dump()
    outputs = {key: config.resolve(path) for key, path in paths_of(document, WRITTEN)}
    inputs = inputs_of(document, config.resolve) | {"input.path": config.table}
    check_apart({**outputs, "--report": report}, inputs, [config.file])
