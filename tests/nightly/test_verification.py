"""Whether all that is kept is as it was kept."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3

import pytest

import gpupif
from gpupif.errors import InputError, TableReadError
from gpupif.nightly.configuration.settings import KeepSettings
from gpupif.nightly.exit_codes import Status
from gpupif.nightly.record.kept_scores import MANIFEST, SCORE_FILE, KeptFolder, remove_expired, tidy
from gpupif.nightly.record.record import RECORD, Record, utc_now
from gpupif.nightly.record.run_history import history
from gpupif.nightly.record.verification import verify
from gpupif.nightly.table.kept_table import VALUES
from gpupif.nightly.table.kept_values import KeptValues
from tests.helpers.nights import Nights, runs_in
from tests.helpers.recorded_outcomes import TABLE, kept_scores, outcome, recorded


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A state with kept scores of two runs."""
    state = tmp_path_factory.mktemp("made") / "state"
    scores = gpupif.score(gpupif.datasets.census(100))
    with Record.open(state, TABLE) as record:
        for _ in range(2):
            number = record.begin(outcome(Status.RUNNING))
            facts = kept_scores(state, number, scores, "all")
            record.finish(outcome(number=number, kept=facts))
            KeptFolder(state, number).publish()
    KeptValues.store(state / VALUES.format("000002"), 2, [])
    return state


@pytest.fixture
def state(made, tmp_path):
    shutil.copytree(made, tmp_path / "state")
    return tmp_path / "state"


def test_a_whole_state_has_no_problems(state):
    found = verify(runs_in(state))
    assert (found.problems, found.exit_code) == ([], 0)
    assert [(check.name, check.checked) for check in found.checks][:3] == [
        ("runs on record", 2),
        ("kept scores", 2),
        ("kept files", 0),
    ]
    assert json.loads(found.to_json())["checks"][0]["problems"] == []
    assert "What is kept in" in str(found)


@pytest.mark.parametrize("seed", range(10))
def test_any_damaged_byte_is_found(state, seed):
    chance = random.Random(seed)
    file = chance.choice([file for file in sorted(state.rglob("*")) if file.is_file() and file.name != "key"])
    content = bytearray(file.read_bytes())
    # Of the record what says something: the rest is free.
    first, length = (content.index(b"c0ffee"), 6) if file.name == RECORD else (0, len(content))
    content[first + chance.randrange(length)] ^= 1 << chance.randrange(8)
    file.write_bytes(content)
    found = verify(runs_in(state))
    assert found.exit_code == 3
    assert str(file) in found.problems[0]
    assert file.name in str(found).replace("\n", "")


@pytest.mark.parametrize("name", [SCORE_FILE, MANIFEST, "", RECORD])
def test_a_missing_file_of_a_run_is_reported(state, name):
    folder = state / "scores" / "run-000002"
    if name == RECORD:
        (state / RECORD).unlink()
        with pytest.raises(InputError, match="no run is on record there"):
            verify(runs_in(state))
        return
    (folder / name).unlink() if name else shutil.rmtree(folder)
    (problem,) = verify(runs_in(state)).problems
    assert str(folder / name) in problem


def test_files_that_belong_to_no_run_are_reported(state):
    shutil.copytree(state / "scores" / "run-000002", state / "scores" / "run-000009")
    (state / "scores" / "run-000001" / "notes.txt").touch(0o600)
    first, second = verify(runs_in(state)).problems
    assert "run-000001/notes.txt: belongs to no run" in first
    assert "run-000009: holds scores of run 9, of which the record has none" in second


def test_files_that_others_may_read_are_reported(state):
    (state / RECORD).chmod(0o640)
    (state / "scores").chmod(0o755)
    problems = verify(runs_in(state)).problems
    assert [problem.rpartition("Run: ")[2] for problem in problems] == [
        f"chmod 600 {state / RECORD}",
        f"chmod 700 {state / 'scores'}",
    ]


def test_a_damaged_record_is_reported(state):
    (state / RECORD).write_bytes(b"x" * 10_000)
    found = verify(runs_in(state))
    assert found.exit_code == 3
    assert "the record is damaged" in found.problems[0]
    assert len(found.problems) == 1


def test_damaged_parts_are_reported_but_not_files_of_a_running_run(state):
    recorded(state, outcome(Status.RUNNING))
    (KeptFolder(state, 3).create() / SCORE_FILE).touch(0o644)
    part = state / "parts" / "a.part"
    part.parent.mkdir(mode=0o700)
    part.touch(0o600)
    (problem,) = verify(runs_in(state)).problems
    assert problem.startswith(f"{part}: damaged")


def forge(state, *statements):
    """What somebody does to the record by hand."""
    with contextlib.closing(sqlite3.connect(state / RECORD)) as sql:
        for statement in statements:
            sql.execute(statement)
        sql.commit()


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "statement",
    [
        """UPDATE documents SET document = replace(document, '"verdict": "failed"', '"verdict": "passed"')""",
        "UPDATE documents SET document = json_set(document, '$.gates[0].value', 4)",
        "UPDATE documents SET document = '[]' WHERE number = 2",
        "UPDATE documents SET document = 'no JSON' WHERE number = 2",
        "UPDATE documents SET status = 'passed' WHERE number = 2",
        "UPDATE documents SET started = '2020-01-01' WHERE number = 2",
        "UPDATE documents SET removed = started WHERE number = 2",
        "UPDATE documents SET kept_path = 'scores/run-000001' WHERE number = 2",
        "UPDATE documents SET digest = NULL WHERE number = 2",
        "UPDATE file_versions SET file = replace(file, 'digest', 'digits')",
        "DELETE FROM run_files WHERE run = 2",
    ],
)
def test_a_run_changed_by_hand_is_reported(tmp_path, statement):
    nights = Nights(tmp_path)
    nights.run()
    assert nights.run("gates.0.min=3").exit_code == 3
    assert verify(runs_in(nights.state)).problems == []
    forge(nights.state, statement)
    problems = verify(runs_in(nights.state)).problems
    said = f"{nights.state / RECORD}: run 2 is not as it was recorded: the file is damaged."
    assert said in problems
    # The overview of all runs does not show it as if it were true.
    with pytest.raises(TableReadError, match=r"run [12] is not as it was recorded: the file is damaged\.$"):
        history(runs_in(nights.state))
    # The next run puts the record aside, and goes on without: that is not forgotten.
    nights.run()
    (problem, *_) = verify(runs_in(nights.state)).problems
    assert "run 2 is not there" in problem or "runs 1 to 2 are not there" in problem


@pytest.mark.parametrize(
    ("deleted", "said"), [([1], "run 1 is"), ([2], "run 2 is"), ([4], "run 4 is"), ([2, 3], "runs 2 to 3 are")]
)
def test_a_deleted_run_is_reported(tmp_path, deleted, said):
    recorded(tmp_path, *[outcome(Status.REFUSED)] * 4)
    forge(tmp_path, *(f"DELETE FROM documents WHERE number = {number}" for number in deleted))
    for _ in range(2):
        (problem,) = verify(runs_in(tmp_path)).problems
        assert problem.startswith(f"{tmp_path / RECORD}: {said} not there: deleted, or lost")
        # The next run has a number of its own.
        (next_one,) = recorded(tmp_path, outcome(Status.REFUSED))
        assert next_one.number > 4


def test_a_run_that_retention_removed_is_no_gap(state):
    with Record.open(state, TABLE) as record:
        record.remove([1], utc_now())
        KeptFolder(state, 1).delete()
    assert verify(runs_in(state)).problems == []


@pytest.mark.parametrize("step", ["KeptFolder.delete", "shutil.rmtree"])
def test_a_killed_retention_is_no_problem(state, step):
    child = os.fork()
    if child == 0:
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(
                    f"gpupif.nightly.record.kept_scores.{step}", lambda *_: os.kill(os.getpid(), signal.SIGKILL)
                )
                with Record.open(state, TABLE) as record:
                    remove_expired(record, KeepSettings(runs=1), utc_now())
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert {folder.name.removeprefix(".removed-") for folder in (state / "scores").iterdir()} > {"run-000001"}
    found = verify(runs_in(state))
    assert (found.problems, found.exit_code) == ([], 0)
    with Record.open(state, TABLE) as record:
        tidy(record)
    assert [folder.name for folder in (state / "scores").glob("*run-*")] == ["run-000002"]


@pytest.mark.parametrize(("mode", "problems"), [(0o755, 0), (0o775, 1), (0o1777, 1)])
def test_a_state_that_others_may_write_to_is_reported(state, mode, problems):
    state.chmod(mode)
    found = verify(runs_in(state)).problems
    assert [problem.rpartition("Run: ")[2] for problem in found] == [f"chmod 700 {state}"] * problems


def test_missing_kept_values_are_reported(state):
    (state / VALUES.format("000002")).unlink()
    (problem,) = verify(runs_in(state)).problems
    assert "values-000002.kept: gone; the next run cannot say which values are new since run 2." in problem
