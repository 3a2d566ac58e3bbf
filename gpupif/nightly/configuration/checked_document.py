"""The document of a configuration checked, with what is set from outside it: its settings, or all that is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError, create_model

from ...errors import InputError
from ..gates.gate_names import gate_names
from .mistakes import Location, key_of, mistakes_in, value_at
from .overrides import override
from .secrets import Redaction, masked, resolve_references
from .settings import RunSettings, Section, Settings

# A configuration of which only the table [run] is looked at, and of the others the names.
_TABLES: dict[str, Any] = dict.fromkeys(Settings.model_fields, (Any, None)) | {"run": (RunSettings, RunSettings())}
RunAlone = create_model("RunAlone", __base__=Section, **_TABLES)


class Checked(NamedTuple):
    """What a `Config` has of a document."""

    settings: Settings
    document: dict[str, Any]
    redact: Redaction


def check_document(
    file: Path, document: dict[str, Any], overrides: Sequence[str], environ: Mapping[str, str]
) -> Checked:
    """Check a document of TOML, in which overrides are set.

    file: where it is from, which errors name. The others as of `load_config`. Raises InputError: all that is wrong.
    """
    overridden = [override(document, text) for text in overrides]
    resolved, references, wrong, values = resolve_references(document, environ)
    checked = _valid(Settings, resolved)
    _refuse(file, document, overridden, wrong, checked, values)
    assert isinstance(checked, Settings)
    plain = _with_references(checked.model_dump(mode="json"), references)
    names = gate_names(plain["gates"])
    for gate, name in zip(plain["gates"], names, strict=True):
        gate["name"] = name
    kept, written = masked(plain)
    # Of an address that is put together, the parts are secrets too.
    addresses = {text for place in references if "://" in (text := value_at(resolved, place))}
    gates = [
        gate if gate.name is not None else gate.model_copy(update={"name": name})
        for gate, name in zip(checked.gates, names, strict=True)
    ]
    settings = checked.model_copy(update={"gates": gates})
    return Checked(settings, kept, Redaction(values | written | addresses))


def check_run_settings(
    file: Path, document: dict[str, Any], overrides: Sequence[str], environ: Mapping[str, str]
) -> RunSettings:
    """As `check_document`, of the table [run] alone: only the variables that it names have to be set."""
    overridden = [override(document, text) for text in overrides]
    resolved, _, wrong, values = resolve_references({"run": document.get("run", {})}, environ)
    checked = _valid(RunAlone, {**document, **resolved})
    _refuse(file, document, overridden, wrong, checked, values)
    found: RunSettings = checked.run
    return found


def _valid(kind: type[Section], document: Mapping[str, Any]) -> Any:
    """The settings, or what is wrong with them, which holds secrets and so is to be no cause of another error."""
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        return error


def _refuse(
    file: Path,
    document: Mapping[str, Any],
    overridden: Sequence[Location],
    wrong: Mapping[Location, list[str]],
    checked: Section | ValidationError,
    secrets: set[str],
) -> None:
    """Raise InputError for what is wrong: with references, by where, and with what was checked, if it did not pass."""
    found = mistakes_in(checked, document) if isinstance(checked, ValidationError) else {}
    redact = Redaction(secrets)
    lines = [
        f"{'--set ' * _came_by(overridden, location)}{key_of(location, document)}: {redact(sentence)}"
        for location in dict.fromkeys([*wrong, *found])
        for sentence in wrong.get(location) or found[location]
    ]
    if lines:
        several = [f"{file}: {len(lines)} mistakes:", *(f"  {line}" for line in lines)]
        raise InputError(*([f"{file}: {lines[0]}"] if len(lines) == 1 else several))


def _came_by(overridden: Sequence[Location], location: Location) -> bool:
    """Whether what is somewhere came by an override."""
    return any(location[: len(one)] == one for one in overridden)


def _with_references(document: dict[str, Any], references: Mapping[Location, str]) -> dict[str, Any]:
    """A document in which texts with references stand as they are written."""
    for location, text in references.items():
        value_at(document, location[:-1])[location[-1]] = text
    return document
