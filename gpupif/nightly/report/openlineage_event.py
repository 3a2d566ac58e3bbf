"""The OpenLineage RunEvent of a run (specification 2-0-2): the table as its input, gates as assertions about it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ..._version import __version__
from .run_text import case_name

PRODUCER = f"pkg:pypi/gpupif@{__version__}"
SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
# The version of the schema of each facet.
FACETS = {
    "SchemaDatasetFacet": "1-2-0",
    "DataQualityMetricsInputDatasetFacet": "1-0-3",
    "DataQualityAssertionsDatasetFacet": "1-1-0",
    "ErrorMessageRunFacet": "1-0-1",
    "ProcessingEngineRunFacet": "1-1-1",
}


def event(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the event of a run: COMPLETE if all gates were evaluated, whether they hold or not; else FAIL."""
    completed = document["status"] in ("passed", "failed")
    facets = {"processing_engine": _facet("ProcessingEngineRunFacet", name="gpupif", version=__version__)}
    if not completed:
        said = document["error"] or document["status"]
        facets["errorMessage"] = _facet("ErrorMessageRunFacet", message=said, programmingLanguage="Python")
    return {
        "eventType": "COMPLETE" if completed else "FAIL",
        "eventTime": document["finished"] or document["started"],
        "run": {"runId": run_id(document), "facets": facets},
        "job": {"namespace": "gpupif", "name": f"nightly {document['table']}"},
        "inputs": [_input(document)],
        "outputs": [],
        "producer": PRODUCER,
        "schemaURL": SCHEMA,
    }


def run_id(document: Mapping[str, Any]) -> str:
    """Return the UUID of a run, the same in each event of the run."""
    run = f"{document['table']} {document['number']} {document['started']}"
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"pkg:pypi/gpupif nightly {run}"))


def _facet(name: str, /, **facts: Any) -> dict[str, Any]:
    schema = f"https://openlineage.io/spec/facets/{FACETS[name]}/{name}.json#/$defs/{name}"
    return {"_producer": PRODUCER, "_schemaURL": schema, **facts}


def _input(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table as an input: the namespace of a file is `file`, that of a database its scheme and host."""
    parts = urlsplit(document["table"])
    in_database = bool(parts.scheme and parts.netloc)
    namespace = f"{parts.scheme}://{parts.netloc}" if in_database else "file"
    name = document["table"].removeprefix(f"{namespace}/") if in_database else document["table"]
    columns = document["columns"]
    facets, input_facets = {}, {}
    if columns:
        fields = [{"name": column["name"], "type": column["type"]} for column in columns]
        facets["schema"] = _facet("SchemaDatasetFacet", fields=fields)
        metrics: dict[str, Any] = {"rowCount": document["rows"]}
        if document["files"]:
            metrics |= {
                "bytes": sum(file["size"] for file in document["files"]),
                "fileCount": len(document["files"]),
            }
        metrics["columnMetrics"] = {
            column["name"]: {"nullCount": column["missing"], "distinctCount": column["distinct_values"]}
            for column in columns
            if column["missing"] is not None and column["distinct_values"] is not None
        }
        input_facets["dataQualityMetrics"] = _facet("DataQualityMetricsInputDatasetFacet", **metrics)
    if document["gates"]:
        assertions = []
        for gate in document["gates"]:
            column = {} if gate["column"] is None else {"column": gate["column"]}
            waiting = {"notApplied": gate["not_applied"]} if gate["not_applied"] else {}
            assertion = {"assertion": case_name(gate), "success": gate["verdict"] == "passed", **column, **waiting}
            # A gate that had nothing to compare with asserts nothing.
            assertions += [assertion] if gate["verdict"] != "not applied" else []
        input_facets["dataQualityAssertions"] = _facet("DataQualityAssertionsDatasetFacet", assertions=assertions)
    return {"namespace": namespace, "name": name, "facets": facets, "inputFacets": input_facets}
