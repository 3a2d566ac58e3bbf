"""A run from files to files: what it needs is checked, its folder opened and cleaned up, its steps taken."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._version import __version__
from ..errors import InputError, OutputError
from ..io.base import Source
from ..io.checkpoints import BEGUN, FINISHED, Store, identity, work_folder
from ..io.ipc_batches import disk_errors
from ..io.score_files import check_folder, is_file, score_names
from ..io.write import attacker_names, check_output
from ..measures import POPULATION_SIZE
from ..utils.signals import Shield
from ..utils.validation import check_exist
from .budget import SPARE_FILES, Budget, check_disk, files_to_open, plan_budget
from .options import OfPopulation, Wish
from .steps import Steps, about_run, stored_scores

if TYPE_CHECKING:
    from ..attack.request import Question
    from ..engines.base import Engine
    from ..results.scores import Scores
    from ..utils.progress import Reporter

# Of what parts and steps of a run hold, which another version may not read as its own.
FORMAT, FORMAT_OF_FILES = 4, "format of temporary files"
# The option that has the identity of the population's files.
FILES_OF_POPULATION = "files of the population"


def score_source(
    source: Source,
    ask: Callable[..., Question],
    engine: Engine,
    wish: Wish,
    report: Reporter,
    population: OfPopulation | None = None,
) -> Scores:
    """Score a table from files to files within a memory limit (see `gpupif.score_files`)."""
    question = ask(source.names, source.index_names)
    check_place(source, wish)
    each = question.each()
    if population is not None:
        check_exist("population", question.used, population.source.names)
        check_place(population.source, wish, inputs_only=True)
        each = {name: replace(one, measures=(*one.measures, POPULATION_SIZE)) for name, one in each.items()}
    outputs = {name: [measure.name for measure in one.outputs] for name, one in each.items()}
    names = [str(name) for name in question.targets]
    attacker_names(outputs, names, source.names if wish.keep_input else [])
    work = work_folder(wish.output, wish.output.resolve().parent)
    spill = work if wish.temp is None else work_folder(wish.output, wish.temp)
    store = Store(work, spill)
    keep, shield = False, Shield()
    try:
        options = _options(source, question, engine, wish, population)
        budget = plan_budget(wish.memory_limit, question, population is not None)
        finished = _published(wish.output) if wish.resume else None
        there = store.open(wish.resume, wish.output.resolve(), any_mark=finished is not None)
        if there and finished is not None:
            # Killed when all was done but to clean up, perhaps in the middle of that.
            keep = True
            _check_same(finished["options"], options, wish.output)
            shield.raise_()
            keep = False
            people = None if population is None else population.source
            about = about_run(source, question, engine, people, {})
            return stored_scores(wish.output, question, about, finished)
        if there:
            keep = True
            begun = store.done(BEGUN)
            _check_same(begun, options, wish.output)
            report.say(f"going on with a run that was ended: {store.progress()}.")
            budget = _same_chunks(budget, begun["chunk rows"])
        else:
            with disk_errors(spill):
                spill.mkdir(exist_ok=True)
            if wish.resume:
                report.say("there is no run to resume; this one begins anew.")
            check_disk(source, question, spill, work, wish, None if population is None else population.source)
            store.mark(BEGUN, options | {"chunk rows": budget.chunk_rows})
            keep = wish.resume
        if files_to_open() < 3 * len(question.read) + SPARE_FILES:
            raise InputError(
                f"columns: {len(question.read):,} columns need as many files open at a time, three times over, which "
                "the system does not allow. Score fewer, or allow more (ulimit -n)."
            )
        steps = Steps(source, question, engine, wish, store, budget, report, population)
        scores = steps.scores(about_to_publish=shield.raise_)
        keep = False
        return scores
    finally:
        with shield:
            store.close(keep)


def check_place(source: Source, wish: Wish, inputs_only: bool = False) -> None:
    """Refuse an output or a place for spill files that cannot be used, before any work is done; raises OutputError.

    inputs_only: scores are not named after the files of the source.
    """
    replace = wish.overwrite or (wish.resume and _published(wish.output) is not None)
    left = (work_folder(wish.output, wish.output.resolve().parent) / f"{BEGUN}.json").exists()
    hint = "" if left or not wish.resume else ", and no killed run is left to be resumed: it may be finished"
    if wish.temp is not None and wish.output.resolve() in [wish.temp.resolve(), *wish.temp.resolve().parents]:
        raise OutputError(f"temp: {wish.temp} is the output {wish.output}, or inside it. Choose another place.")
    if is_file(wish.output):
        check_output(wish.output, replace, source.found.places, hint=hint)
    else:
        check_folder(wish.output, replace, source.found, hint)
        if wish.rows_per_file is None and not inputs_only:
            score_names(wish.output, source.found)


def _published(output: Path) -> dict[str, Any] | None:
    """The last mark of a run whose output is there, and which was killed when all was done but to clean up."""
    mark = work_folder(output, output.resolve().parent) / f"{FINISHED}.json"
    try:
        finished: dict[str, Any] = json.loads(mark.read_text())
        return finished if finished["identity"] == identity(output.resolve()) else None
    except (OSError, ValueError, KeyError):
        return None


def _options(
    source: Source, question: Question, engine: Engine, wish: Wish, population: OfPopulation | None
) -> dict[str, Any]:
    """What must be the same when a run is taken up again."""
    return {
        "gpupif": __version__,
        FORMAT_OF_FILES: FORMAT,
        "files": _stamps(source),
        FILES_OF_POPULATION: {} if population is None else _stamps(population.source),
        "population lacks": None if population is None else population.lacks,
        "attackers": {name: [str(column) for column in one.known] for name, one in (question.attackers or {}).items()},
        "subsets of known columns": {str(name): _any_known(one) for name, one in question.each().items()},
        "weights": None if question.weights is None else str(question.weights),
        "columns scored": [str(name) for name in question.targets],
        "columns known": [str(name) for name in question.known],
        "measures": [measure.name for measure in question.measures],
        "priors": hashlib.sha256(repr(dict(question.priors)).encode()).hexdigest(),
        "accuracies": {str(name): float(accuracy) for name, accuracy in question.accuracies.items()},
        "distances": hashlib.sha256(repr(dict(question.distances)).encode()).hexdigest(),
        "missing": question.missing,
        "dtype": question.dtype,
        "device": engine.device,
        "temp": None if wish.temp is None else str(wish.temp.resolve()),
        "rows per file": wish.rows_per_file,
        "keep input": wish.keep_input,
    }


def _any_known(question: Question) -> dict[str, int | None] | None:
    """Which subsets of the known columns attackers know, where it is any of them."""
    asked = question.any_known
    return None if asked is None else {"known": asked.known, "subsets": asked.subsets, "seed": asked.seed}


def _stamps(source: Source) -> dict[str, list[int]]:
    return {str(file.resolve()): list(stamp) for file, stamp in source.stamps.items()}


def _check_same(begun: dict[str, Any], options: dict[str, Any], output: Path) -> None:
    for what, now in options.items():
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
            raise OutputError(
                f"{output}: the run to be resumed had other {what} ({shown}). Give what it had, or start again without "
                "resume (--resume)."
            )


def _same_chunks(budget: Budget, rows: int) -> Budget:
    """The budget of a run that goes on with chunks of so many rows; raises InputError where it is too little."""
    if budget.chunk_rows < rows:
        raise InputError(
            f"memory_limit: the run to be resumed had more, for chunks of {rows:,} rows; now there is enough for "
            f"{budget.chunk_rows:,}. Raise it, or start again without resume (--resume)."
        )
    return budget._replace(chunk_rows=rows)
