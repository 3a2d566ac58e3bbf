"""Sentences about a run that the reports share: amounts, limits, what changed, and what the exit code means."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...errors import listed
from ...utils.display import as_part, plural
from ..comparison.figures import INPUT_KINDS, amounts
from ..table.table_changes import SchemaChange

# Names that a line lists.
MOST_LISTED = 5
SHARE = "share"
UNITS = ("bits", "nats", "rows", "values", "columns", "files", "classes", "cells", "steps")
# The headings of columns with numbers; all other columns have text.
NUMBERS = ("value", "before", "now", "change")
# The meaning of each end of a run without results, said behind its error.
MEANINGS = {
    "refused": "the input or the configuration is bad; the last good state is as it was",
    "broken": "it ended by something else; the last good state is as it was",
    "killed": "it was killed; the last good state is as it was",
    "running": "it has not ended",
}
LIMITS = {"max": "at most", "min": "at least", "max_rise": "rise of at most", "max_fall": "fall of at most"}


class Change(NamedTuple):
    """A number that differs from the last good run's, in words."""

    name: str
    before: str
    now: str
    change: str


def number(value: float | None) -> str:
    """Return a number with six digits, a whole one with all of its digits."""
    if value is None:
        return "unknown"
    if not math.isfinite(value):
        return "not defined" if math.isnan(value) else f"{'-' if value < 0 else ''}infinite"
    return f"{int(value):,}" if value == int(value) else f"{value:.6g}"


def amount(value: float | None, unit: str) -> str:
    """Return a number with its unit, a plural such as "rows"; probabilities and ratios are shown without.

    A share is as limits are written, and in percent beside it.
    """
    if value is None:
        return "unknown"
    if unit == SHARE and math.isfinite(value):
        return f"{number(value)} ({as_part(value)})"
    if unit not in UNITS:
        return number(value)
    one = unit.removesuffix("es" if unit.endswith("sses") else "s")
    return f"{number(value)} {one if abs(value) == 1 else unit}"


def signed(change: float | None, unit: str) -> str:
    """Return a change with its sign and unit; empty if it is unknown."""
    if change is None:
        return ""
    if not change:
        return "no change"
    return f"{'+' if change > 0 else ''}{number(change) if unit == SHARE else amount(change, unit)}"


def limits(gate: Mapping[str, Any]) -> str:
    """Return the limits of a gate, in the unit of its value."""
    return ", ".join(f"{LIMITS[key]} {number(limit)}" for key, limit in gate["limits"].items())


def within(gate: Mapping[str, Any]) -> str:
    """Return the value of a gate, and the limits that were applied to it."""
    applied = {key: limit for key, limit in gate["limits"].items() if key not in gate["not_applied"]}
    return f"{gate['name']} {amount(gate['value'], gate['unit'])} ({limits({'limits': applied})})"


def place(gate: Mapping[str, Any]) -> str:
    """Return the table, if treated, the column and the attacker that the value of a gate is from; may be empty."""
    treated = ["treated table"] * gate["treated"]
    column = [] if gate["column"] is None else [f"column {gate['column']}"]
    attacker = [] if gate["attacker"] is None else [f"attacker {gate['attacker']}"]
    return ", ".join([*treated, *column, *attacker])


def verdict(gate: Mapping[str, Any]) -> str:
    """Return the verdict of a gate, and why if it does not hold."""
    return f"{gate['verdict']}: {gate['why']}" if gate["why"] else gate["verdict"]


def gates_table(document: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return the gates of a run as a table: headings and lines.

    The columns are the name, the value, the limits, the change, the place if any gate has one, and the verdict.
    """
    lines = []
    for gate in document["gates"]:
        value, change = amount(gate["value"], gate["unit"]), signed(gate["change"], gate["unit"])
        lines.append([gate["name"], value, limits(gate), change, place(gate), verdict(gate)])
    headings = ["gate", "value", "limits", "change", "where", "verdict"]
    if not any(place(gate) for gate in document["gates"]):
        at = headings.index("where")
        for line in (headings, *lines):
            del line[at]
    return headings, lines


def heading(document: Mapping[str, Any]) -> str:
    """Return the number of the run, its table, its time, and what a single attacker knows."""
    run = f"Run {document['number']} of {document['table']}, {document['started'][:19].replace('T', ' ')} UTC"
    attacker = (document["summary"] or {}).get("attacker", "").removesuffix(".")
    return f"{run}. {attacker}." if attacker else run


def resources_used(document: Mapping[str, Any]) -> str:
    """Return the size of the table, the device, the time and the memory of a run; empty if nothing was read."""
    said = []
    if document["rows"] is not None:
        columns = len(document["columns"])
        said.append(f"{document['rows']:,} {plural(document['rows'], 'row')} x {columns} {plural(columns, 'column')}")
    if document["changes"] is not None:
        said.append(f"{len(document['changes']['read'])} of {len(document['files'])} files read")
    if document["device"]:
        said.append(f"device {document['device']}")
    if document["seconds"]:
        said.append(f"{sum(document['seconds'].values()):.1f} s")
    if document["peak_bytes"] is not None:
        said.append(f"peak memory {document['peak_bytes'] / 2**20:,.0f} MiB")
    return ", ".join(said)


def closing(document: Mapping[str, Any]) -> str:
    """Return how a run ended, and what its exit code means."""
    status, code = document["status"], document["exit_code"]
    gates = document["gates"]
    if status == "passed":
        buts = ["NO GATE LIMITS A RISK"] * (not limits_risk(gates)) + ["NOT RELEASED"] * bool(code)
        but = f", BUT {' AND '.join(buts)}" if buts else ""
        files = (document.get("release") or {}).get("files", ())
        treated = any(file["key"] == "release.output" for file in files)
        return f"PASSED{but}: {gates_held(gates, treated)}.{_released(document)} Exit code {code}."
    if status == "failed":
        names = [gate["name"] for gate in gates if gate["verdict"] in ("failed", "unknown")]
        do_not = "does not hold" if len(names) == 1 else "do not hold"
        of = f"{len(names)} of {len(gates)} {plural(len(gates), 'gate')} {do_not}: {listed(names, MOST_LISTED, str)}"
        said = "; ".join([of if names else "the treated table breaks its plan", *not_applied(gates)])
        return f"FAILED: {said}. Exit code {code}: the release must wait.{_released(document)}"
    error = f"{document['error'].rstrip('.')}. " if document["error"] else ""
    return f"{status.upper()}: {error}Exit code {code}: {MEANINGS[status]}."


def _released(document: Mapping[str, Any]) -> str:
    """Return what became of the release, as a further sentence; no text if nothing was to be released."""
    said = "" if document.get("release") is None else release_sentence(document["release"])
    return said and f" {said[0].upper()}{said[1:]}."


def release_sentence(release: Mapping[str, Any]) -> str:
    """Return what became of a release, without a full stop. release: of a `RunOutcome`."""
    if release["status"] != "published":
        why = release["error"].rstrip(".") if "error" in release else "a gate does not hold"
        return f"nothing new was released: {why}"
    number = len(release["files"])
    said = f"released {number} {plural(number, 'file')}"
    if "left" not in release:
        return said
    charged = (
        f"epsilon {release['epsilon']:.6g} charged" if release["epsilon"] else "the answers of before, not charged"
    )
    return f"{said}: {charged}, epsilon {release['left']:.6g} left"


def limits_risk(gates: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a gate that holds limits a risk itself."""
    return any(gate["limits_risk"] and gate["verdict"] == "passed" for gate in gates)


def case_name(gate: Mapping[str, Any]) -> str:
    """Return the name of a gate as a test case: with its limits, if none of them limits the risk that it names."""
    is_whole = gate["limits_risk"] or gate["kind"] in INPUT_KINDS
    return gate["name"] if is_whole else f"{gate['name']}: {' and '.join(gate['limits'])}"


def gates_held(gates: Sequence[Mapping[str, Any]], treated: bool = False) -> str:
    """Return what the gates of a run that passed have tested, and no more than that.

    treated: whether a treated table was released. Figures of the input are then said to be from before treatment.
    """
    if not gates:
        return "there are no gates, so nothing was judged"
    held = [gate for gate in gates if gate["verdict"] == "passed"]
    several = f"all {len(held)} gates hold" if len(held) > 1 else "the gate holds"
    if not held:
        several = f"{f'{len(gates)} gates' if gates[1:] else 'the gate'} had nothing to compare with"
    elif len(held) < len(gates):
        several = f"{len(held)} of {len(gates)} gates {'hold' if held[1:] else 'holds'}"
    treated |= any(gate["treated"] for gate in gates)
    limited, free = [], []
    for own, when in ((False, "before treatment"), (True, "after treatment")):
        some = [gate for gate in gates if gate["treated"] == own and gate["kind"] not in INPUT_KINDS]
        risks = [within(gate) for gate in some if gate["limits_risk"] and gate in held]
        figures = [f"{gate['name']} {amount(gate['value'], gate['unit'])}" for gate in some if not gate["limits_risk"]]
        if risks:
            limited.append(f"within the limits on risk{f', {when}' * treated}: {listed(risks, MOST_LISTED, str)}")
        if figures:
            free.append(f"measured{f' {when}' * treated}, but not limited: {listed(figures, MOST_LISTED, str)}")
    return "; ".join([several, *(limited or ["none limits a risk"]), *free, *not_applied(gates)])


def not_applied(gates: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return which limits of which gates had no run to compare with, as one clause, or nothing where there are none."""
    waiting = [f"{' and '.join(gate['not_applied'])} of {gate['name']}" for gate in gates if gate["not_applied"]]
    return [f"not applied, for want of a run to compare with: {listed(waiting, MOST_LISTED, str)}"] if waiting else []


def since(document: Mapping[str, Any]) -> str:
    """Return which run the run is compared with."""
    compared = document["compared_with"]
    return "No good run before it to compare with" if compared is None else f"Since run {compared}, the last good one"


def file_changes(document: Mapping[str, Any]) -> list[str]:
    """Return a line for each way in which the files changed since the last good run, if there is one."""
    changes = document["changes"]
    if changes is None or document["compared_with"] is None:
        return []
    renamed = [f"{before} -> {after}" for before, after in changes["renamed"]]
    ways = {"added": changes["added"], "removed": changes["removed"], "changed": changes["changed"], "renamed": renamed}
    lines = [f"files {way}: {len(names)} ({listed(names, MOST_LISTED, str)})" for way, names in ways.items() if names]
    return [*lines, f"files unchanged: {changes['unchanged']}"]


def column_changes(document: Mapping[str, Any], before: Mapping[str, Any] | None) -> list[str]:
    """Return a line for each way in which the columns changed. before: the document of the last good run."""
    new_values = [
        f"{column['name']} {column['new_values']:,}" for column in document["columns"] if column["new_values"]
    ]
    ways = {"with new values": new_values}
    if before is not None and document["columns"]:
        then, now = ({column["name"]: column["type"] for column in one["columns"]} for one in (before, document))
        change = SchemaChange.between(then, now)
        retyped = [f"{name} {was} -> {is_now}" for name, (was, is_now) in change.changed.items()]
        ways = {"added": [*change.came], "removed": [*change.went], "of another type": retyped, **ways}
    return [f"columns {way}: {len(names)} ({listed(names, MOST_LISTED, str)})" for way, names in ways.items() if names]


def number_changes(document: Mapping[str, Any], before: Mapping[str, Any] | None) -> list[Change]:
    """Return the figures that both runs have and that are not the same."""
    then = {} if before is None else amounts(before)
    return [
        Change(name, amount(*then[name]), amount(*now), signed(now.value - then[name].value, now.unit))
        for name, now in amounts(document).items()
        if name in then and then[name].value != now.value
    ]
