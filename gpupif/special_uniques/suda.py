"""The public `suda`: special uniques, people whom few of their values single out."""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from typing import Any

from ..attack.request import warn_of_unique
from ..encoding.column import Column
from ..engines.choose import choose_engine, requested_device
from ..frames.dask_frame import is_dask
from ..frames.open import device_for
from ..marginals.coded_table import code_columns
from ..rows.threads import Workers
from ..utils.config import resources
from ..utils.progress import Reporter, announce_compilation
from ..utils.validation import Columns
from .request import SudaRequest
from .result import SpecialUniques
from .search import search_codes, search_stream
from .search_time_and_memory import count_sets


def suda(
    table: Any,
    max_size: int | None = None,
    columns: Columns | None = None,
    *,
    weights: Hashable = None,
    missing: str = "category",
    sampling_fraction: float | None = None,
    contributions: bool = False,
) -> SpecialUniques:
    """Find special uniques: rows that few of their values single out, and how many sets of values do so.

    A row is *unique* on a set of columns if no other row agrees with it there. The set is a *minimal sample unique*
    (MSU) of the row if the row is unique on no subset of it. The fewer columns an MSU has, and the more MSUs a row, the
    likelier is the row unique in the population too. An MSU of size k adds to the score of its row

        (m - k) (m - k - 1) ... (m - M),    the product of m - i for i from k to M,

    with m columns and M = max_size (for M = m the last factor, 0, is left out). With M of m - 1 or m that is (m - k)!,
    the score of sdcMicro's ``suda2`` with ``original_scores=TRUE``; for a lower M it is (m - k)! / (m - M - 1)!, which
    ranks rows as the factorials do. Equal rows have no MSU and score 0.

    Parameters
    ----------
    table:
        n rows; as of `gpupif.score`: a pandas, Polars or cuDF DataFrame, a pyarrow Table, the path of a file, a folder
        or a pattern, or a Dask DataFrame, which is searched at once; frames of its rows are then lazy.

        Rows are searched set of columns by set, or by pairs of rows, whichever takes less time: pairs for many columns
        (up to 32) and not too many rows. Which rows are unique on which columns is kept on disk where it does not fit
        into memory (see `gpupif.config`). Files of more than that are read in streams; where not even their distinct
        rows fit, what is unique on each set of columns is counted on disk, and only the MSUs have to fit. Sets of
        columns that do not fit into a GPU's memory, and pairs of rows, are searched on the host. What comes out is the
        same, to the last bit.
    max_size:
        M, the most columns that an MSU may have, from 1 to the number of columns; default 3, or all of fewer columns.
    columns:
        The key variables, each named once; default all, but for that of the weights.
    weights:
        A column with the sampling weight of each row, 1 or more: how many people of the population it stands for. Who
        is unique in the sample does not depend on them; they give DIS and DIS-SUDA scores in place of a sampling
        fraction, for rows that were not all as likely to be in the sample: with W the sum of the weights of the P rows
        in pairs, DIS = U / (U + W - P).
    missing:
        "category": missing values are one value of their own, which can be part of an MSU, so that suppressing a value
        may raise the score of its own row. "ignore", as in sdcMicro's ``suda2``: no MSU of a row has a column that it
        lacks, and a row that lacks a value agrees there with no row that has one, so that suppressing a value may raise
        the score of another row. "wildcard", as of `gpupif.score`: what is missing matches every value, so that a row
        is unique on columns if it lacks none of them and no other row has, or may have, its values there; suppressing a
        value raises no score. "error": refuse missing values. Rows in `unique_rows`, and U and P of DIS, are in any
        case those that are equal with missing values as one value more; so there is no DIS with "wildcard".
    sampling_fraction:
        The share of the population that the table holds, above 0 and up to 1, for DIS-SUDA scores: with U unique rows,
        P rows in pairs of equal rows, DIS = U f / (U f + P (1 - f)), and for a row with score s, as sdcMicro has it,
        1 / (1 + (U / DIS - U) / (s^q A)), q = 1 + (8 - m) / 20, A the sum of s^-q over rows with a score.
    contributions:
        Find also which columns the scores of each row come from; takes 12 bytes a distinct row and column.

    Returns
    -------
    SpecialUniques
        ``.score``, ``.dis_score``, ``.msus`` (numbers of MSUs by size), ``.contributions``: one item a row, of the kind
        of table that came in; ``.summary()``, ``.top(20)``; ``.write(file)``.

    Raises
    ------
    InputError
        No rows, unknown columns (ColumnNotFoundError), values that are no categories (ColumnTypeError), missing values
        under "error", a max_size or sampling_fraction out of range, weights below 1 or beside a sampling fraction,
        either of them with wildcards, more columns and rows than can be searched in two days or than memory is there
        for.
    TableReadError
        A file that cannot be read, or changes meanwhile.
    OutputError
        Temporary files that cannot be written.
    DeviceError
        A GPU that was asked for (`gpupif.config`) and cannot be used, or that fails.

    Warns
    -----
    NearlyUniqueWarning
        A column in which at least 90 % of the rows have different values.

    References
    ----------
    Elliot, Manning and Ford, A computational algorithm for handling the special uniques problem, International Journal
    of Uncertainty, Fuzziness and Knowledge-Based Systems 10 (2002), 493-509. Elliot, Manning, Mayes, Gurd and Bane,
    SUDA: a program for detecting special uniques, Joint UNECE/Eurostat Work Session on Statistical Data Confidentiality
    (2005): scores. Manning, Haglin and Keane, A recursive search algorithm for statistical disclosure assessment, Data
    Mining and Knowledge Discovery 16 (2008), 165-196. Skinner and Elliot, A measure of disclosure risk for microdata,
    Journal of the Royal Statistical Society B 64 (2002), 855-867: DIS. Skinner and Carter, Estimation of a measure of
    disclosure risk for survey microdata under unequal probability sampling, Survey Methodology 29 (2003), 177-180: DIS
    with weights. Templ, Kowarik and Meindl, Statistical disclosure control for micro-data using the R package
    sdcMicro, Journal of Statistical Software 67 (2015): missing values.

    Examples
    --------
    >>> import pandas as pd, gpupif
    >>> people = pd.DataFrame({"sex": ["f", "f", "m", "m"], "job": ["cook", "cook", "cook", "cook"],
    ...                        "home": ["north", "south", "north", "west"]})
    >>> found = gpupif.suda(people)
    >>> found.msus.assign(score=found.score)
       msu_1  msu_2  msu_3  score
    0      0      1      0    1.0
    1      1      0      0    2.0
    2      0      1      0    1.0
    3      1      0      0    2.0

    """
    request = SudaRequest.from_arguments(columns, max_size, missing, sampling_fraction, contributions, weights)
    reads, here = request.reads, resources()
    started = time.perf_counter()
    if is_dask(table):
        from .dask_search import find_in_dask

        return find_in_dask(table, request, requested_device())
    engine = choose_engine(device_for(table, lambda columns: count_sets(columns, request.max_size)))
    with Reporter() as report, announce_compilation():
        if reads.in_streams(table):
            with reads.open_temporary_table(table, report) as stream:
                opened = time.perf_counter()
                request = _fit(request, stream.chunks.columns[: len(reads.chosen(stream.names))], stream.chunks.rows)
                coded, found = search_stream(stream, request, report, here.memory, engine)
        else:
            with Workers() as workers:
                coded = code_columns(table, reads, workers, report)
            opened = time.perf_counter()
            request = _fit(request, coded.columns, coded.rows)
            found = search_codes(coded, request, report, here.memory_limit, here.temp, engine)
    seconds = {"encode": opened - started, "search": time.perf_counter() - opened}
    return SpecialUniques(coded, found, request, seconds)


def _fit(request: SudaRequest, columns: Sequence[Column], rows: int) -> SudaRequest:
    """The request for these columns, with a warning of identifiers; raises InputError for sets of more columns."""
    fitted = request.for_columns(len(columns))
    warn_of_unique(columns, rows)
    return fitted
