"""Records of version 1: they are read as they are, and the first run that writes gives them the tables of today."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sqlite3
from pathlib import Path

import pytest

from gpupif.errors import InputError, TableReadError
from gpupif.nightly.exit_codes import Status
from gpupif.nightly.record import record as records
from gpupif.nightly.record.record import RECORD, Record
from gpupif.nightly.record.run_history import history
from gpupif.nightly.record.verification import verify
from gpupif.nightly.run_outcome import ColumnProfile, GateResult, InputChanges, InputFile, KeptScores, Verdict
from tests.helpers.dying import in_a_copy
from tests.helpers.nights import runs_in
from tests.helpers.recorded_outcomes import STARTED, TABLE, outcome, recorded

DUMP = Path(__file__).with_name("record_version_1.sql")
AWKWARD = "a\udcff.csv"
FILES = (InputFile("part-0.parquet", 10, 20, "d0", 30), InputFile(AWKWARD, 11, 21, "d1", 31))
PIF = GateResult(
    "PIF 95", "pif", "bits", 2.5, None, {"max": 3.0, "max_rise": 0.1}, Verdict.PASSED, "", None, "neighbour", "def0"
)
EMD = GateResult(
    *("emd", "emd", "", math.inf, math.nan, {"max": math.inf}, Verdict.FAILED, "The value is infinite."),
    *("illness", None, "def1"),
)
ROWS = GateResult("rows", "rows", "rows", 900, 1000, {"min": 100}, Verdict.UNKNOWN)
MEASURED = {
    "versions": {"gpupif": "1.0", "python": "3.12"},
    "host": "h",
    "device": "cpu",
    "rows": 61,
    "distinct_rows": 60,
    "columns": (ColumnProfile("age", "int64", 5, 1, None), ColumnProfile("note", "string")),
    "summary": {"pif": {"95": 2.5}},
    "risk": {"classes": {"k": 1}},
    "peak_bytes": 123,
    "compared_with": 1,
    "notes": ("first", "second"),
}
CHANGES = InputChanges(("part-0.parquet",), ("x",), renamed=(("b", AWKWARD),), unchanged=3, read=("part-0.parquet",))
KEPT = KeptScores("scores/run-000002", "cells", {"scores.parquet": (12, "d2"), "manifest.json": (3, "d3")})
# The runs in the record, after one that retention removed.
RUNS = [
    outcome(
        number=2,
        files=FILES,
        changes=CHANGES,
        gates=(PIF,),
        kept=KEPT,
        seconds={"read": 0.1, "measure": 2.0},
        **MEASURED,
    ),
    outcome(Status.FAILED, number=3, files=FILES[:1], gates=(PIF, EMD, ROWS), **MEASURED),
    outcome(Status.REFUSED, number=4, error=f"{AWKWARD}: no such file"),
    outcome(Status.RUNNING, number=5),
]


@pytest.fixture
def state(tmp_path):
    change(tmp_path, DUMP.read_text("utf-8"))
    (tmp_path / RECORD).chmod(0o600)
    return tmp_path


def change(state, script):
    """Change a record by hand."""
    with contextlib.closing(sqlite3.connect(state / RECORD)) as sql:
        sql.executescript(script)


def rows(state, query):
    with contextlib.closing(sqlite3.connect(state / RECORD)) as sql:
        return sql.execute(query).fetchall()


def version(state):
    return rows(state, "PRAGMA user_version")[0][0]


def check_runs(record):
    assert repr(record.runs()) == repr(RUNS)
    assert [head["number"] for head in record.heads()] == [1, 2, 3, 4, 5]
    with pytest.raises(InputError, match=r"run 1: was removed on 2026-04-01T00:00:00\.000\+00:00"):
        record.run(1)
    assert record.last_good().number == 2
    assert record.problems() == record.gaps() == []


def test_reading_a_record_of_version_1_does_not_change_it(state):
    before = (state / RECORD).read_bytes()
    with Record.open(state) as record:
        check_runs(record)
    first, second, *_ = history(runs_in(state)).runs
    assert (first.number, first.rows, first.removed[:10], first.started) == (1, 7, "2026-04-01", STARTED)
    assert (second.pif_95, second.gates_passed, second.seconds) == (2.5, 1, 2.1)
    assert verify(runs_in(state)).checks[0].problems == []
    assert (state / RECORD).read_bytes() == before
    assert version(state) == 1


def test_the_first_run_that_writes_migrates_the_record(state):
    before = history(runs_in(state))
    for _ in range(2):
        with Record.open(state, TABLE) as record:
            assert record.notes == []
            check_runs(record)
    assert version(state) == 2
    assert history(runs_in(state)) == before
    assert rows(state, "SELECT name, value, verdict FROM gates WHERE run = 3") == [
        ("PIF 95", 2.5, "passed"),
        ("emd", "inf", "failed"),
        ("rows", 900, "unknown"),
    ]
    assert rows(state, "SELECT count(*) FROM file_versions") == [(2,)]
    assert recorded(state, outcome())[0].number == 6


def test_a_run_on_another_table_does_not_migrate_the_record(state):
    before = (state / RECORD).read_bytes()
    with pytest.raises(InputError, match=r"the state of another table: expected .*, got others\."):
        Record.open(state, "others")
    assert (state / RECORD).read_bytes() == before
    assert [file.name for file in state.iterdir()] == [RECORD]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("view", "columns"),
    [
        ("runs", "number, status, identity, unchanged, kept_path, kept_kind, removed, error != ''"),
        ("versions", "*"),
        ("files", "run, place, size, mtime_ns, digest, rows"),
        ("changes", "run, kind, path"),
        ("columns", "*"),
        ("limits", "run, gate, name"),
        ("stages", "*"),
        ("kept_files", "*"),
        ("notes", "*"),
    ],
)
def test_views_of_a_migrated_record_have_its_old_rows(state, view, columns):
    # The name of a file that is no text was bytes.
    query = f"SELECT {columns} FROM {view}{' WHERE new_path IS NULL' * (view == 'changes')}"
    before = rows(state, query)
    Record.open(state, TABLE).close()
    assert sorted(rows(state, query), key=repr) == sorted(before, key=repr)


def test_numbers_of_missing_runs_are_not_given_again(state):
    change(state, "DELETE FROM runs WHERE number = 5")
    with Record.open(state, TABLE) as record:
        (gap,) = record.gaps()
        assert "run 5 is not there" in gap
    assert recorded(state, outcome())[0].number == 6


@pytest.mark.parametrize(
    ("number", "script"),
    [
        (3, "UPDATE gates SET value = value + 1 WHERE run = 3"),
        (3, "UPDATE runs SET summary = 'no JSON' WHERE number = 3"),
        (2, "UPDATE stages SET seconds = 'long' WHERE run = 2"),
        (2, "INSERT INTO changes VALUES (2, 9, 'moved', 'a', 'b')"),
        (3, "INSERT INTO notes VALUES (3, 9, 'all is well')"),
    ],
)
def test_a_run_changed_by_hand_is_not_migrated(state, number, script):
    change(state, script)
    with Record.open(state) as record, pytest.raises(TableReadError, match=f"run {number} is not as it was recorded"):
        record.run(number)
    with Record.open(state, TABLE) as record:
        assert "put aside" in record.notes[0]
        assert repr(record.runs()) == repr([run for run in RUNS if run.number != number])
    assert version(state) == 2


@pytest.mark.slow
def test_a_kill_during_the_migration_leaves_the_record_whole(state):
    def open_and_die(at):
        statements = []

        def kill(statement):
            statements.append(statement)
            if len(statements) == at:
                os.kill(os.getpid(), signal.SIGKILL)

        def connect(file, mode, real=records._connect):
            connection = real(file, mode)
            connection.set_trace_callback(kill)
            return connection

        records._connect = connect
        Record.open(state, TABLE).close()

    at, code = 0, -signal.SIGKILL
    while code == -signal.SIGKILL:
        at += 15
        code = in_a_copy(lambda at=at: open_and_die(at))
        with Record.open(state) as record:
            check_runs(record)
    assert at > 60
    assert version(state) == 2
