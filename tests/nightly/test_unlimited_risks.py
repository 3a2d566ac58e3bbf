"""No report of a run says that a figure passed, or is within limits, which no limit can break."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from prometheus_client.parser import text_string_to_metric_families

import gpupif
from gpupif.nightly.report import junit_report, openlineage_event, prometheus_metrics, readable_report, run_text
from gpupif.report.records import document_of

# What gates measure, with the limit that keeps the risk down, and the end of its range, which every table is within.
SAFE = {
    "unique_share": ("max", 1.0),
    "share_below_k": ("max", 1.0),
    "highest_risk": ("max", 1.0),
    "unique_rows": ("max", np.inf),
    "k": ("min", 1.0),
    "average_class": ("min", 1.0),
    "pif": ("max", np.inf),
    "mean csf": ("max", 1.0),
    "min cohort_size": ("min", 0.0),
    # The highest of figures that are risky if low, and the lowest of those that are risky if high, limit no risk.
    "max cohort_size": (None, None),
    "min csf": (None, None),
}


def random_gate(random, number):
    subject = str(random.choice([*SAFE]))
    kind, _, measure = subject.partition(" ")
    gate = {"name": f"g{number}", "kind": kind, **({"measure": measure} if measure else {})}
    gate |= {"percentile": 95.0} if kind == "pif" else {}
    high = SAFE[subject][1] == 1.0 and SAFE[subject][0] == "max"
    least, most = sorted(random.choice([0.0, 0.5, 1.0] if high else [0.0, 1.0, 5.0, 500.0], 2).tolist())
    limits = {"max": most, "min": least, "max_rise": 1e6, "max_fall": 1e6}
    kept = random.choice([*limits], random.integers(1, 5), replace=False)
    return subject, gate | {str(key): limits[str(key)] for key in kept}


def claims(outcome, before, tmp_path):
    """Which gates each report says to have passed, or to be within their limits."""
    document, past = outcome.to_dict(), before and before.to_dict()
    within = re.search(r"within the limits on risk: (.*?)(?:; |\.$|\. Exit)", run_text.closing(document))
    yield "sentence", set() if within is None else set(re.findall(r"\bg\d+\b", within[1]))
    yield "json", {gate["name"] for gate in document["gates"] if gate["verdict"] == "passed" and gate["limits_risk"]}
    cases = ET.fromstring(junit_report.text(document).encode()).iter("testcase")
    yield "junit", {case.get("name") for case in cases if not len(case)}
    facets = openlineage_event.event(document)["inputs"][0]["inputFacets"]
    yield (
        "openlineage",
        {one["assertion"] for one in facets["dataQualityAssertions"]["assertions"] if one["success"]},
    )
    metrics = prometheus_metrics.text(document, past, tmp_path / "a.prom")
    ones = {
        name: {
            sample.labels["gate"]
            for family in text_string_to_metric_families(metrics)
            for sample in family.samples
            if sample.name == name and sample.value == 1
        }
        for name in ("gpupif_gate_passed", "gpupif_gate_limits_risk")
    }
    yield "prometheus", ones["gpupif_gate_passed"] & ones["gpupif_gate_limits_risk"]
    lines = readable_report.markdown(document, past).splitlines()
    yield (
        "markdown",
        {
            re.search(r"\bg\d+\b", line)[0]
            for line in lines
            if "passed" in line and "not limited" not in line and "|" in line
        },
    )
    gates = document_of(outcome)["gates"]
    yield "html", {one["name"] for one in gates if one["verdict"] == "passed" and "not limited" not in one["why"]}


@pytest.mark.parametrize("seed", range(10))
def test_what_is_said_to_be_within_limits_has_a_limit_that_can_break(tmp_path, seed):
    random = np.random.default_rng(seed)
    table = pd.DataFrame({name: random.integers(0, random.choice([1, 3, 40]), 60) for name in "abc"})
    table.to_csv(tmp_path / "t.csv", index=False)
    asked = [random_gate(random, number) for number in range(4)]
    config = {
        "input": {"path": str(tmp_path / "t.csv")},
        "score": {"known": ["a", "b"], "measures": ["cig", "csf", "cohort_size"]},
        "risk": {"quasi_identifiers": ["a", "b"]},
        "run": {"state": str(tmp_path / "state"), "device": "cpu"},
    }
    file = tmp_path / "risk.toml"
    lines = [
        f"[{name}]\n" + "".join(f"{key} = {value!r}\n" for key, value in part.items()) for name, part in config.items()
    ]
    lines += ["[[gates]]\n" + "".join(f"{key} = {value!r}\n" for key, value in gate.items()) for _, gate in asked]
    file.write_text("\n".join(lines).replace("'", '"'))
    first = gpupif.nightly.run(file)
    for outcome, before in ((first, None), (gpupif.nightly.run(file), first)):
        limited = set()
        for (subject, gate), result in zip(asked, outcome.gates, strict=True):
            side, end = SAFE[subject]
            limit = gate.get(side)
            can_break = limit is not None and (limit < end if side == "max" else limit > end)
            if can_break and result.verdict == "passed":
                assert result.value <= limit if side == "max" else result.value >= limit
                limited.add(result.name)
        for report, said in claims(outcome, before, tmp_path):
            # "g1: max_rise" is a limit of g1, not its figure. The sentence about a failed run names failures alone.
            figures = {name for name in said if ": " not in name}
            assert figures == (limited if report != "sentence" or outcome.status == "passed" else set()), report
