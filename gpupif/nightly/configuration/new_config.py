"""The first configuration of nightly runs: proposed from a look at the table, and written as commented TOML."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic.fields import FieldInfo

from ...attack.roles import Roles, as_roles
from ...criteria.criterion import Criterion, read_criteria
from ...errors import GpupifError, InputError
from ...io.documents import WIDTH, toml_comment, toml_key, toml_value
from ...io.paths import find_input
from ...io.read import open_source
from ...io.temporary_folder import temporary_folder
from ...io.write import check_output, write_text
from ...out_of_core.output_options import OutputOptions
from ...treatment.plan import Plan
from ...treatment.plan_run import find_key
from ...treatment.steps import SAID
from ...treatment.treat_files import treat_source
from ...utils.config import resources
from ...utils.progress import Reporter
from ...utils.validation import check_path
from ..comparison.figures import INPUT_KINDS
from ..gates.findings import Findings, measure_table, measure_treated
from ..gates.gate_kinds import GATES
from ..gates.gates import evaluate, questions_of, resolve_gates
from ..report.run_text import amount, within
from ..run_outcome import ColumnProfile, GateResult
from .first_limits import OFFICE_LIMITS, criteria_of_plan, gates_of
from .settings import (
    GateSettings,
    InputSettings,
    ReleaseSettings,
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
# How much rows and missing values may change from one good run to the next, as shares of the rows.
ROWS_SHARE, MISSING_SHARE = 0.2, 0.05
# The names of the treated table; the first that is no file of the table itself is proposed.
TREATED = ("treated.parquet", "treated.csv", "treated.feather")
TITLE = (
    "Nightly runs of gpupif: risk computed again, answered by gates, on record. Made from a look at a table, and a "
    "proposal: what columns are was told from {told}, and which risk is acceptable whoever answers for the table has "
    "to say. Keys in comments have no value yet."
)
BY_LOOKS, BY_ROLES = "names and values alone (gpupif inspect says why)", "the roles that were given"


class FirstGate(NamedTuple):
    """A gate of a first configuration. origin: what its limit comes from. meaning: a sentence or two about it."""

    gate: GateSettings
    origin: str = ""
    meaning: str = ""


class FirstConfiguration(NamedTuple):
    """A first configuration as written. seen: of the table. gates: their results today, each with its origin."""

    seen: Inspection
    gates: list[tuple[GateResult, str]]

    @property
    def tonight(self) -> list[str]:
        """Return a line for each gate that fails today, or one line if none does."""
        fails = [
            f"Fails tonight: {within(gate.to_dict())}, {origin}. {_why_unknown(gate)}".rstrip()
            for gate, origin in self.gates
            if gate.verdict.holds_back
        ]
        held = [
            f"Holds tonight: {within(gate.to_dict())}, {origin}." for gate, origin in self.gates if gate.limits_risk
        ]
        return fails or held or ["No risk is limited: no column is a quasi-identifier."]


def init(
    table: str | os.PathLike[str],
    path: str | os.PathLike[str] = CONFIG_FILE,
    overwrite: bool = False,
    *,
    roles: Any = None,
    require: Any = None,
    plan: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
) -> Inspection:
    """Write a first configuration of nightly runs, with every key, its default, and what it means.

    The table is looked at as by `gpupif.inspect`, and its risk is measured. Filled in are its path, columns to score
    and what is known, quasi-identifiers and sensitive columns, weights, columns that are a key of the rows, and gates.
    Limits on risk come from `require`, from the criteria of `plan`, or, without either, from what offices use. Their
    comments say from where, and whether they fail today. Further gates limit what changes since the last good run.

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
    require:
        Limits on risk, as of `gpupif.protect`: "k>=5", or a list. Default: those of the plan; without any, what offices
        use.
    plan:
        The path of a plan, as `gpupif.treat` takes it. Runs then release the table that it treats. All limits are on
        that table, and the plan says which columns are known. Default: nothing is released, limits are on the table.
    key:
        The path of the secret key of the plan's random treatments. Default: the plan has none.

    Returns
    -------
    Inspection
        What was seen, as of `gpupif.inspect`, with the roles that were given.

    Raises
    ------
    InputError
        As `gpupif.inspect`; roles of another table; the address of a database; a criterion that no gate can have; a
        plan that cannot be applied; also without pydantic.
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
    >>> gpupif.nightly.init(f"{folder.name}/people.parquet", file, require="k>=3").rows
    1000
    >>> [f"{gate.name}: {gate.limits}" for gate in gpupif.nightly.load_config(file).settings.gates[:2]]
    ["k: {'min': 3.0}", "PIF 95: {'max_rise': 0.1}"]
    >>> folder.cleanup()

    """
    return write_first(table, path, overwrite, roles=roles, require=require, plan=plan, key=key).seen


def write_first(
    table: str | os.PathLike[str],
    path: str | os.PathLike[str],
    overwrite: bool,
    *,
    roles: Any = None,
    require: Any = None,
    plan: Any = None,
    key: Any = None,
) -> FirstConfiguration:
    """Write a first configuration as `init` does, and return what was seen, and the results of its gates today."""
    from ...inspection.inspect import inspect

    check_path("path", path, "a .toml file")
    criteria = [] if require is None else read_criteria(require)
    found = look_up(table)
    release = _FirstRelease.from_user(plan, key)
    named = [Path(own) for own in (plan, key, roles) if isinstance(own, str | os.PathLike)]
    check_output(path, overwrite, [found, *named], endings=(".toml",))
    given = None if roles is None else _checked(as_roles(roles), found)
    seen = inspect(found)
    if given is not None:
        seen = replace(seen, roles=given, columns=seen.columns.assign(role=seen.columns["column"].map(given)))
    told = BY_LOOKS if given is None else BY_ROLES
    file = Path(os.path.abspath(path))
    settings = _proposed(found, seen, file.parent, release)
    settings, gates = _first_gates(settings, seen, criteria, release)
    results = _results(found, settings, seen, release)
    text = _as_toml(settings, seen, told, [_remark_of(*both) for both in zip(gates, results, strict=True)], release)
    write_text(text, path, overwrite, private=True)
    return FirstConfiguration(seen, [(result, first.origin) for first, result in zip(gates, results, strict=True)])


class _FirstRelease(NamedTuple):
    """The release of a first configuration: the plan, its path, and its key with its path."""

    plan: Plan
    path: str
    secret: Any
    key: str | None

    @classmethod
    def from_user(cls, plan: Any, key: Any) -> _FirstRelease | None:
        """Return the release by a plan, None without one. Raises InputError as `Plan.load` and for keys."""
        if plan is None:
            if key is not None:
                raise InputError("key: goes with plan=. Name the plan that draws by it, or leave the key out.")
            return None
        check_path("plan", plan, "a plan")
        loaded = Plan.load(plan)
        return cls(loaded, os.fspath(plan), find_key(loaded, key, None), None if key is None else os.fspath(key))

    def measured(self, found: Input, settings: Settings) -> Findings | None:
        """Return the classes of the table as the plan treats it now; None if no quasi-identifier is left."""
        with temporary_folder(resources().temp) as folder, Reporter() as report:
            treated = folder / TREATED[0]
            to = OutputOptions.from_arguments(treated)
            try:
                treat_source(open_source(found), to, self.plan, self.secret, report, True)
            except GpupifError as error:
                if SAID.match(str(error)):
                    raise error.about(f"plan: {self.path}") from error
                raise
            return measure_treated(treated, settings, Path)


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


def _as_toml(
    settings: Settings, seen: Inspection, told: str, said: Sequence[str], release: _FirstRelease | None
) -> str:
    """Return the configuration. told: what the roles of the columns come from. said: a remark for each gate."""
    roles, remarks = seen.roles, {f"gates[{place}]": why for place, why in enumerate(said)}
    if release is not None and release.plan.quasi_identifiers:
        remarks["risk.quasi_identifiers"] = "From the plan."
    elif told == BY_LOOKS:
        remarks["risk.quasi_identifiers"] = "Proposed, and so is what is sensitive: check each."
    left = [f"{name!r} ({role})" for name, role in roles.items() if name not in roles.scored]
    if left:
        remarks["score.columns"] = f"Not scored: {', '.join(left)}."
    if settings.input.row_key:
        remarks["input.row_key"] = "Proposed: no two rows have the same value there."
    examples = [(why, as_written(gate.model_dump(mode="json"))) for why, gate in _examples(settings)]
    return commented_toml(as_written(settings.model_dump(mode="json")), TITLE.format(told=told), remarks, examples)


def _beneath(path: str | os.PathLike[str], folder: Path) -> str:
    """Return a path relative to a folder if it lies beneath it, else absolute."""
    whole = Path(os.path.abspath(path))
    written = str(whole.relative_to(folder) if whole.is_relative_to(folder) else whole)
    # A path that begins with ~ would be in the home of a user.
    return f"./{written}" if written.startswith("~") else written


def _proposed(found: Input, seen: Inspection, folder: Path, release: _FirstRelease | None) -> Settings:
    """Return settings for a table, without gates. folder: of the configuration."""
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
    released = ReleaseSettings()
    if release is not None:
        known = [str(name) for name in release.plan.quasi_identifiers] or known
        sensitive = [str(name) for name in release.plan.sensitive] or [name for name in sensitive if name not in known]
        table = Path(os.path.abspath(found.path))
        free = (name for name in TREATED if not fnmatch(str(folder / name), str(table)) and folder / name != table)
        released = ReleaseSettings(
            plan=_beneath(release.path, folder),
            output=next(free, TREATED[0]),
            key=None if release.key is None else _beneath(release.key, folder),
        )
    return Settings(
        input=InputSettings(path=_beneath(found.path, folder), separator=found.sep, row_key=keys[:1]),
        score=ScoreSettings(columns=scored or None, known=known or None, weights=weights[0] if weights else None),
        risk=RiskSettings(quasi_identifiers=known, sensitive=sensitive if known else []),
        release=released,
    )


def _first_gates(
    settings: Settings, seen: Inspection, given: Sequence[Criterion], release: _FirstRelease | None
) -> tuple[Settings, list[FirstGate]]:
    """Return the gates, and settings with them and with all that they need. given: the criteria of the user."""
    treated = release is not None
    origins = dict.fromkeys(given, "as required")
    if release is not None:
        origins = {**dict.fromkeys(criteria_of_plan(release.plan), f"a criterion of {release.path}"), **origins}
    meaning = ""
    if not origins and settings.risk.quasi_identifiers:
        office = OFFICE_LIMITS[0]
        origins = {Criterion.from_text(office.criterion): f"for a table that {office.who} gets"}
        meaning = f"{office.source} Set the limit that holds for you."
    criteria = list(origins)
    limited, settings = gates_of(criteria, settings, treated)
    for criterion, gate in zip(criteria, limited, strict=True):
        try:
            resolve_gates(settings.model_copy(update={"gates": [gate]}))
        except InputError as error:
            reason = str(error).partition(": ")[2]
            raise InputError(
                f"criterion {str(criterion)!r}: {reason} To do so, write the configuration without this limit first."
            ) from None
    first = [
        FirstGate(gate, origin, f"{criterion!s}, {origin}. {meaning}".strip())
        for gate, (criterion, origin) in zip(limited, origins.items(), strict=True)
    ]
    for change in _change_gates(settings, seen):
        at = next((place for place, own in enumerate(first) if _same(own.gate, change.gate)), None)
        if at is None:
            first.append(change)
        else:
            both = first[at].gate.model_copy(update={"max_rise": change.gate.max_rise})
            first[at] = FirstGate(both, first[at].origin, f"{first[at].meaning} {change.meaning}")
    return settings.model_copy(update={"gates": [own.gate for own in first]}), first


def _same(gate: GateSettings, change: GateSettings) -> bool:
    """Return whether a gate measures the same as a gate on the change of a risk of the whole table."""
    return not gate.treated and (gate.kind, gate.percentile) == (change.kind, change.percentile)


def _change_gates(settings: Settings, seen: Inspection) -> list[FirstGate]:
    """Return gates on what changes from one good run to the next: of the risk, and of the table that is delivered."""
    rise = "It may rise by {} from one good run to the next."
    bits, rows = rise.format("a tenth of a bit"), rise.format("one percent of the rows")
    gates = [
        FirstGate(
            GateSettings(kind="pif", percentile=95.0, max_rise=0.1),
            meaning=f"PIF 95: 5 % of the rows give away more bits than it. {bits}",
        )
    ]
    if settings.risk.quasi_identifiers:
        below = f"Rows in classes of fewer than risk.k, {settings.risk.k}, as a share of all."
        gates += [
            FirstGate(
                GateSettings(kind="unique_share", max_rise=0.01),
                meaning=f"Rows that their quasi-identifiers single out, as a share of all. {rows}",
            ),
            FirstGate(GateSettings(kind="share_below_k", max_rise=0.01), meaning=f"{below} {rows}"),
        ]
    few = math.ceil(seen.rows * ROWS_SHARE)
    return [
        *gates,
        FirstGate(
            GateSettings(kind="rows", max_rise=few, max_fall=few),
            meaning="Rows. If a fifth of them come or go from one good run to the next, what delivers the table may be "
            "at fault, and every risk changes.",
        ),
        FirstGate(
            GateSettings(kind="missing_share", max_rise=MISSING_SHARE),
            meaning=f"Missing values, in the column that has most. {rise.format('five percent of the rows')}",
        ),
    ]


def _results(found: Input, settings: Settings, seen: Inspection, release: _FirstRelease | None) -> list[GateResult]:
    """Return the results of the gates today."""
    gates = resolve_gates(settings)
    facts = zip(seen.columns["column"], seen.columns["missing"], strict=True)
    profiles = [ColumnProfile(str(name), "", missing=int(missing)) for name, missing in facts]
    findings = measure_table(found, settings, questions_of(gates), profiles, Path)
    return evaluate(gates, findings, None, None if release is None else release.measured(found, settings))


def _why_unknown(gate: GateResult) -> str:
    return gate.why if gate.value is None else ""


def _remark_of(first: FirstGate, result: GateResult) -> str:
    """Return the comment of a gate: what it is, where its limit comes from, and its value today."""
    today = f"When this was written: {amount(result.value, result.unit)}"
    if result.verdict.holds_back:
        return f"{first.meaning} {today}, and the gate fails. {_why_unknown(result)}".rstrip()
    free = result.kind not in INPUT_KINDS and not result.limits_risk
    return f"{first.meaning} {today}{', which is not limited' * free}."


def _examples(settings: Settings) -> list[tuple[str, GateSettings]]:
    """Return gates on risk itself, each with why; only who answers for the table can set their limits."""
    known, yours = settings.risk.quasi_identifiers, "To be set by who answers for the table"
    if not known:
        return []
    examples = []
    for office in OFFICE_LIMITS[1:]:
        (gate,), _ = gates_of([Criterion.from_text(office.criterion)], settings)
        examples.append((f"{office.criterion}, for {office.who}. {office.source}", gate))
    new = f"{yours}: values of a column that the last good run did not know."
    examples.append((new, GateSettings(kind="new_values", column=known[0], max=0)))
    if settings.risk.sensitive:
        fewest = f"{yours}: the fewest sensitive values that a class may have. No office names a limit."
        examples.append((fewest, GateSettings(kind="distinct_l", min=3)))
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
