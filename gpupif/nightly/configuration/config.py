"""The configuration of nightly runs: TOML, with overrides and secrets of the environment in it, read and checked."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, get_origin

from pydantic import ValidationError, create_model

from ...errors import InputError, did_you_mean, reason_of
from ...io.documents import parse_toml
from ...utils.given_files import read_file
from ...utils.validation import brief, check_path
from ..gates.gate_kinds import gate_names
from .mistakes import Location, key_of, mistakes_in, said, section_of, value_at
from .secrets import Redaction, masked, resolve_references
from .settings import RunSettings, Section, Settings

# A configuration with only its table [run] checked, and of the other tables the names.
_TABLES: dict[str, Any] = dict.fromkeys(Settings.model_fields, (Any, None)) | {"run": (RunSettings, RunSettings())}
RunAlone = create_model("RunAlone", __base__=Section, **_TABLES)
# A part of a key in an override, in quotes or up to the next full stop, and the sign behind it.
PART = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([^."'=\s](?:[^.="']*[^.="'\s])?))\s*([.=])""")
EXAMPLE = "such as run.device=cpu or gates.0.max=3"


@dataclass(frozen=True)
class Config:
    """A configuration that was read and checked; made by `load_config`.

    file: its path, absolute. settings: the values of the file or the defaults, by table: ``settings.run.device``,
    ``settings.gates[0].max``; each gate has a name. They hold secrets and are never shown. document: the same as plain
    values, with all keys, fit to be kept: ${NAME} as it is written, and *** for passwords in the file. redact: makes
    texts and errors fit to be shown, see `Redaction`.
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
        """Return the path that a path of the configuration means; ~ is the home of the user."""
        return path_from(self.folder, path)

    @property
    def table(self) -> Path | None:
        """The path or pattern of the table; None for a database."""
        path = self.settings.input.path
        if path is None:
            return None
        found = self.resolve(path)
        if Path(path).is_absolute() or found.exists() or not glob.has_magic(path):
            return found
        # Only the signs of the pattern itself are special, not those in the name of the folder.
        return Path(glob.escape(str(self.folder))) / path


def load_config(
    path: str | os.PathLike[str], overrides: Sequence[str] = (), environ: Mapping[str, str] | None = None
) -> Config:
    """Read a configuration of nightly runs and check it.

    Parameters
    ----------
    path:
        A file of TOML, as `gpupif nightly init` writes it; its keys are those of `Settings`.
    overrides:
        Keys that are set in place of what the file says, each KEY=VALUE, such as "run.device=cpu", "gates.0.max=3", or
        by the name of a gate "gates.PIF 95.max=3". A value is what TOML makes of it, or else the text itself.
    environ:
        What ${NAME} is taken from, in any text but what reports have, such as names of columns; $${ stands for ${. The
        environment of the process by default.

    Returns
    -------
    Config
        What `run` and all others take in place of the file.

    Raises
    ------
    InputError
        No such file, no TOML in UTF-8, keys that there are not, values of other types or out of range, or that do not
        go together, variables that are not set: all of it, with file and key. It says no secret.

    Examples
    --------
    >>> import pathlib, tempfile, gpupif
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "risk.toml")
    >>> _ = file.write_text('input.path = "people/*.parquet"')
    >>> config = gpupif.nightly.load_config(file, ["run.threads=4"])
    >>> config.settings.run.threads, config.settings.score.measures
    (4, ['cig', 'csf'])
    >>> gpupif.nightly.load_config(file, ["run.thread=4"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    gpupif.errors.InputError: ...: --set run.thread: ... Did you mean 'threads'? ...
    >>> folder.cleanup()

    """
    file, document, overridden = _read(path, overrides)
    resolved, references, wrong, values = resolve_references(document, os.environ if environ is None else environ)
    checked = _checked(Settings, resolved, file, document, overridden, wrong, values)
    plain = checked.model_dump(mode="json")
    for location, text in references.items():
        value_at(plain, location[:-1])[location[-1]] = text
    names = gate_names(plain["gates"])
    for gate, name in zip(plain["gates"], names, strict=True):
        gate["name"] = name
    kept, written = masked(plain)
    # The parts of an address that is put together are secrets too.
    addresses = {text for location in references if "://" in (text := value_at(resolved, location))}
    gates = [
        gate if gate.name is not None else gate.model_copy(update={"name": name})
        for gate, name in zip(checked.gates, names, strict=True)
    ]
    settings = checked.model_copy(update={"gates": gates})
    redact = Redaction(values | written | addresses, settings.run.show_values)
    return Config(Path(os.path.abspath(file)), settings, kept, redact)


def loaded(config: str | os.PathLike[str] | Config, overrides: Sequence[str] = ()) -> Config:
    """Return a configuration, from its file or as it is. Raises InputError."""
    if not isinstance(config, Config):
        return load_config(config, overrides)
    if overrides:
        raise InputError("overrides: expected none with a configuration that was loaded. Give them to load_config.")
    return config


class RunsPlace(NamedTuple):
    """The place of the runs of a configuration.

    state: the state folder. temp: the folder of temporary files, None for the system's. show_values: whether values of
    the table may be shown.
    """

    state: Path
    temp: Path | None
    show_values: bool


def find_runs(config: str | os.PathLike[str] | Config, overrides: Sequence[str] = ()) -> RunsPlace:
    """Return the place of the runs of a configuration, from its table [run]: no secret of other tables is needed.

    Raises InputError as `load_config`, for the other tables only if a name is wrong.
    """
    if isinstance(config, Config):
        folder, run = config.folder, loaded(config, overrides).settings.run
    else:
        file, document, overridden = _read(config, overrides)
        resolved, _, wrong, values = resolve_references({"run": document.get("run", {})}, os.environ)
        run = _checked(RunAlone, {**document, **resolved}, file, document, overridden, wrong, values).run
        folder = Path(os.path.abspath(file)).parent
    temp = None if run.temp is None else path_from(folder, run.temp)
    return RunsPlace(path_from(folder, run.state), temp, run.show_values)


def path_from(folder: Path, path: str) -> Path:
    """Return the path that a path of a configuration means, see `Config.resolve`. folder: of the configuration."""
    return folder / os.path.expanduser(path)


def _read(path: str | os.PathLike[str], overrides: Sequence[str]) -> tuple[Path, dict[str, Any], list[Location]]:
    """Return a file, its document with the overrides in it, and where these are. Raises InputError."""
    check_path("config", path, "a configuration of nightly runs")
    if isinstance(overrides, str) or not isinstance(overrides, Sequence):
        came = "one text" if isinstance(overrides, str) else type(overrides).__name__
        raise InputError(f'overrides: expected a list of texts, KEY=VALUE; got {came}. Write ["run.device=cpu"], say.')
    file = Path(path)
    try:
        document = parse_toml(read_file(file).decode("utf-8-sig"))
    except OSError as error:
        mend = " gpupif nightly init TABLE writes one." if isinstance(error, FileNotFoundError) else ""
        raise InputError(f"{file}: could not be read: {error.strerror or error}.{mend}") from None
    except UnicodeDecodeError:
        raise InputError(f"{file}: expected TOML in UTF-8, got other bytes. Save it as UTF-8.") from None
    except ValueError as error:
        hint = "Texts stand in quotes, and a key stands once."
        raise InputError(
            f"{file}: expected TOML, got what is none: {reason_of(error, has_values=False)}. {hint}"
        ) from None
    return file, document, [_override(document, text) for text in overrides]


def _checked(
    kind: type[Section],
    resolved: Mapping[str, Any],
    file: Path,
    document: Mapping[str, Any],
    overridden: Sequence[Location],
    wrong: Mapping[Location, list[str]],
    secrets: set[str],
) -> Any:
    """Return the settings of a document, or raise InputError with all that is wrong with it.

    resolved: the document with the values of the environment in it. overridden: the locations of overrides. wrong: what
    is wrong with references to the environment, by location. secrets: the values of the environment.
    """
    settings, found = None, {}
    try:
        settings = kind.model_validate(resolved)
    except ValidationError as error:
        # The error holds secrets, so it must not become the cause of another one.
        found = mistakes_in(error, document)
    redact = Redaction(secrets, show_values=False)
    lines = []
    for location in dict.fromkeys([*wrong, *found]):
        is_set = any(location[: len(override)] == override for override in overridden)
        key = f"{'--set ' * is_set}{key_of(location, document)}"
        lines += [f"{key}: {redact(sentence)}" for sentence in wrong.get(location) or found[location]]
    if len(lines) == 1:
        raise InputError(f"{file}: {lines[0]}")
    if lines:
        raise InputError(f"{file}: {len(lines)} mistakes:", *(f"  {line}" for line in lines))
    return settings


def _override(document: dict[str, Any], text: str) -> Location:
    """Set a key of a document from a text KEY=VALUE, and return the location of the value, or of a new table with it.

    The parts of a key are joined by full stops, parts with other signs are in quotes. An entry of a list is named by
    its number, from 0; a gate by its name too. A value is read as TOML, else it is the text. Raises InputError for
    another text, or for a key that has no place; whether the schema has the key is not checked here.
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
            field = section_of(location).model_fields.get(key)
            inner[key] = [] if field is not None and get_origin(field.annotation) is list else {}
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
    value = text[end:]
    with contextlib.suppress(ValueError):
        document = parse_toml(f"value = {value}")
        # A line break could begin further keys.
        if len(document) == 1:
            return keys, document["value"]
    return keys, value


def _entry(entries: list[Any], key: str, location: Location, text: str) -> int:
    """Return the number of the entry of a list that a part of a key names."""
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
    """Return the key of an override, without the value, which may be a secret."""
    return text.partition("=")[0].strip()
