"""What people read of a run: amounts, limits, what changed, and what the exit code means."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...errors import listed
from ...utils.display import plural
from ..table.schema import SchemaChange
from .figures import Figure, figures

# Names that a line lists.
MOST_LISTED = 5
UNITS = ("bits", "nats", "rows", "values", "columns", "files", "classes", "cells", "steps")
# Headings of columns of amounts; those of others have text.
NUMBERS = ("value", "before", "now", "change")
# By status what a run that did not say anything worse of itself means, behind its error.
MEANINGS = {
    "refused": "the input or the configuration is bad; the last good state is as it was",
    "broken": "it ended by something else; the last good state is as it was",
    "killed": "it was killed; the last good state is as it was",
    "running": "it has not ended",
}
LIMITS = {"max": "at most", "min": "at least", "max_rise": "rise of at most", "max_fall": "fall of at most"}


class Change(NamedTuple):
    """A number that is another one than in the last good run, in words."""

    name: str
    before: str
    now: str
    change: str


def number(value: float | None) -> str:
    """A number with six digits, a whole one with all of them."""
    if value is None:
        return "unknown"
    if not math.isfinite(value):
        return "none" if math.isnan(value) else f"{'-' if value < 0 else ''}infinite"
    return f"{int(value):,}" if value == int(value) else f"{value:.6g}"


def amount(value: float | None, unit: str) -> str:
    """A number with its unit, which is in the plural; shares, probabilities and ratios have none, as in the limits."""
    if value is None:
        return "unknown"
    if unit not in UNITS:
        return number(value)
    one = unit.removesuffix("es" if unit.endswith("sses") else "s")
    return f"{number(value)} {one if abs(value) == 1 else unit}"


def signed(change: float | None, unit: str) -> str:
    """By how much something rose; empty where that is unknown."""
    if change is None:
        return ""
    return f"{'+' if change > 0 else ''}{amount(change, unit)}" if change else "none"


def limits(gate: Mapping[str, Any]) -> str:
    """The limits of a gate, in the unit of its value."""
    return ", ".join(f"{LIMITS[key]} {number(limit)}" for key, limit in gate["limits"].items())


def place(gate: Mapping[str, Any]) -> str:
    """Where the value of a gate is from; empty where it is of the table as a whole."""
    column = [] if gate["column"] is None else [f"column {gate['column']}"]
    attacker = [] if gate["attacker"] is None else [f"attacker {gate['attacker']}"]
    return ", ".join([*column, *attacker])


def verdict(gate: Mapping[str, Any]) -> str:
    """What a gate says, and why where it does not hold."""
    return f"{gate['verdict']}: {gate['why']}" if gate["why"] else gate["verdict"]


def gates_table(document: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """The gates of a run as a table, headings and lines; where a value is from only where it is of a part.

    The first four columns are the name, the value, the limits and the change, the last is the verdict.
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
    """Return which run it is, of which table, and what a single attacker knows."""
    run = f"Run {document['number']} of {document['table']}, {document['started'][:19].replace('T', ' ')} UTC"
    attacker = (document["summary"] or {}).get("attacker", "").removesuffix(".")
    return f"{run}. {attacker}." if attacker else run


def work(document: Mapping[str, Any]) -> str:
    """How large the table is, on what it was looked at, and what that took; empty where nothing was read."""
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
    """How a run ended, and what its exit code means."""
    status, code = document["status"], document["exit_code"]
    gates = document["gates"]
    if status == "passed":
        return f"PASSED: {gates_held(gates)}. Exit code {code}."
    if status == "failed":
        names = [gate["name"] for gate in gates if gate["verdict"] in ("failed", "unknown")]
        do_not = "does not hold" if len(names) == 1 else "do not hold"
        of = f"{len(names)} of {len(gates)} {plural(len(gates), 'gate')} {do_not}: {listed(names, MOST_LISTED, str)}"
        return f"FAILED: {'; '.join([of, *not_applied(gates)])}. Exit code {code}: the release must wait."
    error = f"{document['error'].rstrip('.')}. " if document["error"] else ""
    return f"{status.upper()}: {error}Exit code {code}: {MEANINGS[status]}."


def gates_held(gates: Sequence[Mapping[str, Any]]) -> str:
    """Return what the gates of a run that passed have tested, and no more than that."""
    if not gates:
        return "there are no gates, so nothing was judged"
    held = [gate for gate in gates if gate["verdict"] == "passed"]
    several = f"all {len(held)} gates hold" if len(held) > 1 else "the gate holds"
    if len(held) < len(gates):
        several = (
            f"{len(held) or 'none'} of {len(gates)} {plural(len(gates), 'gate')} {'hold' if held[1:] else 'holds'}"
        )
    risks = [f"{gate['name']} {amount(gate['value'], gate['unit'])}" for gate in held if gate["limits_risk"]]
    risk = f"within the limits on risk: {listed(risks, MOST_LISTED, str)}" if risks else "none limits a risk"
    return "; ".join([several, risk, *not_applied(gates)])


def not_applied(gates: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return which limits of which gates had no run to compare with, as one clause, or nothing where there are none."""
    waiting = [f"{' and '.join(gate['not_applied'])} of {gate['name']}" for gate in gates if gate["not_applied"]]
    return [f"not applied, for want of a run to compare with: {listed(waiting, MOST_LISTED, str)}"] if waiting else []


def since(document: Mapping[str, Any]) -> str:
    """With which run it is compared."""
    compared = document["compared_with"]
    return "No good run before it to compare with" if compared is None else f"Since run {compared}, the last good one"


def file_changes(document: Mapping[str, Any]) -> list[str]:
    """A line for each way in which the files changed since the last good run, where there is one."""
    changes = document["changes"]
    if changes is None or document["compared_with"] is None:
        return []
    renamed = [f"{before} -> {after}" for before, after in changes["renamed"]]
    ways = {"added": changes["added"], "removed": changes["removed"], "changed": changes["changed"], "renamed": renamed}
    lines = [f"files {way}: {len(names)} ({listed(names, MOST_LISTED, str)})" for way, names in ways.items() if names]
    return [*lines, f"files unchanged: {changes['unchanged']}"]


def column_changes(document: Mapping[str, Any], before: Mapping[str, Any] | None) -> list[str]:
    """A line for each way in which the columns changed; before: the document of the last good run."""
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
    """The figures that both runs have and that are not the same."""
    if before is None:
        return []
    then = figures(before)
    return [
        _change(name, then[name], figure)
        for name, figure in figures(document).items()
        if name in then and then[name].value != figure.value
    ]


def _change(name: str, before: Figure, now: Figure) -> Change:
    unit = now.unit
    return Change(name, amount(before.value, unit), amount(now.value, unit), signed(now.value - before.value, unit))
