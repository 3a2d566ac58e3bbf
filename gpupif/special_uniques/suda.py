"""The public function `suda`: special uniques, people whom few of their values single out."""

from __future__ import annotations

import os
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
from .search_time_and_memory import check_sets, count_sets


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
    """Find special uniques: rows that few of their values single out. Score each row by the sets of values that do so.

    A row is *unique* on a set of columns if no other row agrees with it there. The set is a *minimal sample unique*
    (MSU) of the row if the row is unique on no subset of it. The fewer columns an MSU has, and the more MSUs a row, the
    likelier the row is unique in the population too. An MSU of size k adds to the score of its row

        (m - k) (m - k - 1) ... (m - M),    the product of m - i for i from k to M,

    with m columns and M = max_size (for M = m the last factor, 0, is left out). With M of m - 1 or m that is (m - k)!,
    the score of sdcMicro's ``suda2`` with ``original_scores=TRUE``. For a lower M it is (m - k)! / (m - M - 1)!, which
    ranks rows as the factorials do. Equal rows have no MSU and score 0.

    Parameters
    ----------
    table:
        n rows, of any kind that `gpupif.score` takes: a pandas, Polars or cuDF DataFrame, a pyarrow Table, the path of
        a file, a folder or a pattern, or a Dask DataFrame. A Dask DataFrame is searched at once; frames of its rows are
        lazy.

        Rows are searched set by set of columns, or by pairs of rows, whichever takes less time. Pairs are faster for
        many columns (up to 32) and not too many rows. The rows that are unique on each set are kept on disk if they do
        not fit into memory (see `gpupif.config`). Files that do not fit into memory are read in streams. If not even
        their distinct rows fit, combinations are counted on disk, and only the MSUs have to fit. Pairs of rows, and
        sets of columns that do not fit into a GPU's memory, are searched on the host. The result is the same to the
        last bit.
    max_size:
        M, the most columns that an MSU may have, from 1 to the number of columns. Default: 3, or the number of columns
        if it is smaller.
    columns:
        The key variables, each named once. Default: all columns except the column of the weights.
    weights:
        A column with the sampling weight of each row, 1 or more: how many people of the population the row represents.
        MSUs and scores do not depend on it. It gives DIS and DIS-SUDA scores in place of a sampling fraction, if rows
        were not equally likely to be in the sample: DIS = U / (U + W - P), with U unique rows, P rows in pairs of equal
        rows, and W the sum of the weights of the rows in pairs.
    missing:
        How missing values are read. `unique_rows`, and U and P of DIS, always read them as "category" does; so there is
        no DIS with "wildcard".

        * "category": missing values of a column are a value of their own, which can be part of an MSU. Suppressing a
          value may raise the score of its own row.
        * "ignore", as in sdcMicro's ``suda2``: a row has no MSU with a column in which its value is missing. There it
          agrees with no row that has a value. Suppressing a value may raise the score of another row.
        * "wildcard", as in `gpupif.score`: a missing value matches every value. A row is unique on columns if none of
          its values there is missing, and no other row has, or may have, the same values. Suppressing a value raises no
          score.
        * "error": missing values are refused.
    sampling_fraction:
        f, the share of the population that the table holds, above 0 and up to 1, for DIS-SUDA scores. With U unique
        rows and P rows in pairs of equal rows, DIS = U f / (U f + P (1 - f)). The DIS-SUDA score of a row with score s
        is, as in sdcMicro, 1 / (1 + (U / DIS - U) / (s^q A)), with q = 1 + (8 - m) / 20 and A the sum of s^-q over the
        rows with a score.
    contributions:
        Whether to find which columns the score of each row comes from. This takes 12 bytes for each distinct row and
        column.

    Returns
    -------
    SpecialUniques
        ``.score``, ``.dis_score``, ``.msus`` (numbers of MSUs by size), ``.contributions``: one item for each row, of
        the kind of the table; ``.summary()``, ``.top(20)``; ``.write(file)``.

    Raises
    ------
    InputError
        If the table has no rows, a column is unknown (ColumnNotFoundError), values are no categories (ColumnTypeError),
        values are missing under "error", max_size or sampling_fraction is out of range, a weight is below 1, weights
        and a sampling fraction are given together, or either with wildcards, or a search takes more than two days or
        more memory than there is.
    TableReadError
        If a file cannot be read, or changes while it is read.
    OutputError
        If temporary files cannot be written.
    DeviceError
        If a requested GPU (`gpupif.config`) cannot be used, or fails.

    Warns
    -----
    NearlyUniqueWarning
        If at least 90 % of the rows of a column have different values.

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
    return SpecialUniques(coded, found, request, seconds, table if isinstance(table, str | os.PathLike) else None)


def _fit(request: SudaRequest, columns: Sequence[Column], rows: int) -> SudaRequest:
    """Return the request for these columns, and warn of identifiers.

    Raises InputError for a larger max_size, or too many sets of columns.
    """
    fitted = request.for_columns(len(columns))
    check_sets(len(columns), fitted.max_size)
    warn_of_unique(columns, rows)
    return fitted
