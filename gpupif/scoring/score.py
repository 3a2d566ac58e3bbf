"""The public function `score`: arguments are checked, then the table is scored in memory, or by Dask.

In memory, columns are encoded once; then the engine scores them for each attacker.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from ..attack.arguments import Arguments, Knowledge, Measures
from ..attack.population import match_population, open_population
from ..attack.request import ScoreRequest
from ..attack.roles import score_by_roles, with_roles
from ..attack.weights import TableWeights, weigh_table
from ..encoding.column import EncodedTable
from ..encoding.encode import encode_table
from ..engines.attacker_scoring import score_attacker
from ..engines.base import AnyKnownResult, Engine
from ..engines.choose import choose_engine, requested_device
from ..engines.distinct_table import DistinctTable
from ..errors import WarnOnce
from ..frames.base import Frame
from ..frames.dask_frame import is_dask
from ..frames.open import device_for, open_table
from ..measures import POPULATION_SIZE
from ..results.backing import AttackerOutcome
from ..results.in_memory import MemoryBacking, TableExplainer
from ..results.provenance import describe_frame, describe_run
from ..results.score_outputs import ScoredAttacker, for_each_aggregate
from ..results.scores import Scores
from ..rows.threads import Workers
from ..utils.progress import Reporter, announce_compilation
from ..utils.validation import Columns

if TYPE_CHECKING:
    import numpy.typing as npt


def score(
    table: Any,
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
) -> Scores:
    """Score every cell by the information about its value that an attacker gains from the rest of the table.

    Device, memory limit and threads are set by `config`.

    The attacker knows some columns of a person. For a scored column, the rows that agree on all known columns are a
    *cohort*. A cell's *posterior* is the share of its cohort with the cell's value. Its *prior* is the share of the
    whole table with this value.

    Parameters
    ----------
    table:
        A table of n rows by m columns: a pandas, Polars or cuDF DataFrame, a pyarrow Table, or any object with
        ``__arrow_c_stream__``. Or a path: of a Parquet file, a folder of Parquet files, a CSV file (UTF-8; its
        separator is detected), or a Feather file. Or a Dask DataFrame of pandas or cuDF, see Returns. Each value is a
        category, numbers too.
    measures:
        Names of measures, as ``gpupif measures`` lists them. Default: cig and csf.

        Measures of cells: ``cig`` (cell information gain, bits), ``wcig`` (weighted CIG, bits), ``csf`` (cell surprise
        factor, 0 to 1), ``posterior``, ``prior`` (probabilities), ``cohort_size`` (rows, int64),
        ``pointwise_information``, ``information_content``, ``jensen_shannon``, ``entropy`` (bits), ``renyi_2``,
        ``renyi_inf``, ... (bits, any order of 0 or more), ``total_variation``, ``hellinger`` (0 to 1), ``emd`` (earth
        mover's distance), ``distinct_values``, ``recursive_3``, ... (l-diversity), ``relative_gain``,
        ``enhanced_gain``, ``log_ratio``.

        Measures of rows: ``class_size`` (rows that agree on all known columns, the scored column included if it is
        known; int64), ``reidentification_risk`` (1 / class size, 0 to 1), ``individual_risk`` (1 / class size, or
        with ``weights`` the risk of Benedetti & Franconi), ``unique`` (1 if the class is a single row, else 0). A row
        has the same score in every known column, so a single scored column is enough. The means of these measures are
        figures of `gpupif.risk`: prosecutor risk, global risk, and the share of unique rows.
    columns:
        Scored columns: a name or a list of names. Default: all columns.
    known:
        The known columns: a name or a list of names. Default: all scored columns. If a scored column is known, the
        attacker knows the other known columns. An empty list or 0: the attacker knows nothing, and every cohort is the
        whole table.

        Or a whole number r: an attacker knows *any* r of the other scored columns. Each cell gets its worst and its
        mean score over all attackers who know r columns, see Returns. `AnyKnown` restricts the columns, or the number
        of subsets; otherwise all subsets are tried (r = 3 of 20 columns: 969 subsets for each scored column). The
        scored column is never known, so ``class_size`` equals ``cohort_size``: for measures of rows, score a column
        that the attacker does not know. A score that is unknown (NaN) against some attackers counts in neither the
        worst nor the mean.

        No partition of a table has all cohorts of all subsets whole, so the *distinct* rows must fit into memory. For
        files that is the memory limit (`config`). For a Dask DataFrame it is half of the memory of a worker (4 GiB for
        a worker without a limit). If a GPU scores the rows, it is the memory of the GPU.
    attackers:
        Several attackers at once, in place of ``known``: a dictionary from a name to the columns that the attacker
        knows, in any form of ``known``. ``{"neighbour": ["age", "sex"], "anyone": 2}``.
    priors:
        Distributions in place of the table's own distribution of a scored column:
        ``{column: {value: probability}}``. Every value that occurs needs a probability above 0; more values are
        allowed. None is the missing value. A sum within 1e-6 of 1 is made 1. Priors of columns that are not scored are
        ignored.

        Or a table of any kind, or a path (Parquet, CSV, Feather), with the columns ``column``, ``value`` and
        ``probability``, and a row for each value. If ``value`` is text, values are compared by their texts, so that
        "39" means 39. In CSV it is always text, and an empty field is a missing value. `Priors.to_frame` makes such a
        table.
    accuracies:
        The accuracy a of the attacker's knowledge for a scored column, in [0, 1]: ``{column: a}``. The posterior is
        then a c/C + (1 - a) prior. Default: 1. Accuracies of columns that are not scored are ignored. Or a table, or a
        path, with the columns ``column`` and ``accuracy``.
    distances:
        The distances between the values of a column, for ``emd``. ``{column: "ordered"}`` or ``{column: "nominal"}``;
        or a list of the column's values in order (distances in steps); or a hierarchy (distances in levels):
        ``{value: [names of its groups, the narrowest first]}``.

        Or the path of a file, with values as texts: a hierarchy in CSV in the form of ARX, with a line
        ``value;level1;...;*`` for each value and no header; or a list or a hierarchy in JSON.

        Default: numbers, dates, times, booleans and ordered categories of a frame are ordered, with missing values
        last; all other values are nominal. Files do not keep the order of categories.
    weights:
        The name of a column of sampling weights. A sampling weight is the number of people of the population that the
        row stands for: any number of 0 or more. The column is scored or known only if it is named.

        Priors, posteriors and the weights of wCIG are then shares of sampling weights. ``cohort_size`` and
        ``class_size`` are sums of sampling weights (float64), which estimate the sizes in the population. ``unique`` is
        1 if the class has at most 1 person and more than 0. ``reidentification_risk`` is at most 1.
        ``individual_risk`` uses the rows of the class, also rows of weight 0, and the sum of their weights. Given
        priors are not changed. Summaries (FIG, RIG, PIF, means) are over the table's cells: each row counts once.

        Sums of whole weights, and of multiples of 1/2, 1/4, ..., are exact in any order of the rows. Other weights are
        first rounded to multiples of a power of two that is less than 2^-60 of their sum.

        A row of weight 0 stands for nobody. Its cells are scored against the people who have its known values. If there
        are none, nothing is learnt: posterior = prior, CIG and CSF are 0, sizes and re-identification risk are 0. A
        value that only such rows have adds no step between ordered values (``emd``).
    population:
        A second table, of any kind or a path, of which the table is a sample. It has all scored and known columns.
        `Population` also says what to do with rows that the population lacks.

        The distributions of the population are the priors, unless priors are given. ``scores.population_size`` is the
        number of rows of the population that agree on all known columns (int64), for each cell. It counts for an
        attacker who does not know who is in the sample (the journalist model). ``class_size``,
        ``reidentification_risk`` and ``unique`` are computed from the table. A row's journalist risk is
        1 / ``population_size`` of a scored column that is not known.

        For files, the population is a path, which is read in streams. For a Dask DataFrame it is a Dask DataFrame, a
        path of Parquet, or a table in memory. If missing values are wildcards, only values can be lacking, not rows. A
        row that agrees with no row of the population then counts itself.
    missing:
        The treatment of missing values. Default: "category".

        "category": missing values (None, NaN, NA, NaT, null) are a value of their own, whatever their representation.

        "error": missing values are refused.

        "wildcard": a missing or suppressed value in a known column matches every value, in the scored row and in all
        other rows, as in sdcMicro's frequency counts (``freqCalc``, alpha = 1). Row j is in the cohort of row i if both
        agree on each known column in which both have a value. Cohorts then overlap, and each row has its own cohort.

        In a scored column, a missing value is unknown. Rows with a missing value count in ``cohort_size``, but in no
        prior and no posterior. If the scored column is known too, they match every value in ``class_size``. Measures of
        a cell's own value (``csf``, ``posterior``, ``prior``, ...) are NaN if the value is missing. Measures of the
        cohort (``cig``, ...) tell how much the values of the cohort reveal about the missing value. If all these values
        agree, suppression is no protection. If no row of the cohort has a value, nothing is learnt (0; ``entropy`` and
        ``recursive_3`` are NaN).

        The weight of wCIG, H(X|known) / H(X), is the mean of -log2(c/C) over the rows with a value, divided by the
        entropy of these values, at most 1. If cohorts do not overlap, it is the weight of "category". If no used column
        has missing values, scores are the scores of "category".

        The work grows with the number of distinct patterns of missing values. No partition of a table has such cohorts
        whole, so the *distinct* rows must fit into memory, see ``known``.
    dtype:
        The type of the scores, "float64" or "float32". All is computed in float64. Default: "float64".
    roles:
        The roles of the columns, from `gpupif.read_roles`, or the path of a file of roles. They fill arguments that are
        not given: quasi-identifiers and sensitive attributes are scored, the attacker knows the quasi-identifiers, and
        the column with the role of weights has the sampling weights. With a number r for ``known``, the attacker knows
        any r quasi-identifiers. Every column of the table needs a role.

    Returns
    -------
    Scores
        ``scores.cig``, ``scores["csf"]``, ...: n rows by the scored columns, a frame of the kind of ``table`` with its
        rows, order, index and column names (pandas for a path). For a Dask DataFrame it is a Dask frame, which computes
        when Dask is asked to. Errors that depend on the data are raised then. `Scores` has ``summary()``, ``top(n)``,
        ``fig()``, ``rig()``, ``pif(n)``, ``priors``, ``weights``, ``to_parquet(file)`` and more.

        With a number for ``known``, ``scores.worst`` and ``scores.mean`` are the worst and the mean scores, and
        ``scores.subsets`` is the number of attackers. In files, score columns are named <measure>_worst_<column> and
        <measure>_mean_<column>.

        With ``attackers``, ``scores.against(name)`` are the scores against one attacker, and ``scores.worst`` has the
        worst score of each cell over all attackers. A file has the score columns of all attackers, named
        <attacker>_<measure>_<column>.

    Raises
    ------
    InputError
        A table without rows or columns, duplicate column names, unknown columns (ColumnNotFoundError), lists or structs
        (ColumnTypeError). Priors that are no distribution over the column's values (PriorError), accuracies outside
        [0, 1]. Weights that are missing, negative or infinite, or whose sum is 0. Rows that the population lacks.
        Missing values under "error", too many patterns of missing values under "wildcard". More distinct rows than fit
        into memory under "wildcard" or ``known=r``. An unknown word for an argument. More known columns than there are
        other columns, or more subsets of them than can be scored. On a GPU, a column of a file of a type that cuDF
        lacks.
    TableReadError
        A file that cannot be read, or that changes while it is read.
    DeviceError
        A GPU that was requested (`config`) and cannot be used, that fails, or whose memory is too small.

    Warns
    -----
    NearlyUniqueWarning
        A table of 50 or more rows with a column in which at least 90 % of the rows have distinct values.
    NothingKnownWarning
        A single column of several is scored, and ``known`` is not given or names only this column. ``known=[]`` and
        ``known=0`` say it expressly, and cause no warning.

    References
    ----------
    piflib manual, CSIRO Data61: CIG section 1.4, weighted CIG 1.5, CSF 1.6, summaries 1.7. Missing values as wildcards:
    Templ, Kowarik & Meindl, Statistical Disclosure Control for Micro-Data Using the R Package sdcMicro (2015).

    Examples
    --------
    A suppressed status may be any status, so the last person matches all persons (from sdcMicro's tests of frequency
    counts):

    >>> import pandas
    >>> status = ["single", "married", "married", "single", None]
    >>> table = pandas.DataFrame({"name": list("abcde"), "status": status})
    >>> scores = score(table, "cohort_size", columns=["name"], known=["status"], missing="wildcard")
    >>> scores.cohort_size["name"].tolist()
    [3, 3, 3, 3, 5]

    """
    if roles is not None:
        table, by_role = with_roles(table, roles)
        columns, known, attackers, weights = score_by_roles(by_role, columns, known, attackers, weights)
    return score_table(
        table,
        Arguments.from_user(
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
        ),
    )


def score_table(table: Any, arguments: Arguments, origin: Mapping[str, Any] | None = None) -> Scores:
    """Return the scores of a table, see `score`. origin: the source of a Dask frame, if known; see `provenance`."""
    if is_dask(table):
        from ..dask.scoring_graph import score_dask

        return score_dask(table, arguments, requested_device(), origin)
    engine = choose_engine(device_for(table, arguments.known_sets))
    with Reporter() as report, announce_compilation():
        frame = open_table(table, arguments.needed, engine.frames)
        request = arguments.make_request(frame.names, frame.index_names, frame.orders())
        people = arguments.population
        other = None if people is None else open_population(people.table, request.used)
        lacks = "error" if people is None else people.lacks
        return score_frame(frame, request, engine, report, other, lacks)


def score_frame(
    frame: Frame, request: ScoreRequest, engine: Engine, report: Reporter, population: Frame | None, lacks: str
) -> Scores:
    """Return the scores of a table in memory.

    population: the table of the population, if any. lacks: what to do with rows that it lacks, see `Population`.
    """
    opened = time.perf_counter()
    with frame.active():
        encoded, weighted = encode_frame(frame, request, report)
    people = None if population is None else match_population(population, encoded.columns, request.missing, lacks)
    coded = time.perf_counter()
    requests = request.by_attacker()
    attackers = {name: ScoredAttacker.from_request(name, own, frame.rows) for name, own in requests.items()}
    subsets = [attacker.subsets for attacker in attackers.values()]
    cells = sum(len(request.scored_columns) if own is None else sum(own.scored.values()) for own in subsets)
    report.stage("score", frame.rows * cells, "cells")
    on_warning, through_host = WarnOnce(), ""
    distinct = None
    if len(requests) > 1 and engine.shares_distinct_rows:
        codes, sizes = [column.codes for column in encoded.columns], [len(column.counts) for column in encoded.columns]
        distinct = DistinctTable.from_codes(codes, sizes, None if weighted is None else weighted.multiplicities)
    values: dict[str, Any] = {}
    outcomes: list[AttackerOutcome] = []
    for name, own_request in requests.items():
        own_names = {*own_request.used}
        used = [column for column in encoded.columns if column.name in own_names]
        with frame.active():
            priors = None if people is None else people.priors(used)
            job, prior_of = own_request.job(used, frame.rows, frame.scores_on, on_warning, weighted, priors)
        attacker = attackers[name]
        sets = None if attacker.subsets is None else attacker.subsets.sets
        if distinct is None:
            result = score_attacker(engine, job, sets, report)
        else:
            places = [request.used.index(name) for name in own_request.used]
            result = distinct.score(engine, job, places, sets, report)
        if people is not None:
            for aggregate, rows in people.sizes(own_request, attacker.subsets, engine).items():
                typed = rows.astype(job.dtype, copy=False) if rows.dtype.kind == "f" else rows
                result.by_aggregate()[aggregate][POPULATION_SIZE.name] = _beside_scores(typed, frame, engine)
        weights = result.weights if isinstance(result, AnyKnownResult) else ()
        explainer = TableExplainer(frame, used, job, attacker.subsets, weights)
        outcomes.append(
            AttackerOutcome(
                attacker, for_each_aggregate(result.weights_by_aggregate()), result.distinct_rows, explainer
            )
        )
        values |= attacker.named(result.by_aggregate())
        through_host = through_host or result.through_host
    about = describe_run(
        request,
        describe_frame(frame),
        engine.device,
        by_stage(frame, coded - opened, time.perf_counter() - coded),
        None if population is None else describe_frame(population),
        lacks,
        through_host,
    )
    return Scores(MemoryBacking(frame, about, outcomes, values, prior_of))


def _beside_scores(sizes: npt.NDArray[Any], frame: Frame, engine: Engine) -> Any:
    """Return sizes that were counted on the host, on the frame's device if the scores are there."""
    library = frame.device_frames() if frame.scores_on == "device" and engine.device != "cpu" else None
    if library is None:
        return sizes
    with frame.active():
        return library.xp.asarray(sizes)


def by_stage(frame: Frame, encode: float, score: float) -> dict[str, float]:
    """Return the seconds of each stage. Reading and encoding are a single stage for a frame that `reads_late`."""
    if not frame.from_file:
        return {"encode": encode, "score": score}
    if frame.reads_late:
        return {"read and encode": frame.opened_in + encode, "score": score}
    return {"read": frame.opened_in, "encode": encode, "score": score}


def encode_frame(frame: Frame, request: ScoreRequest, report: Reporter) -> tuple[EncodedTable, TableWeights | None]:
    """Return the scored and the known columns as codes, and the sampling weights; None without weights."""
    report.stage("encode", len(request.read), "columns")
    places = {name: place for place, name in enumerate(frame.names)}
    arrays = [frame.column(places[name]) for name in request.read]
    with Workers() as workers:
        encoded = encode_table(request.read, arrays, frame.rows, request.missing, workers, report.advance)
        if request.weights is None:
            return encoded, None
        column = encoded.columns[request.read.index(request.weights)]
        used = encoded.columns[: len(request.used)]
        return EncodedTable(used, frame.rows), weigh_table(used, column, workers)
