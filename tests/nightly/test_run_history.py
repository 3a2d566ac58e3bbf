"""All runs at a glance."""

from __future__ import annotations

import csv
import json
from io import StringIO

import pandas as pd
import pytest

from gpupif.errors import InputError
from gpupif.nightly.exit_codes import Status
from gpupif.nightly.record.record import Record
from gpupif.nightly.record.run_history import history
from gpupif.nightly.run_outcome import GateResult, Verdict
from tests.helpers.nights import runs_in
from tests.helpers.recorded_outcomes import STARTED, TABLE, outcome, recorded


def gates(*verdicts):
    return tuple(
        GateResult(f"gate {place}", "k", "rows", 1.0, None, {}, verdict) for place, verdict in enumerate(verdicts)
    )


@pytest.fixture
def state(tmp_path):
    good = gates(Verdict.PASSED, Verdict.PASSED)
    bad = gates(Verdict.PASSED, Verdict.FAILED, Verdict.UNKNOWN)
    several = {"attackers": {"a": {"pif": {"95": 1.25}}, "b": {"pif": {"95": 2.5}}}}
    recorded(
        tmp_path,
        outcome(rows=1000, summary={"pif": {"95": 1.5}}, gates=good, seconds={"read": 1.5, "score": 2.0}),
        outcome(Status.FAILED, rows=2000, summary=several, gates=bad, seconds={"read": 1.0}),
        outcome(Status.REFUSED, error="no such file"),
        outcome(Status.RUNNING),
    )
    return tmp_path


def test_the_history_has_the_status_and_figures_of_each_run(state):
    first, second, third, last = history(runs_in(state)).runs
    assert (first.rows, first.pif_95, first.gates_passed, first.gates_failed, first.seconds) == (1000, 1.5, 2, 0, 3.5)
    # The worst attacker; a gate that is unknown failed.
    assert (second.status, second.pif_95, second.gates_passed, second.gates_failed) == ("failed", 2.5, 1, 2)
    assert (third.rows, third.pif_95, third.seconds) == (None, None, None)
    assert (last.number, last.status) == (4, "running")
    assert [run.why for run in (first, second, third, last)] == [
        *("", "gates that do not hold: gate 1, gate 2", "no such file", ""),
    ]


def test_the_history_is_given_as_json_csv_frame_and_table(state):
    found = history(runs_in(state))
    assert json.loads(found.to_json()) == found.to_dict()
    assert found.to_dict()["runs"][0]["started"] == STARTED
    rows = list(csv.DictReader(StringIO(found.to_csv())))
    assert [row["pif_95"] for row in rows] == ["1.5", "2.5", "", ""]
    assert rows[1]["why"] == "gates that do not hold: gate 1, gate 2"
    assert found.to_dict()["runs"][2]["why"] == "no such file"
    frame = found.to_frame()
    assert frame.index.tolist() == [1, 2, 3, 4]
    assert frame["rows"].dropna().tolist() == [1000, 2000]
    shown = str(found)
    for text in ("4 runs in", "2026-03-01 02:00:00", "2,000", "2.500", "refused", "no such", "gate 2"):
        assert text in shown


def test_removed_runs_stay_in_the_history(state):
    with Record.open(state, TABLE) as record:
        record.remove([2], pd.Timestamp("2026-04-01", tz="UTC").to_pydatetime())
    second = history(runs_in(state)).runs[1]
    assert (second.number, second.rows, second.pif_95, second.removed) == (
        *(2, 2000, None),
        "2026-04-01T00:00:00.000+00:00",
    )
    assert "removed" in str(history(runs_in(state)))


def test_the_reason_of_a_run_shows_file_names_that_are_no_text(tmp_path):
    recorded(tmp_path, outcome(Status.REFUSED, error="a\udcff.csv: no such file"))
    found = history(runs_in(tmp_path))
    assert "a\\udcff.csv: no such file" in found.to_csv().encode().decode()
    assert "a\\\\udcff.csv" in found.to_json()


def test_a_state_without_runs_has_no_history(tmp_path):
    with pytest.raises(InputError, match=r"no run is on record there"):
        history(runs_in(tmp_path))
    with Record.open(tmp_path, TABLE):
        assert history(runs_in(tmp_path)).runs == []
        assert history(runs_in(tmp_path)).to_frame().empty
