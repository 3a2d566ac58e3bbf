"""The public `score`: arguments checked, then the table scored in memory, from files to files, or by Dask."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Unpack, overload

from ..attack.known_subsets import known_of
from ..attack.population import check_lacks, open_population
from ..attack.prior_files import as_accuracies, as_priors
from ..attack.request import MISSING, ask, check_word, needed_columns
from ..engines.choose import ask_device, choose_engine
from ..errors import InputError
from ..frames.dask_frame import is_dask
from ..frames.open import open_table
from ..measures import resolve_measures
from ..out_of_core.options import make_wish
from ..out_of_core.run import score_path
from ..results.scores import Scores
from ..utils.progress import Reporter, announce_compilation
from .arguments import AnyOf, AnyOfStored, Attackers, Known, Measures, People, PeopleStored, Place
from .in_memory import score_frame


@overload
def score(
    table: Any,
    measures: Measures = ...,
    *,
    known: Known = ...,
    attackers: None = ...,
    output: None = ...,
    **more: Unpack[People],
) -> Scores: ...


@overload
def score(
    table: Any,
    measures: Measures = ...,
    *,
    known: None = ...,
    attackers: Attackers,
    output: None = ...,
    **more: Unpack[People],
) -> Scores: ...


@overload
def score(table: Any, measures: Measures = ..., *, known: int, output: None = ..., **more: Unpack[AnyOf]) -> Scores: ...


@overload
def score(
    table: Place,
    measures: Measures = ...,
    *,
    known: Known = ...,
    attackers: None = ...,
    output: Place,
    **more: Unpack[PeopleStored],
) -> Scores: ...


@overload
def score(
    table: Place,
    measures: Measures = ...,
    *,
    known: None = ...,
    attackers: Attackers,
    output: Place,
    **more: Unpack[PeopleStored],
) -> Scores: ...


@overload
def score(
    table: Place, measures: Measures = ..., *, known: int, output: Place, **more: Unpack[AnyOfStored]
) -> Scores: ...


def score(
    table: Any,
    measures: str | Iterable[str] = ("cig", "csf"),
    *,
    columns: Sequence[Hashable] | None = None,
    known: Sequence[Hashable] | int | None = None,
    priors: Any = None,
    accuracies: Any = None,
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
    weights: Hashable = None,
    attackers: Mapping[str, Sequence[Hashable]] | None = None,
    population: Any = None,
    population_lacks: str = "error",
    among: Sequence[Hashable] | None = None,
    subsets: int | None = None,
    seed: int = 0,
    gpu_grouping: str = "auto",
) -> Scores:
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
        ``enhanced_gain``, ``log_ratio``. Of whole rows: ``class_size`` (rows that agree on all of ``known``, the scored
        column too where it is one of these; int64), ``reidentification_risk`` (1 / class size, 0 to 1) and ``unique``
        (1 where the class is one row, else 0): the same whichever of the known columns is scored, so score one. Their
        means are what `gpupif.risk` says of the table: prosecutor risk, and the share of unique rows.
    columns:
        Columns to score; default all.
    known:
        Columns that the attacker knows; default all scored columns. For a target among them, the others of them. An
        empty list: nothing, so that every cohort is the whole table. Or a whole number r: *any* r of the other columns,
        of those scored or of ``among``; each cell gets its worst and its mean score over all attackers who know r of
        them, see Returns. The scored one is none of them, so ``class_size`` is ``cohort_size`` then: for rows, score a
        column that is not in ``among``. All are tried (r = 3 of 20 columns: 969 for each), unless ``subsets`` says
        less. No part of a table holds the cohorts of all of them whole, so its *different* rows have to fit into
        memory: with ``output`` into ``memory_limit``, of a Dask DataFrame into that of one worker, 4 GiB at most, and
        where a GPU scores them into its own. Goes with neither ``weights``, ``attackers``, ``population`` nor
        wildcards.
    priors:
        ``{column: {value: probability}}`` in place of the table's own distribution. Every value that occurs needs a
        probability above 0; further values are fine. None stands for a missing value. A sum within 1e-6 of 1 is made 1.
        Or a table of any kind, or a path of one (Parquet, CSV, Feather), with columns ``column``, ``value`` and
        ``probability``, a row for each value: where ``value`` is text, values are known by their texts, so that "39"
        stands for 39; in CSV it always is, and an empty field is a missing value. `Priors.to_frame` makes such a table.
    accuracies:
        ``{column: a}``: the attacker's knowledge of the column is right with probability a in [0, 1], otherwise drawn
        from the prior: posterior = a c/C + (1 - a) prior. Default 1. Or a table, or a path of one, with columns
        ``column`` and ``accuracy``.
    distances:
        How far the values of a column are apart, for ``emd``: ``{column: "ordered" or "nominal"}``, its values in a
        list, in order (steps), or a hierarchy: ``{value: [names of what it is part of, the narrowest first]}``
        (levels). Default: numbers, dates, times, booleans and ordered categories of a frame (those of files are not
        read as such) are ordered, missing values last.
    missing:
        "category": missing values (None, NaN, NA, NaT, null) are one value of their own, whatever their
        representation; "error": refuse them.

        "wildcard": what is missing or suppressed in a known column matches every value, in the row that is scored and
        in all others, as in sdcMicro's frequency counts (``freqCalc``, alpha = 1): row j is in the cohort of row i
        where the two agree on each known column that neither lacks. Cohorts then overlap, and each row has its own. In
        a scored column a missing value is unknown: such rows count in ``cohort_size``, and in ``class_size`` match
        every value where the column is known too, but they count in no prior or posterior, and what is said of a cell's
        own value (``csf``, ``posterior``, ``prior``, ...) is NaN where that is missing. What is said of its cohort
        (``cig``, ...) is what the others' known values give away of it: suppression is no protection where all of them
        agree, and where none has a value nothing is learnt (0; ``entropy`` and ``recursive_3`` are NaN). The weight of
        wCIG, H(X|known) / H(X), is the mean of -log2(c/C) over the rows with a value, divided by the entropy of these
        values, at most 1: the same number where cohorts do not overlap. Where no used column has missing values, scores
        are those of "category". The work grows with the number of different patterns of missing values. No part of a
        table holds such cohorts whole, so its *different* rows have to fit into memory together: with ``output`` into
        ``memory_limit``, of a Dask DataFrame into that of one worker, 4 GiB at most, and where a GPU scores them into
        its own. Sampling weights have to be above 0.
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
    weights:
        A column with the sampling weight of each row: how many people of the population it stands for, any number of 0
        or more. Priors, posteriors and the weights of wCIG are then shares of weights, and ``cohort_size`` (and
        ``class_size``) the sum of weights (float64): an estimate of its size in the population. ``unique`` is then 1
        where that is at most 1 and above 0, ``reidentification_risk`` at most 1. Sums are exact, whatever the order of
        the rows, for whole weights and multiples of 1/2, 1/4, ...; others are first rounded to multiples of a power of
        two that is less than 2^-60 of their sum. A row of weight 0 stands for nobody: its cells are scored against the
        people who have its known values, and where there are none nothing is learnt: posterior = prior, CIG and CSF 0,
        sizes and re-identification risk 0. A value that only such rows have still lies between others (``emd``). The
        column itself is scored or known only where it is named. Given priors stay as they are. Summaries (FIG, RIG,
        PIF, means) are of the table's cells: each row counts once, whatever its weight.
    attackers:
        ``{"neighbour": ["age", "sex"], "employer": [...]}``: several attackers at once, by name what each knows, in
        place of ``known``.
    population:
        A second table, of any kind or a path, that the table is a sample of, with all columns that are scored or known.
        Its distributions are the priors (given ones stay), and ``scores.population_size`` is, beside the cohort in the
        sample, for each cell the number of its rows that agree on everything the attacker knows (int64): what an
        attacker is up against who does not know who is in the sample (the journalist model). ``class_size``,
        ``reidentification_risk`` and ``unique`` stay those of the table; a row's journalist risk is 1 /
        ``population_size`` of a column that is scored but not known. With ``output`` it is a path, read in streams; for
        a Dask DataFrame a Dask DataFrame, a path of Parquet, or a table in memory.
    population_lacks:
        Where the population lacks rows of the table, those beyond as many equal ones as it has: "error", or "count"
        them as rows of the population too.
    among:
        With ``known=r``: the columns of which the attacker knows any r (but not the target); default all scored.
    subsets, seed:
        With ``known=r``: score only a sample of so many of the subsets of r columns for each target (all where there
        are no more), different ones, drawn at random by a seed, a whole number; the same each time.
    gpu_grouping:
        How a GPU finds rows that agree: "cudf" (cuDF hashes their keys), "rotation" (they are sorted), or "auto":
        "cudf" where it is installed. Scores are the same. Without a GPU only "auto" is taken.

    Returns
    -------
    Scores
        ``scores.cig``, ``scores["csf"]``, ...: n rows by scored columns, a frame of the kind that came in with the same
        rows, order, index and column names (pandas for a path); with ``output`` a `StoredFrame`, which reads the files
        when it is asked to; of a Dask DataFrame a Dask frame, which computes when Dask is asked to, and raises then
        what only the data show. ``scores.summary()``, ``top(n)``, ``fig()``, ``rig()``, ``pif(n)``, ``priors``,
        ``weights``, ``to_parquet(file)``: see `Scores`.

        With a number for ``known``, ``scores.worst`` and ``scores.mean`` are the worst and the mean scores, and
        ``scores.subsets`` says how many attackers there were; score columns in files are named
        <measure>_worst_<column> and <measure>_mean_<column>. With ``attackers``, ``scores.against(name)`` are the
        scores against one, and ``scores.worst`` the worst of each cell over all; score columns of all attackers stand
        beside each other, named <attacker>_<measure>_<column>.

    Raises
    ------
    InputError
        No rows, no columns, duplicate column names, unknown columns (ColumnNotFoundError), lists or structs
        (ColumnTypeError), priors that are no distribution over the column's values (PriorError), accuracies outside
        [0, 1], weights that are missing, negative or infinite, or sum to 0, rows that the population lacks, missing
        values under "error", too many patterns of them under "wildcard", or more different rows than fit (also with
        ``known=r``), which goes with neither a population nor weights of 0; an unknown word for an argument; more known
        columns than there are others, or more subsets of them than can be scored; what does not go with ``known=r``; on
        a GPU, a column of a file of a type that cuDF lacks.
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
    where = ask_device(device, gpu_grouping)
    check_word("dtype", dtype, ("float64", "float32"))
    check_lacks(population_lacks)
    priors, accuracies = as_priors(priors), as_accuracies(accuracies)
    files = (output, memory_limit, temp, rows_per_file, resume, overwrite, keep_input)
    asked_known = known_of(known, among, subsets, seed)
    if is_dask(table):
        from ..dask.score import score_dask

        if any(files):
            raise InputError("output: scores of a Dask frame are written by their to_parquet. Leave output= out.")
        people = (weights, attackers)
        rest = (priors, accuracies, distances, missing, where, dtype, *people, population, population_lacks)
        return score_dask(table, wanted, columns, asked_known, *rest)
    wish = make_wish(*files) if any(files) else None
    engine = choose_engine(where)
    given = {
        "columns": columns,
        "known": asked_known,
        "priors": priors,
        "accuracies": accuracies,
        "weights": weights,
        "attackers": attackers,
        "distances": distances,
    }
    with Reporter(progress) as report, announce_compilation(quiet=progress is False):
        if wish is not None:
            asked = partial(ask, measures=wanted, missing=missing, dtype=dtype, **given)
            return score_path(table, asked, engine, wish, report, population, population_lacks)
        frame = open_table(table, needed_columns(**given), engine.frames)
        question = ask(
            frame.names, frame.index_names, wanted, missing=missing, dtype=dtype, orders=frame.orders(), **given
        )
        other = None if population is None else open_population(population, question.used)
        return score_frame(frame, question, engine, report, other, population_lacks)
