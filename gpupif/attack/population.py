"""The population: a second table, of which the scored table is a sample.

The population's distributions are the priors. A journalist searches for a person of the population and does not know
who is in the sample. The risk for him follows from the number of the population's rows that agree with a row on the
known columns. ARX calls this the journalist model. sdcMicro calls the size in the sample fk, in the population Fk.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels.codes import add_multiplicities

from ..encoding.column import Column
from ..encoding.encode import encode_table
from ..engines.attacker_scoring import score_attacker
from ..engines.base import SILENT, Engine
from ..errors import InputError
from ..frames.base import Frame
from ..frames.dask_frame import is_dask
from ..frames.open import open_file, open_frame
from ..rows.distinct import distinct_rows
from ..rows.partition import Rows
from ..rows.threads import Workers
from ..utils.arrays import on_host
from ..utils.validation import check_exist, check_unique, check_word
from .attackers import KnownSubsets
from .joined_columns import POPULATION, SAMPLE, JoinedColumns
from .priors import Prior
from .request import ScoreRequest


@dataclass(frozen=True, eq=False)
class Population:
    """A population of which a scored table is a sample, for ``population=`` of `gpupif.score` and `gpupif.risk`.

    Parameters
    ----------
    table:
        A table of any kind, or a path, with all columns that are scored or known.
    lacks:
        What to do if the population has fewer rows of a kind than the sample: "error" raises `InputError`, "count"
        counts the surplus rows of the sample as rows of the population too.

    Raises
    ------
    InputError
        Another word for ``lacks``.

    Examples
    --------
    >>> import pandas as pd, gpupif
    >>> sample, city = pd.DataFrame({"age": [30, 40]}), pd.DataFrame({"age": [30, 30, 50]})
    >>> population = gpupif.Population(city, lacks="count")
    >>> gpupif.score(sample, columns=["age"], known=["age"], population=population).population_size["age"].tolist()
    [4, 4]

    """

    table: Any
    lacks: str = "error"

    def __post_init__(self) -> None:
        check_word("lacks", self.lacks, ("error", "count"))

    @classmethod
    def from_any(cls, population: Any) -> Population | None:
        """Return the argument ``population=`` as a population: from a population, a table or a path; None for None."""
        return population if population is None or isinstance(population, cls) else cls(population)


class MatchedPopulation:
    """The distinct rows of a population, and the number of the distinct row that equals each row of the sample.

    columns: the encoded columns of the sample.
    others: the corresponding columns of the population.
    missing: see `gpupif.score`.
    lacks: "error" raises InputError if the population has fewer rows of a kind than the sample; "count" counts the
        surplus rows as rows of the population too. With wildcards, values are checked like this, not rows.
    number: (rows of the sample,). The number of each row's distinct row.
    rows: the distinct rows of the population and the sample together.
    joined: the columns of both.
    """

    def __init__(
        self, columns: Sequence[Column], others: Sequence[Column], missing: str, lacks: str, workers: Workers
    ) -> None:
        joined = JoinedColumns.join(columns, others, missing)
        of_both = [
            joined.codes([on_host(column.codes) for column in several], table)
            for several, table in ((columns, SAMPLE), (others, POPULATION))
        ]
        codes = [np.concatenate(both) for both in zip(*of_both, strict=True)]
        found = distinct_rows(Rows(joined.layout.pack(codes, workers)), len(codes[0]), workers)
        rows, several = len(of_both[SAMPLE][0]), len(found.rows.keys)
        self.number = np.asarray(found.number[:rows])
        sampled = np.bincount(self.number, minlength=several)
        matched = MatchedRows(found.rows.keys, sampled, np.bincount(found.number[rows:], minlength=several))
        if not any(joined.wildcards):
            short = matched.lacking()
            if lacks == "error" and len(short.keys):
                row = first_absent(self.number, matched.in_population)
                assert row is not None
                raise lacks_error(short.absent, rows, row, *matched.about(self.number[row], joined))
            matched = matched._replace(in_population=np.maximum(sampled, matched.in_population))
        self.rows = matched
        counts = [np.zeros_like(own) for own in joined.counts]
        for own, total in zip(joined.layout.unpack(matched.keys), counts, strict=True):
            add_multiplicities(own, matched.in_population, total)
        self.joined = joined.settled(counts, lacks)

    def priors(self, columns: Sequence[Column]) -> dict[Hashable, Prior]:
        """Return the distribution in the population of each column, for some of the sample's columns."""
        return self.joined.some([column.name for column in columns]).priors()

    def sizes(
        self, request: ScoreRequest, subsets: KnownSubsets | None, engine: Engine
    ) -> dict[str, npt.NDArray[np.number]]:
        """Return the number of the population's rows in the cohort of each cell of the sample: (scored columns, rows).

        By output: under "", or the worst and the mean over subsets of columns, see `AGGREGATES`. With wildcards, a row
        may match no row of the population: then it counts itself.
        """
        of_column = dict(zip(self.joined.names, self.joined.layout.unpack(self.rows.keys), strict=True))
        codes = [of_column[name] for name in request.used]
        job = replace(
            self.joined.some(request.used).sizes_job(request), codes=codes, multiplicities=self.rows.in_population
        )
        result = score_attacker(engine, job, None if subsets is None else subsets.sets, SILENT)
        return {
            aggregate: np.ascontiguousarray(on_host(values["cohort_size"])[:, self.number])
            for aggregate, values in result.by_aggregate().items()
        }


def open_population(population: Any, names: Sequence[Hashable]) -> Frame:
    """Return a population of any kind; of a file only the columns `names`. Raise InputError if a column or all rows
    lack.
    """

    def check(found: Sequence[Hashable]) -> None:
        check_unique(found, "population")
        check_exist("population", names, found, "the population")

    def pick(found: Sequence[str]) -> list[str]:
        check(found)
        return [name for name in found if name in names]

    if isinstance(population, str | os.PathLike):
        frame = open_file(population, pick)
    elif is_dask(population):
        raise InputError(
            "population: a Dask DataFrame goes with a table that is one. Make the table one "
            "(dask.dataframe.from_pandas), or bring the population into memory: population.compute()."
        )
    else:
        try:
            frame = open_frame(population)
        except InputError as error:
            raise error.about("population") from None
    check(frame.names)
    if frame.rows == 0:
        raise InputError("population: expected at least one row, got none.")
    return frame


def match_population(frame: Frame, columns: Sequence[Column], missing: str, lacks: str) -> MatchedPopulation:
    """Match the rows of a population with the encoded columns of a sample.

    Raise InputError as `MatchedPopulation` does. missing: "error" refuses missing values of the population too.
    """
    with Workers() as workers:
        others = encode_population(frame, [column.name for column in columns], missing, workers)
        return MatchedPopulation(columns, others, missing, lacks, workers)


def encode_population(frame: Frame, names: Sequence[Hashable], missing: str, workers: Workers) -> Sequence[Column]:
    """Return some columns of a population in memory, encoded. Raise InputError."""
    try:
        with frame.active():
            arrays = [frame.column(frame.names.index(name)) for name in names]
            return encode_table(names, arrays, frame.rows, missing, workers).columns
    except InputError as error:
        raise error.about("population") from None


def class_sizes_there(
    columns: JoinedColumns, codes: Sequence[npt.NDArray[Any]], multiplicities: npt.NDArray[np.int64], engine: Engine
) -> npt.NDArray[np.int64]:
    """Return, for each distinct row, the number of the population's rows that equal it on all columns, or match it.

    codes: of joined values, by column; multiplicities: how often each is in the population. A row that agrees with
    none counts itself.
    """
    constant = np.zeros(len(multiplicities), np.uint8)
    job = replace(columns.classes_job(), codes=[*codes, constant], multiplicities=multiplicities, distinct=True)
    result = score_attacker(engine, job, None, SILENT)
    return np.asarray(on_host(result.by_aggregate()[""]["cohort_size"])[0], np.int64)


class MatchedRows(NamedTuple):
    """Distinct rows of a table and its population, and the multiplicity of each in either."""

    keys: npt.NDArray[np.uint64]
    sampled: npt.NDArray[np.int64]
    in_population: npt.NDArray[np.int64]

    @property
    def absent(self) -> int:
        """The number of rows that the population lacks, if these are rows that `lacking` returned."""
        return int((self.sampled - self.in_population).sum())

    def lacking(self) -> MatchedRows:
        """Return the rows of which the population has fewer than the table."""
        return self.some(self.sampled > self.in_population)

    def some(self, which: Any) -> MatchedRows:
        """Return the rows at some places."""
        return MatchedRows(self.keys[which], self.sampled[which], self.in_population[which])

    def about(self, which: int, joined: JoinedColumns) -> tuple[int, int, str]:
        """Return the arguments of `lacks_error` for a row. joined: the columns, with the population's own counts."""
        codes = [int(own[0]) for own in joined.layout.unpack(self.keys[which][None])]
        return int(self.in_population[which]), int(self.sampled[which]), joined.absent_value_hint(codes)


def earlier_equal(which: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return, for each item, the number of equal items before it."""
    order = np.argsort(which, kind="stable")
    arranged = which[order]
    begins = np.flatnonzero(np.append(True, arranged[1:] != arranged[:-1]))
    earlier = np.empty(len(which), np.int64)
    earlier[order] = np.arange(len(which)) - np.repeat(begins, np.diff(np.append(begins, len(which))))
    return earlier


def number_among(keys: npt.NDArray[np.uint64], rows: npt.NDArray[np.uint64], workers: Workers) -> npt.NDArray[np.int64]:
    """Return the number of each row's key among distinct keys; for an unknown key, the number of distinct keys."""
    both = np.concatenate([keys, rows])
    number = distinct_rows(Rows(both), len(both), workers).number[len(keys) :].astype(np.int64)
    return np.minimum(number, np.int64(len(keys)))


def first_absent(which: npt.NDArray[Any], room: npt.NDArray[np.int64]) -> int | None:
    """Return the first row for which no equal row of the population is left; None if there is none.

    which: the kind of each row. room: by kind.
    """
    absent = np.flatnonzero(earlier_equal(which) >= room[which])
    return int(absent[0]) if len(absent) else None


def lacks_error(lacking: int, rows: int, row: int, in_population: int, sampled: int, unknown: str) -> InputError:
    """Return the error of a population that lacks rows of a table.

    lacking: the number of rows that it lacks. rows: rows of the table. row: the first row that it lacks.
    in_population, sampled: rows of the population and of the table that equal this row.
    unknown: a further sentence about the row, see `JoinedColumns.absent_value_hint`.
    """
    return InputError(
        f"population: it lacks {lacking:,} of the table's {rows:,} rows, the first row {row} (from 0): of equal ones "
        f"it has {in_population:,}, the table {sampled:,}.{unknown} Give the population that the table was drawn from, "
        "or count them as part of it: gpupif.Population(table, lacks='count')."
    )
