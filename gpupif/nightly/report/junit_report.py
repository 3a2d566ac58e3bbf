"""The JUnit XML report of a run, for CI systems: a test case for each gate.

The XML holds to both schemas in use: Ant's, with a host, a time stamp and the output in each suite, and Jenkins's
junit-10.xsd.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as ET

from ...errors import printable
from ..comparison.figures import amounts
from . import run_text

CLASS = "gpupif.nightly"


def text(document: Mapping[str, Any]) -> str:
    """Return the report of a run as XML."""
    cases = []
    for gate in document["gates"]:
        cases.append(_case(gate))
        if gate["verdict"] != "not applied":
            # A limit that was not applied beside others.
            waiting = [f"{gate['name']}: {limit}" for limit in gate["not_applied"]]
            cases += [_skipped(name, "It had no run to compare with.") for name in waiting]
    closing = printable(run_text.closing(document))
    if document["status"] not in ("passed", "failed"):
        # The run did not come to its gates, or not past them.
        case = ET.Element("testcase", classname=CLASS, name="run", time="0")
        ET.SubElement(case, "error", type=document["status"], message=closing).text = closing
        cases.append(case)
    if (document.get("release") or {}).get("status") in ("failed", "not met"):
        case = ET.Element("testcase", classname=CLASS, name="release", time="0")
        ET.SubElement(case, "error", type="release", message=closing).text = closing
        cases.append(case)
    suites = ET.Element("testsuites")
    suite = ET.SubElement(
        suites,
        "testsuite",
        {
            "name": CLASS,
            "package": CLASS,
            "id": "0",
            "timestamp": document["started"][: len("2026-11-23T02:00:00")],
            "hostname": printable(document["host"]) or "localhost",
            "tests": str(len(cases)),
            "failures": str(sum(case.find("failure") is not None for case in cases)),
            "skipped": str(sum(case.find("skipped") is not None for case in cases)),
            "errors": str(sum(case.find("error") is not None for case in cases)),
            "time": f"{sum(document['seconds'].values()):.3f}",
        },
    )
    properties = ET.SubElement(suite, "properties")
    facts = {key: str(document[key]) for key in ("number", "status", "exit_code", "table", "config_digest", "device")}
    facts |= {f"version of {name}": version for name, version in document["versions"].items()}
    facts |= {name: run_text.amount(*amount) for name, amount in amounts(document).items()}
    for name, value in facts.items():
        ET.SubElement(properties, "property", name=name, value=printable(value))
    suite.extend(cases)
    ET.SubElement(suite, "system-out").text = closing
    ET.SubElement(suite, "system-err").text = "\n".join(map(printable, document["notes"]))
    ET.indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(suites, encoding="unicode")}\n'


def _skipped(name: str, message: str) -> ET.Element:
    case = ET.Element("testcase", classname=CLASS, name=printable(name), time="0")
    ET.SubElement(case, "skipped", message=printable(message))
    return case


def _case(gate: Mapping[str, Any]) -> ET.Element:
    if gate["verdict"] == "not applied":
        return _skipped(run_text.case_name(gate), gate["why"])
    case = ET.Element("testcase", classname=CLASS, name=printable(run_text.case_name(gate)), time="0")
    if gate["verdict"] != "passed":
        kind = "failure" if gate["verdict"] == "failed" else "error"
        value = run_text.amount(gate["value"], gate["unit"])
        facts = filter(None, (value, run_text.limits(gate), run_text.place(gate), gate["why"]))
        found = ET.SubElement(case, kind, type=gate["kind"], message=printable(gate["why"] or value))
        found.text = printable("; ".join(facts))
    return case
