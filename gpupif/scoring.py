"""The public `score`: arguments checked, table encoded, engine run."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .columns import Column, EncodedTable
from .device import choose_engine
from .encode import encode_table
from .engines.base import Job
from .engines.workers import Workers
from .errors import InputError, NearlyUniqueWarning, NothingKnownWarning
from .frames import Frame, open_file, open_frame
from .measures import Measure, resolve_measures
from .names import as_list, as_mapping, check_exist, check_unique
from .priors import Prior, make_prior
from .progress import Reporter, announce_compilation
from .reading import Pick
from .result import Scores

if TYPE_CHECKING:
    from .engines.cuda_frames import FrameLibrary

# From so many rows on, a column with so large a share of different values is named in a warning.
UNIQUE_ROWS = 50
UNIQUE_SHARE = 0.9


def score(
    table: Any,
    measures: str | Iterable[str] = ("cig", "csf"),
    *,
    columns: Sequence[Hashable] | None = None,
    known: Sequence[Hashable] | None = None,
    priors: Mapping[Any, Mapping[Any, float]] | None = None,
    accuracies: Mapping[Any, float] | None = None,
    missing: str = "category",
    device: str = "auto",
    dtype: str = "float64",
    progress: bool | None = None,
) -> Scores:
    """Score every cell for what an attacker who knows everything else about a person would learn from it.

    For a target column the rows that agree on all columns the attacker knows are a *cohort*. The share of the cohort
    with the cell's value is its *posterior* probability, the share of the whole table with it the *prior*.

    Parameters
    ----------
    table:
        n rows by m columns: a pandas, Polars or cuDF DataFrame, a pyarrow Table, any object with
        ``__arrow_c_stream__``, or a path: a Parquet file or folder of them, CSV (separator found by itself, UTF-8), or
        Feather. Values are categories as they stand, numbers too.
    measures:
        Any of ``cig`` (cell information gain, bits), ``wcig`` (weighted CIG, bits), ``csf`` (cell surprise factor, 0 to
        1), ``posterior``, ``prior`` (probabilities), ``cohort_size`` (rows, int64).
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
    missing:
        "category": missing values (None, NaN, NA, NaT, null) are one value of their own, whatever their
        representation; "error": refuse them.
    device:
        "cpu"; "cuda" (all GPUs) or "cuda:1" (one); or "auto": "cuda" where that can be used, else "cpu".
        ``Scores.device`` says which ran, ``gpupif info`` why not CUDA.
    dtype:
        "float64" or "float32" of the results; all is computed in float64.
    progress:
        Show progress on standard error: True, False, or None for only where that is a terminal.

    Returns
    -------
    Scores
        ``scores.cig``, ``scores["csf"]``, ...: n rows by scored columns, a frame of the kind that came in with the same
        rows, order, index and column names (pandas for a path).

    Raises
    ------
    InputError
        No rows, no columns, duplicate column names, unknown columns (ColumnNotFoundError), lists or structs
        (ColumnTypeError), priors that are no distribution over the column's values (PriorError), accuracies outside
        [0, 1], missing values under "error", an unknown word for an argument; on a GPU, a column of a file of a type
        that cuDF lacks.
    TableReadError
        A file that cannot be read.
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
    piflib manual, CSIRO Data61: CIG section 1.4, weighted CIG 1.5, CSF 1.6, summaries 1.7.

    """
    wanted = resolve_measures(measures)
    _check_word("missing", missing, ("category", "error"))
    _check_word("dtype", dtype, ("float64", "float32"))
    engine = choose_engine(device)
    with Reporter(progress) as report, announce_compilation(quiet=progress is False):
        frame = _open(table, needed_columns(columns, known, priors, accuracies), engine.frames)
        targets, attacker = _resolve_columns(frame, columns, known)
        opened = time.perf_counter()
        with frame.active():
            encoded, job, prior_of = _encode(
                frame, targets, attacker, priors, accuracies, missing, wanted, dtype, report
            )
        coded = time.perf_counter()
        report.stage("score", frame.rows * len(targets), "cells")
        result = engine.score(job, report)
        done = time.perf_counter()
    seconds = _by_stage(frame, coded - opened, done - coded)
    return Scores(frame, encoded, job, result, targets, prior_of, engine.device, seconds)


def _by_stage(frame: Frame, encode: float, score: float) -> dict[str, float]:
    """Seconds by stage; of a file that is read where it is encoded, for both together."""
    if frame.kind != "file":
        return {"encode": encode, "score": score}
    if frame.reads_late:
        return {"read and encode": frame.opened_in + encode, "score": score}
    return {"read": frame.opened_in, "encode": encode, "score": score}


def _encode(
    frame: Frame,
    targets: Sequence[Hashable],
    attacker: Sequence[Hashable],
    priors: Mapping[Any, Mapping[Any, float]] | None,
    accuracies: Mapping[Any, float] | None,
    missing: str,
    measures: Sequence[Measure],
    dtype: str,
    report: Reporter,
) -> tuple[EncodedTable, Job, dict[Hashable, Prior]]:
    """The columns that are scored or known as codes, what the engine is to do with them, and their priors."""
    needed = {*targets, *attacker}
    used = [name for name in frame.names if name in needed]
    priors = as_mapping("priors", priors, frame.names, used)
    accuracies = as_mapping("accuracies", accuracies, frame.names, used)
    report.stage("encode", len(used), "columns")
    arrays = [frame.column(frame.names.index(name)) for name in used]
    with Workers() as workers:
        encoded = encode_table(used, arrays, frame.rows, missing, workers, report.advance)
    _warn_of_unique(encoded.columns, frame.rows)
    prior_of = {column.name: make_prior(column, priors.get(column.name), frame.rows) for column in encoded.columns}
    job = Job(
        codes=[column.codes for column in encoded.columns],
        counts=[column.counts for column in encoded.columns],
        priors=[prior_of[name].probabilities for name in used],
        log2_priors=[prior_of[name].log2_probabilities for name in used],
        accuracies=[_accuracy(name, accuracies.get(name, 1.0)) for name in used],
        targets=[used.index(name) for name in targets],
        known=[used.index(name) for name in attacker],
        measures=measures,
        dtype=dtype,
        scores_on={"cudf": "device", "file": "either"}.get(frame.kind, "host"),
    )
    return encoded, job, prior_of


def _check_word(argument: str, word: Any, words: Sequence[str]) -> None:
    if not isinstance(word, str) or word not in words:
        raise InputError(f"{argument}: expected {' or '.join(map(repr, words))}, got {word!r}.")


def _open(table: Any, pick: Pick, library: FrameLibrary | None) -> Frame:
    """The table as a frame; of a file only the columns that are needed are read, by the device's library if any."""
    if isinstance(table, str | os.PathLike):
        return open_file(Path(table), pick, library=library)
    return table if isinstance(table, Frame) else open_frame(table)


def needed_columns(
    columns: Sequence[Hashable] | None, known: Sequence[Hashable] | None, priors: Any = None, accuracies: Any = None
) -> Pick:
    """Of a file's columns those that scoring `columns` against `known` needs; raises InputError for unknown ones."""

    def pick(names: Sequence[str]) -> list[str] | None:
        if columns is None:
            return None
        targets, attacker = as_list("columns", columns), [] if known is None else as_list("known", known)
        as_mapping("priors", priors, names, [*targets, *attacker])
        as_mapping("accuracies", accuracies, names, [*targets, *attacker])
        check_exist("columns", targets, names)
        check_exist("known", attacker, names)
        return [name for name in names if name in {*targets, *attacker}]

    return pick


def _resolve_columns(
    frame: Frame, columns: Sequence[Hashable] | None, known: Sequence[Hashable] | None
) -> tuple[list[Hashable], list[Hashable]]:
    """Targets and the columns the attacker knows, in the order asked for, checked against the table."""
    names = frame.names
    if not names:
        raise InputError("table: expected at least one column, got none.")
    check_unique(names)
    if frame.rows == 0:
        raise InputError(f"table: expected at least one row, got none (columns: {', '.join(map(str, names))}).")
    labels = frame.index_names if len(frame.index_names) < len(names) else ()
    default = [name for name in names if name not in labels]
    targets = default if columns is None else as_list("columns", columns)
    if not targets:
        raise InputError("columns: expected at least one column to score, got an empty list.")
    attacker = list(targets) if known is None else as_list("known", known)
    check_exist("columns", targets, names)
    check_exist("known", attacker, names)
    if known is None and len(targets) == 1 and (columns is not None or set(str(targets[0])) & set(",;\t| ")):
        mend = "Is the separator right?" if columns is None else "Name the columns the attacker knows with known=."
        warnings.warn(
            f"columns: only {targets[0]!r} is scored, so by default the attacker knows nothing and every cohort is the "
            f"whole table. {mend}",
            NothingKnownWarning,
            stacklevel=4,
        )
    elif known is not None and len(attacker) == 1 and attacker[0] in targets:
        warnings.warn(
            f"known: the attacker knows only {attacker[0]!r}, so nothing when that column is scored itself: every "
            "cohort is the whole table. Name further columns with known=.",
            NothingKnownWarning,
            stacklevel=4,
        )
    return targets, attacker


def _accuracy(name: Hashable, value: Any) -> float:
    if not isinstance(value, int | float | np.number) or not 0.0 <= value <= 1.0:
        raise InputError(f"accuracies: column {name!r}: expected a number from 0 to 1, got {value!r}.")
    return float(value)


def _warn_of_unique(columns: Iterable[Column], rows: int) -> None:
    if rows < UNIQUE_ROWS:
        return
    for column in columns:
        name = column.name
        if column.cardinality >= UNIQUE_SHARE * rows:
            warnings.warn(
                f"column {name!r}: {column.cardinality:,} different values in {rows:,} rows. While the attacker "
                "knows it, nearly every cohort is a single row, so every other column looks fully revealed. Exclude it "
                "with columns= (an identifier), or bin it (a measurement)."
                + (" One without a name is often the index of a pandas table: write it with index=False." * (not name)),
                NearlyUniqueWarning,
                stacklevel=4,
            )
