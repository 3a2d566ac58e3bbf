"""From files to files: treated piece by piece, within a memory limit; the values are those of `gpupif.treat`."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._version import __version__
from ..errors import InputError
from ..io.base import Source
from ..io.checkpoints import BEGUN, FINISHED, Store, identity, work_folder
from ..io.formats import written_format
from ..io.read import open_source
from ..io.score_files import is_file
from ..out_of_core.budget import plan_reading
from ..out_of_core.options import OutputOptions
from ..out_of_core.run import FORMAT_OF_FILES, check_place, check_same, published_by
from ..results.provenance import describe_files, digest
from ..utils.docs import documented_as
from ..utils.progress import Reporter, announce_compilation
from ..utils.signals import Shield
from .file_table import FileTable
from .plan import Plan
from .plan_run import Treated, apply_plan, find_key, make_record
from .record import TreatmentsRecord
from .treat import treat
from .writer import TreatedWriter

# Of what a run leaves in its folder, which another version may not read as its own.
FORMAT = 1


@documented_as(treat)
def treat_files(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    plan: Any,
    *,
    key: bytes | str | os.PathLike[str] | None = None,
    seed: int | None = None,
    rows_per_file: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
) -> Treated:
    """Treat a table of files of any size, as `treat` does, and write it to files.

    It is read, treated and written piece by piece, within the memory limit that `config` says. What comes out is whole
    or absent, and the files that come in stay as they are.

    Parameters
    ----------
    source:
        The path of a Parquet file or folder of them, CSV (separator found by itself, UTF-8), or Feather, or a pattern
        such as ``data/**/*.csv``.
    output:
        Where the treated table goes: a file name ending in .parquet, .csv or .feather, or a folder, which gets one
        Parquet file for each file of the table.
    rows_per_file:
        Of a folder: files of so many rows instead.
    resume:
        Go on where a run that was killed stopped; where there is none, begin. What is done is kept when such a run
        fails, too.
    overwrite:
        Replace what exists.

    Returns
    -------
    Treated
        ``.table`` is the path of the output, ``.files`` are its files, ``.record`` says what was done.

    Raises
    ------
    InputError, TableReadError
        As `treat`; InputError also for a memory limit that is too low.
    OutputError
        An output that cannot be written where it was asked for; too little space on a disk.

    Examples
    --------
    >>> import tempfile, gpupif
    >>> folder = tempfile.TemporaryDirectory()
    >>> table, output = f"{folder.name}/census.parquet", f"{folder.name}/treated.parquet"
    >>> gpupif.datasets.census(1000).to_parquet(table)
    >>> gpupif.treat_files(table, output, [gpupif.Drop(["region"])]).record.rows
    1000
    >>> folder.cleanup()

    """
    plan = Plan.of(plan)
    secret = find_key(plan, key, seed)
    if not isinstance(source, str | os.PathLike):
        raise InputError(
            f"source: expected the path of a file, a folder or a pattern such as 'data/*.parquet', got "
            f"{type(source).__name__}. Treat tables in memory with gpupif.treat."
        )
    options = OutputOptions.from_arguments(output, rows_per_file, resume, overwrite)
    with Reporter() as report, announce_compilation():
        return treat_source(open_source(source), options, plan, secret, report)


def treat_source(source: Source, options: OutputOptions, plan: Any, key: Any, report: Reporter) -> Treated:
    """As `treat_files`, what it was given checked."""
    started = time.perf_counter()
    check_place(source, options)
    output = options.output.resolve()
    work = work_folder(options.output)
    store = Store(work, work if options.temp is None else work_folder(options.output, options.temp))
    keep, shield = False, Shield()
    try:
        settings = _settings(source, options, plan, key)
        finished = published_by(options.output) if options.resume else None
        there = store.open(options.resume, output, finished=finished is not None)
        keep = there
        if there:
            check_same((finished or {}).get("options") or store.done(BEGUN), settings, options.output)
        if there and finished is not None:
            # Killed when all was done but to clean up.
            shield.raise_()
            keep = False
            record = TreatmentsRecord.from_stored(finished["record"])
            return Treated(options.output, record, None, [], _files(options.output))
        if there:
            report.say(f"going on with a run that was ended: {store.progress()}.")
        else:
            if options.resume:
                report.say("there is no run to resume; this one begins anew.")
            store.mark(BEGUN, settings)
            keep = options.resume
        budget = plan_reading(options.memory_limit, len(source.names), "take columns out of the table first")
        table = FileTable(source, store, budget, report, all_typed=not written_as_text(options.output))
        applied = apply_plan(table, plan, key, report)
        writer = TreatedWriter(table.source(), options, store, budget, report)
        rows = writer.write(table.counts)
        described = describe_files(source.found.path, source.stamps)
        record = make_record(plan, applied, table.counts, described, rows, key, started)
        store.mark(FINISHED, {"identity": identity(writer.staged()), "options": settings, "record": record.to_stored()})
        shield.raise_()
        writer.publish()
        keep = False
        return Treated(options.output, record, table, applied, _files(options.output))
    finally:
        with shield:
            store.close(keep)


def written_as_text(output: Path) -> bool:
    """Whether an output has a format of text."""
    return written_format(output).as_text


def _files(output: Path) -> Sequence[Path]:
    return [output] if is_file(output) else sorted(output.rglob("*.parquet"))


def _read_by(plan: Plan) -> dict[str, str]:
    """What the files hold that a plan names, by path."""
    named = [getattr(one, name) for one in plan.treatments for name in one.files]
    named += [one.to_plan() for one in plan.hierarchies.values()]
    paths = [Path(one) for one in named if isinstance(one, str | os.PathLike)]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths if path.is_file()}


def _settings(source: Source, options: OutputOptions, plan: Any, key: Any) -> dict[str, Any]:
    """Settings that must be the same when a run is taken up again, by name; the first that is not is named."""
    described = describe_files(source.found.path, source.stamps)
    return {
        "gpupif": __version__,
        FORMAT_OF_FILES: FORMAT,
        "files": {file["path"]: file for file in described["files"]},
        "plan": digest(plan.to_dict()),
        "files of the plan": digest(_read_by(plan)),
        # Not that of records, by which no seeds are told apart.
        "key": None if key is None else digest(key.secret("resume").hex()),
        "temp": None if options.temp is None else str(options.temp.resolve()),
        "rows per file": options.rows_per_file,
    }
