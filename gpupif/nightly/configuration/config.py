"""The configuration of nightly runs: read from TOML, checked whole, with secrets of the environment, fit to be kept."""

from __future__ import annotations

import glob
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import InputError, reason_of
from ...io.documents import parse_toml
from ...utils.validation import check_path
from .installed import check_installed

if TYPE_CHECKING:
    from .secrets import Redaction
    from .settings import RunSettings, Settings


@dataclass(frozen=True)
class Config:
    """A configuration that was read and checked; made by `load_config`.

    file: its path, absolute. settings: by table what the file says, or the default: ``settings.run.device``,
    ``settings.gates[0].max``; with secrets in it, never to be shown; each gate has a name. document: the same as plain
    values, all keys, with ${NAME} as it is written and *** for passwords that stand in the file: what may be kept.
    redact: puts *** in place of every secret in a text.
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
        return resolve(self.folder, path)

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
    file = _checked_file(path, overrides)
    from .checked_document import check_document

    settings, document, redact = check_document(
        file, _read(file), overrides, os.environ if environ is None else environ
    )
    return Config(Path(os.path.abspath(file)), settings, document, redact)


def loaded(config: str | os.PathLike[str] | Config, overrides: Sequence[str] = ()) -> Config:
    """A configuration, from its file or as it is; raises InputError."""
    if not isinstance(config, Config):
        return load_config(config, overrides)
    if overrides:
        raise InputError("overrides: expected none with a configuration that was loaded. Give them to load_config.")
    return config


def load_run_settings(path: str | os.PathLike[str], overrides: Sequence[str] = ()) -> tuple[Path, RunSettings]:
    """The folder of a configuration and its table [run], for who asks of its runs: no secret of others is needed.

    Raises InputError as `load_config`, of the other tables only for their names.
    """
    file = _checked_file(path, overrides)
    from .checked_document import check_run_settings

    wanted = check_run_settings(file, _read(file), overrides, os.environ)
    return Path(os.path.abspath(file)).parent, wanted


def resolve(folder: Path, path: str) -> Path:
    """Where a path of the configuration in a folder leads; ~ is the home of the user."""
    return folder / os.path.expanduser(path)


def _checked_file(path: str | os.PathLike[str], overrides: Sequence[str]) -> Path:
    check_path("config", path, "a configuration of nightly runs")
    if isinstance(overrides, str) or not isinstance(overrides, Sequence):
        came = "one text" if isinstance(overrides, str) else type(overrides).__name__
        raise InputError(f'overrides: expected a list of texts, KEY=VALUE; got {came}. Write ["run.device=cpu"], say.')
    check_installed()
    return Path(path)


def _read(file: Path) -> dict[str, Any]:
    try:
        return parse_toml(file.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        mend = " gpupif nightly init TABLE writes one." if isinstance(error, FileNotFoundError) else ""
        raise InputError(f"{file}: could not be read: {error.strerror or error}.{mend}") from None
    except UnicodeDecodeError:
        raise InputError(f"{file}: expected TOML in UTF-8, got other bytes. Save it as UTF-8.") from None
    except ValueError as error:
        hint = "Texts stand in quotes, and a key stands once."
        raise InputError(f"{file}: expected TOML, got what is none: {reason_of(error)}. {hint}") from None
