"""The public `score`: arguments checked, then the table scored in memory, or by Dask."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from ..attack.arguments import Arguments, Knowledge, Measures
from ..attack.population import open_population
from ..attack.roles import ScoreRoles, with_roles
from ..engines.choose import choose_engine, requested_device
from ..frames.dask_frame import is_dask
from ..frames.open import device_for, open_table
from ..results.scores import Scores
from ..utils.progress import Reporter, announce_compilation
from ..utils.validation import Columns
from .in_memory import score_frame


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
    """Score every cell for what an attacker who knows everything else about a person would learn from it.

    On which device, with how much memory and how many threads it computes, `config` says.

    For a scored column column the rows that agree on all columns the attacker knows are a *cohort*. The share of the
    cohort with the cell's value is its *posterior* probability, the share of the whole table with it the *prior*.

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
        column too where it is one of these; int64), ``reidentification_risk`` (1 / class size, 0 to 1),
        ``individual_risk`` (the same; with ``weights`` Benedetti & Franconi's, by the rows of the class and the people
        that these stand for) and ``unique`` (1 where the class is one row, else 0): the same whichever of the known
        columns is scored, so score one. Their means are what `gpupif.risk` says of the table: prosecutor risk, global
        risk, and the share of unique rows.
    columns:
        Columns to score, a name or a list of several; default all.
    known:
        What the attacker knows: columns, a name or a list; default all scored ones. For a scored column among them,
        the others of them. An empty list, or 0: nothing, so that every cohort is the whole table.

        Or a whole number r, or `AnyKnown`, which says of which columns and how many of their subsets: *any* r of the
        other columns that are scored; each cell gets its worst and its mean score over all attackers who know r of
        them, see Returns. The scored one is none of them, so ``class_size`` is ``cohort_size`` then: for rows, score a
        column that the attacker does not know. All subsets are tried (r = 3 of 20 columns: 969 for each), unless
        `AnyKnown` says less. No part of a table holds the cohorts of all of them whole, so its *different* rows have to
        fit into memory: of files into the memory limit (`config`), of a Dask DataFrame into half of that of one worker
        (4 GiB where it has no limit), and where a GPU scores them into its own. A score that is unknown (NaN) against
        some attackers counts in neither the worst nor the mean.
    attackers:
        ``{"neighbour": ["age", "sex"], "anyone": 2}``: several attackers at once, by name what each knows, as ``known``
        says it, in place of that.
    priors:
        ``{column: {value: probability}}`` in place of the table's own distribution, of scored columns: those of columns
        that are only known play no role. Every value that occurs needs a probability above 0; further values are fine.
        None stands for a missing value. A sum within 1e-6 of 1 is made 1. Or a table of any kind, or a path of one
        (Parquet, CSV, Feather), with columns ``column``, ``value`` and ``probability``, a row for each value: where
        ``value`` is text, values are known by their texts, so that "39" stands for 39; in CSV it always is, and an
        empty field is a missing value. `Priors.to_frame` makes such a table.
    accuracies:
        ``{column: a}``: how far what the attacker concludes about a scored column is trusted, a in [0, 1]: posterior =
        a c/C + (1 - a) prior. Default 1. Those of columns that are only known play no role. Or a table, or a path of
        one, with columns ``column`` and ``accuracy``.
    distances:
        How far the values of a column are apart, for ``emd``: ``{column: "ordered" or "nominal"}``, its values in a
        list, in order (steps), or a hierarchy: ``{value: [names of what it is part of, the narrowest first]}``
        (levels). Or the path of a file, with values by their texts: a hierarchy in CSV as ARX keeps them, a line
        ``value;level1;...;*`` for each value and no header, or either in JSON. Default: numbers, dates, times, booleans
        and ordered categories of a frame (those of files are not read as such) are ordered, missing values last.
    weights:
        A column with the sampling weight of each row: how many people of the population it stands for, any number of 0
        or more. Priors, posteriors and the weights of wCIG are then shares of weights, and ``cohort_size`` (and
        ``class_size``) the sum of weights (float64): an estimate of its size in the population. ``unique`` is then 1
        where that is at most 1 and above 0, ``reidentification_risk`` at most 1; ``individual_risk`` is of the rows of
        the class, those of weight 0 too, and its people. Sums are exact, whatever the order of
        the rows, for whole weights and multiples of 1/2, 1/4, ...; others are first rounded to multiples of a power of
        two that is less than 2^-60 of their sum. A row of weight 0 stands for nobody: its cells are scored against the
        people who have its known values, and where there are none nothing is learnt: posterior = prior, CIG and CSF 0,
        sizes and re-identification risk 0. A value that only such rows have still lies between others (``emd``). The
        column itself is scored or known only where it is named. Given priors stay as they are. Summaries (FIG, RIG,
        PIF, means) are of the table's cells: each row counts once, whatever its weight.
    population:
        A second table, of any kind or a path, that the table is a sample of, with all columns that are scored or known;
        or `Population`, which says what to do with rows that it lacks. Its distributions are the priors (given ones
        stay), and ``scores.population_size`` is, beside the cohort in the sample, for each cell the number of its rows
        that agree on everything the attacker knows (int64): what an attacker is up against who does not know who is in
        the sample (the journalist model). ``class_size``, ``reidentification_risk`` and ``unique`` stay those of the
        table; a row's journalist risk is 1 / ``population_size`` of a column that is scored but not known. For files it
        is a path, read in streams; for a Dask DataFrame a Dask DataFrame, a path of Parquet, or a table in memory.
        Where missing values are wildcards no row is known to be lacking, only values are, and a row with which none of
        the population agrees counts itself.
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
        table holds such cohorts whole, so its *different* rows have to fit into memory together: of files into the
        memory limit, of a Dask DataFrame into half of that of one worker (4 GiB where it has no limit), and where a GPU
        scores them into its own.
    dtype:
        "float64" or "float32" of the results; all is computed in float64.
    roles:
        Roles of the columns, as of `gpupif.read_roles`, or the path of a file of them, for what no other argument says:
        quasi-identifiers and sensitive attributes are scored, the attacker knows the quasi-identifiers (with a number,
        any so many of these), and the column of weights has them. Every column of the table needs a role.

    Returns
    -------
    Scores
        ``scores.cig``, ``scores["csf"]``, ...: n rows by scored columns, a frame of the kind that came in with the same
        rows, order, index and column names (pandas for a path). For a Dask DataFrame a Dask frame, which computes when
        Dask is asked to, and raises then what only the data show. ``scores.summary()``, ``top(n)``, ``fig()``,
        ``rig()``, ``pif(n)``, ``priors``, ``weights``, ``to_parquet(file)``: see `Scores`.

        With a number for ``known``, ``scores.worst`` and ``scores.mean`` are the worst and the mean scores, and
        ``scores.subsets`` says how many attackers there were; in files score columns are named
        <measure>_worst_<column> and <measure>_mean_<column>. With ``attackers``, ``scores.against(name)`` are the
        scores against one, and ``scores.worst`` has the worst of each cell over all; in files score columns of all
        stand beside each other, named <attacker>_<measure>_<column>.

    Raises
    ------
    InputError
        No rows, no columns, duplicate column names, unknown columns (ColumnNotFoundError), lists or structs
        (ColumnTypeError), priors that are no distribution over the column's values (PriorError), accuracies outside
        [0, 1], weights that are missing, negative or infinite, or sum to 0, rows that the population lacks, missing
        values under "error", too many patterns of them under "wildcard", or more different rows than fit (also with
        ``known=r``); an unknown word for an argument; more known columns than there are others, or more subsets of them
        than can be scored; on a GPU, a column of a file of a type that cuDF lacks.
    TableReadError
        A file that cannot be read, or changes meanwhile.
    DeviceError
        A GPU that was asked for (`config`) and cannot be used, that fails or whose memory is too small.

    Warns
    -----
    NearlyUniqueWarning
        A column in which at least 90 % of the rows, of 50 or more, have different values.
    NothingKnownWarning
        One of several columns is scored and ``known`` is not given, or names that column alone. ``known=[]`` and
        ``known=0`` say so in as many words, and are not warned of.

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
    asked = ScoreRoles(columns, known, attackers, weights)
    if roles is not None:
        table, found = with_roles(table, roles)
        asked = asked.filled(found)
    return score_table(
        table,
        Arguments.of(
            measures,
            asked.columns,
            known=asked.known,
            attackers=asked.attackers,
            priors=priors,
            accuracies=accuracies,
            distances=distances,
            weights=asked.weights,
            population=population,
            missing=missing,
            dtype=dtype,
        ),
    )


def score_table(table: Any, arguments: Arguments, origin: Mapping[str, Any] | None = None) -> Scores:
    """See `score`. origin: where a Dask frame came from, if that is known; see `provenance`."""
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
