"""The record: what goes in comes out, whatever happens meanwhile."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import sqlite3
import stat
import tempfile
import traceback
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from gpupif.errors import InputError, OutputError, TableReadError
from gpupif.nightly.configuration.config import load_config
from gpupif.nightly.exit_codes import Status
from gpupif.nightly.record.record import KILLED_NOTE, RECORD, Record
from gpupif.nightly.record.run_history import history
from gpupif.nightly.run_outcome import GateResult, Verdict
from gpupif.nightly.table.table_changes import InputFile
from tests.helpers.nights import runs_in
from tests.helpers.recorded_outcomes import STARTED, TABLE, outcome, outcomes, recorded

FILES = tuple(InputFile(f"part-{place}.parquet", 10, 20, f"{place:064}", 30) for place in range(3))


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A record for many runs."""
    with Record.open(tmp_path_factory.mktemp("state"), TABLE) as record:
        yield record


@pytest.mark.slow
@given(outcomes)
@settings(max_examples=25, deadline=None)
def test_a_recorded_run_is_read_back_unchanged(shared, any_run):
    number = shared.begin(any_run)
    assert repr(shared.run(number)) == repr(replace(any_run, number=number, status=Status.RUNNING))
    recorded = shared.finish(replace(any_run, number=number))
    # Of floats `repr` tells all bits but those of different NaNs.
    assert repr(shared.run(number)) == repr(recorded) == repr(replace(any_run, number=number))
    with Record.open(shared.folder) as reader:
        assert repr(reader.run(number)) == repr(recorded)


def test_an_auditor_finds_runs_in_sql_tables(tmp_path):
    gate = GateResult("PIF 95", "pif", "bits", 2.5, None, {"max": 3.0, "max_rise": 0.1}, Verdict.PASSED)
    recorded(tmp_path, *(outcome(files=FILES, gates=(gate,), summary={"pif": {"95": 2.5}}) for _ in range(2)))
    with contextlib.closing(sqlite3.connect(tmp_path / RECORD)) as sql:
        found = sql.execute("SELECT name, value, verdict FROM gates WHERE run = 2").fetchall()
        assert found == [("PIF 95", 2.5, "passed")]
        assert sql.execute("SELECT sum(rows) FROM files WHERE run = 2").fetchone() == (90,)
        assert sql.execute("""SELECT summary ->> '$.pif."95"' FROM runs""").fetchall() == [(2.5,), (2.5,)]
        # What is the same each night is there once.
        assert sql.execute("SELECT count(*) FROM file_versions").fetchone() == (3,)


def test_runs_are_ordered_by_number_not_by_time(tmp_path):
    first, second = recorded(
        tmp_path, outcome(), outcome(started="2020-01-01T00:00:00.000+00:00", notes=("Of the run itself.",))
    )
    assert (first.number, second.number) == (1, 2)
    assert first.notes == ()
    assert second.notes == (
        "Of the run itself.",
        f"The clock was set back: this run began at 2020-01-01T00:00:00.000+00:00, run 1 before it at {STARTED}.",
    )
    with Record.open(tmp_path) as record:
        assert record.runs() == [first, second]
        assert record.last_good() == second


def test_the_last_good_run_is_the_last_that_passed(tmp_path):
    states = [Status.PASSED, Status.FAILED, Status.PASSED, Status.REFUSED, Status.BROKEN, Status.RUNNING]
    recorded(tmp_path, *map(outcome, states))
    with Record.open(tmp_path) as record:
        assert record.last_good().number == 3
        assert record.last_good(before=3).number == 1
        assert record.last_good(before=1) is None


def test_runs_without_an_end_are_marked_as_killed(tmp_path):
    recorded(tmp_path, outcome(), outcome(Status.RUNNING, notes=("a",)), outcome(Status.RUNNING))
    with Record.open(tmp_path, TABLE) as record:
        assert record.mark_killed() == [2, 3]
        assert record.mark_killed() == []
        assert [run.status for run in record.runs()] == [Status.PASSED, Status.KILLED, Status.KILLED]
        assert record.run(2).notes == ("a", KILLED_NOTE)
        with pytest.raises(InputError, match=r"run 2: expected a run that is on"):
            record.finish(record.run(2))


def test_a_state_folder_serves_one_table(tmp_path):
    """The table is that of the last run with results; a refused run may have named another by mistake."""
    recorded(tmp_path, outcome(Status.REFUSED, table="poeple"))
    recorded(tmp_path, outcome(table="people"), outcome(Status.REFUSED, table="others"))
    Record.open(tmp_path, "people").close()
    with pytest.raises(InputError, match=r"another table: expected people, got others\. Name another folder"):
        Record.open(tmp_path, "others")


@pytest.mark.parametrize("damage", [None, "DELETE FROM run_files"])
def test_a_record_of_another_table_stays_as_it_is(tmp_path, damage):
    recorded(tmp_path, outcome(), outcome(files=FILES))
    if damage is not None:
        with contextlib.closing(sqlite3.connect(tmp_path / RECORD, isolation_level=None)) as sql:
            sql.execute(damage)
    before = (tmp_path / RECORD).read_bytes()
    with pytest.raises(InputError, match="is the state of another table"):
        Record.open(tmp_path, "others")
    assert [file.name for file in tmp_path.iterdir()] == [RECORD]
    assert (tmp_path / RECORD).read_bytes() == before


def test_asking_for_a_missing_run_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"no run is on record there\. `gpupif nightly run` makes the first"):
        Record.open(tmp_path)
    recorded(tmp_path, outcome(), outcome())
    with Record.open(tmp_path) as record, pytest.raises(InputError, match=r"run 7: there is none .*There are 1 to 2"):
        record.run(7)


def test_only_the_owner_may_read_the_record(tmp_path):
    state = tmp_path / "state"
    before = os.umask(0)
    try:
        with Record.open(state, TABLE) as record, record._changing():
            record._put(outcome(number=1))
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in [state, *state.iterdir()]}
    finally:
        os.umask(before)
    assert modes == {"state": 0o700, RECORD: 0o600, f"{RECORD}-journal": 0o600}


def test_the_record_is_read_while_a_run_writes(tmp_path):
    (first,) = recorded(tmp_path, outcome(files=FILES))
    with Record.open(tmp_path, TABLE) as writer, Record.open(tmp_path) as reader:
        with writer._changing():
            writer._put(outcome(number=2))
            assert reader.runs() == [first]
        assert [run.number for run in reader.runs()] == [1, 2]
        with reader.snapshot():
            assert [head["number"] for head in reader.heads()] == [1, 2]
            assert len(reader.runs()) == 2


def test_the_record_is_read_while_another_process_writes(tmp_path):
    recorded(tmp_path, outcome(files=FILES))
    child = os.fork()
    if child == 0:
        try:
            while True:
                recorded(tmp_path, outcome(files=FILES, notes=("whole",)))
        finally:
            os._exit(1)
    try:
        seen = []
        while len(set(seen)) < 10:
            with Record.open(tmp_path) as record, record.snapshot():
                assert record.problems() == []
                runs = record.runs()
            assert [run.number for run in runs] == [*range(1, len(runs) + 1)]
            # The last one may be on.
            assert all(run.notes == ("whole",) and run.status is Status.PASSED for run in runs[1:-1])
            seen.append(len(runs))
        assert seen == sorted(seen)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.fixture
def readable(tmp_path):
    """A folder that others may read too."""
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        Path(place).chmod(0o755)
        yield Path(place) / "state"


def as_a_reader(state, look):
    """Call a function in a copy of this process that may read the record, and write nothing."""
    for file in state.iterdir():
        file.chmod(0o444)
    state.chmod(0o555)
    child = os.fork()
    if child == 0:
        try:
            # Of root no right keeps anything.
            if os.getuid() == 0:
                os.setuid(65534)
            look()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    ended = os.waitpid(child, 0)[1]
    state.chmod(0o755)
    assert os.waitstatus_to_exitcode(ended) == 0


def test_the_record_is_read_in_a_folder_without_rights_to_write(readable):
    known = recorded(readable, outcome(), outcome(files=FILES))
    config = load_config(runs_in(readable), ["input.path=x"])

    def look():
        with Record.open(readable) as record:
            assert record.runs() == known
        assert [run.number for run in history(config).runs] == [1, 2]
        # To who is not root any more, the folder is another user's.
        with pytest.raises(OutputError, match=r"could not be written: .*Check the rights of the fo|a folder of yours"):
            Record.open(readable, TABLE)

    as_a_reader(readable, look)


def half_committed(state):
    """Be killed while the pages of a transaction go to the disk."""
    record = Record.open(state, TABLE)
    record._connection.execute("PRAGMA cache_size = 1")
    with record._changing():
        record._put(outcome(number=2, files=FILES * 500))
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_half_written_change_of_a_killed_run_is_undone(tmp_path):
    (first,) = recorded(tmp_path, outcome())
    whole = (tmp_path / RECORD).read_bytes()
    assert killed(lambda: half_committed(tmp_path)) == -signal.SIGKILL
    assert (tmp_path / RECORD).read_bytes() != whole
    with Record.open(tmp_path) as record:
        assert record.runs() == [first]
        with pytest.raises(OutputError, match="it may be read, but not written"):
            record.begin(outcome())
    assert (tmp_path / RECORD).read_bytes() == whole
    assert os.listdir(tmp_path) == [RECORD]


def test_a_reader_who_cannot_undo_a_half_written_change_gets_an_error(readable):
    recorded(readable, outcome())
    killed(lambda: half_committed(readable))

    def look():
        with pytest.raises(TableReadError, match=r"a run was killed while it wrote the record\. The next run"):
            Record.open(readable)

    as_a_reader(readable, look)


def test_a_full_disk_loses_no_recorded_run(tmp_path):
    first, second = recorded(tmp_path, outcome(files=FILES), outcome(Status.RUNNING))
    size = (tmp_path / RECORD).stat().st_size

    def finish():
        with Record.open(tmp_path, TABLE) as record:
            running = record.run(2)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50_000, resource.RLIM_INFINITY))
            with pytest.raises(OutputError) as told:
                record.finish(replace(running, status=Status.PASSED, notes=["x" * 1000] * 1000))
            assert str(told.value).startswith(f"{tmp_path / RECORD}: the record could not be written: ")
            assert "\n" not in str(told.value)
            assert record.runs()[1] == running
        os._exit(3)

    assert killed(finish) == 3
    with Record.open(tmp_path, TABLE) as record:
        assert record.runs() == [first, second]
        assert record.notes == []


def test_signals_wait_for_the_end_of_a_transaction(tmp_path, monkeypatch):
    """Wherever in it they come: it is done whole, and the record takes the next one."""
    recorded(tmp_path, outcome())
    # In the background of a shell it is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    calls = range(1, 100)
    for at in calls:
        with Record.open(tmp_path, TABLE) as record:
            statements = []

            def interrupt(statement, statements=statements, at=at):
                statements.append(statement)
                if len(statements) == at:
                    os.kill(os.getpid(), signal.SIGINT)

            number = record.begin(outcome())
            record._connection.set_trace_callback(interrupt)
            try:
                record.finish(outcome(number=number))
            except KeyboardInterrupt:
                assert record.run(number).status is Status.PASSED
                assert not record._connection.in_transaction
            else:
                break
    assert "BEGIN IMMEDIATE" in statements[0]
    assert statements[-1] == "COMMIT"
    assert 5 < at == len(statements) + 1


def test_a_transaction_within_another_is_no_damage(tmp_path):
    opened = Record.open(tmp_path, TABLE)
    with opened as record, record.snapshot(), pytest.raises(RuntimeError, match="within another one"):
        record.begin(outcome())
    with Record.open(tmp_path, TABLE) as record:
        assert record.begin(outcome()) == 1
        assert record.notes == []


def test_a_full_disk_reported_by_sqlite_is_a_clear_error(tmp_path):
    recorded(tmp_path, outcome())
    with Record.open(tmp_path, TABLE) as record:
        (pages,) = record._connection.execute("PRAGMA page_count").fetchone()
        record._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(OutputError, match=r"the record could not be written: the disk is full\. Free some space"):
            record.begin(outcome(error="x" * 100_000))
        assert len(record.runs()) == 1


def test_other_databases_and_newer_records_are_refused(tmp_path):
    for folder in ("other", "newer"):
        (tmp_path / folder).mkdir()
    with contextlib.closing(sqlite3.connect(tmp_path / "other" / RECORD)) as sql:
        sql.execute("CREATE TABLE friends (name)")
    recorded(tmp_path / "newer", outcome())
    with contextlib.closing(sqlite3.connect(tmp_path / "newer" / RECORD)) as sql:
        sql.execute("PRAGMA user_version = 3")
    for writable in (False, True):
        with pytest.raises(InputError, match=r"is no record of nightly runs, but another database"):
            Record.open(tmp_path / "other", writable)
        with pytest.raises(InputError, match=r"expected a record of version 2, got one of version 3"):
            Record.open(tmp_path / "newer", writable)
    assert os.listdir(tmp_path / "newer") == [RECORD]


@pytest.fixture(scope="module")
def long_record(tmp_path_factory):
    """A record of many pages as bytes, and the runs in it."""
    state = tmp_path_factory.mktemp("long")
    known = recorded(state, *(outcome(files=FILES, error=f"{place}" * 900) for place in range(8)))
    return (state / RECORD).read_bytes(), known


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_record_is_put_aside_and_its_whole_runs_are_kept(tmp_path, long_record, seed):
    """No damage of any bytes changes a run that is kept."""
    chance = random.Random(seed)
    content, known = bytearray(long_record[0]), long_record[1]
    file = tmp_path / RECORD
    for _ in range(chance.choice([1, 3, 200])):
        # But for the version of the tables, of which nothing else could tell a newer one.
        place = chance.choice([*range(60), *range(64, len(content))])
        content[place] ^= 1 << chance.randrange(8)
    file.write_bytes(content[: chance.choice([len(content), len(content) * 2 // 3])])
    with contextlib.suppress(TableReadError), Record.open(tmp_path) as reader:
        assert_some_of(reader, known)
    with Record.open(tmp_path, TABLE) as record:
        aside = list(tmp_path.glob("record.damaged-*.sqlite"))
        assert len(aside) == len(record.notes) <= 1
        if aside:
            assert f"put aside as {aside[0].name}" in record.notes[0]
        assert record.runs() == [known[head["number"] - 1] for head in record.heads()]
        assert aside or len(record.runs()) == len(known)
        number = record.begin(outcome())
        assert record.finish(outcome(number=number)) == record.run(number)


def assert_some_of(record, known):
    """The runs that are there are as they were, or said to be damaged; how many are whole."""
    whole = 0
    for number in [head["number"] for head in record.heads()]:
        with contextlib.suppress(TableReadError):
            assert record.run(number) == known[number - 1]
            whole += 1
    return whole


def test_a_record_damaged_as_a_whole_is_put_aside(tmp_path):
    recorded(tmp_path, outcome(), outcome())
    (tmp_path / RECORD).write_bytes(b"not a database " * 1000)
    with pytest.raises(TableReadError, match=r"the record is damaged .*The next run puts it aside"):
        Record.open(tmp_path)
    with Record.open(tmp_path, TABLE) as record:
        assert "no run in it was whole" in record.notes[0]
        assert record.begin(outcome()) == 1


def test_a_kill_while_a_damaged_record_is_replaced_loses_no_run(tmp_path, long_record, monkeypatch):
    """The kill comes after the old record is put aside and before the new one has its name."""
    content, known = long_record
    (tmp_path / RECORD).write_bytes(content[:-4096] + bytes(4096))
    with monkeypatch.context() as patch:
        patch.setattr(type(tmp_path), "rename", once(type(tmp_path).rename, at=2))
        assert killed(lambda: Record.open(tmp_path, TABLE)) == -signal.SIGKILL
    assert not (tmp_path / RECORD).exists()
    with Record.open(tmp_path, TABLE) as record:
        assert 0 < assert_some_of(record, known) == len(record.runs())


def once(function, at):
    """A function that kills its process at one of its calls."""
    calls = []

    def call(*given):
        calls.append(given)
        if len(calls) == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*given)

    return call


def killed(function):
    """How a copy of this process that calls a function ends."""
    child = os.fork()
    if child == 0:
        try:
            function()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
