"""A nightly run, from its configuration to its outcome: read what changed, measure, judge, keep, report."""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .._version import __version__
from ..errors import DatabaseUnavailableError, GpupifError, InputError, OutputError, TableReadError, UnmetError
from ..treatment.treated_check import has_criteria
from ..utils.config import config as resources_of
from ..utils.display import plural
from ..utils.private_folder import followed, private_folder
from ..utils.progress import Reporter
from ..utils.signals import held_back
from . import event_log
from .configuration.config import Config, loaded
from .configuration.error_keys import error_text
from .configuration.run_files import check_files, paths_of
from .configuration.settings import WRITTEN
from .exit_codes import ENDED, RELEASE_FAILED, Status
from .gates.findings import Findings, measure_table, measure_treated
from .gates.gates import Gate, evaluate, questions_of, resolve_gates, values_before
from .record.kept_scores import SCORE_FILE, KeptFolder, remove_expired, seal, tidy
from .record.record import RECORD, Record, time_text, utc_now
from .record.row_keys import READ_ROWS
from .record.state_folder import run_lock, state_errors, state_folder
from .release import FAILED, HELD_BACK, PUBLISHED, UNMET, NightlyRelease
from .report.notify import notify
from .report.run_text import gates_held, release_sentence
from .run_outcome import KeptScores, RunOutcome, why
from .table.kept_table import PARTS, KeptTable, opened_table, table_identity
from .table.table_changes import SchemaChange, input_changes

# Errors of the configuration or the table; all others, and a database that cannot be reached, are of the machine.
REFUSED_FOR = (InputError, TableReadError)
LIBRARIES = ("numpy", "numba", "pandas", "pyarrow")
# The folder of temporary files, in the state folder.
TEMPORARY = "temporary"


def run(config: str | os.PathLike[str] | Config, *, overrides: Sequence[str] = ()) -> RunOutcome:
    """Recompute the risk of the table that a configuration names, judge it by its gates, and put it on record.

    Only files that changed since the last run are read; the result is that of a full run, to the last bit. A run that
    is killed leaves the state of the last one, and the next goes on from there. Files and webhooks of ``tell`` are
    told; what happens meanwhile goes to the logger "gpupif.nightly".

    Parameters
    ----------
    config:
        The file of the configuration (`gpupif.nightly.init` writes one), or what `load_config` made of it.
    overrides:
        Settings in place of the file's: ``["run.device=cpu"]``, see `load_config`; with a file only.

    Returns
    -------
    RunOutcome
        Also where a gate failed, where the table was refused (bad input, a file or database that cannot be read), and
        where the machine failed (a full disk, no such device, no memory): see ``status``, ``exit_code``, ``gates``,
        ``error``. Prints as tables; ``.to_dict()``, ``.to_json()``.

    Raises
    ------
    InputError
        A configuration that cannot be read or is wrong, a state folder of another table, in the folder of the table, or
        that another user owns or can write to: no run is on record then.
    OutputError
        A state folder that cannot be written to.
    AnotherRunError
        Another run on the same state is on.

    Examples
    --------
    >>> import pathlib, tempfile, gpupif
    >>> folder = tempfile.TemporaryDirectory()
    >>> gpupif.datasets.census(1000).to_parquet(f"{folder.name}/people.parquet")
    >>> file = pathlib.Path(folder.name, "risk.toml")
    >>> _ = file.write_text('gates = [{ kind = "rows", min = 900 }, { kind = "pif", percentile = 95, max = 1 }]')
    >>> outcome = gpupif.nightly.run(file, overrides=["input.path=people.parquet", "run.device=cpu"])
    >>> outcome.exit_code, [f"{gate.name}: {gate.verdict}" for gate in outcome.gates]
    (3, ['rows: passed', 'PIF 95: failed'])
    >>> folder.cleanup()

    """
    outcome, _ = run_and_compare(loaded(config, overrides))
    return outcome


def run_and_compare(
    config: Config, on_record: Callable[[RunOutcome], None] = lambda _: None, report: Path | None = None
) -> tuple[RunOutcome, RunOutcome | None]:
    """Run as `run` does, and return the outcome, and the outcome of the last good run before it.

    on_record: called with the outcome as soon as it is in the record; no signal comes between the two. report: see
    `check_files`.
    """
    with _blamed(config):
        gates = resolve_gates(config.settings)
    wanted = config.settings.run
    named = config.resolve(wanted.state)
    with state_errors(named), _blamed(config, "run.state: "):
        state = followed(named)
    with _blamed(config):
        check_files(config, report)
        _check_places(config, state)
        release = NightlyRelease.from_config(config)
    with state_errors(named), _blamed(config, "run.state: "):
        private_folder(state)
    with run_lock(state), Record.open(state, table_identity(config)) as record:
        temp = state_folder(state / TEMPORARY) if wanted.temp is None else config.resolve(wanted.temp)
        limits = {"memory_limit": wanted.memory_limit, "threads": wanted.threads}
        given: dict[str, Any] = {name: limit for name, limit in limits.items() if limit is not None}
        with _blamed(config, "run."):
            resources = resources_of(device=wanted.device, temp=temp, **given)
        with resources:
            before = record.last_good()
            return _Run(config, gates, state, record, release).outcome(before, on_record), before


@contextlib.contextmanager
def _blamed(config: Config, section: str = "") -> Iterator[None]:
    """Have errors in the configuration name its file, and the section before the key."""
    try:
        yield
    except (InputError, OutputError) as error:
        raise InputError(f"{config.file}: {section}{config.redact.error(error)}") from None


def _check_places(config: Config, state: Path) -> None:
    """Raise InputError if files that a run writes would be read as parts of the table on the next night."""
    table = config.table
    kept = (state / RECORD, KeptFolder(state, 1).final / SCORE_FILE)
    is_found = table is not None and any(_matches(file, table) for file in kept)
    if is_found or (table is not None and table.is_dir() and _is_within(state, table)):
        raise InputError(f"run.state: {state} lies in the folder of the table, {table}. Name a folder elsewhere.")
    for key, path in paths_of(config.settings.model_dump(), WRITTEN):
        if table is not None and _matches(config.resolve(path), table):
            raise InputError(f"{key}: {path} would be of the table, {table}. Name another file.")


def _matches(file: Path, pattern: Path) -> bool:
    # Without **, a star matches no slash.
    return fnmatch(str(file), str(pattern)) if "**" in pattern.parts else file.match(str(pattern))


def _is_within(place: Path, folder: Path) -> bool:
    return place.resolve().is_relative_to(folder.resolve())


class _Run:
    """A run, while the lock is held and the record is open.

    closing: closes the table when the run is on record. facts: the fields of the outcome that are known so far.
    """

    def __init__(
        self, config: Config, gates: Sequence[Gate], state: Path, record: Record, release: NightlyRelease | None
    ) -> None:
        self.config, self.settings, self.redact = config, config.settings, config.redact
        self.gates = gates
        self.state = state
        self.record = record
        self.release = release
        self.notes = list(record.notes)
        self.closing = contextlib.ExitStack()
        self.table: KeptTable | None = None
        self.types: dict[str, str] = {}
        self.facts: dict[str, Any] = {}
        self.seconds: dict[str, float] = {}

    def outcome(self, before: RunOutcome | None, on_record: Callable[[RunOutcome], None]) -> RunOutcome:
        """Run, put the outcome on record, report it, and return it.

        before: the last good run. on_record: see `run_and_compare`.
        """
        record, identity = self.record, table_identity(self.config)
        if not record.heads() and (self.state / PARTS).exists():
            lost = f"{record.file}: has no run, while the state is of some: it was removed or emptied. No gate can tell"
            self.notes.append(f"{lost} what changed.")
        killed = record.mark_killed()
        self.notes += [f"Run {number} was killed; this one goes on from the last good state." for number in killed]
        tidy(record)
        begun = RunOutcome(
            number=0,
            status=Status.RUNNING,
            started=time_text(utc_now()),
            finished=None,
            table=identity,
            config=self.config.document,
            config_digest=self.config.digest,
            versions={"gpupif": __version__, "python": platform.python_version()}
            | {name: version(name) for name in LIBRARIES},
            host=platform.node(),
            compared_with=None if before is None else before.number,
        )
        with contextlib.ExitStack() as hold:
            # A signal is held back until `_ended`, which puts the run on record as killed.
            hold.enter_context(held_back())
            # Kept scores may be of a record that was lost.
            highest = max((folder.number for folder in KeptFolder.find_all(self.state)), default=0)
            begun = replace(begun, number=record.begin(begun, above=highest))
            event_log.say("started", f"run {begun.number} of {identity} began", run=begun.number)
            with self.closing:
                ended = self._ended(begun, before, hold.close)
                with held_back():
                    finished = self._finished(begun, ended)
                    on_record(finished)
                left = self._tidied(finished)
        failed = [gate.name for gate in finished.gates if gate.verdict.holds_back]
        said = why(finished.error, failed, finished.release) or gates_held(finished.to_dict()["gates"])
        level, number = logging.ERROR if finished.exit_code else logging.INFO, finished.number
        but = ", but not released" * (finished.exit_code == RELEASE_FAILED)
        event_log.say(
            "ended", f"run {number} {finished.status}{but}: {said}", level, run=number, status=finished.status
        )
        untold = notify(finished, before, self.settings.tell, self.config.resolve, self.redact)
        if left or untold:
            with self._logged():
                record.add_notes(finished.number, [*left, *untold])
        return replace(finished, notes=[*finished.notes, *left, *untold])

    def _finished(self, begun: RunOutcome, ended: RunOutcome) -> RunOutcome:
        """Put a run that ended on record, and return it as recorded: as broken if there is no room for all of it."""
        try:
            return self.record.finish(ended)
        except OutputError as error:
            self._keep_no_scores(begun)
            # The facts take most of the room. What was released stays known.
            self.facts = {name: fact for name, fact in self.facts.items() if name == "release"}
            errors = f"{ended.error} {self.redact.error(error)}".lstrip()
            broken = self._ended_as(begun, Status.BROKEN, errors)
        with self._logged():
            return self.record.finish(broken)
        return broken

    def _ended(
        self, begun: RunOutcome, before: RunOutcome | None, let_signals_through: Callable[[], None]
    ) -> RunOutcome:
        """Run up to the end, and return the outcome, whatever happens. Raises interruptions and faults of gpupif."""
        status, error = Status.BROKEN, ""
        try:
            let_signals_through()
            status = self._measure(begun, before)
        except (GpupifError, OSError) as failure:
            error = error_text(failure, self.config)
            if isinstance(failure, REFUSED_FOR) and not isinstance(failure, DatabaseUnavailableError):
                status = Status.REFUSED
        except MemoryError:
            error = "not enough memory for this table: raise run.memory_limit, or score fewer columns."
        except BaseException as failure:
            # An interruption, or a fault of this package: it is put on record, and raised.
            broken = isinstance(failure, Exception)
            said = f"{type(failure).__name__}: a fault of gpupif" if broken else "it was interrupted"
            self._keep_no_scores(begun)
            with self._logged():
                self.record.finish(self._ended_as(begun, Status.BROKEN if broken else Status.KILLED, said))
            raise
        if status not in ENDED:
            self._keep_no_scores(begun)
        return self._ended_as(begun, status, error)

    def _keep_no_scores(self, begun: RunOutcome) -> None:
        """Delete the staged scores of a run without results."""
        self.facts.pop("kept", None)
        KeptFolder(self.state, begun.number).discard()

    def _ended_as(self, begun: RunOutcome, status: Status, error: str) -> RunOutcome:
        return replace(
            begun,
            **self.facts,
            status=status,
            finished=time_text(utc_now()),
            seconds=self.seconds,
            peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            notes=[self.redact(note) for note in self.notes],
            error=error,
        )

    @contextlib.contextmanager
    def _logged(self) -> Iterator[None]:
        """Log an error of writing the record of a run that ended, and go on: reports are still to be sent."""
        try:
            yield
        except OutputError as error:
            event_log.say("not on record", self.redact.error(error), logging.WARNING)

    def _measure(self, begun: RunOutcome, before: RunOutcome | None) -> Status:
        """Read the table, measure it, evaluate the gates, keep scores and values, and return how that ended."""
        table = self._read(before)
        self._check_schema()
        self._check_keys(table)
        started = time.perf_counter()
        folder = None if self.settings.keep.scores == "none" else KeptFolder(self.state, begun.number).create()
        findings = measure_table(
            table,
            self.settings,
            questions_of(self.gates),
            self.facts["columns"],
            self.config.resolve,
            None if folder is None else folder / SCORE_FILE,
        )
        scores = findings.scores
        assert scores is not None
        treated, treated_findings = self._treat(table)
        values = None if before is None else values_before(before.gates)
        gates = evaluate(self.gates, findings, values, treated_findings)
        plan = None if self.release is None else self.release.plan
        by_plan = plan is not None and has_criteria(plan)
        if gates and not by_plan and not any(gate.limits_risk for gate in gates):
            self.notes.append("No gate limits a risk itself: a table of any risk would pass.")
        self.facts |= {"device": scores.device, "distinct_rows": scores.distinct_rows, "gates": gates}
        self.facts |= findings.to_record(self.settings.run.show_values)
        measured = time.perf_counter()
        self.seconds["measure"] = measured - started
        if folder is not None:
            self.facts["kept"] = self._seal(begun, table)
        held = not any(gate.verdict.holds_back for gate in gates)
        if held:
            table.store_values(begun.number)
        else:
            # Otherwise a gate on new values could never hold again.
            table.replace_lost_values(begun.number)
        self.seconds["keep"] = time.perf_counter() - measured
        if self.release is not None:
            self._publish(self.release, table, treated, held)
            held &= self.facts["release"]["status"] != UNMET
        return Status.PASSED if held else Status.FAILED

    def _treat(self, table: KeptTable) -> tuple[Path | None, Findings | None]:
        """Treat the table for its release; return the file, until the run is on record, and what gates ask of it."""
        treated = findings = None
        with self._failing():
            treated, unmet = (None, None) if self.release is None else self.release.treat(table, self.state)
            if treated is not None:
                self.closing.callback(treated.unlink, missing_ok=True)
                if any(gate.settings.treated for gate in self.gates):
                    findings = measure_treated(treated, self.settings, self.config.resolve)
            if unmet is not None:
                raise UnmetError(unmet).about("release.plan", "plan: ")
        return treated, findings

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        """Put an error of the release into the facts: scores and gates stay valid."""
        try:
            yield
        except (GpupifError, OSError, MemoryError) as error:
            status = UNMET if isinstance(error, UnmetError) else FAILED
            self.facts["release"] = {"status": status, "error": error_text(error, self.config)}

    def _publish(self, release: NightlyRelease, table: KeptTable, treated: Path | None, held: bool) -> None:
        """Publish what is released, unless a gate does not hold or an error came before, and log what became of it."""
        started = time.perf_counter()
        if "release" not in self.facts and not held:
            self.facts["release"] = {"status": HELD_BACK}
        elif "release" not in self.facts:
            with self._failing():
                self.facts["release"] = release.publish(table, self.state, treated)
        self.seconds["release"] = time.perf_counter() - started
        facts = self.facts["release"]
        level = logging.INFO if facts["status"] == PUBLISHED else logging.ERROR
        event_log.say("release", release_sentence(facts), level, **{**facts, "files": len(facts.get("files", ()))})

    def _read(self, before: RunOutcome | None) -> KeptTable:
        """Open the table, until the run is on record, put its files and columns into the facts, and return it."""
        with Reporter() as report:
            table = self.table = self.closing.enter_context(
                opened_table(self.config, self.state, report, () if self.release is None else self.release.columns)
            )
        self.notes += table.notes
        # The table adds a note if it finds damage later on.
        table.notes = self.notes
        self.seconds |= table.seconds
        self.types = table.schema
        changes = input_changes([] if before is None else before.files, table.files, table.read_files)
        self.facts |= {"rows": table.rows, "files": table.files, "changes": changes}
        self.facts["columns"] = table.profile(None if before is None else before.number)
        read, files = len(table.read_files), len(table.files)
        event_log.say(
            "read", f"{read:,} of {files:,} {plural(files, 'file')} read", read=read, files=files, rows=table.rows
        )
        return table

    def _check_schema(self) -> None:
        """Raise InputError if columns came, went or changed their type, unless that is accepted."""
        measured = self.record.last_measured()
        if measured is None:
            return
        change = SchemaChange.between({column.name: column.type for column in measured.columns}, self.types)
        if not change:
            return
        if self.settings.input.on_schema_change == "accept":
            self.notes.append(f"The columns of the table changed since run {measured.number}: {change}.")
            return
        raise InputError(
            f"input: the columns of the table changed since run {measured.number}: {change}. Mend the table, or set "
            'input.on_schema_change = "accept" for a run.'
        )

    def _check_keys(self, table: KeptTable) -> None:
        """Raise InputError if several rows have the same key."""
        columns = self.settings.input.row_key
        if not columns:
            return
        found = table.duplicate_keys(columns)
        if found.rows:
            listed = ", ".join(map(repr, columns))
            raise InputError(
                f"input.row_key: {listed}: expected another value in each row, but {found.rows:,} "
                f"{plural(found.rows, 'row')} have that of another row, the first of them row {found.first[0]} and row "
                f"{found.first[1]} (from 0). Remove them, or add a column to the key."
            )

    def _seal(self, begun: RunOutcome, table: KeptTable) -> KeptScores:
        """Complete the staged scores: add keys and a manifest, and flush all to the disk."""
        given, columns = self.settings.keep, self.settings.input.row_key
        keys = (batch for _, chunk in table.read(columns, READ_ROWS, 0) for batch in chunk.to_batches())
        return seal(
            KeptFolder(self.state, begun.number),
            given.scores,
            given.where,
            keys if columns else None,
            config_digest=begun.config_digest,
            show_values=self.settings.run.show_values,
            say=self.notes.append,
        )

    def _tidied(self, finished: RunOutcome) -> list[str]:
        """Publish kept scores, and delete what nobody needs any more; return a note if that fails."""
        try:
            if finished.kept is not None:
                KeptFolder(self.state, finished.number).publish()
            if self.table is not None and finished.status in ENDED:
                good = self.record.last_good()
                self.table.forget_unused(None if good is None else good.number)
            remove_expired(self.record, self.settings.keep, utc_now())
        except (GpupifError, OSError) as error:
            left = f"What is no longer needed could not be removed: {self.redact.error(error)}"
            event_log.say("not tidied", left, logging.WARNING)
            return [left]
        return []
