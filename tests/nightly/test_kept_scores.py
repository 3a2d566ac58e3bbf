"""Kept scores: whole or not there, known to the record, and removed with their runs."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sqlite3
import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import cycle

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpupif
from gpupif.errors import InputError, OutputError, TableReadError
from gpupif.nightly.configuration.settings import KeepSettings
from gpupif.nightly.exit_codes import Status
from gpupif.nightly.record.kept_scores import (
    KEY_FILE,
    MANIFEST,
    SCORE_FILE,
    KeptFolder,
    check,
    expired,
    read_manifest,
    remove_expired,
    tidy,
)
from gpupif.nightly.record.record import RECORD, Record, time_text, utc_now
from gpupif.nightly.record.row_keys import KEY, ROW, SECRET, digests_of, row_digests, secret_of
from gpupif.nightly.record.state_folder import run_lock
from gpupif.nightly.record.verification import verify
from gpupif.nightly.table.kept_table import VALUES
from gpupif.nightly.table.kept_values import KeptValues
from tests.helpers.dying import die_at, in_a_copy
from tests.helpers.killed_nights import kill_at_commits
from tests.helpers.nights import runs_in
from tests.helpers.recorded_outcomes import TABLE, kept_scores, outcome, recorded

NOW = datetime(2026, 3, 20, tzinfo=UTC)


@pytest.fixture(scope="module")
def scores():
    return gpupif.score(gpupif.datasets.census(200), ["cig", "unique"])


def keys_of(rows, pieces=3):
    """A key column of so many rows, in pieces."""
    return pa.table({"id": [f"person {row}" for row in range(rows)]}).to_batches(-(-rows // pieces))


def night(state, scores, keep, status=Status.PASSED, **staged):
    """What a run does with the record and its kept scores."""
    with run_lock(state), Record.open(state, TABLE) as record:
        record.mark_killed()
        tidy(record)
        running = outcome(status, started=time_text(utc_now()))
        number = record.begin(running)
        facts = kept_scores(state, number, scores, **({"kind": "cells", "where": "cig > 1"} | staged))
        KeptValues.store(state / VALUES.format(f"{number:06}"), number, [])
        record.finish(replace(running, number=number, kept=facts))
        KeptFolder(state, number).publish()
        remove_expired(record, keep, utc_now())
    return number


def published(state):
    """The runs whose kept scores have their final name."""
    return [folder.number for folder in KeptFolder.find_all(state) if folder.final.is_dir()]


@pytest.mark.parametrize("kind", ["all", "cells"])
def test_kept_scores_are_opened_again(tmp_path, scores, kind):
    number = night(tmp_path, scores, KeepSettings(), kind=kind, where=None, keys=keys_of(200), config_digest="c0ffee")
    folder = KeptFolder(tmp_path, number).find()
    assert folder == tmp_path / "scores" / "run-000001"
    opened = gpupif.open_scores(folder / SCORE_FILE)
    if kind == "all":
        pd.testing.assert_frame_equal(opened.cig.to_pandas(), scores.cig)
    else:
        assert opened.cells().count() == scores.cells().count()
    manifest = read_manifest(folder)
    assert (manifest.run, manifest.kind, manifest.config_digest) == (1, kind, "c0ffee")
    assert set(manifest.files) == {SCORE_FILE, KEY_FILE}
    assert pq.read_table(folder / KEY_FILE).column_names == [ROW, KEY]
    modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes == {0o600}
    assert verify(runs_in(tmp_path)).exit_code == 0


def test_only_keys_of_rows_with_kept_cells_are_stored(tmp_path, scores):
    night(tmp_path, scores, KeepSettings(), keys=keys_of(200), show_values=True)
    folder = KeptFolder(tmp_path, 1).find()
    found = pq.read_table(folder / KEY_FILE)
    rows = sorted(set(scores.cells("cig > 1").to_pandas()["row"]))
    assert found.column(ROW).to_pylist() == rows
    assert found.column("id").to_pylist() == [f"person {row}" for row in rows]
    keys = ds.dataset(folder / KEY_FILE, format="parquet")
    asked = [row for row in rows for _ in range(2)]
    half = len(asked) // 2
    several = [digests_of(keys, np.array(part, np.int64)) for part in (asked[:half], [], asked[half:])]
    of_row = dict(zip(rows, found.column(KEY).to_pylist(), strict=True))
    assert pa.concat_arrays(several).to_pylist() == [of_row[row] for row in asked]
    with pytest.raises(InputError, match=r"row_key: expected its columns of 200 rows, got 199"):
        night(tmp_path, scores, KeepSettings(), keys=keys_of(199))


@given(st.lists(st.tuples(*[st.none() | st.text("a:-1", max_size=3)] * 2), unique=True, min_size=1))
def test_digests_tell_all_rows_apart(rows):
    columns = pa.record_batch([pa.array(column, pa.string()) for column in zip(*rows, strict=True)], ["a", "b"])
    digests = row_digests(columns, b"secret").to_pylist()
    assert len(set(digests)) == len(rows)
    assert row_digests(columns.slice(1), b"secret").to_pylist() == digests[1:]
    assert not set(row_digests(columns, b"another").to_pylist()) & set(digests)


def test_digests_of_values_of_any_type_differ():
    values = [
        pa.array([1, 2]),
        pa.array([1.5, None]),
        pa.array([b"\xff", b"\0"]),
        pa.array(["a", "a"]).dictionary_encode(),
    ]
    for column in [*values, pa.array([NOW, NOW - timedelta(1)])]:
        assert len(row_digests(pa.record_batch([column], ["a"]), b"secret").unique()) == len(column.unique())


def heads(*days, status=Status.PASSED):
    """Runs that began so many days before now, as `Record.heads` has them."""
    return [
        {"number": place, "status": status, "started": time_text(NOW - timedelta(days)), "removed": None}
        for place, days in enumerate(days, 1)
    ]


@pytest.mark.parametrize(
    ("keep", "days", "good", "going"),
    [
        ({}, [99, 9, 1], None, []),
        ({"runs": 2}, [4, 3, 2, 1], None, [1, 2]),
        ({"runs": 2}, [4, 3, 2, 1], 1, [2]),
        ({"days": 2}, [4, 3, 2, 1], None, [1, 2]),
        ({"runs": 1, "days": 3}, [4, 3, 2, 1], None, [1]),
        ({"runs": 3, "days": 1}, [4, 3, 2, 1], None, [1]),
        # Clocks that were ahead, or set back: none is older than one before it.
        ({"days": 2}, [1, 400, 400], None, []),
        ({"days": 2}, [400, -400, 300, 200], None, [1]),
        ({"runs": 2}, [-400, 3, 2], None, [1]),
    ],
)
def test_retention_removes_the_expected_runs(keep, days, good, going):
    assert expired(heads(*days), KeepSettings(**keep), NOW, good) == going


def test_retention_keeps_a_run_that_is_still_running():
    on = [*heads(9, status=Status.RUNNING), *heads(8)]
    assert expired(on, KeepSettings(runs=1), NOW, None) == []


def test_an_auditor_sees_what_was_removed(tmp_path, scores):
    for _ in range(3):
        night(tmp_path, scores, KeepSettings(runs=2))
    assert published(tmp_path) == [2, 3]
    with Record.open(tmp_path) as record:
        assert [run.number for run in record.runs()] == [2, 3]
    with contextlib.closing(sqlite3.connect(tmp_path / RECORD)) as sql:
        sql.row_factory = sqlite3.Row
        first = sql.execute("SELECT * FROM runs WHERE number = 1").fetchone()
        assert (first["number"], first["status"], first["config_digest"]) == (1, "passed", "c0ffee")
        assert first["removed"][:10] == time_text(utc_now())[:10]
        assert [first[name] for name in ("summary", "risk", "config", "kept_path")] == [None] * 4
    with Record.open(tmp_path) as record:
        with pytest.raises(InputError, match=r"run 1: was removed on "):
            record.run(1)
        assert record.problems() == []


def test_retention_keeps_the_last_good_run(tmp_path):
    recorded(tmp_path, outcome(), *[outcome(Status.FAILED)] * 5)
    with Record.open(tmp_path, TABLE) as record:
        assert remove_expired(record, KeepSettings(runs=2), NOW) == [2, 3, 4]
        assert record.last_good().number == 1
        assert remove_expired(record, KeepSettings(runs=2), NOW) == []


def test_scores_of_a_killed_run_stay_only_if_the_record_knows_them(tmp_path, scores):
    """The run is killed at each step."""
    staged = lambda number: tmp_path / "scores" / f".staged-run-{number:06}"  # noqa: E731
    with Record.open(tmp_path, TABLE) as record:
        for known in (False, True):
            number = record.begin(outcome())
            facts = kept_scores(tmp_path, number, scores, "all")
            if known:
                KeptValues.store(tmp_path / VALUES.format(f"{number:06}"), number, [])
                record.finish(outcome(number=number, kept=facts))
        assert KeptFolder(tmp_path, 2).find() == staged(2)
        assert verify(runs_in(tmp_path)).exit_code == 0
        record.mark_killed()
        tidy(record)
        assert published(tmp_path) == [2]
        assert not staged(1).exists()
        record.remove([2], NOW)
        tidy(record)
        assert published(tmp_path) == []
        # Scores of a record that was lost: their numbers are not given again.
        (tmp_path / "scores" / "run-000007").mkdir()
        tidy(record)
        assert record.begin(outcome(), above=7) == 8
        assert published(tmp_path) == [7]


def test_a_damaged_manifest_is_an_error(tmp_path, scores):
    night(tmp_path, scores, KeepSettings())
    folder = KeptFolder(tmp_path, 1).find()
    for content in (b"", b"{}", b"[]", b'{"format": 2}', b"\xff"):
        (folder / MANIFEST).write_bytes(content)
        with pytest.raises(TableReadError, match="manifest"):
            read_manifest(folder)


@pytest.mark.parametrize("content", [b"", b"short", bytes(33), bytes(100)])
def test_a_damaged_secret_is_put_aside_and_drawn_anew(tmp_path, content):
    first = secret_of(tmp_path)
    (tmp_path / SECRET).write_bytes(content)
    said = []
    second = secret_of(tmp_path, said.append)
    assert len(second) == len(first)
    assert first != second == secret_of(tmp_path, said.append)
    assert len(said) == 1
    assert "damaged-key" in said[0]
    assert (tmp_path / "damaged-key").read_bytes() == content


def test_a_full_disk_is_an_error_and_leaves_no_kept_scores(tmp_path, scores):
    night(tmp_path, scores, KeepSettings())
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))
        try:
            kept_scores(tmp_path, 2, scores, "all", keys=keys_of(200))
        except OutputError as error:
            os._exit(0 if "could not be written" in str(error) and "\n" not in str(error) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    night(tmp_path, scores, KeepSettings())
    assert verify(runs_in(tmp_path)).problems == []


@pytest.mark.slow
def test_a_kill_before_any_change_on_the_disk_keeps_the_state_whole(tmp_path, scores):
    """Each run is killed one change later than the last; no good run is lost."""

    def nights(moment):
        kill_at_commits(die_at(str(moment), signal.SIGKILL))
        for status in cycle([Status.PASSED, Status.FAILED, Status.PASSED]):
            night(tmp_path, scores, KeepSettings(runs=2), status, keys=keys_of(200))

    good = night(tmp_path, scores, KeepSettings(runs=2), keys=keys_of(200))
    for moment in range(1, 41):
        assert in_a_copy(partial(nights, moment)) == -signal.SIGKILL
        with Record.open(tmp_path) as record:
            assert record.problems() == []
            runs = record.runs()
            found = record.last_good()
        assert found.number >= good
        good = found.number
        for run in runs:
            assert (run.kept is None) == (run.status in (Status.RUNNING, Status.KILLED))
            if run.kept is not None:
                assert list(check(KeptFolder(tmp_path, run.number).find(), run.kept)) == []
    number = night(tmp_path, scores, KeepSettings(runs=2))
    assert number > 10
    assert verify(runs_in(tmp_path)).problems == []
    left = {path.name for path in (tmp_path / "scores").iterdir()} - {"key"}
    assert left <= {f"run-{one:06}" for one in range(number + 1)}
    assert len(left) <= 3
