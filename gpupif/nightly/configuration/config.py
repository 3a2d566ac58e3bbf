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
from typing import TYPE_CHECKING, Any

from ...errors import InputError, reason_of
from ...utils.validation import check_path
from .installed import check_installed

if TYPE_CHECKING:
    from .secrets import Redaction
    from .settings import Settings


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
        by the name of a gate "gates.PIF 95.max=3". A value is what TOML makes of it, or else the text itself.
    environ:
        What ${NAME} is taken from, in any text but what reports have, such as names of columns; $${ stands for ${.

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
    check_path("config", path, "a configuration of nightly runs")
    check_installed()
    from .checked_document import check_document

    file = Path(path)
    settings, document, redact = check_document(file, _read(file), overrides, environ)
    return Config(Path(os.path.abspath(file)), settings, document, redact)


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        mend = " gpupif nightly init TABLE writes one." if isinstance(error, FileNotFoundError) else ""
        raise InputError(f"{file}: could not be read: {error.strerror or error}.{mend}") from None
    except UnicodeDecodeError:
        raise InputError(f"{file}: expected TOML in UTF-8, got other bytes. Save it as UTF-8.") from None
    except (ValueError, RecursionError) as error:
        hint = "Texts stand in quotes, and a key stands once."
        raise InputError(f"{file}: expected TOML, got what is none: {reason_of(error)}. {hint}") from None
