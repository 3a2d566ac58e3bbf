"""The columns of a sample and of its population side by side, the values of both in one list."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels.log_units import LOG_BITS

from ..encoding.column import Column
from ..encoding.merge import ColumnMerger, ValueCounts, label_array
from ..engines.base import Job
from ..errors import ColumnTypeError, InputError
from ..measures import MEASURES
from ..rows.keys import KeyLayout, code_type
from ..utils.information import entropy_of_counts, log2_of_shares
from ..utils.validation import brief
from .priors import Prior
from .request import ScoreRequest

# The table that rows are of: a place in `JoinedColumns.joins`.
SAMPLE, POPULATION = 0, 1


class JoinedColumns(NamedTuple):
    """Columns of a sample and of its population, in one order, with joined values.

    All fields are sequences with an item for each column.

    sample: the column of the sample; may have no codes.
    population: the column of the population; may have no codes.
    joins: the joined code of each code of the sample, and of each code of the population.
    values: the joined values by joined code: values of the sample, then further values of the population, then missing.
    counts: the number of the population's rows with each joined value.
    prior_counts: the counts that give the distribution.
    wildcards: whether missing values match every value.
    """

    sample: Sequence[Column]
    population: Sequence[Column]
    joins: Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]]
    values: Sequence[list[Any]]
    counts: Sequence[npt.NDArray[np.int64]]
    prior_counts: Sequence[npt.NDArray[np.int64]]
    wildcards: Sequence[bool]

    @classmethod
    def join(cls, sample: Sequence[Column], population: Sequence[Column], missing: str = "category") -> JoinedColumns:
        """Join columns. missing: see `gpupif.score`. Raise ColumnTypeError for types without values in common."""
        both = list(zip(sample, population, strict=True))
        found = [_join(*pair) for pair in both]
        joins, values = [join for join, _ in found], [several for _, several in found]
        counts = [
            _joined_counts(theirs, join, several)
            for theirs, (_, join), several in zip(population, joins, values, strict=True)
        ]
        wildcards = [missing == "wildcard" and (mine.missing or theirs.missing) for mine, theirs in both]
        return cls(sample, population, joins, values, counts, counts, wildcards)

    @property
    def names(self) -> list[Hashable]:
        """Names of the columns."""
        return [column.name for column in self.sample]

    @property
    def layout(self) -> KeyLayout:
        """Layout of the keys of rows."""
        return KeyLayout.from_cardinalities([len(values) for values in self.values])

    def some(self, names: Sequence[Hashable]) -> JoinedColumns:
        """Return some of the columns."""
        places = [self.names.index(name) for name in names]
        return JoinedColumns._make([each[place] for place in places] for each in self)

    def codes(self, codes: Sequence[npt.NDArray[Any]], table: int) -> list[npt.NDArray[Any]]:
        """Return the codes of rows of either table, by column, as codes of joined values."""
        return [join[table][own] for join, own in zip(self.joins, codes, strict=True)]

    def settled(self, counts: Sequence[npt.NDArray[np.int64]], lacks: str) -> JoinedColumns:
        """Return the columns with the population's counts of each value.

        If missing values are wildcards, only values can be known to be absent from the population, not rows. lacks:
        "error" raises InputError for an absent value; "count" counts the sample's rows with the value as rows of the
        population.
        """
        prior_counts = counts
        if any(self.wildcards):
            prior_counts = [self._known_counts(place, counts[place], lacks) for place in range(len(counts))]
        return self._replace(counts=counts, prior_counts=prior_counts)

    def _known_counts(self, place: int, counts: npt.NDArray[np.int64], lacks: str) -> npt.NDArray[np.int64]:
        """Return the number of the population's rows with each value of a column, without wildcards."""
        column, values = self.sample[place], self.values[place]
        known = slice(-1) if self.wildcards[place] else slice(None)
        sampled = _joined_counts(column, self.joins[place][SAMPLE], values)[known]
        counts = counts[known]
        absent = np.flatnonzero((counts == 0) & (sampled > 0))
        if len(absent) and lacks == "error":
            # The order of codes is another in a table that is read in parts.
            first = min(absent, key=lambda place: (-sampled[place], str(values[place])))
            raise InputError(
                f"population: column {column.name!r} has {brief(values[first])} nowhere in it, which is in "
                f"{sampled[first]:,} of the table's rows: these are no part of it. Give the population that the table "
                "was drawn from, or count such rows as part of it: gpupif.Population(table, lacks='count')."
            )
        return np.where(counts == 0, sampled, counts)

    def priors(self) -> dict[Hashable, Prior]:
        """Return the distribution in the population of each column of the sample."""
        each = zip(self.sample, self.prior_counts, self.values, strict=True)
        return {column.name: _prior_in(column, counts, values) for column, counts, values in each}

    def sizes_job(self, request: ScoreRequest) -> Job:
        """Return the job that counts the population's rows in the cohorts of a request that uses these columns.

        The job has no codes. With wildcards, a row may match no row of the population: then it counts itself.
        """
        scored_columns, known = (
            [request.used.index(name) for name in names] for names in (request.scored_columns, request.known)
        )
        wildcards = [place for place, matches_all in enumerate(self.wildcards) if matches_all]
        return replace(counting_job(self.counts, scored_columns, known, wildcards), least=1)

    def classes_job(self) -> Job:
        """Return the job that counts the population's rows in the equivalence classes over all these columns.

        The scored column is one more column, which has the same value in all rows.
        """
        several = len(self.counts)
        constant = self.counts[0].sum(keepdims=True)
        wildcards = [place for place, matches_all in enumerate(self.wildcards) if matches_all]
        return replace(counting_job([*self.counts, constant], [several], list(range(several)), wildcards), least=1)

    def absent_value_hint(self, codes: Sequence[int]) -> str:
        """Sentence naming the first value of a row, by its codes, that the population does not have, or no text."""
        for name, values, code, counts in zip(self.names, self.values, codes, self.counts, strict=True):
            if not counts[code]:
                return f" Column {name!r} has {brief(values[code])} nowhere in it."
        return ""


def _join(mine: Column, theirs: Column) -> tuple[tuple[npt.NDArray[Any], npt.NDArray[Any]], list[Any]]:
    """Return a list of the values of both columns, and the place in it of each code of the sample and of the
    population.
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
    values = [*mine.values()[: len(mine.labels)], *merged[len(mine.labels) :].to_pylist()]
    values += [None] if mine.missing or theirs.missing else []
    of_sample, of_population = (
        np.append(number, len(merged))[: column.cardinality].astype(code_type(len(values)))
        for number, column in zip(numbers, (mine, theirs), strict=True)
    )
    return (of_sample, of_population), values


def _joined_counts(column: Column, join: npt.NDArray[Any], values: Sequence[Any]) -> npt.NDArray[np.int64]:
    """Return the number of rows of a column with each joined value. join: the joined code of each code."""
    counts = np.zeros(len(values), np.int64)
    counts[join] = column.counts
    return counts


def _prior_in(column: Column, counts: npt.NDArray[np.int64], values: Sequence[Any]) -> Prior:
    """Return the distribution of a sample's column in a population. counts: its rows by code in `values`.

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


def counting_job(
    counts: Sequence[npt.NDArray[np.int64]], scored_columns: list[int], known: list[int], wildcards: Sequence[int]
) -> Job:
    """Return the job that counts rows in cohorts, without codes of rows.

    counts: of rows, by column and code. wildcards: columns whose last code matches all.
    """
    values = [len(one) - (column in wildcards) for column, one in enumerate(counts)]
    return Job(
        codes=[np.empty(0, np.uint8)] * len(counts),
        counts=counts,
        priors=[np.ones(number) for number in values],
        log2_priors=[np.zeros(number, np.int64) for number in values],
        unit_bits=[LOG_BITS] * len(counts),
        accuracies=[1.0] * len(counts),
        scored_columns=scored_columns,
        known=known,
        measures=(MEASURES["cohort_size"],),
        dtype="float64",
        wildcards=wildcards,
    )
