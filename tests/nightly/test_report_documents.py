"""What is told to programs: JSON, JUnit XML, metrics of Prometheus, OpenLineage."""

from __future__ import annotations

import json
import re
import uuid
from datetime import datetime
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from prometheus_client.parser import text_string_to_metric_families

import gpupif
from gpupif.nightly.comparison.figures import with_figures
from gpupif.nightly.exit_codes import Status
from gpupif.nightly.report import junit_report, openlineage_event, prometheus_metrics, readable_report
from gpupif.nightly.report.notify import REPORTS
from gpupif.nightly.run_outcome import GateResult, Verdict
from tests.helpers.checkout import ROOT
from tests.helpers.outcomes import AWKWARD, failed_run, good_run, refused_run

RUNS = {"good": good_run(), "failed": failed_run(), "refused": refused_run()}
each_run = pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)


def documents(outcome, before=None):
    """The documents of a run and of the last good run before it, as reports take them."""
    return outcome.to_dict(), before and before.to_dict()


def json_text(outcome, before=None):
    return REPORTS["json_file"](*documents(outcome, before), Path("run.json"))


@each_run
def test_json_has_the_outcome_and_figures(run):
    document = json.loads(json_text(run, good_run()))
    assert (document["format"], document["number"], document["exit_code"]) == (1, run.number, run.exit_code)
    assert "config" not in document
    assert "RISK_WEBHOOK" not in json_text(run)
    if run.rows is not None:
        assert document["figures"]["rows"] == {"value": run.rows, "unit": "rows", "before": 1_000}
        assert document["figures"]["PIF 95"]["value"] == run.summary["pif"]["95"]
    assert [gate["name"] for gate in document["gates"]][:2] == [gate.name for gate in run.gates][:2]


def test_json_replaces_nan_and_names_that_are_no_text():
    run = failed_run(risk=None, summary={"pif": {"95": float("nan")}})
    text = json_text(run)
    assert json.loads(text)["changes"]["added"] == [AWKWARD.replace("\udcff", r"\udcff")]
    assert "NaN" not in text
    assert text.encode()


def test_several_attackers_have_figures_each():
    table = gpupif.datasets.census(200)
    several = {"neighbour": ["region"], "colleague": ["education", "region"]}
    scores = gpupif.score(table, ["cig"], columns=["age", "sex"], attackers=several)
    document = with_figures(*documents(good_run(summary=scores.summary().to_dict())))
    found = {name for name in document["figures"] if name.startswith("PIF 95")}
    assert found == {"PIF 95 against neighbour", "PIF 95 against colleague"}


def test_figures_of_a_report_are_those_of_the_risk():
    table = gpupif.datasets.census(200)
    risk = gpupif.risk(table, ["age", "sex"], ["tenure"])
    figures = with_figures(*documents(good_run(risk=risk.to_dict())))["figures"]
    assert figures["k"]["value"] == risk.k
    assert figures["t"]["value"] == risk.worst["t"]
    assert figures["rows below k"]["value"] == risk.classes.rows_below


# The schema of Ant, by element: its attributes, and of what its children are.
SUITE = ["name", "timestamp", "hostname", "tests", "failures", "errors", "skipped", "time", "package", "id"]
SCHEMA = {
    "testsuites": ([], {"testsuite"}),
    "testsuite": (SUITE, {"properties", "testcase", "system-out", "system-err"}),
    "properties": ([], {"property"}),
    "property": (["name", "value"], set()),
    "testcase": (["name", "classname", "time"], {"failure", "error", "skipped"}),
    "skipped": (["message"], set()),
    "failure": (["message", "type"], set()),
    "error": (["message", "type"], set()),
    "system-out": ([], set()),
    "system-err": ([], set()),
}


@each_run
def test_junit_holds_to_the_schema(run):
    suites = ET.fromstring(junit_report.text(run.to_dict()).encode())
    for element in suites.iter():
        attributes, children = SCHEMA[element.tag]
        assert set(element.attrib) == set(attributes)
        assert {child.tag for child in element} <= children
    (suite,) = suites
    order = [child.tag for child in suite]
    assert order == ["properties", *["testcase"] * int(suite.get("tests")), "system-out", "system-err"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp"))
    assert float(suite.get("time")) == pytest.approx(sum(run.seconds.values()))
    for kind in ("failure", "error"):
        assert int(suite.get(f"{kind}s")) == len(suite.findall(f"testcase/{kind}"))


def test_a_gate_that_was_not_applied_is_neither_passed_nor_failed():
    gates = [
        *good_run().gates,
        GateResult("rows", "rows", "rows", 9.0, None, {"max_fall": 1.0}, Verdict.NOT_APPLIED, "No run."),
    ]
    run = good_run(gates=gates)
    suite = ET.fromstring(junit_report.text(run.to_dict()).encode())[0]
    assert [[child.tag for child in case] for case in suite.findall("testcase")] == [[], ["skipped"]]
    assert (suite.get("skipped"), suite.get("errors"), suite.get("failures")) == ("1", "0", "0")
    assert suite.find("testcase/skipped").get("message") == "No run."
    found = metrics(run)
    passed, applied = (
        {labels[0][1]: value for (name, labels), value in found.items() if name == f"gpupif_gate_{what}"}
        for what in ("passed", "limit_applied")
    )
    assert (passed, applied) == ({"PIF 95": 1}, {"PIF 95": 1, "rows": 0})
    asserted = openlineage_event.event(run.to_dict())["inputs"][0]["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert [one["assertion"] for one in asserted] == ["PIF 95"]
    document = with_figures(*documents(run))
    assert [(gate["verdict"], gate["limits_risk"]) for gate in document["gates"]] == [
        ("passed", True),
        ("not applied", False),
    ]
    assert "not applied: No run." in readable_report.markdown(*documents(run))


def test_a_report_names_a_limit_on_change_that_was_not_applied():
    limits = {"max": 5.0, "max_rise": 1.0}
    why = "max_rise was not applied. There is no good run before to compare with."
    run = good_run(gates=[GateResult("p", "pif", "bits", 4.0, None, limits, Verdict.PASSED, why)])
    (gate,) = with_figures(*documents(run))["gates"]
    assert (gate["verdict"], gate["not_applied"]) == ("passed", ["max_rise"])
    suite = ET.fromstring(junit_report.text(run.to_dict()).encode())[0]
    assert [(case.get("name"), [child.tag for child in case]) for case in suite.findall("testcase")] == [
        ("p", []),
        ("p: max_rise", ["skipped"]),
    ]
    assert (suite.get("tests"), suite.get("skipped")) == ("2", "1")
    found = metrics(run)
    applied = [found["gpupif_gate_limit_applied", (("gate", "p"), ("limit", limit))] for limit in limits]
    assert (found["gpupif_gate_passed", (("gate", "p"),)], applied) == (1, [1, 0])
    facets = openlineage_event.event(run.to_dict())["inputs"][0]["inputFacets"]
    assert facets["dataQualityAssertions"]["assertions"] == [
        {"assertion": "p", "success": True, "notApplied": ["max_rise"]}
    ]
    assert "not applied, for want of a run to compare with: max\\_rise of p." in readable_report.markdown(
        *documents(run)
    )


def test_junit_has_a_case_for_each_gate():
    suite = ET.fromstring(junit_report.text(failed_run().to_dict()).encode())[0]
    verdicts = {case.get("name"): [child.tag for child in case] for case in suite.findall("testcase")}
    assert [*verdicts.values()] == [["failure"], [], ["error"]]
    assert suite.find("testcase/failure").get("message") == "4.75 is above 4.5"


@pytest.mark.parametrize("status", [Status.REFUSED, Status.BROKEN, Status.KILLED])
def test_junit_shows_a_run_that_could_not_test_as_an_error(status):
    suite = ET.fromstring(junit_report.text(refused_run(status=status).to_dict()).encode())[0]
    assert suite.get("errors") == "1"
    assert "no file matches" in suite.find("testcase/error").get("message")


def metrics(outcome, before=None, file="people.prom"):
    families = text_string_to_metric_families(prometheus_metrics.text(*documents(outcome, before), Path(file)))
    found = {}
    for family in families:
        assert family.type == "gauge"
        assert family.documentation
        for sample in family.samples:
            labels = tuple(sorted((key, value) for key, value in sample.labels.items() if key != "nightly"))
            found[sample.name, labels] = sample.value
    return found


def test_metrics_show_the_status_and_gates_of_a_failed_run():
    found = metrics(failed_run(), good_run())
    assert found["gpupif_run_status", (("status", "failed"),)] == 1
    assert found["gpupif_run_status", (("status", "passed"),)] == 0
    assert found["gpupif_run_exit_code", ()] == 3
    assert found["gpupif_rows", ()] == 1_200
    assert found["gpupif_pif_bits", (("attacker", ""), ("percentile", "95"))] == 4.75
    assert found["gpupif_gate_value", (("gate", "PIF 95"), ("unit", "bits"))] == 4.75
    assert found["gpupif_gate_limit", (("gate", "PIF 95"), ("limit", "max_rise"), ("unit", "bits"))] == 0.5
    passed = [value for (name, _), value in found.items() if name == "gpupif_gate_passed"]
    assert passed == [0, 1, 0]
    assert found["gpupif_input_files_read", ()] == 1
    good = datetime.fromisoformat(good_run().finished).timestamp()
    assert found["gpupif_last_good_run_timestamp_seconds", ()] == good
    assert found["gpupif_run_peak_memory_bytes", ()] == 2**29
    assert found["gpupif_run_seconds", (("stage", "score"),)] == 2


def test_metrics_of_a_refused_run_have_no_figures():
    found = metrics(good_run())
    good = datetime.fromisoformat(good_run().finished).timestamp()
    assert found["gpupif_last_good_run_timestamp_seconds", ()] == good
    found = metrics(refused_run())
    assert found["gpupif_run_status", (("status", "refused"),)] == 1
    names = {name for name, _ in found}
    assert not names & {"gpupif_rows", "gpupif_gate_passed", "gpupif_last_good_run_timestamp_seconds"}


def test_metrics_are_told_apart_by_the_file():
    texts = [
        prometheus_metrics.text(*documents(good_run()), Path(f"/metrics/{name}.prom")) for name in ("people", "homes")
    ]
    labels = [set(re.findall(r'nightly="(\w+)"', text)) for text in texts]
    assert labels == [{"people"}, {"homes"}]
    samples = [[line.split("{")[0] for line in text.splitlines() if "{" in line] for text in texts]
    assert len(re.findall("nightly=", texts[0])) == len(samples[0])


def test_metrics_have_names_after_the_conventions():
    names = {name for name, _ in metrics(failed_run(), good_run())}
    assert all(re.fullmatch(r"gpupif_[a-z_]+[a-z]", name) for name in names)
    assert not [name for name in names if re.search(r"milli|_ms\b|_kb|_mib|_total$|_count$", name)]


def facets(facet):
    """The names of facets that are as the specification has them: with producer and schema."""
    for name, facts in facet.items():
        assert facts["_producer"].startswith("pkg:pypi/gpupif@")
        kind = re.fullmatch(
            r"https://openlineage\.io/spec/facets/\d+-\d+-\d+/(\w+)\.json#/\$defs/(\w+)", facts["_schemaURL"]
        )
        assert kind[1] == kind[2]
        yield name


@each_run
def test_an_openlineage_event_has_the_required_fields(run):
    event = openlineage_event.event(run.to_dict())
    assert {"eventTime", "producer", "schemaURL", "run", "job"} <= set(event)
    assert datetime.fromisoformat(event["eventTime"]).tzinfo is not None
    assert event["eventType"] == ("FAIL" if run.status is Status.REFUSED else "COMPLETE")
    assert uuid.UUID(event["run"]["runId"]).version == 5
    (table,) = event["inputs"]
    assert (table["namespace"], table["name"]) == ("file", "/data/people/*.parquet")
    of_run = list(facets(event["run"]["facets"]))
    assert ("errorMessage" in of_run) == (run.status is Status.REFUSED)
    assert set(facets(table["facets"])) == ({"schema"} if run.columns else set())
    of_input = {"dataQualityMetrics", "dataQualityAssertions"} if run.columns else set()
    assert set(facets(table["inputFacets"])) == of_input
    assert json.dumps(event, allow_nan=False)


def test_openlineage_has_gates_and_columns():
    (table,) = openlineage_event.event(failed_run().to_dict())["inputs"]
    metrics, assertions = table["inputFacets"]["dataQualityMetrics"], table["inputFacets"]["dataQualityAssertions"]
    assert [one["success"] for one in assertions["assertions"]] == [False, True, False]
    assert metrics["rowCount"] == 1_200
    assert metrics["columnMetrics"]["age"] == {"nullCount": 0, "distinctCount": 91}
    assert table["facets"]["schema"]["fields"][0] == {"name": "age", "type": "double"}


def test_openlineage_runs_are_told_apart():
    ids = [openlineage_event.run_id(run.to_dict()) for run in (*RUNS.values(), good_run())]
    assert len(set(ids)) == 3
    assert ids[0] == ids[3]


def test_openlineage_names_a_database_and_its_query():
    run = good_run(table="postgresql://host:5432/registry select * from people")
    (table,) = openlineage_event.event(run.to_dict())["inputs"]
    assert (table["namespace"], table["name"]) == ("postgresql://host:5432", "registry select * from people")


PAGE = (ROOT / "docs" / "reference" / "nightly.md").read_text("utf-8")


def first_cells(heading):
    """What is named in the first column of the page's first table below a heading."""
    rows = PAGE.split(f"\n### {heading}\n", 1)[1].split("\n### ")[0].split("|---|", 1)[1].splitlines()[1:]
    return {name for row in rows if row.startswith("|") for name in re.findall(r"`(\w+)`", row.split("|")[1])}


def test_the_page_has_every_key_of_the_document():
    assert first_cells("JSON") == set(with_figures(*documents(failed_run(), good_run())))


def test_the_page_has_every_key_of_gates_files_and_columns():
    document = failed_run().to_dict()
    rows = PAGE.split("\n### JSON\n", 1)[1].split("\n### ")[0]
    for part in ("gates", "files", "columns", "changes"):
        several = document[part] if part == "changes" else document[part][0]
        (row,) = [row for row in rows.splitlines() if f"`{part}`" in row.partition(" | ")[0]]
        assert set(several) <= set(re.findall(r"`(\w+)`", row))


def test_the_page_has_every_metric():
    assert first_cells("Prometheus") == {name for name, _ in metrics(failed_run(), good_run())}
