"""A run from files to files: what it needs is checked, its folder opened and cleaned up, its steps taken."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..errors import InputError, OutputError
from ..sources import Source, open_source
from ..writing import check_output, output_names
from .budget import check_disk, plan_budget
from .outputs import check_folder, is_file
from .steps import Steps
from .store import Store, disk_errors, work_folder
from .wish import Wish

if TYPE_CHECKING:
    from ..engines.base import Engine
    from ..job import Question
    from ..progress import Reporter
    from ..stored import StoredScores


def score_path(path: Any, ask: Callable[..., Question], engine: Engine, wish: Wish, report: Reporter) -> StoredScores:
    """Score the files that a path names; `ask` checks the other arguments against their columns."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(
            f"table: with output= expected the path of a file, a folder or a pattern, got {type(path).__name__}. Leave "
            "output out, and write what comes back with to_parquet."
        )
    return score_source(open_source(Path(path)), ask, engine, wish, report)


def score_source(
    source: Source, ask: Callable[..., Question], engine: Engine, wish: Wish, report: Reporter
) -> StoredScores:
    """Score a table from files to files within a memory limit (see `gpupif.score`)."""
    question = ask(source.names, source.index_names)
    check_place(source, wish)
    names = [str(name) for name in question.targets]
    measures = [measure.name for measure in question.measures]
    output_names(measures, names, source.names if wish.keep_input else [])
    work = work_folder(wish.output, wish.output.resolve().parent)
    spill = work if wish.temp is None else work_folder(wish.output, wish.temp)
    store = Store(work, spill)
    keep = False
    try:
        options = _options(source, question, engine, wish)
        if store.open(wish.resume):
            _check_same(store.done("begun"), options, work)
        else:
            budget = plan_budget(wish.memory_limit, question)
            with disk_errors(spill):
                spill.mkdir(exist_ok=True)
            check_disk(source, question, spill, work)
            store.mark("begun", options | {"budget": budget})
        keep = wish.resume
        scores = Steps(source, question, engine, wish, store, report).scores()
        keep = False
        return scores
    finally:
        store.close(keep)


def check_place(source: Source, wish: Wish) -> None:
    """Refuse an output or a place for spill files that cannot be used, before any work is done; raises OutputError."""
    if wish.temp is not None and not (wish.temp.is_dir() and os.access(wish.temp, os.W_OK)):
        raise OutputError(f"temp: {wish.temp} is no folder that can be written to. Make it first, or choose another.")
    # A run that was killed when all was done but to clean up has its output already.
    finished = wish.resume and (work_folder(wish.output, wish.output.resolve().parent) / "finished.json").exists()
    if is_file(wish.output):
        check_output(wish.output, wish.overwrite or finished, source.found.path)
    else:
        check_folder(wish.output, wish.overwrite or finished, source.found)


def _options(source: Source, question: Question, engine: Engine, wish: Wish) -> dict[str, Any]:
    """What must be the same when a run is taken up again."""
    return {
        "gpupif": __version__,
        "files": [[str(file), *stamp] for file, stamp in source.stamps.items()],
        "columns scored": [str(name) for name in question.targets],
        "columns known": [str(name) for name in question.known],
        "measures": [measure.name for measure in question.measures],
        "priors": hashlib.sha256(repr(dict(question.priors)).encode()).hexdigest(),
        "accuracies": {str(name): float(accuracy) for name, accuracy in question.accuracies.items()},
        "missing": question.missing,
        "dtype": question.dtype,
        "device": engine.device,
        "temp": None if wish.temp is None else str(wish.temp.resolve()),
        "rows per file": wish.rows_per_file,
        "keep input": wish.keep_input,
        "memory limit": wish.memory_limit,
    }


def _check_same(begun: dict[str, Any], options: dict[str, Any], work: Path) -> None:
    for what, now in options.items():
        before = begun.get(what)
        if what == "memory limit" and now >= before:
            continue
        if before != now:
            shown = f"{before} before, {now} now" if len(f"{before}{now}") < 200 else "they differ"
            raise OutputError(
                f"{work}: the run to be resumed had other {what} ({shown}). Give what it had, or start again without "
                "resume (--resume)."
            )
