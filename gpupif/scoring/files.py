"""The public function `score_files`: files are scored on disk, partition by partition, or in memory if they fit.

The scores have the same bits.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..attack.arguments import Arguments, Knowledge, Measures
from ..attack.population import Population
from ..attack.roles import score_by_roles, with_roles
from ..engines.base import Engine
from ..engines.choose import choose_engine
from ..errors import InputError
from ..frames.open import device_for, open_file
from ..io.base import Source, every_column
from ..io.read import open_source
from ..io.run_files import check_apart
from ..io.score_files import is_file
from ..io.write import attacker_names, check_output
from ..out_of_core.memory_budget import riskiest_bytes
from ..out_of_core.output_options import OutputOptions, PopulationFiles
from ..out_of_core.scoring_run import score_source
from ..results.cell_selection import Selection
from ..results.scores import Scores
from ..utils.config import resources
from ..utils.docs import documented_as
from ..utils.memory import default_limit, resident_bytes
from ..utils.progress import Reporter, announce_compilation
from ..utils.validation import Columns
from .score import score, score_table

# The guesses of `memory_needed`: bytes of a cell that is read and encoded, and 64-bit words of the key of a row.
READ_BYTES = 6
KEY_WORDS = 2


@documented_as(score)
def score_files(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    measures: Measures = ("cig", "csf"),
    columns: Columns | None = None,
    *,
    known: Knowledge = None,
    attackers: Mapping[str, Knowledge] | None = None,
    priors: Any = None,
    accuracies: Any = None,
    distances: Mapping[Any, Any] | None = None,
    weights: Hashable = None,
    population: Any = None,
    missing: str = "category",
    dtype: str = "float64",
    roles: Any = None,
    rows_per_file: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    keep_input: bool = False,
    where: str | None = None,
    top: int | None = None,
    by: str | None = None,
    summary_only: bool = False,
) -> Scores:
    """Score a table of files of any size, as `score` does, and write the scores to files.

    The table is scored on disk, partition by partition, within the memory limit of `config`. The scores have the bits
    of `score`. They appear whole or not at all.

    Parameters
    ----------
    source:
        The path of a Parquet file, a folder of Parquet files, a CSV file (UTF-8; its separator is detected), or a
        Feather file, or a pattern such as ``data/**/*.csv``.
    output:
        The path of the scores: a file name ending in .parquet, .csv or .feather, or a folder, which gets a Parquet file
        for each file of the table.
    rows_per_file:
        The number of rows of each score file in a folder. Default: as many as the file of the table has.
    resume:
        Whether to continue a run that was killed; without such a run, a new run begins. If a run with ``resume`` fails,
        its finished steps are kept. Default: False.
    overwrite:
        Whether to replace an output that exists. Default: False.
    keep_input:
        Whether to put the table's columns before the scores; columns of CSV are text. Default: False.
    where, top, by:
        A selection of cells to write in place of all scores, a row for each cell, see `Scores.cells`. where: a
        condition such as ``"cig >= 3"``. top: the number of the riskiest cells. by: the score that ranks cells. The
        output is a single file then, and ``scores.cells()`` returns its cells.
    summary_only:
        Whether to compute only ``summary()``, ``fig()``, ``weights`` and so on. No scores are written, and no output is
        named. It takes less time and disk. Default: False.

    Returns
    -------
    Scores
        The scores, as `score` returns them, with one difference: ``scores.cig`` and all others are a `StoredFrame`,
        which reads the files when it is asked to (``.head()``, ``.to_pandas()``, ``.to_polars()``). ``scores.path`` and
        ``scores.files`` are the files. `open_scores` opens them again.

    Raises
    ------
    InputError, TableReadError, DeviceError
        As `gpupif.score`; InputError also for a memory limit that is too low.
    OutputError
        An output that cannot be written, or too little space on a disk.

    Warns
    -----
    NearlyUniqueWarning, NothingKnownWarning
        As `gpupif.score`.

    Examples
    --------
    >>> import tempfile, gpupif
    >>> folder = tempfile.TemporaryDirectory()
    >>> table, output = f"{folder.name}/census.parquet", f"{folder.name}/scores.parquet"
    >>> gpupif.datasets.census(1000).to_parquet(table)
    >>> gpupif.score_files(table, output, "cig", columns=["sex"], known=["age", "region"]).summary().rows
    1000
    >>> folder.cleanup()

    """
    people = Population.from_any(population)
    given = {"source": source, "population": None if people is None else people.table, "priors": priors}
    given |= {"accuracies": accuracies, "distances": distances, "roles": roles}
    check_apart({"": output}, given)
    if roles is not None:
        _, by_role = with_roles(_as_path("source", source), roles)
        columns, known, attackers, weights = score_by_roles(by_role, columns, known, attackers, weights)
    arguments = Arguments.from_user(
        measures,
        columns,
        known=known,
        attackers=attackers,
        priors=priors,
        accuracies=accuracies,
        distances=distances,
        weights=weights,
        population=population,
        missing=missing,
        dtype=dtype,
    )
    selection = Selection.if_any(where, top, by)
    options = OutputOptions.from_arguments(
        output, rows_per_file, resume, overwrite, keep_input, selection, summary_only
    )
    check_selection(selection, arguments)
    path, population = _as_path("source", source), _open_population(arguments)
    return _score_on_disk(path, arguments, options, choose_engine(device_for(path, arguments.known_sets)), population)


def check_selection(selection: Selection | None, arguments: Arguments) -> None:
    """Raise InputError if cells are selected by a score that is not requested."""
    if selection is not None:
        prefixes = {name: "" if name is None else f"{name}_" for name in arguments.outputs}
        outputs = [f"{prefixes[name]}{output}" for name, scores in arguments.outputs.items() for output in scores]
        selection.check(arguments.names, outputs)


def score_for_now(path: str | os.PathLike[str], arguments: Arguments, folder: Path) -> Scores:
    """Return the scores of files: in memory if no memory limit is set and the table fits, else in files in a folder."""
    nowhere, population = OutputOptions.from_arguments(None, summary_only=True), _open_population(arguments)
    fits = resources().memory_limit is None and (
        _memory_needed(open_source(path), arguments, nowhere, population) <= default_limit() - resident_bytes()
    )
    return score_file(path, arguments, nowhere if fits else OutputOptions.from_arguments(folder / "scores")).scores


class WrittenScores(NamedTuple):
    """Scores, and the number of cells that were written if a selection of cells was asked for, else None."""

    scores: Scores
    cells: int | None = None


def score_file(path: str | os.PathLike[str], arguments: Arguments, options: OutputOptions) -> WrittenScores:
    """Score files and write the scores, on disk or in memory.

    Files are scored in memory if four conditions hold: the output is a single file, or none; no memory limit is set; no
    run is resumed; the table fits.
    """
    check_selection(options.selection, arguments)
    population = _open_population(arguments)
    if is_file(options.output) and not options.summary_only:
        check_output(options.output, options.overwrite or options.resume, [path])
    engine = choose_engine(device_for(path, arguments.known_sets))
    if is_file(options.output) and resources().memory_limit is None and not options.resume:
        need = _memory_needed(open_source(path), arguments, options, population)
        if need <= default_limit() - resident_bytes():
            return _score_in_memory(path, arguments, options, engine)
        if resources().progress is not False:
            print(
                f"gpupif: the table needs about {need / 2**30:.1f} GiB, more than 60 % of the memory that is free: it "
                "is scored partition by partition, on disk.",
                file=sys.stderr,
            )
    scores = _score_on_disk(path, arguments, options, engine, population)
    return WrittenScores(scores, None if options.selection is None else scores.cells().count())


def memory_needed(source: Source, used: int, scored_columns: int, measures: int) -> int:
    """Return about how many bytes scoring a table takes in memory.

    used: the number of columns that are read. scored_columns: the number of scored columns. measures: the number of
    scores of a cell.
    """
    return source.about_rows() * (READ_BYTES * used + 40 * KEY_WORDS + 48 + 8 * scored_columns * measures)


def _memory_needed(
    source: Source, arguments: Arguments, options: OutputOptions, population: PopulationFiles | None
) -> int:
    """Return about how many bytes scoring a table takes in memory, with its population."""
    used = source.names if options.keep_input else arguments.needed(source.names) or source.names
    each = sum(map(len, arguments.outputs.values()))
    scored_columns = len(arguments.columns or source.names)
    need = memory_needed(source, len(used), scored_columns, each)
    if options.selection is not None and options.selection.top is not None:
        need += riskiest_bytes(options.selection.top, source.about_rows() * scored_columns, each)
    return need if population is None else need + memory_needed(population.source, len(used), 0, 0)


def _score_on_disk(
    path: str | os.PathLike[str],
    arguments: Arguments,
    options: OutputOptions,
    engine: Engine,
    population: PopulationFiles | None,
) -> Scores:
    with Reporter() as report, announce_compilation():
        return score_source(open_source(path), arguments, engine, options, report, population)


def _score_in_memory(
    path: str | os.PathLike[str], arguments: Arguments, options: OutputOptions, engine: Engine
) -> WrittenScores:
    with Reporter() as report:
        report.stage("read", None, "rows")
        frame = open_file(path, every_column if options.keep_input else arguments.needed, engine.frames)
    names = [name for name in frame.names if name not in (*frame.index_names, arguments.weights)]
    scored_columns = list(dict.fromkeys(arguments.columns or names))
    if options.selection is None:
        attacker_names(arguments.outputs, scored_columns, frame.names if options.keep_input else [])
    scores = score_table(frame, arguments)
    if options.summary_only:
        return WrittenScores(scores)
    started, cells = time.perf_counter(), None
    with Reporter() as report:
        report.stage("write", scores.rows if options.selection is None else None, "rows")
        if options.selection is None:
            scores.write(options.output, options.keep_input, options.overwrite, report.advance)
        else:
            cells = scores.cells(**options.selection.to_dict()).write(options.output, options.overwrite)
    scores.seconds["write"] = time.perf_counter() - started
    return WrittenScores(scores, cells)


def _open_population(arguments: Arguments) -> PopulationFiles | None:
    """Return the files of the population, if there is one; raises InputError if the population is no path."""
    if arguments.population is None:
        return None
    path = _as_path("population", arguments.population.table)
    return PopulationFiles(open_source(path), arguments.population.lacks)


def _as_path(argument: str, given: Any) -> Path | Source:
    if isinstance(given, Source):
        return given
    if not isinstance(given, str | os.PathLike):
        raise InputError(
            f"{argument}: expected the path of a file, a folder or a pattern such as 'data/*.parquet', got "
            f"{type(given).__name__}. Write it to a file first, or score tables in memory with gpupif.score."
        )
    return Path(given)
