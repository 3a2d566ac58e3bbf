"""A second table: the population that the scored table is a sample of.

Its distributions are the priors, and how many of its rows agree with a row on what the attacker knows is what a
journalist is up against, who looks for a person of the population and does not know who is in the sample. (ARX calls
this the journalist model; in sdcMicro the size in the sample is fk, that in the population Fk.)
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpupif.kernels.codes import add_times
from gpupif.kernels.log_units import LOG_BITS

from ..encoding.column import Column
from ..encoding.encode import encode_table
from ..encoding.merge import ColumnMerger, ValueCounts, label_array
from ..engines.base import SILENT, Job
from ..engines.block_scoring import pack_keys, unpack_keys
from ..engines.known_subsets import score_attacker
from ..errors import ColumnTypeError, InputError
from ..frames.base import Frame
from ..frames.open import open_file, open_frame
from ..measures import MEASURES
from ..rows.distinct import distinct_rows
from ..rows.keys import KeyLayout
from ..rows.partition import Rows
from ..rows.threads import Workers
from ..utils.arrays import on_host
from ..utils.information import entropy_of_counts, log2_of_shares
from ..utils.validation import brief, check_exist, check_unique, check_word
from .priors import Prior

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..engines.base import Engine
    from .known_subsets import KnownSubsets
    from .request import ScoreRequest


@dataclass(frozen=True, eq=False)
class Population:
    """A population that a scored table is a sample of, for ``population=`` of `gpupif.score` and `gpupif.risk`.

    Parameters
    ----------
    table:
        A table of any kind, or a path, with all columns that are scored or known.
    lacks:
        Where it lacks rows of the sample, those beyond as many equal ones as it has: "error", or "count" them as rows
        of the population too.

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
    def of(cls, population: Any) -> Population | None:
        """What came as ``population=``: one of these, a table or a path, or None for none."""
        return population if population is None or isinstance(population, cls) else cls(population)


class MatchedPopulation:
    """The distinct rows of a population, and which of them each row of the sample is.

    columns: of the sample, encoded. others: the same columns of the population. missing: as of `gpupif.score`. lacks:
    what to do with rows of the sample that the population lacks, those beyond as many equal ones as it has; "error"
    raises InputError, "count" counts them as rows of the population too. Where missing values are wildcards, no row is
    known to be lacking, but values are, in the same way. number: of each row of the sample, which distinct row it is;
    sampled, times: of each distinct row, how often it is in the sample and in the population.
    """

    def __init__(
        self, columns: Sequence[Column], others: Sequence[Column], missing: str, lacks: str, workers: Workers
    ) -> None:
        self.names = [column.name for column in columns]
        self._wildcards = [
            missing == "wildcard" and (mine.missing or theirs.missing)
            for mine, theirs in zip(columns, others, strict=True)
        ]
        joined = [_join(column, other) for column, other in zip(columns, others, strict=True)]
        self._values = [values for _, _, values in joined]
        layout = KeyLayout.of([len(values) for values in self._values])
        rows = len(columns[0].codes)
        codes = [np.concatenate([mine, theirs]) for mine, theirs, _ in joined]
        found = distinct_rows(Rows(pack_keys(codes, layout, workers)), len(codes[0]), workers)
        several = len(found.rows.keys)
        self.number = np.asarray(found.number[:rows])
        self.sampled = np.bincount(self.number, minlength=several)
        in_population = np.bincount(found.number[rows:], minlength=several)
        self._codes = unpack_keys(found.rows.keys, layout)
        if any(self._wildcards):
            self.times = in_population
        else:
            if lacks == "error":
                self._check(in_population)
            self.times = np.maximum(self.sampled, in_population)
        self.total = int(self.times.sum())
        self._counts = [np.zeros(len(values), np.int64) for values in self._values]
        for own, counts in zip(self._codes, self._counts, strict=True):
            add_times(own, self.times, counts)
        self._shares = [self._counts_of_prior(place, lacks) for place in range(len(self.names))]

    def _check(self, in_population: npt.NDArray[np.int64]) -> None:
        """Raise InputError where the sample has rows that the population, with these multiplicities, lacks."""
        sampled = self.sampled
        short = sampled > in_population
        if not short.any():
            return
        lacking = int((sampled - in_population)[short].sum())
        # The first row after as many equal ones as the population has.
        seen: dict[int, int] = {}
        for row in np.flatnonzero(short[self.number]).tolist():
            which = int(self.number[row])
            seen[which] = seen.get(which, 0) + 1
            if seen[which] > in_population[which]:
                break
        raise lacks_error(
            lacking,
            len(self.number),
            row,
            int(in_population[which]),
            int(sampled[which]),
            self._absent_value_hint(which, in_population),
        )

    def _absent_value_hint(self, which: int, in_population: npt.NDArray[np.int64]) -> str:
        """See `absent_value_hint`; for a distinct row."""
        own = [(codes[which], int(in_population[codes == codes[which]].sum())) for codes in self._codes]
        return absent_value_hint(self.names, self._values, *zip(*own, strict=True))

    def _counts_of_prior(self, place: int, lacks: str) -> npt.NDArray[np.int64]:
        """How many rows of the population have each value of a column, known ones only where others are wildcards."""
        counts, sampled = self._counts[place], np.zeros_like(self._counts[place])
        if not any(self._wildcards):
            return counts
        add_times(self._codes[place], self.sampled, sampled)
        known = slice(-1) if self._wildcards[place] else slice(None)
        return lacking_values(self.names[place], self._values[place], counts[known], sampled[known], lacks)

    def priors(self, columns: Sequence[Column]) -> dict[Hashable, Prior]:
        """The distribution in the population of each column, for some of the sample's columns."""
        places = [self.names.index(column.name) for column in columns]
        return {
            column.name: prior_in(column, self._shares[place], self._values[place])
            for column, place in zip(columns, places, strict=True)
        }

    def sizes(
        self, request: ScoreRequest, subsets: KnownSubsets | None, engine: Engine
    ) -> dict[str, npt.NDArray[np.number]]:
        """Per target and row of the sample, how many rows of the population agree on what the attacker knows.

        By output: alone under "", or the worst and the mean over subsets of columns, see `FOLDS`. A row that agrees
        with none, as is possible where missing values are wildcards, counts itself.
        """
        places = [self.names.index(name) for name in request.used]
        codes, counts = [self._codes[place] for place in places], [self._counts[place] for place in places]
        wildcards = [number for number, place in enumerate(places) if self._wildcards[place]]
        job = replace(sizes_job(request, counts, wildcards), codes=codes, times=self.times)
        result = score_attacker(engine, job, None if subsets is None else subsets.sets, SILENT)
        return {
            fold: np.ascontiguousarray(on_host(values["cohort_size"])[:, self.number])
            for fold, values in result.by_fold().items()
        }


def open_population(population: Any, names: Sequence[Hashable]) -> Frame:
    """A population of any kind, of a file only the columns `names`; raises InputError where it lacks one, or rows."""

    def check(found: Sequence[Hashable]) -> None:
        check_unique(found, "population")
        check_exist("population", names, found, "the population")

    def pick(found: Sequence[str]) -> list[str]:
        check(found)
        return [name for name in found if name in names]

    if isinstance(population, str | os.PathLike):
        frame = open_file(population, pick)
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
    """The rows of a population beside those of the encoded columns of a sample.

    Raises InputError as `MatchedPopulation`. missing: "error" refuses missing values of the population too.
    """
    with Workers() as workers:
        others = encode_population(frame, [column.name for column in columns], missing, workers)
        return MatchedPopulation(columns, others, missing, lacks, workers)


def encode_population(frame: Frame, names: Sequence[Hashable], missing: str, workers: Workers) -> Sequence[Column]:
    """Some columns of a population in memory; raises InputError."""
    try:
        with frame.active():
            arrays = [frame.column(frame.names.index(name)) for name in names]
            return encode_table(names, arrays, frame.rows, missing, workers).columns
    except InputError as error:
        raise error.about("population") from None


def _join(mine: Column, theirs: Column) -> tuple[npt.NDArray[Any], npt.NDArray[Any], list[Any]]:
    """Codes of both columns that count in one list of values: those of the first, others, missing ones at last.

    Raises ColumnTypeError for types that have no values in common.
    """
    merger = ColumnMerger(mine.name)
    labels = [label_array(column) for column in (mine, theirs)]
    numbers = []
    try:
        for column, own in zip((mine, theirs), labels, strict=True):
            numbers += merger.add(ValueCounts(own, column.counts[: len(own)], 0))
        numbers += merger.flush()
    except ColumnTypeError as error:
        came = f"{labels[0].type} in the table and {labels[1].type} in the population"
        both = ("values of the same type in both", "Convert either of them.")
        raise ColumnTypeError(mine.name, came, *both).about("population") from error
    merged = merger.values.labels
    codes = [
        np.append(place, len(merged))[on_host(column.codes)]
        for place, column in zip(numbers, (mine, theirs), strict=True)
    ]
    values = [*mine.values()[: len(mine.labels)], *merged[len(mine.labels) :].to_pylist()]
    return codes[0], codes[1], [*values, *([None] if mine.missing or theirs.missing else [])]


def join_codes(mine: Column, theirs: Column) -> tuple[npt.NDArray[Any], npt.NDArray[Any], list[Any]]:
    """For each code of a column of the sample, and of the population, that in one list of values; and these values.

    The sample's values keep their codes; what is missing is the last one.
    """
    return _join(*(replace(column, codes=np.arange(column.cardinality)) for column in (mine, theirs)))


def lacking_values(
    name: Hashable,
    values: Sequence[Any],
    counts: npt.NDArray[np.int64],
    sampled: npt.NDArray[np.int64],
    lacks: str,
) -> npt.NDArray[np.int64]:
    """How many rows of the population have each value of a column, where only values can be known to be lacking.

    counts, sampled: of the population's and the sample's rows, by code in `values`. lacks: "error" raises InputError
    for values that the population has nowhere; "count" counts the sample's rows that have them as rows of it.
    """
    absent = np.flatnonzero((counts == 0) & (sampled > 0))
    if len(absent) and lacks == "error":
        first = absent[0]
        raise InputError(
            f"population: column {name!r} has {brief(values[first])} nowhere in it, which is in {sampled[first]:,} "
            "of the table's rows, so that its prior would be 0. Give the population that the table was drawn from, or "
            "count such rows as part of it: gpupif.Population(table, lacks='count')."
        )
    return np.where(counts == 0, sampled, counts)


def prior_in(column: Column, counts: npt.NDArray[np.int64], values: Sequence[Any]) -> Prior:
    """The distribution in a population of a column of the sample. counts: of its rows by code in `values`.

    Where these have no code of missing values, they are wildcards, and in no distribution.
    """
    total = int(counts.sum())
    if len(counts) < len(values):
        column, values = column.without_missing(), values[: len(counts)]
    logs = log2_of_shares(counts, total)
    shares = dict(zip(values, (counts / total).tolist(), strict=True))
    # The sample's values come first, its missing ones last in both.
    own = np.arange(column.cardinality)
    if column.missing:
        own[-1] = len(values) - 1
    return Prior(column, counts[own] / total, logs[own], LOG_BITS, entropy_of_counts(counts), shares)


def sizes_job(request: ScoreRequest, counts: Sequence[npt.NDArray[np.int64]], wildcards: Sequence[int] = ()) -> Job:
    """The job of counting the population's rows in the cohorts of a request, without codes of rows.

    A row that agrees with none, as is possible where missing values are wildcards, counts itself. counts: of the
    population's rows, by column that is used and code. wildcards: columns whose last code matches all.
    """
    targets, known = ([request.used.index(name) for name in names] for names in (request.targets, request.known))
    return replace(counting_job(counts, targets, known, wildcards), least=1)


def counting_job(
    counts: Sequence[npt.NDArray[np.int64]], targets: list[int], known: list[int], wildcards: Sequence[int] = ()
) -> Job:
    """The job of counting rows in cohorts, without codes of rows. counts: of rows, by column and code."""
    values = [len(one) - (column in wildcards) for column, one in enumerate(counts)]
    return Job(
        codes=[np.empty(0, np.uint8)] * len(counts),
        counts=counts,
        priors=[np.ones(number) for number in values],
        log2_priors=[np.zeros(number, np.int64) for number in values],
        unit_bits=[LOG_BITS] * len(counts),
        accuracies=[1.0] * len(counts),
        targets=targets,
        known=known,
        measures=(MEASURES["cohort_size"],),
        dtype="float64",
        wildcards=wildcards,
    )


class MatchedRows(NamedTuple):
    """Distinct rows of a table and its population, and the multiplicity of each in either."""

    keys: npt.NDArray[np.uint64]
    sampled: npt.NDArray[np.int64]
    in_population: npt.NDArray[np.int64]

    @classmethod
    def of(
        cls,
        keys: npt.NDArray[np.uint64],
        times: npt.NDArray[np.int64],
        from_table: npt.NDArray[np.bool_],
        workers: Workers,
    ) -> MatchedRows:
        """Rows that may repeat, each so many times, from the table or else from the population."""
        found = distinct_rows(Rows(keys), len(keys), workers)
        sampled, in_population = np.zeros((2, len(found.rows.keys)), np.int64)
        add_times(found.number, np.where(from_table, times, 0), sampled)
        add_times(found.number, np.where(from_table, 0, times), in_population)
        return cls(found.rows.keys, sampled, in_population)

    def lacking(self) -> MatchedRows:
        """Those of which the population has fewer than the table."""
        lacks = self.sampled > self.in_population
        return MatchedRows(self.keys[lacks], self.sampled[lacks], self.in_population[lacks])


def absent_value_hint(
    names: Sequence[Hashable], values: Sequence[Sequence[Any]], codes: Sequence[int], in_population: Sequence[int]
) -> str:
    """Sentence naming the first value of a row that the population does not have, or an empty text.

    By column: its values, the code of the row, and how many rows of the population have that value.
    """
    for name, several, code, rows in zip(names, values, codes, in_population, strict=True):
        if not rows:
            return f" Column {name!r} has {brief(several[code])} nowhere in it."
    return ""


def lacks_error(
    lacking: int, rows: int, row: int | None, in_population: int, sampled: int, unknown: str = ""
) -> InputError:
    """The error of a population that lacks rows of a table of so many.

    row: the first of them, where that is known. in_population, sampled: how many equal ones the population has, and the
    table. unknown: what else is to be said of it, a sentence, see `absent_value_hint`.
    """
    first = "; of some equal ones" if row is None else f", the first row {row} (from 0): of equal ones"
    return InputError(
        f"population: it lacks {lacking:,} of the table's {rows:,} rows{first} it has {in_population:,}, the table "
        f"{sampled:,}.{unknown} Give the population that the table was drawn from, or count them as part of it: "
        "gpupif.Population(table, lacks='count')."
    )
