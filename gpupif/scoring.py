"""The public `score`: arguments checked, table encoded, engine run."""

from __future__ import annotations

import os
import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, overload

from .columns import EncodedTable
from .device import choose_engine, choose_wildcard_engine
from .encode import encode_table
from .engines.base import Job
from .engines.workers import Workers
from .errors import InputError
from .frames import Frame, open_file, open_frame
from .job import MISSING, Question, ask, check_word, needed_columns
from .measures import resolve_measures
from .priors import Prior
from .progress import Reporter, announce_compilation
from .reading import Pick
from .result import Scores
from .spill.run import score_path
from .spill.wish import make_wish
from .stored import StoredScores

if TYPE_CHECKING:
    from .engines.cuda_frames import FrameLibrary


@overload
def score(
    table: Any,
    measures: str | Iterable[str] = ...,
    *,
    columns: Sequence[Hashable] | None = ...,
    known: Sequence[Hashable] | None = ...,
    priors: Mapping[Any, Mapping[Any, float]] | None = ...,
    accuracies: Mapping[Any, float] | None = ...,
    distances: Mapping[Any, Any] | None = ...,
    missing: str = ...,
    device: str = ...,
    dtype: str = ...,
    progress: bool | None = ...,
    output: None = ...,
) -> Scores: ...


@overload
def score(
    table: str | os.PathLike[str],
    measures: str | Iterable[str] = ...,
    *,
    columns: Sequence[Hashable] | None = ...,
    known: Sequence[Hashable] | None = ...,
    priors: Mapping[Any, Mapping[Any, float]] | None = ...,
    accuracies: Mapping[Any, float] | None = ...,
    distances: Mapping[Any, Any] | None = ...,
    missing: str = ...,
    device: str = ...,
    dtype: str = ...,
    progress: bool | None = ...,
    output: str | os.PathLike[str],
    memory_limit: int | str | None = ...,
    temp: str | os.PathLike[str] | None = ...,
    rows_per_file: int | None = ...,
    resume: bool = ...,
    overwrite: bool = ...,
    keep_input: bool = ...,
) -> StoredScores: ...


def score(
    table: Any,
    measures: str | Iterable[str] = ("cig", "csf"),
    *,
    columns: Sequence[Hashable] | None = None,
    known: Sequence[Hashable] | None = None,
    priors: Mapping[Any, Mapping[Any, float]] | None = None,
    accuracies: Mapping[Any, float] | None = None,
    distances: Mapping[Any, Any] | None = None,
    missing: str = "category",
    device: str = "auto",
    dtype: str = "float64",
    progress: bool | None = None,
    output: str | os.PathLike[str] | None = None,
    memory_limit: int | str | None = None,
    temp: str | os.PathLike[str] | None = None,
    rows_per_file: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    keep_input: bool = False,
) -> Scores | StoredScores:
    """Score every cell for what an attacker who knows everything else about a person would learn from it.

    For a target column the rows that agree on all columns the attacker knows are a *cohort*. The share of the cohort
    with the cell's value is its *posterior* probability, the share of the whole table with it the *prior*.

    Parameters
    ----------
    table:
        n rows by m columns: a pandas, Polars or cuDF DataFrame, a pyarrow Table, any object with
        ``__arrow_c_stream__``, or a path: a Parquet file or folder of them, CSV (separator found by itself, UTF-8), or
        Feather. Values are categories as they stand, numbers too. Or a Dask DataFrame, of pandas or cuDF: see Returns.
    measures:
        Any of those that ``gpupif measures`` lists: ``cig`` (cell information gain, bits), ``wcig`` (weighted CIG,
        bits), ``csf`` (cell surprise factor, 0 to 1), ``posterior``, ``prior`` (probabilities), ``cohort_size`` (rows,
        int64), ``pointwise_information``, ``information_content``, ``jensen_shannon``, ``entropy`` (bits), ``renyi_2``,
        ``renyi_inf``, ... (bits; any order from 0 on), ``total_variation``, ``hellinger`` (0 to 1), ``emd`` (earth
        mover's distance), ``distinct_values``, ``recursive_3``, ... (l-diversity), ``relative_gain``,
        ``enhanced_gain``, ``log_ratio``.
    columns:
        Columns to score; default all.
    known:
        Columns that the attacker knows; default all scored columns. For a target among them, the others of them.
        An empty list: nothing, so that every cohort is the whole table.
    priors:
        ``{column: {value: probability}}`` in place of the table's own distribution. Every value that occurs needs a
        probability above 0; further values are fine. None stands for a missing value. A sum within 1e-6 of 1 is made 1.
    accuracies:
        ``{column: a}``: the attacker's knowledge of the column is right with probability a in [0, 1], otherwise drawn
        from the prior: posterior = a c/C + (1 - a) prior. Default 1.
    distances:
        How far the values of a column are apart, for ``emd``: ``{column: "ordered" or "nominal"}``, its values in a
        list, in order (steps), or a hierarchy: ``{value: [names of what it is part of, the narrowest first]}``
        (levels). Default: numbers, dates, times, booleans and ordered categories are ordered, missing values last.
    missing:
        "category": missing values (None, NaN, NA, NaT, null) are one value of their own, whatever their
        representation; "error": refuse them.

        "wildcard": what is missing or suppressed in a known column matches every value, in the row that is scored and
        in all others, as in sdcMicro's frequency counts (``freqCalc``, alpha = 1): row j is in the cohort of row i
        where the two agree on each known column that neither lacks. Cohorts then overlap, and each row has its own. In
        a scored column a missing value is unknown: such rows count in ``cohort_size``, but in no prior or posterior,
        and what is said of a cell's own value (``csf``, ``posterior``, ``prior``, ...) is NaN where that is missing.
        What is said of its cohort (``cig``, ...) is what the others' known values give away of it: suppression is no
        protection where all of them agree, and where none has a value nothing is learnt (0; ``entropy`` and
        ``recursive_3`` are NaN). The weight of wCIG, H(X|known) / H(X), is the mean of -log2(c/C) over the rows with a
        value, divided by the entropy of these values, at most 1: the same number where cohorts do not overlap. Where
        no used column has missing values, scores are those of "category". Runs on the CPU, in memory: its work grows
        with the number of different patterns of missing values.
    device:
        "cpu"; "cuda" (all GPUs) or "cuda:1" (one); or "auto": "cuda" where that can be used, else "cpu".
        ``Scores.device`` says which ran, ``gpupif info`` why not CUDA.
    dtype:
        "float64" or "float32" of the results; all is computed in float64.
    progress:
        Show progress on standard error: True, False, or None for only where that is a terminal.
    output:
        Where the scores go, for a table (a path) of any size: a file name ending in .parquet, .csv or .feather, or a
        folder, which gets one Parquet file for each file of the table. The table is scored part by part, on disk; the
        scores are the same, to the last bit. They appear whole or not at all.
    memory_limit:
        With ``output``: the memory that the process may take, such as "2GiB"; default 60 % of what is free.
    temp:
        With ``output``: a folder for temporary files; default: beside the output.
    rows_per_file:
        With ``output``, a folder: score files of so many rows instead.
    resume:
        With ``output``: go on where a run that was killed stopped; where there is none, begin. What is done is kept
        when such a run fails, too.
    overwrite, keep_input:
        With ``output``: replace what exists; put the table's columns before the scores (those of CSV as text).

    Returns
    -------
    Scores
        ``scores.cig``, ``scores["csf"]``, ...: n rows by scored columns, a frame of the kind that came in with the same
        rows, order, index and column names (pandas for a path). For a Dask DataFrame a `gpupif.DaskScores` instead,
        whose frames are lazy: it computes when Dask is asked to, and raises then what only the data show.
    StoredScores
        With ``output``: where they are, ``summary()``, ``weights``, ``priors``, ``fig()``, ``pif(n)``, ``dataset()``.

    Raises
    ------
    InputError
        No rows, no columns, duplicate column names, unknown columns (ColumnNotFoundError), lists or structs
        (ColumnTypeError), priors that are no distribution over the column's values (PriorError), accuracies outside
        [0, 1], missing values under "error", too many patterns of them under "wildcard", which is neither for
        ``device="cuda"`` nor ``output`` nor Dask; an unknown word for an argument; on a GPU, a column of a file of a
        type that cuDF lacks.
    TableReadError
        A file that cannot be read, or changes meanwhile.
    OutputError
        An output that cannot be written where it was asked for; too little space on a disk.
    DeviceError
        ``device="cuda"`` without a usable GPU, or one that fails or whose memory is too small.

    Warns
    -----
    NearlyUniqueWarning
        A column in which at least 90 % of the rows have different values.
    NothingKnownWarning
        One of several columns is scored and ``known`` is not given.

    References
    ----------
    piflib manual, CSIRO Data61: CIG section 1.4, weighted CIG 1.5, CSF 1.6, summaries 1.7. Missing values as wildcards:
    Templ, Kowarik & Meindl, Statistical Disclosure Control for Micro-Data Using the R Package sdcMicro (2015).

    Examples
    --------
    A suppressed status may be either, so the last person matches all (of sdcMicro's tests of frequency counts):

    >>> import pandas
    >>> status = ["single", "married", "married", "single", None]
    >>> table = pandas.DataFrame({"name": list("abcde"), "status": status})
    >>> scores = score(table, "cohort_size", columns=["name"], known=["status"], missing="wildcard")
    >>> scores.cohort_size["name"].tolist()
    [3, 3, 3, 3, 5]

    """
    wanted = resolve_measures(measures)
    check_word("missing", missing, MISSING)
    check_word("dtype", dtype, ("float64", "float32"))
    files = (output, memory_limit, temp, rows_per_file, resume, overwrite, keep_input)
    if any(base.__module__.partition(".")[0] == "dask" for base in type(table).__mro__):
        from .cluster.scoring import score_dask

        if any(files):
            raise InputError("output: scores of a Dask frame are written by their to_parquet. Leave output= out.")
        if missing == "wildcard":
            raise InputError("missing: 'wildcard' scores a table in memory, not a Dask frame. Score its compute().")
        lazy = score_dask(table, wanted, columns, known, priors, accuracies, distances, missing, device, dtype)
        return cast("Scores", lazy)
    wish = make_wish(*files) if any(files) else None
    if wish is not None and missing == "wildcard":
        raise InputError(
            "missing: 'wildcard' scores a table in memory. Leave output= and what goes with it out, and write the "
            "scores with to_parquet."
        )
    engine = choose_wildcard_engine(device) if missing == "wildcard" else choose_engine(device)
    if wish is not None:
        asked = partial(ask, measures=wanted, columns=columns, known=known, priors=priors, accuracies=accuracies)
        asked = partial(asked, distances=distances)
        with Reporter(progress) as report, announce_compilation(quiet=progress is False):
            return score_path(table, partial(asked, missing=missing, dtype=dtype), engine, wish, report)
    with Reporter(progress) as report, announce_compilation(quiet=progress is False):
        frame = _open(table, needed_columns(columns, known, priors, accuracies), engine.frames)
        if frame.names and frame.rows == 0:
            raise InputError(f"table: expected at least one row, got none (columns: {_listed(frame.names)}).")
        names = (frame.names, frame.index_names)
        question = ask(*names, wanted, columns, known, priors, accuracies, missing, dtype, distances)
        opened = time.perf_counter()
        with frame.active():
            encoded, job, prior_of = _encode(frame, question, report)
        coded = time.perf_counter()
        report.stage("score", frame.rows * len(question.targets), "cells")
        result = engine.score(job, report)
        done = time.perf_counter()
    seconds = _by_stage(frame, coded - opened, done - coded)
    return Scores(frame, encoded, job, result, question.targets, prior_of, engine.device, seconds)


def _by_stage(frame: Frame, encode: float, score: float) -> dict[str, float]:
    """Seconds by stage; of a file that is read where it is encoded, for both together."""
    if frame.kind != "file":
        return {"encode": encode, "score": score}
    if frame.reads_late:
        return {"read and encode": frame.opened_in + encode, "score": score}
    return {"read": frame.opened_in, "encode": encode, "score": score}


def _encode(frame: Frame, question: Question, report: Reporter) -> tuple[EncodedTable, Job, dict[Hashable, Prior]]:
    """The columns that are scored or known as codes, what the engine is to do with them, and their priors."""
    used = question.used
    report.stage("encode", len(used), "columns")
    arrays = [frame.column(frame.names.index(name)) for name in used]
    with Workers() as workers:
        encoded = encode_table(used, arrays, frame.rows, question.missing, workers, report.advance)
    place = {"cudf": "device", "file": "either"}.get(frame.kind, "host")
    return encoded, *question.job(encoded.columns, frame.rows, place)


def _listed(names: Iterable[Hashable]) -> str:
    return ", ".join(map(str, names))


def _open(table: Any, pick: Pick, library: FrameLibrary | None) -> Frame:
    """The table as a frame; of a file only the columns that are needed are read, by the device's library if any."""
    if isinstance(table, str | os.PathLike):
        return open_file(Path(table), pick, library=library)
    return table if isinstance(table, Frame) else open_frame(table)
