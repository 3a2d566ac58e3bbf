"""The public `suda`: special uniques, people whom few of their values single out."""

from __future__ import annotations

import os
import time
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from gpupif.kernels.spread import look_up

from ..attack.request import warn_of_unique
from ..engines.choose import asked_device, choose_engine
from ..errors import InputError
from ..frames.dask_frame import is_dask
from ..io.write import check_output, row_groups, write_tables
from ..marginals.coded_table import Coded, chosen_of, code_columns
from ..out_of_core.temporary_table import in_streams, open_stream
from ..results.riskiest import highest
from ..rows.threads import Workers
from ..utils.config import resources
from ..utils.progress import Reporter, announce_compilation
from ..utils.quantities import whole_number, within
from .search import search_codes, search_stream
from .search_by_counting import FewRows
from .summary import TOP_ROWS, SudaSummary, summarize_suda
from .weights import check_size, dis_suda, intrusion, msu_weights

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..encoding.column import Column
    from .search_in_memory import Uniques


class SpecialUniques:
    """Minimal sample uniques (MSU) and SUDA scores of all rows of a table; made by `gpupif.suda`.

    columns: that were searched. max_size: of the sets of columns. rows: of the table. unique_rows: that differ from all
    others on all columns together. dis: the share of matches with unique rows that are right (DIS), None without a
    sampling fraction. spilled_bytes: that memory had no room for, so that they went to a temporary file. seconds: wall
    time by stage. All frames are of the kind that came in, with its rows and index.
    """

    def __init__(
        self,
        coded: Coded,
        found: Uniques,
        weights: Sequence[float],
        sampling_fraction: float | None,
        seconds: Mapping[str, float],
    ) -> None:
        self.columns = coded.names
        self.max_size = len(weights)
        self.rows = coded.rows
        self.seconds = dict(seconds)
        self.unique_rows = found.unique
        self.weights = tuple(weights)
        self.spilled_bytes = found.spilled
        self._frame = coded.frame
        self._found = found
        self._scores = np.zeros(found.counts.shape[1])
        for counts, weight in zip(found.counts, weights, strict=True):
            self._scores += weight * counts
        self.dis: float | None = None
        self._dis_scores: npt.NDArray[np.float64] | None = None
        if sampling_fraction is not None:
            self.dis = intrusion(self.unique_rows, found.pairs, sampling_fraction)
            self._dis_scores = dis_suda(self._scores, self.unique_rows, self.dis, len(self.columns))

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} of {self.rows:,} rows x {len(self.columns)} columns, sets of up to "
            f"{self.max_size}: {int((self._scores > 0).sum()):,} rows with a score>"
        )

    def _of_rows(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Values of distinct rows as those of all rows."""
        out = np.empty(self.rows, values.dtype)
        number = self._found.number
        with Workers() as workers:
            workers.run(lambda a, b: look_up(values, number[a:b], out[a:b]), workers.ranges(self.rows))
        return out

    # Values of distinct rows as frames of all rows.

    def _series(self, values: npt.NDArray[Any], name: str) -> Any:
        return self._frame.series(self._of_rows(values), name)

    def _named(self, columns: Mapping[str, npt.NDArray[Any]]) -> Any:
        return self._frame.named({name: self._of_rows(values) for name, values in columns.items()})

    def _wrap(self, values: Sequence[npt.NDArray[Any]]) -> Any:
        parts = np.empty((len(values), self.rows))
        for part, own in zip(parts, values, strict=True):
            part[:] = self._of_rows(own)
        return self._frame.wrap(parts, self.columns)

    @property
    def score(self) -> Any:
        """SUDA score of each row, 0 for one that no set of up to max_size columns singles out: a series."""
        return self._series(self._scores, "suda")

    @property
    def dis_score(self) -> Any:
        """DIS-SUDA score of each row, a probability: a series. Raises InputError without a sampling fraction."""
        if self._dis_scores is None:
            raise InputError("sampling_fraction: DIS-SUDA scores need it: gpupif.suda(table, sampling_fraction=0.01).")
        return self._series(self._dis_scores, "dis_suda")

    @property
    def msus(self) -> Any:
        """How many MSUs of each size each row has: a frame with columns msu_1, msu_2, ... (int32)."""
        counts = self._found.counts.astype(np.int32)
        return self._named({f"msu_{size}": each for size, each in enumerate(counts, 1)})

    @property
    def contributions(self) -> Any:
        """What part of each row's score comes from MSUs with each column: a frame with the table's columns, 0 to 1.

        An MSU counts for each of its columns, so that a row's parts add up to more than 1. Raises InputError unless
        `gpupif.suda` was asked for them.
        """
        if not self._found.shares.size:
            raise InputError("contributions: they were not asked for. Add contributions=True to gpupif.suda.")
        scores = np.where(self._scores > 0, self._scores, 1.0)
        return self._wrap([self._found.shares[:, place] / scores for place in range(len(self.columns))])

    def top(self, n: int = 20) -> pd.DataFrame:
        """The n rows with the highest scores above 0, of equal ones the first.

        Columns: row (position, from 0), index (the table's label of it, pandas and cuDF only), suda, dis_suda (with a
        sampling fraction), msu_1, msu_2, ...
        """
        n = whole_number("top", n, "rows")
        with self._frame.active():
            index = self._frame.host_index()
        number = self._found.number
        if isinstance(number, FewRows):
            places = highest(self._scores[1:], n) if len(number.rows) else []
            riskiest = [(score, int(number.rows[place])) for score, place in places]
        else:
            riskiest = highest(self._of_rows(self._scores), n)
        records = []
        for score, row in sorted(riskiest, key=lambda pair: (-pair[0], pair[1])):
            if score > 0:
                distinct = int(number[row])
                record: dict[str, Any] = {"row": row} if index is None else {"row": row, "index": index[row]}
                record["suda"] = score
                if self._dis_scores is not None:
                    record["dis_suda"] = float(self._dis_scores[distinct])
                records.append(
                    record | {f"msu_{size}": int(each[distinct]) for size, each in enumerate(self._found.counts, 1)}
                )
        return pd.DataFrame.from_records(records)

    def summary(self, top: int = TOP_ROWS) -> SudaSummary:
        """How many rows are at risk, by the size of their MSUs and by column, and the `top` rows; prints as a table."""
        return summarize_suda(self, self._found, self._scores, top)

    def write(self, path: str | os.PathLike[str], overwrite: bool = True) -> None:
        """Write the scores of all rows, in their order, to one .parquet, .csv or .feather file.

        Columns: suda, dis_suda (with a sampling fraction), msu_1, msu_2, ..., and where they were asked for
        contribution_<column>. The file appears whole or not at all. overwrite: replace one that exists. Raises
        OutputError where it cannot be written or its name ends otherwise.
        """
        check_output(path, overwrite)
        write_tables((self._part(start, stop) for start, stop in row_groups(self.rows)), path, overwrite=overwrite)

    def _part(self, start: int, stop: int) -> pa.Table:
        """What is written of some rows."""
        number = self._found.number[start:stop]
        columns: dict[str, npt.NDArray[Any]] = {"suda": self._scores[number]}
        if self._dis_scores is not None:
            columns["dis_suda"] = self._dis_scores[number]
        for size, counts in enumerate(self._found.counts, 1):
            columns[f"msu_{size}"] = counts[number].astype(np.int32)
        if self._found.shares.size:
            scores = np.where(columns["suda"] > 0, columns["suda"], 1.0)
            for place, name in enumerate(self.columns):
                columns[f"contribution_{name}"] = self._found.shares[number, place] / scores
        return pa.table(columns)


def suda(
    table: Any,
    max_size: int = 3,
    columns: Sequence[Hashable] | None = None,
    *,
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

        Which rows are unique on which columns is kept on disk where it does not fit into memory (see `gpupif.config`).
        Files of more than that are read in streams; where not even the codes of their cells fit, one to four bytes
        each, what is unique on each set of columns is counted on disk; then only the MSUs have to fit. Sets of columns
        that do not fit into a GPU's memory are searched on the host. What comes out is the same, to the last bit.
    max_size:
        M, the most columns that an MSU may have, from 1 to the number of columns.
    columns:
        The key variables; default all.
    missing:
        "category": missing values are one value of their own, which can be part of an MSU (sdcMicro leaves out sets
        with missing values); "error": refuse them.
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
        under "error", a max_size or sampling_fraction out of range, more sets of columns than can be searched or than
        memory is there for.
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
    Journal of the Royal Statistical Society B 64 (2002), 855-867: DIS.

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
    return find_suda(
        table,
        max_size,
        columns,
        missing,
        sampling_fraction,
        contributions,
    )


def find_suda(
    table: Any,
    max_size: int,
    columns: Sequence[Hashable] | None,
    missing: str,
    sampling_fraction: float | None,
    contributions: bool,
    sep: str | None = None,
) -> SpecialUniques:
    """`suda`; sep: the separator of a CSV file (None: found by itself)."""
    max_size = whole_number("max_size", max_size, "columns")
    if sampling_fraction is not None:
        _check_fraction(sampling_fraction)
    choose = partial(chosen_of, columns=columns)
    started = time.perf_counter()
    if is_dask(table):
        from .dask import DaskSpecialUniques, DaskTable

        lazy = DaskTable(table, columns, missing, asked_device())
        check_size(len(lazy.names), max_size)
        weights = msu_weights(len(lazy.names), max_size)
        coded, found = lazy.search(weights, contributions)
        warn_of_unique(coded.columns, coded.rows)
        seconds = {"search": time.perf_counter() - started}
        return DaskSpecialUniques(coded, found, weights, sampling_fraction, seconds, lazy)
    engine, here = choose_engine(asked_device()), resources()
    with Reporter() as report, announce_compilation():
        if in_streams(table, choose, sep):
            with open_stream(table, choose, missing, report, sep, copies=2) as stream:
                opened = time.perf_counter()
                weights = _weigh(stream.chunks.columns, stream.chunks.rows, max_size)
                coded, found = search_stream(stream, weights, contributions, report, here.memory, engine)
        else:
            with Workers() as workers:
                coded = code_columns(table, columns, missing, workers, report, sep=sep)
            opened = time.perf_counter()
            weights = _weigh(coded.columns, coded.rows, max_size)
            found = search_codes(coded, weights, contributions, report, here.memory_limit, here.temp, engine)
    seconds = {"encode": opened - started, "search": time.perf_counter() - opened}
    return SpecialUniques(coded, found, weights, sampling_fraction, seconds)


def _weigh(columns: Sequence[Column], rows: int, max_size: int) -> list[float]:
    """The weights of sets by their size; raises InputError for a size beyond the columns, and warns of identifiers."""
    check_size(len(columns), max_size)
    warn_of_unique(columns, rows)
    return msu_weights(len(columns), max_size)


def _check_fraction(fraction: Any) -> None:
    if not within(fraction, 0, 1) or fraction == 0:
        raise InputError(f"sampling_fraction: expected a share above 0 and up to 1, got {fraction!r}.")
