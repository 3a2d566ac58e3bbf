"""The configuration of nightly runs: read from TOML, checked whole, with secrets of the environment, fit to be kept."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..errors import InputError, reason_of
from ..utils.display import plural
from ..utils.validation import check_path
from .gate_names import gate_names
from .mistakes import Location, key_of, mistakes_in, value_at
from .overrides import override
from .secrets import Redaction, masked, resolve_references
from .settings import Settings


@dataclass(frozen=True)
class Config:
    """A configuration that was read and checked; made by `load_config`.

    file: its path, absolute. settings: with secrets in it, never to be shown; each gate has a name. document: the same
    as plain values, all keys, with ${NAME} as it is written and *** for passwords that stand in the file: what may be
    kept. redact: puts *** in place of every secret in a text.
    """

    file: Path
    settings: Settings = field(repr=False)
    document: Mapping[str, Any] = field(repr=False)
    redact: Redaction = field(repr=False, compare=False)

    @property
    def folder(self) -> Path:
        """The folder of the file, which relative paths in it begin at."""
        return self.file.parent

    @cached_property
    def digest(self) -> str:
        """BLAKE2b of the document, in hexadecimal: the same whatever its comments, and with defaults written out."""
        canonical = json.dumps(self.document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.blake2b(canonical.encode(), digest_size=32).hexdigest()

    def resolve(self, path: str) -> Path:
        """Where a path of the configuration leads; ~ is the home of the user."""
        return self.folder / os.path.expanduser(path)

    @property
    def table(self) -> Path | None:
        """The path or pattern of the table; None for a database."""
        path = self.settings.input.path
        if path is None:
            return None
        found = self.resolve(path)
        if Path(path).is_absolute() or found.exists() or not glob.has_magic(path):
            return found
        # Of a pattern, the folder's own signs stand for themselves.
        return Path(glob.escape(str(self.folder))) / path


def load_config(
    path: str | os.PathLike[str], overrides: Sequence[str] = (), environ: Mapping[str, str] = os.environ
) -> Config:
    """Read a configuration of nightly runs and check it.

    Parameters
    ----------
    path:
        A file of TOML, as `gpupif nightly init` writes it; its keys are those of `Settings`.
    overrides:
        Keys that are set in place of what the file says, each KEY=VALUE, such as "run.device=cpu", "gates.0.max=3", or
        by the name of a gate "gates.pif 95.max=3". A value is what TOML makes of it, or else the text itself.
    environ:
        What ${NAME} is taken from, in any text; $${ stands for ${.

    Raises
    ------
    InputError
        No such file, no TOML in UTF-8, keys that there are not, values of other types or out of range, or that do not
        go together, variables that are not set: all of it, with file and key. It says no secret.

    """
    check_path("config", path, "a configuration of nightly runs")
    document = _read(Path(path))
    overridden = [override(document, text) for text in overrides]
    resolved, references, wrong, values = resolve_references(document, environ)
    checked = _check(resolved)
    if isinstance(checked, ValidationError):
        for location, sentences in mistakes_in(checked, document).items():
            wrong.setdefault(location, sentences)
    if wrong or isinstance(checked, ValidationError):
        redact = Redaction(values)
        lines = [
            f"{'--set ' * _is_set_by(overridden, location)}{key_of(location, document)}: {redact(sentence)}"
            for location, sentences in wrong.items()
            for sentence in sentences
        ]
        raise InputError(_listed(Path(path), lines))
    plain = _with_references(checked.model_dump(mode="json"), references)
    names = gate_names(plain["gates"])
    for gate, name in zip(plain["gates"], names, strict=True):
        gate["name"] = name
    kept, written = masked(plain)
    gates = [gate.model_copy(update={"name": name}) for gate, name in zip(checked.gates, names, strict=True)]
    settings = checked.model_copy(update={"gates": gates})
    # Of an address that is put together, the parts are secrets too.
    addresses = {text for place in references if "://" in (text := value_at(resolved, place))}
    return Config(Path(os.path.abspath(path)), settings, kept, Redaction(values | written | addresses))


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        mend = " gpupif nightly init TABLE writes one." if isinstance(error, FileNotFoundError) else ""
        raise InputError(f"{file}: could not be read: {error.strerror or error}.{mend}") from None
    except UnicodeDecodeError:
        raise InputError(f"{file}: expected TOML in UTF-8, got other bytes. Save it as UTF-8.") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}: expected TOML, got what is none: {reason_of(error)}. Mend it there.") from None


def _check(document: Mapping[str, Any]) -> Settings | ValidationError:
    """The document checked, or what is wrong with it, which holds its secrets and so is no cause of another error."""
    try:
        return Settings.model_validate(document)
    except ValidationError as error:
        return error


def _is_set_by(overridden: Sequence[Location], location: Location) -> bool:
    """Whether what is somewhere came by an override."""
    return any(location[: len(one)] == one for one in overridden)


def _listed(file: Path, lines: Sequence[str]) -> str:
    """What is wrong with a file: in one line, or in one below the other."""
    if len(lines) == 1:
        return f"{file}: {lines[0]}"
    return "\n  ".join([f"{file}: {len(lines)} {plural(len(lines), 'mistake')}:", *lines])


def _with_references(document: dict[str, Any], references: Mapping[Location, str]) -> dict[str, Any]:
    """A document in which texts with references stand as they are written."""
    for location, text in references.items():
        inner: Any = document
        for part in location[:-1]:
            inner = inner[part]
        inner[location[-1]] = text
    return document
