"""The first configuration of nightly runs: proposed from a look at the table, and written as commented TOML."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic.fields import FieldInfo

from ...attack.roles import Roles, as_roles
from ...errors import InputError
from ...io.documents import WIDTH, toml_comment, toml_key, toml_value
from ...io.paths import find_input
from ...io.read import open_source
from ...io.write import check_output, write_text
from ...utils.display import as_percent
from ...utils.validation import check_path
from ..gates.findings import measure_table
from ..gates.gate_kinds import GATES
from ..gates.gates import evaluate, questions_of, resolve_gates
from ..run_outcome import ColumnProfile
from .settings import (
    GateSettings,
    InputSettings,
    RiskSettings,
    ScoreSettings,
    Section,
    Settings,
    TellSettings,
    WebhookSettings,
)

if TYPE_CHECKING:
    from ...inspection.inspect import Inspection
    from ...io.base import Input

CONFIG_FILE = "risk.toml"
# An address begins with its scheme; a path loses one of the two / behind it.
ADDRESS = re.compile(r"([A-Za-z][\w+.-]+):/")
# The share by which rows may be fewer or more, and missing values more, before somebody has to look.
ROWS_SHARE, MISSING_SHARE = 0.2, 0.05
# The headroom of limits above the risk of today: a share of its bits, or of the rows.
BITS_HEADROOM, SHARE_HEADROOM = 0.05, 0.01
YOURS = "It says when risk is higher than now, not that it may be as high: whoever answers for the table sets it."
TITLE = (
    "Nightly runs of gpupif: risk computed again, answered by gates, on record. Made from a look at a table, and a "
    "proposal: what columns are was told from {told}, and which risk is acceptable whoever answers for the table has "
    "to say. Keys in comments have no value yet."
)
BY_LOOKS, BY_ROLES = "names and values alone (gpupif inspect says why)", "the roles that were given"


def init(
    table: str | os.PathLike[str],
    path: str | os.PathLike[str] = CONFIG_FILE,
    overwrite: bool = False,
    *,
    roles: Any = None,
) -> Inspection:
    """Write a first configuration of nightly runs, with every key, its default, and what it means.

    The table is looked at as by `gpupif.inspect`, and its risk is measured. Filled in are its path, columns to score
    and what is known, quasi-identifiers and sensitive columns, weights, columns that are a key of the rows, and gates
    to begin with: limits on the table, on its risk, and on what changes from night to night. The limits on risk are a
    little above what it is now, which their comments say. Further ones are examples in comments.

    Parameters
    ----------
    table:
        Path of a file, a folder or a pattern, as of `gpupif.score`. It is written relative to the configuration where
        it lies beneath its folder.
    path:
        The file to write, .toml, whole or not at all.
    overwrite:
        Replace a file that is there.
    roles:
        The roles of the columns: `gpupif.read_roles`, a dictionary, or the path of a file of roles. Default: those that
        `gpupif.inspect` proposes.

    Returns
    -------
    Inspection
        What was seen, as of `gpupif.inspect`, with the roles that were given.

    Raises
    ------
    InputError
        As `gpupif.inspect`; roles of another table; the address of a database; also without pydantic.
    TableReadError
        A table that cannot be read.
    OutputError
        A file that cannot be written, or that exists.

    Examples
    --------
    >>> import tempfile, gpupif
    >>> folder = tempfile.TemporaryDirectory()
    >>> gpupif.datasets.census(1000).to_parquet(f"{folder.name}/people.parquet")
    >>> file = f"{folder.name}/risk.toml"
    >>> gpupif.nightly.init(f"{folder.name}/people.parquet", file).rows
    1000
    >>> [gate.name for gate in gpupif.nightly.load_config(file).settings.gates]
    ['rows', 'missing share', 'PIF 95', 'unique share', 'share below k']
    >>> folder.cleanup()

    """
    from ...inspection.inspect import inspect

    check_path("path", path, "a .toml file")
    found = look_up(table)
    check_output(path, overwrite, [found, *[roles] * isinstance(roles, str | os.PathLike)], endings=(".toml",))
    given = None if roles is None else _checked(as_roles(roles), found)
    seen = inspect(found)
    if given is not None:
        seen = replace(seen, roles=given, columns=seen.columns.assign(role=seen.columns["column"].map(given)))
    told = BY_LOOKS if given is None else BY_ROLES
    write_text(_as_toml(found, seen, Path(os.path.abspath(path)), told), path, overwrite, private=True)
    return seen


def _checked(roles: Roles, found: Input) -> Roles:
    """Return roles, checked against the columns of a table. Raises InputError for roles of another table."""
    source = open_source(found)
    return roles.check(source.names, source.index_names)


def look_up(table: str | os.PathLike[str], separator: str | None = None) -> Input:
    """Return the files of a table. Raises InputError for the address of a database, and as `find_input`."""
    address = ADDRESS.match(str(table))
    if address is not None and not os.path.exists(table):
        raise InputError(
            f"{address[1]}://...: expected the path of a table, got an address. Only files are looked at. For a "
            "database write a configuration with input.connection and input.query: see the page on nightly runs, "
            "'Tables in databases'."
        )
    return find_input(table, separator)


def _as_toml(found: Input, seen: Inspection, file: Path, told: str) -> str:
    """Return the configuration for the files of a table.

    seen: of the table. file: of the configuration. told: what the roles of the columns come from.
    """
    settings = _proposed(found, seen, file.parent)
    gates, profiles = resolve_gates(settings), [ColumnProfile(str(name), "") for name in seen.columns["column"]]
    results = evaluate(gates, measure_table(found, settings, questions_of(gates), profiles, Path), None)
    proposals = [*_input_gates(seen), *_with_limits(settings, [result.value for result in results])]
    settings = settings.model_copy(update={"gates": [gate for _, gate in proposals]})
    roles, remarks = seen.roles, {f"gates[{place}]": why for place, (why, _) in enumerate(proposals)}
    if told == BY_LOOKS:
        remarks["risk.quasi_identifiers"] = "Proposed, and so is what is sensitive: check each."
    left = [f"{name!r} ({role})" for name, role in roles.items() if name not in roles.scored]
    if left:
        remarks["score.columns"] = f"Not scored: {', '.join(left)}."
    if settings.input.row_key:
        remarks["input.row_key"] = "Proposed: no two rows have the same value there."
    examples = [(why, as_written(gate.model_dump(mode="json"))) for why, gate in _examples(settings)]
    return commented_toml(as_written(settings.model_dump(mode="json")), TITLE.format(told=told), remarks, examples)


def _proposed(found: Input, seen: Inspection, folder: Path) -> Settings:
    """Return settings for a table, with gates on the change of its risks. folder: of the configuration."""
    whole = Path(os.path.abspath(found.path))
    path = str(whole.relative_to(folder) if whole.is_relative_to(folder) else whole)
    # A path that begins with ~ would be in the home of a user.
    path = f"./{path}" if path.startswith("~") else path
    # A row key is made to tell rows apart, and does so, without a gap.
    keys = [
        str(record["column"])
        for record in seen.columns.to_dict("records")
        if record["values"] == seen.rows
        and record["missing"] == 0
        and (record["role"] == "identifier" or record["looks_like"] == "row numbers")
    ]
    roles = seen.roles
    scored, known, sensitive, weights = (
        [str(name) for name in columns]
        for columns in (roles.scored, roles.quasi_identifiers, roles.sensitive, roles.having("weight"))
    )
    gates = [GateSettings(kind="pif", percentile=95.0, max_rise=0.1)]
    if known:
        gates += [GateSettings(kind=kind, max_rise=0.01) for kind in ("unique_share", "share_below_k")]
    return Settings(
        input=InputSettings(path=path, separator=found.sep, row_key=keys[:1]),
        score=ScoreSettings(columns=scored or None, known=known or None, weights=weights[0] if weights else None),
        risk=RiskSettings(quasi_identifiers=known, sensitive=sensitive if known else []),
        gates=gates,
    )


def _with_limits(settings: Settings, values: Sequence[float | None]) -> list[tuple[str, GateSettings]]:
    """Return the gates on risks with limits a little above what they are now, each with why."""
    said = {
        "pif": "PIF 95: 5 % of the rows give away more bits than it.",
        "unique_share": "Rows that their quasi-identifiers single out, as a share of all.",
        "share_below_k": f"Rows in classes of fewer than risk.k, {settings.risk.k}, as a share of all.",
    }
    found = []
    for gate, value in zip(settings.gates, values, strict=True):
        of_bits = gate.kind == "pif"
        rise = "a tenth of a bit" if of_bits else "one percent of the rows"
        why = f"{said[gate.kind]} It may rise by {rise} from one good run to the next."
        if value is not None and math.isfinite(value):
            now = f"{value:.4g} bits" if of_bits else as_percent(value)
            # A hundredth of a bit, or of the rows, is as fine as limits are written.
            most = math.ceil(100 * (value * (1 + BITS_HEADROOM) if of_bits else value + SHARE_HEADROOM)) / 100
            if of_bits or most < 1:
                gate = gate.model_copy(update={"max": most})
                why = f"{why} When this was written it was {now}; max is a little above. {YOURS}"
            else:
                why = f"{why} When this was written it was {now}, which no limit below all rows leaves room above."
        found.append((why, gate))
    return found


def _input_gates(seen: Inspection) -> list[tuple[str, GateSettings]]:
    """Return gates on the table that is delivered, each with why."""
    least, most = math.floor(seen.rows * (1 - ROWS_SHARE)), math.ceil(seen.rows * (1 + ROWS_SHARE))
    missing = max(seen.columns["missing"]) / seen.rows
    allowed = min(1.0, math.ceil(100 * (missing + MISSING_SHARE)) / 100)
    return [
        (
            f"Rows: {seen.rows:,} when this was written, give or take a fifth. Far fewer or more are a fault of what "
            "delivers the table, and change every risk.",
            GateSettings(kind="rows", min=least, max=most),
        ),
        (
            f"Missing values, in the column that has most: {as_percent(missing)} of the rows when this was written.",
            GateSettings(kind="missing_share", max=allowed),
        ),
    ]


def _examples(settings: Settings) -> list[tuple[str, GateSettings]]:
    """Return gates on risk itself, each with why; only who answers for the table can set their limits."""
    known, yours = settings.risk.quasi_identifiers, "To be set by who answers for the table"
    if not known:
        return []
    k = (
        f"{yours}: the fewest rows that may agree on all quasi-identifiers. Common are 5 where recipients are "
        "bound by contract, 11 (a risk of 0.09) where anybody may have the table."
    )
    new = f"{yours}: values of a column that the last good run did not know."
    examples = [
        (k, GateSettings(kind="k", min=5)),
        (new, GateSettings(kind="new_values", column=known[0], max=0)),
    ]
    if settings.risk.sensitive:
        fewest = f"{yours}: the fewest sensitive values that a class may have."
        examples.append((fewest, GateSettings(kind="distinct_l", min=2)))
    return examples


def as_written(value: Any) -> Any:
    """Return plain values as people write them: whole numbers without a fraction, and $${ for ${."""
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
    """Return a configuration as TOML to be edited by hand, which `load_config` reads.

    document: as `Config.document`, with all keys. title: a comment above it. remarks: comments beside the meaning of
    keys, by key such as "input.row_key" or "gates[0]". examples: further gates, in comments, each with a remark.
    Raises OutputError for names that are no text.
    """
    said = remarks or {}
    lines = _remark(title)
    for name, table in Settings.model_fields.items():
        section = table.annotation
        if not (isinstance(section, type) and issubclass(section, Section)):
            continue
        lines += ["", toml_comment((section.__doc__ or "").partition("\n")[0]), f"[{name}]"]
        for key, field in section.model_fields.items():
            # Lists of tables come behind all other keys.
            if (name, key) != ("tell", "webhooks"):
                lines += _key_lines(key, field, document[name][key], said.get(f"{name}.{key}", ""))
        if name == "keep":
            lines += _gate_lines(document["gates"], said, examples)
    return "\n".join([*lines, *_webhooks(document["tell"]["webhooks"])]) + "\n"


def _key_lines(key: str, field: FieldInfo, value: Any, remark: str = "") -> Iterator[str]:
    """Yield the lines of a key: its meaning, and its value or, in a comment, an example."""
    yield from (toml_comment(field.description or ""), *_remark(remark))
    if value in (None, {}):
        yield f"# {toml_key(key)} = {toml_value((field.examples or [value])[0])}"
        return
    line = f"{toml_key(key)} = {toml_value(value)}"
    if isinstance(value, list) and len(line) > WIDTH:
        entries = "".join(f"    {toml_value(entry)},\n" for entry in value)
        line = f"{toml_key(key)} = [\n{entries}]"
    yield line


def _remark(text: str) -> list[str]:
    return [toml_comment(text)] if text else []


def _gate_lines(
    gates: Sequence[Mapping[str, Any]], said: Mapping[str, str], examples: Sequence[tuple[str, Mapping[str, Any]]]
) -> Iterator[str]:
    yield ""
    yield toml_comment((GateSettings.__doc__ or "").partition("\n")[0])
    yield from (toml_comment(f"{key}: {field.description}") for key, field in GateSettings.model_fields.items())
    yield toml_comment(f"Kinds: {', '.join(GATES)}.")
    for place, gate in enumerate(gates):
        yield from ("", *_remark(said.get(f"gates[{place}]", "")), *_gate_table(gate))
    for text, gate in examples:
        yield from ("", *_remark(text), *(f"# {line}" for line in _gate_table(gate)))


def _gate_table(gate: Mapping[str, Any]) -> list[str]:
    """Return a gate with the keys that it has."""
    given = {key: value for key, value in gate.items() if value is not None and value is not False}
    return ["[[gates]]", *(f"{key} = {toml_value(value)}" for key, value in given.items())]


def _webhooks(hooks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield ""
    yield toml_comment(TellSettings.model_fields["webhooks"].description or "")
    fields = WebhookSettings.model_fields
    for hook in hooks:
        yield "[[tell.webhooks]]"
        for key, field in fields.items():
            yield from _key_lines(key, field, hook[key])
    if not hooks:
        yield "# [[tell.webhooks]]"
        for key, field in fields.items():
            yield toml_comment(field.description or "")
            yield f"# {key} = {toml_value(field.examples[0] if field.examples else field.default)}"
