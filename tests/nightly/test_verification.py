"""Whether all that is kept is as it was kept."""

from __future__ import annotations

import json
import random
import shutil

import pytest

import gpupif
from gpupif.errors import InputError
from gpupif.nightly.outcome import Status
from gpupif.nightly.record import kept
from gpupif.nightly.record.record import RECORD, Record
from gpupif.nightly.record.verification import check_state
from tests.helpers.recorded_outcomes import outcome, recorded


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A state with kept scores of two runs."""
    state = tmp_path_factory.mktemp("made") / "state"
    scores = gpupif.score(gpupif.datasets.census(100))
    with Record.open(state, writable=True) as record:
        for _ in range(2):
            number = record.begin(outcome(Status.RUNNING))
            facts = kept.stage(state, number, scores, "all")
            record.finish(outcome(number=number, kept=facts))
            kept.publish(state, number)
    return state


@pytest.fixture
def state(made, tmp_path):
    shutil.copytree(made, tmp_path / "state")
    return tmp_path / "state"


def test_all_is_well(state):
    found = check_state(state)
    assert (found.problems, found.exit_code) == ([], 0)
    assert [(check.name, check.checked) for check in found.checks][:2] == [("runs on record", 2), ("kept scores", 2)]
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
    found = check_state(state)
    assert found.exit_code == 3
    assert str(file) in found.problems[0]
    assert file.name in str(found).replace("\n", "")


@pytest.mark.parametrize("name", [kept.SCORE_FILE, kept.MANIFEST, "", RECORD])
def test_what_is_gone(state, name):
    folder = state / "scores" / "run-000002"
    if name == RECORD:
        (state / RECORD).unlink()
        with pytest.raises(InputError, match="no run is on record there"):
            check_state(state)
        return
    (folder / name).unlink() if name else shutil.rmtree(folder)
    (problem,) = check_state(state).problems
    assert str(folder / name) in problem


def test_what_belongs_to_no_run(state):
    shutil.copytree(state / "scores" / "run-000002", state / "scores" / "run-000009")
    (state / "scores" / "run-000001" / "notes.txt").touch(0o600)
    first, second = check_state(state).problems
    assert "run-000001/notes.txt: belongs to no run" in first
    assert "run-000009: holds scores of run 9, of which the record has none" in second


def test_what_others_may_read(state):
    (state / RECORD).chmod(0o640)
    (state / "scores").chmod(0o755)
    problems = check_state(state).problems
    assert [problem.rpartition("Run: ")[2] for problem in problems] == [
        f"chmod 600 {state / RECORD}",
        f"chmod 700 {state / 'scores'}",
    ]


def test_a_record_that_cannot_be_read(state):
    (state / RECORD).write_bytes(b"x" * 10_000)
    found = check_state(state)
    assert found.exit_code == 3
    assert "the record is damaged" in found.problems[0]
    assert len(found.problems) == 1


def test_encoded_parts_and_a_run_that_is_on(state):
    recorded(state, outcome(Status.RUNNING))
    (kept.staging_folder(state, 3) / kept.SCORE_FILE).touch(0o644)
    part = state / "parts" / "a.part"
    part.parent.mkdir(mode=0o700)
    part.touch(0o600)
    (problem,) = check_state(state).problems
    assert problem.startswith(f"{part}: damaged")
