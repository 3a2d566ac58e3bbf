"""Requests: arguments checked against the columns of a table of any kind, and the jobs that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..encoding.column import Column
from ..engines.base import Axis, Job
from ..errors import InputError, NearlyUniqueWarning, NothingKnownWarning, PriorError, warn
from ..measures import POPULATION_SIZE, Measure
from ..utils.validation import check_exist, check_unique, table_value, within
from .attackers import AnyKnown, Known, KnownSubsets, aggregates_of, among_of, check_known, choose_subsets
from .distances import CategoryOrder, make_axis
from .priors import Prior, make_prior
from .weights import TableWeights

# Fewest rows, and smallest share of distinct values, of a column that a warning names.
UNIQUE_ROWS = 50
UNIQUE_SHARE = 0.9

MISSING = ("category", "error", "wildcard")


@dataclass(frozen=True)
class Attacker:
    """known: the columns an attacker knows; any_known: of whom knows any few of them, how many, and which subsets."""

    known: list[Hashable]
    any_known: AnyKnown | None = None


@dataclass(frozen=True)
class ScoreRequest:
    """A request to score a table, checked against the names of its columns.

    scored_columns: the columns to score.
    known: the columns that the attacker knows, or any of several attackers.
    used: the scored and the known columns, in the order of the table.
    priors, accuracies, distances: by column.
    weights: the column of sampling weights, or None.
    any_known: the number and the subsets for an attacker who knows any few of the columns `known`; else None.
    attackers: by name, each of several attackers; None for a single attacker without a name.
    has_population: whether cohorts are counted in a population too.
    """

    scored_columns: list[Hashable]
    known: list[Hashable]
    used: list[Hashable]
    priors: Mapping[Any, Mapping[Any, float]]
    accuracies: Mapping[Any, float]
    distances: Mapping[Any, Any]
    missing: str
    measures: tuple[Measure, ...]
    dtype: str
    weights: Hashable = None
    any_known: AnyKnown | None = None
    attackers: Mapping[str, Attacker] | None = None
    has_population: bool = False

    @property
    def cell_measures(self) -> tuple[Measure, ...]:
        """The requested measures, and last, with a population, the size of a cohort in it."""
        return (*self.measures, POPULATION_SIZE) if self.has_population else self.measures

    @property
    def outputs(self) -> tuple[Measure, ...]:
        """The measures of each cell; with `AnyKnown` the worst and the mean of each measure."""
        return self.cell_measures if self.any_known is None else aggregates_of(self.cell_measures)

    @property
    def read(self) -> list[Hashable]:
        """The columns to read: the columns used, and at last the column of weights if it is not used otherwise."""
        return self.used if self.weights is None or self.weights in self.used else [*self.used, self.weights]

    def by_attacker(self) -> dict[str | None, ScoreRequest]:
        """Return the request for each attacker, by name; the request for an attacker without a name is under None."""
        if self.attackers is None:
            return {None: self}
        return {
            name: replace(
                self,
                known=one.known,
                any_known=one.any_known,
                used=[column for column in self.used if column in {*self.scored_columns, *one.known}],
                attackers=None,
            )
            for name, one in self.attackers.items()
        }

    @property
    def output_names(self) -> dict[str | None, list[str]]:
        """The names of the outputs of each cell, by attacker."""
        return {name: [measure.name for measure in one.outputs] for name, one in self.by_attacker().items()}

    def subsets(self, rows: int) -> KnownSubsets | None:
        """Return the sets of columns of an attacker who knows any few; else None. rows: rows of the table.

        Raise InputError if there are too many sets to score.
        """
        if self.any_known is None:
            return None
        scored_columns, pool = (
            [self.used.index(name) for name in names] for names in (self.scored_columns, self.known)
        )
        return choose_subsets(self.any_known, self.used, scored_columns, pool, rows)

    def job(
        self,
        columns: Sequence[Column],
        rows: int,
        scores_on: str,
        on_warning: Callable[[str, type[Warning]], None],
        weighted: TableWeights | None,
        priors: Mapping[Hashable, Prior] | None = None,
    ) -> tuple[Job, dict[Hashable, Prior]]:
        """Return the engine's job for the columns `used`, and the prior of each column. rows: rows of the table.

        Raise PriorError. Warn, by `on_warning`, of columns that are nearly unique.

        weighted: the sampling weights. priors: instead of the table's own distributions.
        """
        warn_of_unique(columns, rows, on_warning)
        wildcards = [place for place, column in enumerate(columns) if column.missing and self.missing == "wildcard"]
        people = None if weighted is None else [weighted.counts[column.name] for column in columns]
        counts = [column.counts for column in columns] if people is None else people
        valued = [column.without_missing() if place in wildcards else column for place, column in enumerate(columns)]
        total = rows if weighted is None else weighted.total
        prior_of = {
            column.name: priors[column.name]
            if priors is not None and column.name not in self.priors
            else self._prior(column, total, own)
            for column, own in zip(valued, counts, strict=True)
        }
        places = {name: place for place, name in enumerate(self.used)}
        job = Job(
            codes=[column.codes for column in columns],
            counts=counts,
            priors=[prior_of[name].probabilities for name in self.used],
            log2_priors=[prior_of[name].log2_probabilities for name in self.used],
            unit_bits=[prior_of[name].unit_bits for name in self.used],
            accuracies=[_accuracy(name, self.accuracies.get(name, 1.0)) for name in self.used],
            scored_columns=[places[name] for name in self.scored_columns],
            known=[places[name] for name in self.known],
            measures=self.measures,
            dtype=self.dtype,
            axes=self._axes(valued, prior_of),
            scores_on=scores_on,
            multiplicities=None if weighted is None else weighted.multiplicities,
            unit=None if weighted is None else weighted.unit,
            wildcards=wildcards,
        )
        return job, prior_of

    def _prior(self, column: Column, total: int, counts: npt.NDArray[np.int64]) -> Prior:
        """Return the prior of a column. With wildcards, it is over the known values only.

        counts: by code, `total` together.
        """
        given = self.priors.get(column.name)
        if self.missing != "wildcard":
            return make_prior(column, given, total, counts)
        if isinstance(given, Mapping) and any(value is None or value != value for value in given):
            raise PriorError(
                f"priors: column {column.name!r}: expected no probability for missing values, which match any value "
                "with missing='wildcard'. Leave None out, and make the sum of the others 1."
            )
        there = counts[: column.cardinality]
        return make_prior(column, given, int(there.sum()), there)

    def _axes(self, columns: Sequence[Column], prior_of: Mapping[Hashable, Prior]) -> list[Axis | None] | None:
        """Return the axes of the scored columns if a measure needs them. Distances are checked in any case."""
        walks = any(measure.walks for measure in self.measures)
        axes: list[Axis | None] = []
        for column in columns:
            distance = self.distances.get(column.name)
            asked = walks and column.name in self.scored_columns
            needed = column.cardinality and (asked or not isinstance(distance, CategoryOrder | None))
            axis = make_axis(column, prior_of[column.name], distance) if needed else None
            axes.append(axis if asked else None)
        return axes if walks else None


def resolve_columns(
    names: Sequence[Hashable],
    labels: Sequence[Hashable],
    columns: Sequence[Hashable] | None,
    known: Known,
    of_rows: bool,
    argument: str,
) -> tuple[list[Hashable], Attacker]:
    """Return the scored columns and the knowledge of the attacker, in the requested order, checked against the table.

    of_rows: whether the scored column may be the only known column. argument: the name of `known` in messages.
    """
    if not names:
        raise InputError("table: expected at least one column, got none.")
    check_unique(names)
    default = [name for name in names if name not in labels] or list(names)
    scored_columns = default if columns is None else list(columns)
    if not scored_columns:
        raise InputError("columns: expected at least one column to score, got an empty list.")
    check_exist("columns", scored_columns, names)
    if isinstance(known, AnyKnown):
        check_exist(among_of(argument), known.among or (), names)
        pool = list(scored_columns) if known.pool is None else list(known.pool)
        check_known(argument, known, scored_columns, pool if known.known else scored_columns)
        return scored_columns, Attacker(pool, known)
    attacker = list(scored_columns) if known is None else list(known)
    check_exist(argument, attacker, names)
    separators = columns is None and set(str(scored_columns[0])) & set(",;\t| ")
    if known is None and len(scored_columns) == 1 and (separators or (columns is not None and not of_rows)):
        mend = "Is the separator right?" if columns is None else "Name the columns the attacker knows with known=."
        warn(
            f"columns: only {scored_columns[0]!r} is scored, so by default the attacker knows nothing and every "
            f"cohort is the "
            f"whole table. {mend}",
            NothingKnownWarning,
        )
    elif known is not None and len(attacker) == 1 and attacker[0] in scored_columns and not of_rows:
        warn(
            f"{argument}: the attacker knows only {attacker[0]!r}, so nothing when that column is scored itself: every "
            f"cohort is the whole table. Name further columns with {argument.partition(':')[0]}=.",
            NothingKnownWarning,
        )
    return scored_columns, Attacker(attacker)


def _accuracy(name: Hashable, value: Any) -> float:
    if not within(value, 0, 1):
        raise InputError(f"accuracies: column {name!r}: expected a number from 0 to 1, got {table_value(value)}.")
    return float(value)


def warn_of_unique(
    columns: Iterable[Column],
    rows: int,
    on_warning: Callable[[str, type[Warning]], None] = warn,
    argument: str = "columns",
) -> None:
    """Warn of columns in which nearly every row has a value of its own.

    argument: the argument by which the caller excludes a column.
    """
    for column in nearly_unique(columns, rows):
        name = column.name
        on_warning(
            f"column {name!r}: {column.cardinality:,} distinct values in {rows:,} rows. While the attacker knows it, "
            "nearly every cohort is a single row, so every other column looks fully revealed. Exclude it with "
            f"{argument}= (an identifier), or bin it (a measurement)."
            + (" One without a name is often the index of a pandas table: write it with index=False." * (not name)),
            NearlyUniqueWarning,
        )


def nearly_unique(columns: Iterable[Column], rows: int) -> list[Column]:
    """Return the columns in which nearly every row has a value of its own."""
    return [column for column in columns if rows >= UNIQUE_ROWS and column.cardinality >= UNIQUE_SHARE * rows]
