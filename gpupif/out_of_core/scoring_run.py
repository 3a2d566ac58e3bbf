"""A run from files to files: checks, the working folder, the steps, and the clean-up."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..attack.arguments import Arguments
from ..attack.request import ScoreRequest
from ..engines.base import Engine
from ..errors import InputError, OutputError
from ..io.base import Source
from ..io.checkpoints import BEGUN, Store, identity, read_last_mark, work_folder
from ..io.score_files import check_folder, is_file, score_names
from ..io.temporary_folder import temporary_folder
from ..io.write import attacker_names, check_output
from ..results.backing import RunDescription
from ..results.provenance import digest
from ..results.scores import Scores
from ..utils.progress import Reporter
from ..utils.signals import Shield
from ..utils.validation import check_exist
from .memory_budget import FEWER_COLUMNS, Budget, check_disk, check_files, check_riskiest, plan_budget
from .output_options import OutputOptions, PopulationFiles
from .run_context import RunContext
from .run_steps import RunFindings, Steps, about_run, stored_scores

# Version of the files that a run keeps; a run with another version is not resumed.
FORMAT, FORMAT_OF_FILES = 12, "format of temporary files"
# The name of the setting with the identity of the population's files.
FILES_OF_POPULATION = "files of the population"
# Settings with a single value, for the grammar of messages.
SINGULAR = ("device", "key", "plan", "temp")


def score_source(
    source: Source,
    arguments: Arguments,
    engine: Engine,
    options: OutputOptions,
    report: Reporter,
    population: PopulationFiles | None = None,
    mend: str = FEWER_COLUMNS,
) -> Scores:
    """Score a table from files to files within a memory limit; see `gpupif.score_files`.

    mend: str. The remedy that an error names besides a higher memory limit.
    """
    with contextlib.ExitStack() as folders:
        if options.summary_only:
            options = options.within(folders.enter_context(temporary_folder(options.temp)))
        request = arguments.make_request(source.names, source.index_names)
        check_place(source, options)
        if population is not None:
            check_exist("population", request.used, population.source.names)
            check_place(population.source, options, inputs_only=True)
        names = [str(name) for name in request.scored_columns]
        if options.selection is None:
            attacker_names(request.output_names, names, source.names if options.keep_input else [])
        about = about_run(source, request, engine, population)
        budget = plan_budget(options.memory_limit, request, mend, options)
        check_riskiest(budget, source, request, options)
        with open_run(options, _settings(about, request, options), report) as run:
            if run.finished is not None:
                return stored_scores(options, options.output, request, about, run.finished, RunFindings())
            if run.begun is not None:
                budget = _same_chunks(budget, run.begun["chunk rows"])
            else:
                place, spill = run.store.place, run.store.spill_place
                check_disk(source, request, spill, place, options, None if population is None else population.source)
                run.begin({"chunk rows": budget.chunk_rows})
            check_files("columns", len(request.read), "Score")
            context = RunContext(engine, run.store, budget, report, options.questions)
            steps = Steps(source, request, about, options, context, population)
            return steps.scores(about_to_publish=run.shield.raise_)


@dataclass
class Run:
    """A run that writes an output and can be resumed if it is killed.

    store: Store. The checkpoint.
    settings: dict. The settings, which have to be equal in a resumed run.
    resume: bool. Whether the files of this run are kept if it fails.
    shield: Shield. It ignores signals to end while the output is published.
    begun: dict. The facts of the first mark of a killed run that goes on; None for a new run.
    finished: dict. The facts of the last mark if the killed run had published its output; else None.
    keep: bool. Whether the files are kept if an error is raised now.
    """

    store: Store
    settings: Mapping[str, Any]
    resume: bool
    shield: Shield = field(default_factory=Shield)
    begun: dict[str, Any] | None = None
    finished: dict[str, Any] | None = None
    keep: bool = False

    def begin(self, facts: Mapping[str, Any]) -> None:
        """Make the first mark of a new run. facts: further facts for the mark."""
        self.store.mark(BEGUN, {**self.settings, **facts})
        self.keep = self.resume


@contextlib.contextmanager
def open_run(options: OutputOptions, settings: Mapping[str, Any], report: Reporter) -> Iterator[Run]:
    """Open the working folder of a run, and delete it at the end; after an error a run that can be resumed keeps it.

    settings: by name, in the order in which differences to a killed run are reported.

    Raises OutputError if another run works there, or if a killed run had other settings.
    """
    work = work_folder(options.output)
    store = Store(work, work if options.temp is None else work_folder(options.output, options.temp))
    run = Run(store, settings, options.resume)
    try:
        finished = published_by(options.output) if options.resume else None
        run.keep = store.open(options.resume, options.output.resolve(), finished=finished is not None)
        if run.keep:
            run.begun = store.done(BEGUN) if finished is None else finished["options"]
            _check_same(run.begun or {}, settings, options.output)
            if finished is None:
                report.say(f"going on with a run that was ended: {store.progress()}.")
            else:
                run.finished = finished
                run.shield.raise_()
                run.keep = False
        elif options.resume:
            report.say("there is no run to resume; this one begins anew.")
        yield run
        run.keep = False
    finally:
        with run.shield:
            store.close(run.keep)


def check_place(source: Source, options: OutputOptions, inputs_only: bool = False) -> None:
    """Raise OutputError for an output or a place for spill files that cannot be used.

    inputs_only: bool. Whether the source only must not be overwritten: scores are not named after its files.
    """
    replace = options.overwrite or (options.resume and published_by(options.output) is not None)
    left = (work_folder(options.output) / f"{BEGUN}.json").exists()
    hint = "" if left or not options.resume else ", and no killed run is left to be resumed: it may be finished"
    if options.temp is not None and options.output.resolve() in [
        options.temp.resolve(),
        *options.temp.resolve().parents,
    ]:
        raise OutputError(f"temp: {options.temp} is the output {options.output}, or inside it. Choose another place.")
    if is_file(options.output):
        check_output(options.output, replace, [source], hint=hint)
    else:
        check_folder(options.output, replace, source.input_files, hint)
        if options.rows_per_file is None and not inputs_only:
            score_names(options.output, source.input_files)


def published_by(output: Path) -> dict[str, Any] | None:
    """Return the last mark of a run that was killed in the clean-up after its output was complete; else None.

    Raises OutputError for a mark that anybody else could have written.
    """
    finished: Any = read_last_mark(work_folder(output))
    try:
        return finished if finished["identity"] == identity(output.resolve()) else None
    except (OSError, KeyError, TypeError):
        return None


def _settings(about: RunDescription, request: ScoreRequest, options: OutputOptions) -> dict[str, Any]:
    """Return the settings that have to be equal in a resumed run, by name; the first unequal one is reported."""
    asked = dict(about.request)
    gpupif, table, people, attackers = (asked.pop(what) for what in ("gpupif", "input", "population", "attackers"))
    if request.attackers is None:
        alone = attackers[""]
        attackers = {"columns known": alone["known"], "subsets of known columns": alone["any"]}
    else:
        attackers = {"attackers": attackers}
    # A setting that follows from others is after them, because the first difference is reported.
    return {
        "gpupif": gpupif,
        FORMAT_OF_FILES: FORMAT,
        "files": _by_path(table),
        FILES_OF_POPULATION: {} if people is None else _by_path(people),
        "population lacks": None if people is None else people["lacks"],
        "weights": asked["weights"],
        "columns scored": [str(name) for name in about.columns],
        **attackers,
        "priors": digest(request.priors),
        **asked,
        "distances": digest(request.distances),
        "device": about.device,
        "temp": None if options.temp is None else str(options.temp.resolve()),
        "rows per file": options.rows_per_file,
        "keep input": options.keep_input,
        "cells": None if options.selection is None else options.selection.to_dict(),
        "questions": options.questions.to_dict(),
    }


def _by_path(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return the files of a table by path; see `describe_files`."""
    return {file["path"]: file for file in described["files"]}


def _check_same(begun: Mapping[str, Any], settings: Mapping[str, Any], output: Path) -> None:
    """Raise OutputError if a resumed run had other settings."""
    for what, now in settings.items():
        before: Any = begun.get(what)
        if before != now:
            shown = f"{before} before, {now} now" if len(f"{before}{now}") < 200 else "they differ"
            if what in ("files", FILES_OF_POPULATION):
                shown = next(file for file in {**before, **now} if before.get(file) != now.get(file))
            if what in ("gpupif", FORMAT_OF_FILES):
                raise OutputError(
                    f"{output}: the run to be resumed was begun by another version of gpupif ({what}: {shown}). Start "
                    "again without resume (--resume)."
                )
            other = "another" if what in SINGULAR else "other"
            raise OutputError(
                f"{output}: the run to be resumed had {other} {what} ({shown}). Give what it had, or start again "
                "without resume (--resume)."
            )


def _same_chunks(budget: Budget, rows: int) -> Budget:
    """Return the budget of a resumed run with chunks of `rows` rows; raise InputError if memory is too small."""
    if budget.chunk_rows < rows:
        raise InputError(
            f"memory_limit: the run to be resumed had more, for chunks of {rows:,} rows; now there is enough for "
            f"{budget.chunk_rows:,}. Raise it, or start again without resume (--resume)."
        )
    return budget._replace(chunk_rows=rows)
