"""The record of all runs of a state folder: a SQLite file, which one run writes while anybody reads it.

Each run is one JSON document, see `run_documents`; views show the documents as rows. The journal is one that is rolled
back, not a write-ahead log: a reader needs no more than to read one file, also on a disk or in a folder where nothing
can be written, and what is committed is in that file alone.
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
from ...utils.private_folder import sync_folder
from ...utils.signals import held_back
from ..exit_codes import ENDED, Status
from ..run_outcome import RunOutcome
from . import version_1
from .run_documents import SCHEMA, RunDocument
from .state_folder import create_file, state_errors, state_folder

RECORD, JOURNAL = "record.sqlite", "-journal"
# A new record is built in this file, which is renamed once the damaged record is out of the way.
NEW = "record.new.sqlite"
# "pifn", and the version of the tables: in the head of the file, where SQLite and file(1) look for them.
APPLICATION, VERSION = 0x7069666E, 2
# Seconds to wait for other processes that read or write.
WAIT_SECONDS = 30.0
KILLED_NOTE = "The run was killed, or the machine went down: it never said how it ended."


def utc_now() -> datetime:
    """Return the time, in UTC."""
    return datetime.now(UTC)


def time_text(time: datetime) -> str:
    """Return a time as the record holds it."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds")


def time_of(text: Any) -> datetime | None:
    """Return a time of the record; None if the text is no time, as in a damaged record."""
    try:
        time = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


class Record:
    """The record of a state folder; a context manager.

    A change is written whole or not at all, also if the process is killed. Numbers order runs, never times: the clock
    may have been set back. notes: one sentence for each thing that opening the record found.
    """

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self.folder = folder
        self.file = folder / RECORD
        self.notes: list[str] = []
        self._connection = connection

    @classmethod
    def open(cls, folder: Path, table: str | None = None) -> Self:
        """Open the record of a state folder.

        table: the identity of its table, for a run that holds the lock and will write. A missing record is created, a
        record of version 1 gets the tables of today, and a damaged record is put aside: a new record takes over all
        runs in it that are whole. None: the record can only be read, also while a run writes.

        Raises InputError if there is no record to read, or one of a newer version, or another database, or a record of
        another table, which stays as it is; TableReadError if it is damaged or cannot be read; OutputError if it cannot
        be written.
        """
        if table is not None:
            state_folder(folder)
            return cls._open_to_write(folder, table)
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
                if not _tables(record._connection):
                    raise _no_runs(folder)
                _check_version(record._connection, file)
        except BaseException:
            record.close()
            raise
        return record

    @classmethod
    def _open_to_write(cls, folder: Path, table: str) -> Self:
        file, new = folder / RECORD, folder / NEW
        if new.exists() and not file.exists():
            with state_errors(file):
                new.replace(file)
        create_file(file)
        record = cls(folder, _connect(file, "rw"))
        try:
            if record._is_whole():
                record._make_tables(table)
                return record
            return cls._anew(record, table)
        except BaseException:
            record.close()
            raise

    @classmethod
    def _anew(cls, damaged: Record, table: str) -> Self:
        """Put a damaged record aside, and begin a new one with the runs in it that are whole.

        Raises InputError if these runs are of another table.
        """
        highest = damaged._highest_found()
        whole, lost = damaged._salvage(highest)
        damaged._check_table(table, whole)
        damaged.close()
        folder, file, new = damaged.folder, damaged.file, damaged.folder / NEW
        with state_errors(new):
            for left in (new, _journal(new)):
                left.unlink(missing_ok=True)
        create_file(new)
        with contextlib.closing(_connect(new, "rw")) as connection, _said(new, "written"), _transaction(connection):
            _create(connection, whole, highest)
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
        """Have all reads within see one state of the record, while another process writes the next."""
        with contextlib.ExitStack() as closing:
            if not self._connection.in_transaction:
                closing.enter_context(_said(self.file, "read"))
                closing.enter_context(_transaction(self._connection, "BEGIN"))
            yield

    def begin(self, outcome: RunOutcome, above: int = 0) -> int:
        """Put a run that begins into the record as RUNNING, and return its number, the lowest above all before.

        above: the number has to be above this one too. Raises OutputError if the record cannot be written.
        """
        with self._changing():
            number = max(self._highest(), above) + 1
            self._put(replace(outcome, number=number, status=Status.RUNNING))
        return number

    def finish(self, outcome: RunOutcome) -> RunOutcome:
        """Put a run that ended into the record, and return it as recorded.

        A run that began before the run before it gets a note that the clock was set back. Raises InputError for a run
        that did not begin; OutputError if the record cannot be written: the run then stays RUNNING in it.
        """
        with self._changing():
            if outcome.number not in self._numbers("status = ?", Status.RUNNING):
                raise InputError(f"run {outcome.number}: expected a run that is on, of {self.file}.")
            query = "SELECT number, started FROM runs WHERE number < ? ORDER BY number DESC LIMIT 1"
            number, started = self._connection.execute(query, (outcome.number,)).fetchone() or (0, None)
            # A damaged time of the run before is no reason for this run to fail.
            before, began = time_of(started), time_of(outcome.started)
            if before is not None and began is not None and began < before:
                note = f"this run began at {outcome.started}, run {number} before it at {started}."
                outcome = replace(outcome, notes=(*outcome.notes, f"The clock was set back: {note}"))
            self._put(outcome)
        return outcome

    def add_notes(self, number: int, notes: Sequence[str]) -> None:
        """Add notes to a run that is on record. Raises OutputError if the record cannot be written."""
        with self._changing():
            outcome = self._outcome(number)
            self._put(replace(outcome, notes=(*outcome.notes, *notes)))

    def mark_killed(self) -> list[int]:
        """Turn all RUNNING runs into KILLED ones, and return their numbers. The caller has the lock: none is on."""
        with self._changing():
            numbers = self._numbers("status = ?", Status.RUNNING)
            for number in numbers:
                outcome = self._outcome(number)
                self._put(replace(outcome, status=Status.KILLED, notes=(*outcome.notes, KILLED_NOTE)))
        return numbers

    def remove(self, numbers: Sequence[int], when: datetime) -> None:
        """Remove runs, except the facts that say there was such a run: see `run_documents.STAYING`."""
        with self._changing():
            for number in numbers:
                _insert(self._connection, self._document(number).removed(time_text(when)))
            self._connection.execute("DELETE FROM file_versions WHERE version NOT IN (SELECT version FROM run_files)")

    def runs(self) -> list[RunOutcome]:
        """Return all runs in order, except those that retention removed."""
        with self.snapshot():
            return [self._outcome(number) for number in self._numbers("removed IS NULL")]

    def run(self, number: int) -> RunOutcome:
        """Return a run. Raises InputError if there is none or it was removed, TableReadError if it is damaged."""
        with self.snapshot():
            return self._outcome(number)

    def last_good(self, before: int | None = None) -> RunOutcome | None:
        """Return the last run with gates that all hold, of all runs or of those before one; None if there is none."""
        return self._last("status = ? AND number < ifnull(?, 1 << 62)", Status.PASSED, before)

    def last_measured(self) -> RunOutcome | None:
        """Return the last run that came to its gates, whether they hold or not; None if there is none."""
        return self._last("status IN (?, ?)", *ENDED)

    def heads(self) -> list[dict[str, Any]]:
        """Return what the record searches by of all runs in order, also of removed ones.

        Each has the keys number, status, started, removed (a time or None), kept_path (None without kept scores).
        """
        names = ("number", "status", "started", "removed", "kept_path")
        with self.snapshot():
            rows = self._connection.execute(f"SELECT {', '.join(names)} FROM runs ORDER BY number").fetchall()
        return [dict(zip(names, row, strict=True)) for row in rows]

    def documents(self) -> Iterator[RunDocument]:
        """Yield the documents of all runs in order, also of removed ones. Raises TableReadError for a damaged one."""
        with self.snapshot():
            yield from map(self._document, self._numbers("1"))

    def problems(self) -> list[str]:
        """Read all of the file, and return a sentence for each damage and each run that is not as recorded."""
        with self.snapshot():
            found = self._connection.execute("PRAGMA integrity_check").fetchall()
            problems = [f"{self.file}: SQLite finds it damaged: {text}." for (text,) in found if text != "ok"]
            for number in [] if problems else self._numbers("1"):
                try:
                    self._document(number)
                except TableReadError as error:
                    problems.append(str(error))
            return problems

    def gaps(self) -> list[str]:
        """Return a sentence for each series of runs that began once and are not in the record, not even as removed."""
        with self.snapshot():
            there = [0, *self._numbers("1"), self._highest() + 1]
        lost = [(before + 1, after - 1) for before, after in pairwise(there) if after > before + 1]
        return [
            f"{self.file}: {f'run {first} is' if first == last else f'runs {first} to {last} are'} not there: deleted, "
            "or lost when the record was damaged. Keep a copy of the record that has it, or one that was put aside "
            "(record.damaged-*.sqlite)."
            for first, last in lost
        ]

    # The methods below are called within a transaction.

    def _highest(self) -> int:
        """Return the highest number that a run ever had; 0 if there was none."""
        (known,) = self._connection.execute("SELECT ifnull(max(seq), 0) FROM sqlite_sequence").fetchone()
        if not isinstance(known, int):
            raise TableReadError(f"{self.file}: the record is damaged: it does not say how many runs there were.")
        (last,) = self._connection.execute("SELECT max(number) FROM runs").fetchone()
        return max(known, last or 0)

    def _numbers(self, condition: str, *values: Any) -> list[int]:
        query = f"SELECT number FROM runs WHERE {condition} ORDER BY number"
        return [number for (number,) in self._connection.execute(query, values)]

    def _last(self, condition: str, *values: Any) -> RunOutcome | None:
        """Return the last run under a condition that was not removed; None if there is none."""
        with self.snapshot():
            numbers = self._numbers(f"removed IS NULL AND {condition}", *values)
            return self._outcome(numbers[-1]) if numbers else None

    def _outcome(self, number: int) -> RunOutcome:
        """Return a run. Raises as `run`."""
        document = self._document(number)
        if "removed" in document.facts:
            raise InputError(
                f"run {number}: was removed on {document.facts['removed']}, as keep.runs and keep.days have it."
            )
        return document.outcome()

    def _document(self, number: int) -> RunDocument:
        """Return the document of a run. Raises as `run`, except for a removed one."""
        try:
            read = _read_document if "documents" in _tables(self._connection) else version_1.read_document
            found = read(self._connection, number)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._damaged(number) from error
        if found is None:
            numbers = self._numbers("removed IS NULL")
            there = f"There are {numbers[0]} to {numbers[-1]}." if numbers else "There is none yet."
            raise InputError(f"run {number}: there is none on record in {self.file}. {there}")
        document, is_whole = found
        if not is_whole:
            raise self._damaged(number)
        return document

    def _damaged(self, number: int) -> TableReadError:
        return TableReadError(f"{self.file}: run {number} is not as it was recorded: the file is damaged.")

    def _put(self, outcome: RunOutcome) -> None:
        _insert(self._connection, RunDocument.from_outcome(outcome))

    def _is_whole(self) -> bool:
        """Return whether SQLite finds nothing wrong, the file is a record, and all runs in it are as recorded.

        Raises InputError and OutputError as `open`.
        """
        try:
            _prepare(self._connection, self.file)
            with _said(self.file, "written"):
                if self._connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                    return False
                if _tables(self._connection):
                    _check_version(self._connection, self.file)
                    self._highest()
                    for number in self._numbers("1"):
                        self._document(number)
                return True
        except TableReadError:
            return False

    def _make_tables(self, table: str) -> None:
        """Make a record of an empty file, and give a record of version 1 the tables of today.

        Raises InputError if the record is of another table.
        """
        with self._changing():
            tables = _tables(self._connection)
            if not tables:
                _create(self._connection)
                return
            self._check_table(table, [*map(self._document, self._numbers("status IN (?, ?)", *ENDED)[-1:])])
            if "documents" not in tables:
                documents, highest = [*map(self._document, self._numbers("1"))], self._highest()
                for statement in version_1.CLEAR:
                    self._connection.execute(statement)
                _create(self._connection, documents, highest)

    def _check_table(self, table: str, documents: Sequence[RunDocument]) -> None:
        """Raise InputError if the last run that came to results is of another table. documents: the runs, in order."""
        known = [document.facts["table"] for document in documents if document.facts["status"] in ENDED]
        if known and known[-1] != table:
            raise InputError(
                f"run.state: {self.folder} is the state of another table: expected {known[-1]}, got {table}. Name "
                "another folder for this one."
            )

    def _salvage(self, highest: int) -> tuple[list[RunDocument], int]:
        """Return the runs that are whole, up to the highest number, and how many are known to be damaged."""
        whole, lost = [], 0
        # Runs are read one by one: a query for all of them ends at the first damaged page.
        for number in range(1, highest + 1):
            try:
                with _said(self.file, "read"):
                    whole.append(self._document(number))
            except TableReadError:
                lost += 1
            except InputError:
                # There never was such a run.
                continue
        return whole, lost

    def _highest_found(self) -> int:
        """Return the highest number of a run that can be found in a damaged record; 0 if none can."""
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


def _create(connection: sqlite3.Connection, documents: Sequence[RunDocument] = (), highest: int = 0) -> None:
    """Make the tables and views of a record, with runs in it. highest: the highest number that a run ever had."""
    for statement in SCHEMA:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    for document in documents:
        _insert(connection, document)
    connection.execute("DELETE FROM sqlite_sequence")
    connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('documents', ?)", (highest,))


def _insert(connection: sqlite3.Connection, document: RunDocument) -> None:
    """Put the document of a run in place of the one that the run has."""
    number = document.facts["number"]
    connection.execute("DELETE FROM run_files WHERE run = ?", (number,))
    connection.executemany(
        "INSERT OR IGNORE INTO file_versions (file) VALUES (?)", [(file,) for file in document.files]
    )
    connection.executemany(
        "INSERT INTO run_files SELECT ?, ?, version FROM file_versions WHERE file = ?",
        [(number, place, file) for place, file in enumerate(document.files)],
    )
    connection.execute(
        "INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?, ?, ?, ?)", (*document.row, document.digest)
    )


def _read_document(connection: sqlite3.Connection, number: int) -> tuple[RunDocument, bool] | None:
    """Return a run, and whether it is as it was recorded; None if it is not there. Raises ValueError for no JSON."""
    found = connection.execute("SELECT * FROM documents WHERE number = ?", (number,)).fetchone()
    if found is None:
        return None
    query = "SELECT file FROM run_files JOIN file_versions USING (version) WHERE run = ? ORDER BY place"
    document = RunDocument.from_texts(found[-2], [file for (file,) in connection.execute(query, (number,))])
    return document, (*document.row, document.digest) == found


def _no_runs(folder: Path) -> InputError:
    return InputError(f"{folder}: no run is on record there. `gpupif nightly run` makes the first.")


def _connect(file: Path, mode: str) -> sqlite3.Connection:
    # Transactions are begun and ended by `_transaction` alone.
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
    """Return a connection that reads. A transaction that a killed run left half written is taken back first."""
    try:
        return _looked_at(file, "ro")
    except sqlite3.OperationalError as error:
        if not error.sqlite_errorname.startswith("SQLITE_READONLY"):
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
    """Return a connection to a file that SQLite can read."""
    connection = _connect(file, mode)
    try:
        connection.execute("SELECT * FROM sqlite_schema LIMIT 1").fetchall()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}


def _check_version(connection: sqlite3.Connection, file: Path) -> None:
    """Raise InputError for another database, or a record of a newer version."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        if {"file_versions", "run_files"} <= _tables(connection):
            raise TableReadError(f"{file}: the record is damaged: its head is not as gpupif wrote it.")
        raise InputError(
            f"{file}: is no record of nightly runs, but another database. Name another folder with run.state."
        )
    if version not in (1, VERSION):
        raise InputError(
            f"{file}: expected a record of version {VERSION}, got one of version {version}, which another version of "
            "gpupif wrote. Use that, or name another folder with run.state."
        )


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """Have all or nothing done of what is done within; signals wait for its end, or one could leave it open."""
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


# The cause of an error and how to mend it, by the beginning of SQLite's name of the error.
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
    """Turn errors of SQLite into one line: TableReadError if the file is damaged or cannot be read, else OutputError.

    what: "read" or "written".
    """
    try:
        yield
    except sqlite3.Error as error:
        # An error of Python's own, such as for text that is no UTF-8, has no name.
        name = getattr(error, "sqlite_errorname", "")
        # Missing tables, and rows that break a constraint, are damage too.
        if name.startswith(_DAMAGED) or name in ("SQLITE_ERROR", "") or isinstance(error, sqlite3.IntegrityError):
            raise TableReadError(
                f"{file}: the record is damaged ({reason_of(error)}). The next run puts it aside, and goes on with "
                "what is whole."
            ) from error
        cause = next((words for start, words in _CAUSES.items() if name.startswith(start)), reason_of(error))
        kind = OutputError if what == "written" else TableReadError
        raise kind(f"{file}: the record could not be {what}: {cause}.") from error
