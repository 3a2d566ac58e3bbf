"""The record of all runs of a state folder: a SQLite file, which one run writes while anybody reads it.

The journal is one that is rolled back, not a write-ahead log: who reads needs no more than to read one file, also on a
disk or in a folder where nothing can be written, and what is committed lies in that file alone.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from ...errors import InputError, OutputError, TableReadError, reason_of
from ...utils.signals import held_back
from ..outcome import RunOutcome, Status
from .record_rows import (
    FORGET_FILES,
    HIGHEST_NUMBER,
    PART_COLUMNS,
    RUN_COLUMNS,
    SCHEMA,
    SET_HIGHEST_NUMBER,
    VIEWS,
    RunRows,
    from_rows,
    from_text,
    to_rows,
)
from .state_files import create_file, state_errors, state_folder, sync_folder

RECORD, JOURNAL = "record.sqlite", "-journal"
# What takes the place of a damaged one, as soon as that is gone.
NEW = "record.new.sqlite"
# "pifn", and the version of the tables: in the head of the file, where SQLite and file(1) look for them.
APPLICATION, VERSION = 0x7069666E, 1
# Seconds to wait for others who read or write.
WAIT_SECONDS = 30.0
KILLED_NOTE = "The run was killed, or the machine went down: it never said how it ended."


def utc_now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


def time_text(time: datetime) -> str:
    """A time as the record has it."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds")


def time_of(text: Any) -> datetime | None:
    """A time of the record; None for what is none, where the record is damaged."""
    try:
        time = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


class Record:
    """The record of a state folder; a context manager.

    What is written is there whole or not at all, after a kill at any moment too. Numbers order runs, never times: the
    clock may have been set back. notes: what there was to say when it was opened, one sentence each.
    """

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self.folder = folder
        self.file = folder / RECORD
        self.notes: list[str] = []
        self._connection = connection

    @classmethod
    def open(cls, folder: Path, writable: bool = False) -> Self:
        """Open the record of a state folder.

        writable: by a run, which has the lock: it is made where there is none, and one that is damaged is put aside,
        with all runs in it that are whole taken over. Else it can be read, also while a run writes.

        Raises InputError where there is none to read, or one of a newer version, or another database; TableReadError
        where it is damaged or cannot be read; OutputError where it cannot be written.
        """
        if writable:
            state_folder(folder)
            return cls._open_to_write(folder)
        file = folder / RECORD
        try:
            file.stat()
        except (FileNotFoundError, NotADirectoryError):
            raise _no_runs(folder) from None
        except OSError as error:
            from ...io.file_errors import denied

            raise denied(file, error) from error
        with _said(file, "read"):
            record = cls(folder, _reading(file))
        try:
            with _said(file, "read"):
                if not _has_tables(record._connection):
                    raise _no_runs(folder)
                _check_version(record._connection, file)
        except BaseException:
            record.close()
            raise
        return record

    @classmethod
    def _open_to_write(cls, folder: Path) -> Self:
        file, new = folder / RECORD, folder / NEW
        if new.exists() and not file.exists():
            with state_errors(file):
                new.replace(file)
        create_file(file)
        record = cls(folder, _connect(file, "rw"))
        try:
            if record._is_whole():
                _make_tables(record._connection, file)
                return record
            return cls._anew(record)
        except BaseException:
            record.close()
            raise

    @classmethod
    def _anew(cls, damaged: Record) -> Self:
        """Put a damaged record aside, and begin a new one with the runs in it that are whole."""
        highest = damaged._highest_found()
        whole, lost = damaged._salvage(highest)
        damaged.close()
        folder, file, new = damaged.folder, damaged.file, damaged.folder / NEW
        with state_errors(new):
            for left in (new, _journal(new)):
                left.unlink(missing_ok=True)
        create_file(new)
        with contextlib.closing(_connect(new, "rw")) as connection:
            _make_tables(connection, new)
            with _said(new, "written"), _transaction(connection):
                for rows in whole:
                    _insert(connection, rows)
                forget, put = SET_HIGHEST_NUMBER
                connection.execute(forget)
                connection.execute(put, (highest,))
        aside = folder / f"record.damaged-{utc_now():%Y%m%dT%H%M%S.%fZ}.sqlite"
        with state_errors(file):
            if _journal(file).exists():
                _journal(file).rename(_journal(aside))
            file.rename(aside)
            new.rename(file)
            sync_folder(folder)
        kept = f"the runs in it that are whole, {len(whole)}, were taken over" if whole else "no run in it was whole"
        gone = f"; lost: {lost}" if lost else ""
        record = cls(folder, _connect(file, "rw"))
        _prepare(record._connection, file)
        record.notes.append(f"The record was damaged, and was put aside as {aside.name}: {kept}{gone}.")
        return record

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """See one state of the record in all that is asked within, while another process writes the next."""
        with contextlib.ExitStack() as closing:
            if not self._connection.in_transaction:
                closing.enter_context(_said(self.file, "read"))
                closing.enter_context(_transaction(self._connection, "BEGIN"))
            yield

    def begin(self, outcome: RunOutcome) -> int:
        """A run begins: it is in the record as RUNNING under the number that comes back, one above all before.

        Raises OutputError where it cannot be written.
        """
        with self._changing():
            number = max(self._highest(), self._highest_folder()) + 1
            self._put(replace(outcome, number=number, status=Status.RUNNING))
        return number

    def finish(self, outcome: RunOutcome) -> RunOutcome:
        """A run ended: all of it goes into the record, as which it comes back.

        One that began before the run before it did gets a note that the clock was set back. Raises InputError for a
        run that did not begin, OutputError where it cannot be written: it then still stands as RUNNING.
        """
        with self._changing():
            if outcome.number not in self._numbers("status = ?", Status.RUNNING):
                raise InputError(f"run {outcome.number}: expected a run that is on, of {self.file}.")
            note = self._clock_note(outcome)
            recorded = replace(outcome, notes=(*outcome.notes, *note))
            self._put(recorded)
        return recorded

    def add_notes(self, number: int, notes: Sequence[str]) -> None:
        """What there was to say of a run after it was on record. Raises OutputError where it cannot be written."""
        with self._changing():
            outcome = self._load(number)
            self._put(replace(outcome, notes=(*outcome.notes, *notes)))

    def mark_killed(self) -> list[int]:
        """What stands as RUNNING becomes KILLED; the numbers of these. Who asks has the lock, so that none is on."""
        with self._changing():
            found = self._numbers("status = ?", Status.RUNNING)
            for number in found:
                outcome = self._load(number)
                self._put(replace(outcome, status=Status.KILLED, notes=(*outcome.notes, KILLED_NOTE)))
        return found

    def remove(self, numbers: Sequence[int], when: datetime) -> None:
        """Remove all of some runs but that they were: number, status, times, rows, and which configuration."""
        with self._changing():
            for number in numbers:
                self._insert(self._rows(number).removed(time_text(when)))
            self._connection.execute(FORGET_FILES)

    def numbers(self) -> list[int]:
        """Numbers of all runs that are there, in order, but for those that retention removed."""
        with self.snapshot():
            return self._numbers("removed IS NULL")

    def runs(self) -> list[RunOutcome]:
        """All runs that are there, in order, but for those that retention removed."""
        with self.snapshot():
            return [self._load(number) for number in self._numbers("removed IS NULL")]

    def run(self, number: int) -> RunOutcome:
        """A run. Raises InputError for one that never was or was removed, TableReadError for one that is damaged."""
        with self.snapshot():
            return self._load(number)

    def last_good(self, before: int | None = None) -> RunOutcome | None:
        """The last run of which all gates hold, before a run or of all; None where there is none."""
        with self.snapshot():
            found = self._good(before)
            return None if found is None else self._load(found)

    def last_measured(self) -> RunOutcome | None:
        """The last run that came to its gates, whether they hold or not; None where there is none."""
        ended = (Status.PASSED, Status.FAILED)
        with self.snapshot():
            found = self._numbers("removed IS NULL AND status IN (?, ?)", *ended)
            return self._load(found[-1]) if found else None

    def heads(self) -> list[dict[str, Any]]:
        """Of all runs in order what `RUN_COLUMNS` name, those that were removed too; documents are texts of JSON."""
        with self.snapshot():
            rows = self._connection.execute(f"SELECT {', '.join(RUN_COLUMNS)} FROM runs ORDER BY number").fetchall()
            return [dict(zip(RUN_COLUMNS, map(from_text, row), strict=True)) for row in rows]

    def rows(self) -> Iterator[RunRows]:
        """Yield the rows of all runs in order, also of runs that were removed.

        Raises TableReadError at a run that is not as it was recorded.
        """
        with self.snapshot():
            yield from map(self._rows, self._numbers("1"))

    def check_table(self, identity: str) -> None:
        """Raise InputError where the runs that are on record, as far as they had results, are of another table."""
        with self.snapshot():
            ended = (Status.PASSED, Status.FAILED)
            found = self._connection.execute(
                "SELECT identity FROM runs WHERE status IN (?, ?) ORDER BY number DESC LIMIT 1", ended
            ).fetchone()
        if found is not None and found[0] != identity:
            raise InputError(
                f"run.state: {self.folder} is the state of another table: expected {found[0]}, got {identity}. Name "
                "another folder for this one."
            )

    def problems(self) -> list[str]:
        """What is damaged, one sentence each: all of the file is read, and of each run whether it is as recorded."""
        with self.snapshot():
            found = self._connection.execute("PRAGMA integrity_check").fetchall()
            several = [f"{self.file}: SQLite finds it damaged: {text}." for (text,) in found if text != "ok"]
            for number in [] if several else self._numbers("1"):
                try:
                    self._rows(number)
                except TableReadError as error:
                    several.append(str(error))
            return several

    def gaps(self) -> list[str]:
        """Runs that there were and that are not there, without what retention leaves of a run; one sentence each."""
        with self.snapshot():
            there = [0, *self._numbers("1"), self._highest() + 1]
        return [
            f"{self.file}: {_runs(before + 1, after - 1)} not there: deleted, or lost when the record was damaged. "
            "Keep a copy of the record that has it, or one that was put aside (record.damaged-*.sqlite)."
            for before, after in pairwise(there)
            if after > before + 1
        ]

    # What follows takes place within a transaction.

    def _highest(self) -> int:
        """The highest number that a run ever had; 0 where there was none."""
        found = self._connection.execute(HIGHEST_NUMBER).fetchone()
        known = 0 if found is None else found[0]
        if not isinstance(known, int):
            raise TableReadError(f"{self.file}: the record is damaged: it does not say how many runs there were.")
        (last,) = self._connection.execute("SELECT max(number) FROM runs").fetchone()
        return max(known, last or 0)

    def _numbers(self, condition: str, *values: str) -> list[int]:
        query = f"SELECT number FROM runs WHERE {condition} ORDER BY number"
        return [number for (number,) in self._connection.execute(query, values)]

    def _good(self, before: int | None = None) -> int | None:
        found = self._connection.execute(
            "SELECT max(number) FROM runs WHERE status = ? AND removed IS NULL AND number < ifnull(?, 1 << 62)",
            (Status.PASSED, before),
        ).fetchone()
        return None if found is None else found[0]

    def _load(self, number: int) -> RunOutcome:
        rows = self._rows(number)
        if rows.run["removed"] is not None:
            raise InputError(f"run {number}: was removed on {rows.run['removed']}, as keep.runs and keep.days have it.")
        return from_rows(rows)

    def _rows(self, number: int) -> RunRows:
        """The rows of a run; raises as `run`, but for one that was removed."""
        names = [*RUN_COLUMNS, "digest"]
        found = self._connection.execute(f"SELECT {', '.join(names)} FROM runs WHERE number = ?", (number,)).fetchone()
        if found is None:
            raise InputError(f"run {number}: there is none on record in {self.file}.{self._there_are()}")
        run = dict(zip(names, found, strict=True))
        parts = {
            table: self._connection.execute(
                f"SELECT {', '.join(columns)} FROM {table} WHERE run = ? ORDER BY place", (number,)
            ).fetchall()
            for table, columns in PART_COLUMNS.items()
        }
        rows = RunRows(run, parts)
        if rows.digest != run["digest"]:
            raise TableReadError(f"{self.file}: run {number} is not as it was recorded: the file is damaged.")
        return rows

    def _there_are(self) -> str:
        several = self._numbers("removed IS NULL")
        return f" There are {several[0]} to {several[-1]}." if several else " There is none yet."

    def _put(self, outcome: RunOutcome) -> None:
        self._insert(to_rows(outcome))

    def _insert(self, rows: RunRows) -> None:
        _insert(self._connection, rows)

    def _clock_note(self, outcome: RunOutcome) -> list[str]:
        query = "SELECT number, started FROM runs WHERE number < ? ORDER BY number DESC LIMIT 1"
        found = self._connection.execute(query, (outcome.number,)).fetchone()
        # One that is damaged is no reason for this run to fail.
        before, began = None if found is None else time_of(found[1]), time_of(outcome.started)
        if before is None or began is None or began >= before:
            return []
        return [f"The clock was set back: this run began at {outcome.started}, run {found[0]} before it at {found[1]}."]

    def _highest_folder(self) -> int:
        """Of runs whose scores are kept: they may be of a record that was lost."""
        from .kept import kept_numbers

        return max(kept_numbers(self.folder), default=0)

    def _is_whole(self) -> bool:
        """Whether SQLite finds nothing wrong, the file is a record, and all runs in it are as they were recorded.

        Raises InputError and OutputError as `open`.
        """
        try:
            _prepare(self._connection, self.file)
            with _said(self.file, "written"):
                if self._connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                    return False
                if _has_tables(self._connection):
                    _check_version(self._connection, self.file)
                    self._highest()
                    for number in self._numbers("1"):
                        self._rows(number)
                return True
        except TableReadError:
            return False

    def _salvage(self, highest: int) -> tuple[list[RunRows], int]:
        """The rows of the runs that are whole, up to the highest number, and how many are known not to be."""
        whole, lost = [], 0
        # One by one: a walk over all ends at the first page that is damaged.
        for number in range(1, highest + 1):
            try:
                with _said(self.file, "read"):
                    whole.append(self._rows(number))
            except TableReadError:
                lost += 1
            except InputError:
                # There never was such a run.
                continue
        return whole, lost

    def _highest_found(self) -> int:
        """The highest number of a run that can be found in a damaged record; 0 where none can."""
        highest = 0
        for order in ("ASC", "DESC"):
            with contextlib.suppress(TableReadError, ValueError, TypeError), _said(self.file, "read"):
                for (number,) in self._connection.execute(f"SELECT number FROM runs ORDER BY number {order}"):
                    highest = max(highest, number)
        return highest

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        with _said(self.file, "written"), _transaction(self._connection):
            yield


def _insert(connection: sqlite3.Connection, rows: RunRows) -> None:
    """Put the rows of a run in place of those that it has."""
    number = rows.run["number"]
    for table, columns in PART_COLUMNS.items():
        connection.execute(f"DELETE FROM {table} WHERE run = ?", (number,))
        marks = ", ".join("?" * (len(columns) + 2))
        connection.executemany(
            f"INSERT INTO {table} (run, place, {', '.join(columns)}) VALUES ({marks})",
            [(number, place, *row) for place, row in enumerate(rows.parts[table])],
        )
    values = [*(rows.run[name] for name in RUN_COLUMNS), rows.digest]
    connection.execute(f"INSERT OR REPLACE INTO runs VALUES ({', '.join('?' * len(values))})", values)


def _runs(first: int, last: int) -> str:
    return f"run {first} is" if first == last else f"runs {first} to {last} are"


def _no_runs(folder: Path) -> InputError:
    return InputError(f"{folder}: no run is on record there. `gpupif nightly run` makes the first.")


def _connect(file: Path, mode: str) -> sqlite3.Connection:
    # Transactions are begun and ended here alone.
    uri = f"file:{quote(os.fsencode(file.absolute()))}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=WAIT_SECONDS, isolation_level=None)


def _journal(file: Path) -> Path:
    return file.with_name(file.name + JOURNAL)


def _prepare(connection: sqlite3.Connection, file: Path) -> None:
    """Have a connection bring to the disk what is committed, and overwrite what is removed."""
    with _said(file, "written"):
        for pragma in ("journal_mode = DELETE", "synchronous = EXTRA", "secure_delete = ON", "temp_store = MEMORY"):
            connection.execute(f"PRAGMA {pragma}")


def _reading(file: Path) -> sqlite3.Connection:
    """A connection that reads; what a run that was killed left half done is taken back first."""
    try:
        return _looked_at(file, "ro")
    except sqlite3.OperationalError as error:
        if not _name_of(error).startswith("SQLITE_READONLY"):
            raise
    try:
        connection = _looked_at(file, "rw")
    except sqlite3.OperationalError as error:
        raise TableReadError(
            f"{file}: a run was killed while it wrote the record. The next run mends that, or whoever may write the "
            "file and its folder, by reading it."
        ) from error
    connection.execute("PRAGMA query_only = ON")
    return connection


def _looked_at(file: Path, mode: str) -> sqlite3.Connection:
    """A connection to a file that SQLite can read."""
    connection = _connect(file, mode)
    try:
        connection.execute("SELECT * FROM sqlite_schema LIMIT 1").fetchall()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _has_tables(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0])


def _make_tables(connection: sqlite3.Connection, file: Path) -> None:
    """Make a record of an empty file; of one that is a record, nothing."""
    with _said(file, "written"), _transaction(connection):
        if _has_tables(connection):
            return
        for statement in _statements(SCHEMA):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")


def _statements(script: str) -> Iterator[str]:
    """The statements of a script, one by one: all at once they would not be one transaction."""
    waiting = ""
    for line in script.splitlines():
        waiting += f"{line}\n"
        if sqlite3.complete_statement(waiting):
            yield waiting
            waiting = ""


def _check_version(connection: sqlite3.Connection, file: Path) -> None:
    """Raise InputError for another database, or a record of a newer version."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        if {"runs", *PART_COLUMNS} - {*VIEWS} <= names:
            raise TableReadError(f"{file}: the record is damaged: its head is not as gpupif wrote it.")
        raise InputError(
            f"{file}: is no record of nightly runs, but another database. Name another folder with run.state."
        )
    if version != VERSION:
        raise InputError(
            f"{file}: expected a record of version {VERSION}, got one of version {version}, which another version of "
            "gpupif wrote. Use that, or name another folder with run.state."
        )


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """All or nothing of what is done within; signals to end wait for that, or one could leave it open."""
    if connection.in_transaction:
        raise RuntimeError("a transaction of the record within another one")
    with held_back():
        connection.execute(begin)
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            raise


def _name_of(error: sqlite3.Error) -> str:
    """What SQLite calls an error; no text for one of Python's, of text that is none."""
    return getattr(error, "sqlite_errorname", "")


# By what the names of SQLite's errors begin with, what they come of and how to mend that.
_CAUSES: Mapping[str, str] = {
    "SQLITE_FULL": "the disk is full. Free some space, or choose another place with run.state",
    "SQLITE_READONLY": "it may be read, but not written. Check the rights of the file and its folder",
    "SQLITE_CANTOPEN": "it cannot be opened. Check the rights of the file and its folder",
    "SQLITE_PERM": "it cannot be opened. Check the rights of the file and its folder",
    "SQLITE_BUSY": "another program has had it locked for long. Close that, and try again",
    "SQLITE_LOCKED": "another program has had it locked for long. Close that, and try again",
}
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_SCHEMA")


@contextlib.contextmanager
def _said(file: Path, what: str) -> Iterator[None]:
    """Say in one line what SQLite could not do: TableReadError of what is damaged or cannot be read, else OutputError.

    what: "read" or "written".
    """
    try:
        yield
    except sqlite3.Error as error:
        name = _name_of(error)
        # What the tables lack, or have too much of, is damage too.
        if name.startswith(_DAMAGED) or name in ("SQLITE_ERROR", "") or isinstance(error, sqlite3.IntegrityError):
            raise TableReadError(
                f"{file}: the record is damaged ({reason_of(error)}). The next run puts it aside, and goes on with "
                "what is whole."
            ) from error
        cause = next((words for start, words in _CAUSES.items() if name.startswith(start)), reason_of(error))
        kind = OutputError if what == "written" else TableReadError
        raise kind(f"{file}: the record could not be {what}: {cause}.") from error
