"""The outcome of a run in plain values, which the record keeps and reports are made from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from enum import StrEnum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from ..errors import printable
from ..utils.display import Displayable, json_value
from .comparison.figures import INPUT_KINDS
from .exit_codes import EXIT_CODES, RELEASE_FAILED, Status
from .table.table_changes import InputChanges, InputFile

if TYPE_CHECKING:
    from rich.console import Console

# The limits of a gate on the change of its value since the last good run.
CHANGES = ("max_rise", "max_fall")
# The version of `RunOutcome.to_dict`: it rises if a key changes its meaning or goes, not if one comes.
FORMAT = 1


class Verdict(StrEnum):
    """The verdict of a gate.

    PASSED, FAILED: all limits that were applied hold, or one does not; `GateResult.not_applied` names the others.
    UNKNOWN: it could not be evaluated, which counts as failed. NOT_APPLIED: it limits a change alone, and there was
    nothing to compare with; it counts neither as passed nor as failed.
    """

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"
    NOT_APPLIED = "not applied"

    @property
    def holds_back(self) -> bool:
        """Return whether a gate with this verdict holds the release back."""
        return self in (Verdict.FAILED, Verdict.UNKNOWN)


@dataclass(frozen=True)
class GateResult:
    """A gate after a run.

    name: as in the configuration, one of its own. kind: name of its `Kind`. unit: of the value, "bits", "rows",
    "share", ... value: None where it is unknown. before: its value in the last good run, None without one; NaN where
    that run measured this, but kept the value of another column or attacker. limits: by key, "max", "min", "max_rise",
    "max_fall", those that are set. why: of what failed, is unknown or was not applied, one sentence.
    column, attacker: where the value is from, where it is the worst of several. definition: digest of what is measured;
    values of two runs are compared where it is the same, whatever the gates are called. risk_limit: "max" or "min", the
    limit that keeps the risk itself down; empty if the gate has none; None in records of earlier versions. treated:
    whether the value is of the treated table, not of the input.
    """

    name: str
    kind: str
    unit: str
    value: float | None
    before: float | None
    limits: Mapping[str, float]
    verdict: Verdict
    why: str = ""
    column: str | None = None
    attacker: str | None = None
    definition: str = ""
    risk_limit: str | None = None
    treated: bool = False

    @property
    def change(self) -> float | None:
        """Return by how much the value rose since the last good run; None where that is not known."""
        if self.value is None or self.before is None or math.isnan(self.before):
            return None
        # Infinity is no less than itself.
        return 0.0 if self.value == self.before else self.value - self.before

    @property
    def not_applied(self) -> list[str]:
        """Return the limits that were not applied, for want of a run to compare with: keys of `limits`."""
        if self.verdict is Verdict.NOT_APPLIED:
            return [*self.limits]
        if self.verdict is Verdict.UNKNOWN or self.before is not None:
            return []
        return [key for key in CHANGES if key in self.limits]

    @property
    def limits_risk(self) -> bool:
        """Return whether the gate limits a risk itself, of scores or of classes, not only its change or the input."""
        sides = ("max", "min") if self.risk_limit is None else (self.risk_limit,)
        return self.kind not in INPUT_KINDS and not self.limits.keys().isdisjoint(sides)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values, ready for JSON, with what follows from its fields."""
        follows = {"change": json_value(self.change), "not_applied": self.not_applied, "limits_risk": self.limits_risk}
        return {**plain(self), **follows}


@dataclass(frozen=True)
class ColumnProfile:
    """A column of the table. type: as the files have it. Of what was read in numbers, of others None: distinct_values;
    missing, rows without a value; new_values, that the last good run lacked, None without one.
    """

    name: str
    type: str
    distinct_values: int | None = None
    missing: int | None = None
    new_values: int | None = None


@dataclass(frozen=True)
class KeptScores:
    """Score files of a run. path: below the state. files: by name their size and BLAKE2b digest, as the manifest says
    it.
    """

    path: str
    kind: str
    files: Mapping[str, tuple[int, str]]


@dataclass(frozen=True)
class RunOutcome(Displayable):
    """The outcome of a run, as the record has it; made by `gpupif.nightly.run`. Prints as tables.

    Fields that a run did not come to are None or empty.

    number: 1 and up, of this record. status: "passed" (no gate failed or is unknown), "failed", "refused" (bad input),
    "broken" (anything else), "killed" or "running". started, finished: UTC, ISO 8601. table: the identity of the input,
    its path or connection without secrets and query. config, config_digest: the configuration, secrets unresolved, and
    its BLAKE2b. versions: of gpupif, Python and libraries. host, device: where it ran.

    rows, distinct_rows: of the table. files: that it is made of, see `InputFile`. changes: of these since the last good
    run, see `InputChanges`. columns: see `ColumnProfile`. gates: in the order of the configuration, see `GateResult`.
    summary: `Summary.to_dict` of the scores, without cells unless values may be shown; risk: `DisclosureRisk.to_dict`
    likewise, without classes, None without quasi-identifiers. kept: which scores are kept, see `KeptScores`.

    seconds: wall time by stage, in order. peak_bytes: most memory of the process. compared_with: number of the last
    good run before it. notes: what else was said, one sentence each. error: of what did not end well, one sentence.

    release: None if nothing is to be released; else its status ("published", "held back" by a gate, "not met" by the
    treated table or "failed", with an error), the files with size and BLAKE2b, and of answers the epsilon that the run
    charged, what is spent and left of the ledger, and its head.
    """

    number: int
    status: Status
    started: str
    finished: str | None
    table: str
    config: Mapping[str, Any]
    config_digest: str
    versions: Mapping[str, str] = field(default_factory=dict)
    host: str = ""
    device: str = ""
    rows: int | None = None
    distinct_rows: int | None = None
    files: Sequence[InputFile] = ()
    changes: InputChanges | None = None
    columns: Sequence[ColumnProfile] = ()
    gates: Sequence[GateResult] = ()
    summary: Mapping[str, Any] | None = None
    risk: Mapping[str, Any] | None = None
    kept: KeptScores | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    peak_bytes: int | None = None
    compared_with: int | None = None
    notes: Sequence[str] = ()
    error: str = ""
    release: Mapping[str, Any] | None = None

    @property
    def exit_code(self) -> int:
        """The exit code: 0 no gate failed, 3 a gate did, 5 the release failed, 2 refused input, 1 anything else."""
        if self.status is Status.PASSED and self.release is not None and self.release["status"] == "failed":
            return RELEASE_FAILED
        return EXIT_CODES.get(self.status, EXIT_CODES[Status.BROKEN])

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain numbers, text, lists and dictionaries, ready for JSON, but for the configuration.

        `format` is the version of the document; gates have besides their `change`, the limits that were `not_applied`,
        and whether each `limits_risk`.
        """
        fields = {name: plain(value) for name, value in vars(self).items() if name != "config"}
        gates = [gate.to_dict() for gate in self.gates]
        return {"format": FORMAT, **fields, "exit_code": self.exit_code, "gates": gates}

    def verdict(self, redact: bool = False) -> list[str]:
        """See `Displayable.verdict`."""
        from .report.run_text import closing, heading

        document = self.to_dict()
        if redact:
            # Errors may name folders.
            release, hidden = document["release"] or {}, "the error is hidden"
            document |= {"table": PurePath(str(document["table"])).name}
            document["error"] = document["error"] and hidden
            document["release"] = release | {"error": hidden} if "error" in release else document["release"]
        return [printable(heading(document)), printable(closing(document))]

    def draw(self, console: Console) -> None:
        """Draw it on a console of rich: the table of gates, what changed, and what the exit code says."""
        from .report.readable_report import draw

        draw(self.to_dict(), None, console)


def why(error: str, gates: Sequence[str], release: Mapping[str, Any] | None = None) -> str:
    """Return why a run did not end well, in a line; no text if it did.

    It is the error, the gates that do not hold, or the error of the release.
    """
    return error or (f"gates that do not hold: {', '.join(gates)}" if gates else (release or {}).get("error", ""))


def plain(value: Any) -> Any:
    """Return values of a run as JSON has them: numbers, text, lists and dictionaries; None for NaN and infinity."""
    if is_dataclass(value):
        return {name: plain(own) for name, own in vars(value).items()}
    if isinstance(value, Mapping):
        return {plain(str(key)): plain(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [plain(own) for own in value]
    # Names of files that are no text have surrogates, which UTF-8 lacks.
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else json_value(value)
