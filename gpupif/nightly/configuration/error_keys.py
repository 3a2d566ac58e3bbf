"""Errors of a run in the words of the configuration: `known` is score.known, and sep=',' is input.separator = ','."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

from ...errors import GpupifError
from .config import Config
from .run_files import paths_of
from .settings import READ, RiskSettings, RunSettings, ScoreSettings, Section

SECTIONS: dict[str, type[Section]] = {"score": ScoreSettings, "risk": RiskSettings, "run": RunSettings}
# The keys of the configuration, by the arguments of Python that take their values.
KEYS = {name: f"{section}.{name}" for section, kind in SECTIONS.items() for name in kind.model_fields} | {
    "among": "score.known.among",
    "distance": "score.distances",
    "lacks": "score.population_lacks",
    "sep": "input.separator",
    "where": "keep.where",
}
CALL = re.compile(r"gpupif\.(?:config\(|Population\(table, )(\w+='[^']*')\)")
# An argument with its value, if any, that advice names. Names of one letter are signs of formulas too.
ARGUMENT = re.compile(rf"(?<![\w.'\"/-])({'|'.join(name for name in KEYS if name[1:])})=('[^']*'|(?!\w))")


def error_text(error: Exception, config: Config) -> str:
    """Return the message of an error of a run, in one line, without secrets and values of the table.

    It begins with the key that the error is about, if there is one. error: of gpupif or the system.
    """
    if not isinstance(error, GpupifError):
        return config.redact.error(error)
    text = config.redact.error(_about_key(error, config))
    return ARGUMENT.sub(_advice, CALL.sub(r"\1", text))


def _about_key(error: GpupifError, config: Config) -> GpupifError:
    """Return an error that begins with the key for the argument, or the file, that it began with."""
    subject = str(error).partition(": ")[0]
    if subject in KEYS:
        return error.about(KEYS[subject], f"{subject}: ")
    if subject.startswith("device '"):
        return error.about("run.device", "device ")
    for key, path in paths_of(config.settings.model_dump(), READ):
        named = config.resolve(path)
        if key.startswith("score.") and (Path(subject).is_relative_to(named) or fnmatch(subject, str(named))):
            return error.about(key)
    return error


def _advice(argument: re.Match[str]) -> str:
    """Return the key for an argument, with its value if there is one."""
    name, value = argument.groups()
    # It may be a key of any attacker.
    key = name if name == "among" else KEYS[name]
    return f"{key} = {value}" if value else key
