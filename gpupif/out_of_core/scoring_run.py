"""A run from files to files: checks, the working folder, the steps, and the clean-up."""

from __future__ import annotations

from collections.abc import Mapping
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
from .run_steps import RunFindings, Steps, about_run, stored_scores

# Version of the files that a run keeps; a run with another version is not resumed.
FORMAT, FORMAT_OF_FILES = 11, "format of temporary files"
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
    given = (source, arguments, engine)
    if not options.summary_only:
        return _score_source(*given, options, report, population, mend)
    with temporary_folder(options.temp) as folder:
        return _score_source(*given, options.within(folder), report, population, mend)


def _score_source(
    source: Source,
    arguments: Arguments,
    engine: Engine,
    options: OutputOptions,
    report: Reporter,
    population: PopulationFiles | None,
    mend: str,
) -> Scores:
    request = arguments.make_request(source.names, source.index_names)
    check_place(source, options)
    if population is not None:
        check_exist("population", request.used, population.source.names)
        check_place(population.source, options, inputs_only=True)
    names = [str(name) for name in request.scored_columns]
    if options.selection is None:
        attacker_names(request.output_names, names, source.names if options.keep_input else [])
    work = work_folder(options.output)
    spill = work if options.temp is None else work_folder(options.output, options.temp)
    store = Store(work, spill)
    keep, shield = False, Shield()
    try:
        about = about_run(source, request, engine, population, {})
        settings = _settings(about, request, options)
        budget = plan_budget(options.memory_limit, request, mend, options)
        check_riskiest(budget, source, request, options)
        finished = published_by(options.output) if options.resume else None
        there = store.open(options.resume, options.output.resolve(), finished=finished is not None)
        if there and finished is not None:
            # The run was killed in the clean-up after its output was complete.
            keep = True
            check_same(finished["options"], settings, options.output)
            shield.raise_()
            keep = False
            return stored_scores(options, options.output, request, about, finished, RunFindings())
        if there:
            keep = True
            begun = store.done(BEGUN)
            check_same(begun, settings, options.output)
            report.say(f"going on with a run that was ended: {store.progress()}.")
            budget = _same_chunks(budget, begun["chunk rows"])
        else:
            if options.resume:
                report.say("there is no run to resume; this one begins anew.")
            check_disk(source, request, spill, work, options, None if population is None else population.source)
            store.mark(BEGUN, settings | {"chunk rows": budget.chunk_rows})
            keep = options.resume
        check_files("columns", len(request.read), "Score")
        steps = Steps(source, request, engine, options, store, budget, report, population)
        scores = steps.scores(about_to_publish=shield.raise_)
        keep = False
        return scores
    finally:
        with shield:
            store.close(keep)


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
        check_output(options.output, replace, source.input_files.places, hint=hint)
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


def check_same(begun: Mapping[str, Any], settings: Mapping[str, Any], output: Path) -> None:
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
