"""Configurations as TOML to be edited by hand: every key with its value, or an example, and what it means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic.fields import FieldInfo

from ...io.documents import WIDTH, toml_comment, toml_key, toml_value
from ..gates.gate_kinds import GATES
from .settings import GateSettings, Section, Settings, TellSettings, WebhookSettings


def as_written(value: Any) -> Any:
    """Plain values as people write them: whole numbers without a fraction, and $${ for ${, which begins a variable."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, list):
        return [as_written(inner) for inner in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return {key: as_written(inner) for key, inner in value.items()} if isinstance(value, dict) else value


def commented_toml(
    document: Mapping[str, Any],
    title: str = "",
    remarks: Mapping[str, str] | None = None,
    examples: Sequence[tuple[str, Mapping[str, Any]]] = (),
) -> str:
    """A configuration as TOML that `load_config` reads.

    document: as of `Config.document`, all keys. title: what stands above it. remarks: by key, such as "input.row_key"
    or "gates[0]", what is said there beside what the key means. examples: further gates, in comments, each with what is
    said of it. Raises OutputError for names that are no text.
    """
    said = remarks or {}
    lines = _remark(title)
    for name, section in _sections():
        lines += ["", toml_comment((section.__doc__ or "").partition("\n")[0]), f"[{name}]"]
        for key, field in section.model_fields.items():
            if not _is_tables(field):
                lines += _key(key, field, document[name][key], said.get(f"{name}.{key}", ""))
        if name == "keep":
            lines += _gates(document["gates"], said, examples)
    return "\n".join([*lines, *_webhooks(document["tell"]["webhooks"])]) + "\n"


def _sections() -> Iterator[tuple[str, type[Section]]]:
    """The sections that stand once, by name."""
    for name, field in Settings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            yield name, field.annotation


def _is_tables(field: FieldInfo) -> bool:
    """Whether it is a list of tables, which come behind the other keys."""
    return any(isinstance(part, type) and issubclass(part, Section) for part in get_args(field.annotation))


def _key(key: str, field: FieldInfo, value: Any, said: str = "") -> Iterator[str]:
    """The lines of a key: what it means, and its value, or, in a comment, an example."""
    yield from (toml_comment(field.description or ""), *_remark(said))
    if value in (None, {}):
        yield f"# {toml_key(key)} = {toml_value((field.examples or [value])[0])}"
    else:
        yield _assigned(key, value)


def _remark(text: str) -> list[str]:
    return [toml_comment(text)] if text else []


def _assigned(key: str, value: Any) -> str:
    """A key and its value: of a list that is too long for a line each entry in one."""
    line = f"{toml_key(key)} = {toml_value(value)}"
    if isinstance(value, list) and len(line) > WIDTH:
        entries = "".join(f"    {toml_value(entry)},\n" for entry in value)
        return f"{toml_key(key)} = [\n{entries}]"
    return line


def _gates(
    gates: Sequence[Mapping[str, Any]], said: Mapping[str, str], examples: Sequence[tuple[str, Mapping[str, Any]]]
) -> Iterator[str]:
    yield ""
    yield toml_comment((GateSettings.__doc__ or "").partition("\n")[0])
    yield from (toml_comment(f"{key}: {field.description}") for key, field in GateSettings.model_fields.items())
    yield toml_comment(f"Kinds: {', '.join(GATES)}.")
    for place, gate in enumerate(gates):
        yield from ("", *_remark(said.get(f"gates[{place}]", "")), *_gate(gate))
    for text, gate in examples:
        yield from ("", *_remark(text), *(f"# {line}" for line in _gate(gate)))


def _gate(gate: Mapping[str, Any]) -> list[str]:
    """A gate with the keys that it has."""
    return ["[[gates]]", *(f"{key} = {toml_value(value)}" for key, value in gate.items() if value is not None)]


def _webhooks(hooks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield ""
    yield toml_comment(TellSettings.model_fields["webhooks"].description or "")
    fields = WebhookSettings.model_fields
    for hook in hooks:
        yield "[[tell.webhooks]]"
        for key, field in fields.items():
            yield from _key(key, field, hook[key])
    if not hooks:
        yield "# [[tell.webhooks]]"
        for key, field in fields.items():
            yield toml_comment(field.description or "")
            yield f"# {key} = {toml_value(field.examples[0] if field.examples else field.default)}"
