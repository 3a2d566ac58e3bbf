"""The metrics of a run for Prometheus, in a file for node_exporter's textfile collector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

from ...errors import printable
from ..comparison.figures import by_attacker

Document = Mapping[str, Any]
# The name of a metric, its help text, its value (None: it is left out) and its labels.
Metric = tuple[str, str, float | None, dict[str, str]]
STATUSES = ("passed", "failed", "refused", "broken", "killed")


def text(document: Document, before: Document | None, file: Path) -> str:
    """Return the metrics of a run as node_exporter reads them.

    before: the document of the last good run before it, None if there is none. file: its name is the label `nightly`,
    which tells the configurations of a host apart.
    """
    from prometheus_client import CollectorRegistry, Gauge, generate_latest

    nightly, registry = printable(file.stem), CollectorRegistry()
    gauges: dict[str, Gauge] = {}
    for name, help_text, value, labels in chain(
        _run(document), _table(document), _gates(document), _good(document, before)
    ):
        if value is not None:
            if name not in gauges:
                gauges[name] = Gauge(name, help_text, ["nightly", *labels], registry=registry)
            gauges[name].labels(nightly=nightly, **labels).set(value)
    return generate_latest(registry).decode()


def _run(document: Document) -> Iterator[Metric]:
    for status in STATUSES:
        is_status = document["status"] == status
        yield "gpupif_run_status", "1 of how the last run ended.", is_status, {"status": status}
    ran = {"version": document["versions"].get("gpupif", ""), "device": document["device"]}
    yield "gpupif_run_info", "1; what ran.", 1, {key: printable(value) for key, value in ran.items()}
    yield "gpupif_run_exit_code", "What the command returned.", document["exit_code"], {}
    yield "gpupif_run_number", "Which run of the record it is.", document["number"], {}
    began, ended = "When the last run began, since the epoch.", "When the last run ended, since the epoch."
    yield "gpupif_run_started_timestamp_seconds", began, _epoch(document["started"]), {}
    yield "gpupif_run_finished_timestamp_seconds", ended, _epoch(document["finished"]), {}
    for stage, seconds in document["seconds"].items():
        yield "gpupif_run_seconds", "Wall time of the last run by stage.", seconds, {"stage": printable(stage)}
    yield "gpupif_run_peak_memory_bytes", "Most memory that the last run had.", document["peak_bytes"], {}


def _table(document: Document) -> Iterator[Metric]:
    yield "gpupif_rows", "Rows of the table.", document["rows"], {}
    yield "gpupif_distinct_rows", "Rows of the table that are not the same.", document["distinct_rows"], {}
    if document["rows"] is not None:
        yield "gpupif_columns", "Columns of the table.", len(document["columns"]), {}
        yield "gpupif_input_files", "Files of the table.", len(document["files"]), {}
        yield "gpupif_input_bytes", "Size of these files.", sum(file["size"] for file in document["files"]), {}
    if document["changes"] is not None:
        read = len(document["changes"]["read"])
        yield "gpupif_input_files_read", "Files of the table that the last run had to read.", read, {}
    for attacker, summary in by_attacker(document["summary"]).items():
        for percentile, bits in summary.get("pif", {}).items():
            help_text = "Percentile of the row information gain, by attacker where there are several."
            labels = {"percentile": percentile, "attacker": printable(attacker or "")}
            yield "gpupif_pif_bits", help_text, bits, labels


def _gates(document: Document) -> Iterator[Metric]:
    for gate in document["gates"]:
        name = {"gate": printable(gate["name"])}
        unit = name | {"unit": printable(gate["unit"])}
        value = "What a gate measured, in its unit; nothing where that is unknown."
        yield "gpupif_gate_value", value, gate["value"], unit
        yield "gpupif_gate_change", "Since the last good run.", gate["change"], unit
        for limit, bound in gate["limits"].items():
            yield "gpupif_gate_limit", "A limit of a gate, in its unit.", bound, unit | {"limit": limit}
            applied, help_text = limit not in gate["not_applied"], "0: the limit had no run to compare with; else 1."
            yield "gpupif_gate_limit_applied", help_text, applied, name | {"limit": limit}
        passed = gate["verdict"] == "passed" if gate["verdict"] != "not applied" else None
        yield "gpupif_gate_passed", "1: the gate holds; 0: it does not, or could not be evaluated.", passed, name
        help_text = "1: the gate limits a risk itself; 0: a change alone, the table, or nothing that can break it."
        yield "gpupif_gate_limits_risk", help_text, gate["limits_risk"], name


def _good(document: Document, before: Document | None) -> Iterator[Metric]:
    # A run that is not good has to say when the last good run was: alarms are set on that.
    good = document if document["status"] == "passed" else before
    if good is not None:
        help_text = "When the last run whose gates all hold ended, since the epoch."
        yield "gpupif_last_good_run_timestamp_seconds", help_text, _epoch(good["finished"]), {}


def _epoch(time: str | None) -> float | None:
    return None if time is None else datetime.fromisoformat(time).timestamp()
