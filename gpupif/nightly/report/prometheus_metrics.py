"""The metrics of a run for Prometheus, in a file for node_exporter's textfile collector."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from ...errors import printable
from ..comparison.figures import by_attacker

ENDED = ("passed", "failed", "refused", "broken", "killed")


class Metrics:
    """Metrics, each with the label `nightly`, which tells the tables of a host apart."""

    def __init__(self, nightly: str) -> None:
        from prometheus_client import CollectorRegistry

        self.registry = CollectorRegistry()
        self._nightly = nightly
        self._gauges: dict[str, Any] = {}

    def set(self, name: str, help_text: str, value: float | None, **labels: str) -> None:
        """Set a metric to a value; None leaves it out."""
        from prometheus_client import Gauge

        if value is None:
            return
        if name not in self._gauges:
            self._gauges[name] = Gauge(name, help_text, ["nightly", *labels], registry=self.registry)
        self._gauges[name].labels(nightly=self._nightly, **labels).set(value)

    def text(self) -> str:
        """Return all metrics as node_exporter reads them."""
        from prometheus_client import generate_latest

        return generate_latest(self.registry).decode()


def text(document: Mapping[str, Any], before: Mapping[str, Any] | None, file: Path) -> str:
    """Return the metrics of a run. before: the document of the last good run before it, None if there is none.

    The metrics of several configurations on one host are told apart by the names of their files.
    """
    metrics = Metrics(printable(file.stem))
    _run(metrics, document)
    _table(metrics, document)
    _gates(metrics, document)
    # A run that is not good has to say when the last good run was: alarms are set on that.
    good = document if document["status"] == "passed" else before
    if good is not None:
        help_text = "When the last run whose gates all hold ended, since the epoch."
        metrics.set("gpupif_last_good_run_timestamp_seconds", help_text, _epoch(good["finished"]))
    return metrics.text()


def _run(metrics: Metrics, document: Mapping[str, Any]) -> None:
    for status in ENDED:
        metrics.set("gpupif_run_status", "1 of how the last run ended.", document["status"] == status, status=status)
    versions, device = document["versions"], printable(document["device"])
    info = "1; what ran."
    metrics.set("gpupif_run_info", info, 1, version=printable(versions.get("gpupif", "")), device=device)
    metrics.set("gpupif_run_exit_code", "What the command returned.", document["exit_code"])
    metrics.set("gpupif_run_number", "Which run of the record it is.", document["number"])
    began, ended = "When the last run began, since the epoch.", "When the last run ended, since the epoch."
    metrics.set("gpupif_run_started_timestamp_seconds", began, _epoch(document["started"]))
    metrics.set("gpupif_run_finished_timestamp_seconds", ended, _epoch(document["finished"]))
    for stage, seconds in document["seconds"].items():
        metrics.set("gpupif_run_seconds", "Wall time of the last run by stage.", seconds, stage=printable(stage))
    metrics.set("gpupif_run_peak_memory_bytes", "Most memory that the last run had.", document["peak_bytes"])


def _table(metrics: Metrics, document: Mapping[str, Any]) -> None:
    metrics.set("gpupif_rows", "Rows of the table.", document["rows"])
    metrics.set("gpupif_distinct_rows", "Rows of the table that are not the same.", document["distinct_rows"])
    if document["rows"] is not None:
        metrics.set("gpupif_columns", "Columns of the table.", len(document["columns"]))
        metrics.set("gpupif_input_files", "Files of the table.", len(document["files"]))
        sizes = sum(file["size"] for file in document["files"])
        metrics.set("gpupif_input_bytes", "Size of these files.", sizes)
    if document["changes"] is not None:
        read = len(document["changes"]["read"])
        metrics.set("gpupif_input_files_read", "Files of the table that the last run had to read.", read)
    for attacker, summary in by_attacker(document["summary"]).items():
        for percentile, bits in summary.get("pif", {}).items():
            help_text = "Percentile of the row information gain, by attacker where there are several."
            metrics.set("gpupif_pif_bits", help_text, bits, percentile=percentile, attacker=printable(attacker or ""))


def _gates(metrics: Metrics, document: Mapping[str, Any]) -> None:
    for gate in document["gates"]:
        name, unit = printable(gate["name"]), printable(gate["unit"])
        value = "What a gate measured, in its unit; nothing where that is unknown."
        metrics.set("gpupif_gate_value", value, gate["value"], gate=name, unit=unit)
        metrics.set("gpupif_gate_change", "Since the last good run.", gate["change"], gate=name, unit=unit)
        for limit, bound in gate["limits"].items():
            metrics.set(
                "gpupif_gate_limit", "A limit of a gate, in its unit.", bound, gate=name, unit=unit, limit=limit
            )
            applied = limit not in gate["not_applied"]
            help_text = "0: the limit had no run to compare with; else 1."
            metrics.set("gpupif_gate_limit_applied", help_text, applied, gate=name, limit=limit)
        passed = gate["verdict"] == "passed" if gate["verdict"] != "not applied" else None
        metrics.set(
            "gpupif_gate_passed", "1: the gate holds; 0: it does not, or could not be evaluated.", passed, gate=name
        )


def _epoch(time: str | None) -> float | None:
    return None if time is None else datetime.fromisoformat(time).timestamp()
