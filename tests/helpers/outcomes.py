"""Outcomes of nightly runs, made up."""

from __future__ import annotations

from dataclasses import replace

from gpupif.nightly.exit_codes import Status
from gpupif.nightly.run_outcome import ColumnProfile, GateResult, RunOutcome, Verdict
from gpupif.nightly.table.table_changes import InputChanges, InputFile

# A name with what terminals, Markdown, HTML and XML read as something else, and with bytes that are no text.
AWKWARD = "a|b*`<i>\x1b[31m\n&\udcff"


def good_run(**changes) -> RunOutcome:
    """The first run: all gates hold."""
    columns = [
        ColumnProfile("age", "int64", 90, 0),
        ColumnProfile("town", "string", 12, 3),
        ColumnProfile("id", "int64"),
    ]
    outcome = RunOutcome(
        number=1,
        status=Status.PASSED,
        started="2026-11-22T02:00:00+00:00",
        finished="2026-11-22T02:00:09+00:00",
        table="/data/people/*.parquet",
        config={"tell": {"webhooks": [{"url": "${RISK_WEBHOOK}"}]}},
        config_digest="c0ffee",
        versions={"gpupif": "0.1.0", "python": "3.11.9"},
        host="registry",
        device="cpu",
        rows=1_000,
        distinct_rows=400,
        files=[InputFile("one.parquet", 2_000, 5, "aa", 600), InputFile("two.parquet", 1_000, 5, "bb", 400)],
        columns=columns,
        gates=[GateResult("PIF 95", "pif", "bits", 4.0, None, {"max": 4.5}, Verdict.PASSED)],
        summary={"pif": {"95": 4.0, "100": 9.0}},
        risk={
            "classes": {"k": 2, "uniques": 0, "unique_share": 0.0, "rows_below": 9, "share_below": 0.009},
            "worst": {"k": 2},
        },
        seconds={"read": 1.0, "score": 2.0},
        peak_bytes=512 * 2**20,
    )
    return replace(outcome, **changes)


def failed_run(**changes) -> RunOutcome:
    """The second: a gate fails, another is unknown, a file came."""
    gates = [
        GateResult(
            "PIF 95", "pif", "bits", 4.75, 4.0, {"max": 4.5, "max_rise": 0.5}, Verdict.FAILED, "4.75 is above 4.5"
        ),
        GateResult("unique rows", "uniques", "rows", 1.0, 0.0, {"max": 10.0}, Verdict.PASSED),
        GateResult(AWKWARD, "t", "", None, None, {"max": 0.5}, Verdict.UNKNOWN, "no classes", column=AWKWARD),
    ]
    facts = {
        "number": 2,
        "status": Status.FAILED,
        "started": "2026-11-23T02:00:00+00:00",
        "finished": "2026-11-23T02:00:05+00:00",
        "rows": 1_200,
        "files": [*good_run().files, InputFile(AWKWARD, 500, 6, "cc", 200)],
        "changes": InputChanges(added=[AWKWARD], unchanged=2, read=[AWKWARD]),
        "columns": [
            ColumnProfile("age", "double", 91, 0, 1),
            ColumnProfile("sex", "string", 2, 0),
            ColumnProfile("id", "int64"),
        ],
        "gates": gates,
        "summary": {"pif": {"95": 4.75, "100": 9.0}},
        "compared_with": 1,
        "notes": ["the state of another version was not used"],
    }
    return good_run(**(facts | changes))


def refused_run(**changes) -> RunOutcome:
    """A run that found no table."""
    facts = {
        "number": 3,
        "status": Status.REFUSED,
        "started": "2026-11-24T02:00:00+00:00",
        "finished": "2026-11-24T02:00:01+00:00",
        "rows": None,
        "distinct_rows": None,
        "files": [],
        "columns": [],
        "gates": [],
        "summary": None,
        "risk": None,
        "seconds": {},
        "peak_bytes": None,
        "error": "input.path: no file matches '/data/people/*.parquet'.",
    }
    return good_run(**(facts | changes))
