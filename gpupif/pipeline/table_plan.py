"""Global metadata broadcast to all chunks: values of the table, counted by tree reduction, and the job."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ..attack.joined_columns import JoinedColumns
from ..attack.priors import Prior
from ..attack.request import ScoreRequest
from ..attack.weights import TableWeights, Units, read_weights
from ..encoding.column import Column
from ..encoding.merge import ValueCounts, final_order, merged_column, total_values
from ..engines.base import Job
from ..engines.choose import DeviceRequest
from ..engines.partition_plan import WeightSums, cohorts_stay_whole
from ..errors import DeviceError, InputError
from ..rows.keys import KeyLayout
from .task_resources import warn_clients

# Sums of weights, in units, by column and code.
WeightedCounts = dict[Hashable, Any]


class ReadRequest(Protocol):
    """Columns to be read of a table, whose rows may have sampling weights."""

    @property
    def read(self) -> Sequence[Hashable]:
        """The columns."""

    @property
    def used(self) -> Sequence[Hashable]:
        """The columns but that of the weights, unless it is one of them."""

    @property
    def weights(self) -> Hashable:
        """The column of the weights; None where there is none."""

    @property
    def missing(self) -> str:
        """Return how missing values are taken: "category", or "error" for them to be refused."""


class Weights(NamedTuple):
    """Sampling weights of the whole table. columns: all that are read, without codes of rows."""

    columns: list[Column]
    units: Units


class ChunkTotals(NamedTuple):
    """Metadata of a chunk, or several neighbours, to be reduced into the plan: rows; distinct rows, counted by
    chunk; by column the values, and the first row with a missing one (-1: none); devices: where their workers would
    score.
    """

    rows: int
    distinct: int
    values: list[ValueCounts | Column]
    first_missing: list[int]
    devices: frozenset[DeviceRequest]


def add_totals(names: Sequence[Hashable], *chunks: ChunkTotals) -> ChunkTotals:
    """The totals of chunks that follow each other."""
    rows, first = 0, [-1] * len(names)
    for chunk in chunks:
        first = [
            rows + there if here < 0 <= there else here for here, there in zip(first, chunk.first_missing, strict=True)
        ]
        rows += chunk.rows
    values = [_values_of_all(name, [chunk.values[place] for chunk in chunks]) for place, name in enumerate(names)]
    devices = frozenset[DeviceRequest]().union(*(chunk.devices for chunk in chunks))
    return ChunkTotals(rows, sum(chunk.distinct for chunk in chunks), values, first, devices)


def _values_of_all(name: Hashable, chunks: list[ValueCounts | Column]) -> ValueCounts | Column:
    """Return the values of several chunks together, in order of first appearance, or the column of the whole table."""
    first = chunks[0]
    if isinstance(first, Column):
        return first
    return total_values(name, [values for values in chunks if isinstance(values, ValueCounts)])


@dataclass(frozen=True)
class Plan:
    """job: for the whole table, without codes. prior_of: by column. layout: of row keys. rows: of the table; distinct:
    counted by chunk. device: where partitions are to be scored, "auto" for where each worker would; devices: these, as
    reports name them. weights: of the rows, where they have them; total: what all rows stand for, in units, else how
    many they are. population: of the population of the columns used, if any: then keys are of its joined values.
    """

    request: ScoreRequest
    job: Job
    prior_of: Mapping[Hashable, Prior]
    layout: KeyLayout
    rows: int
    distinct: int
    weights: Weights | None
    total: int
    device: DeviceRequest
    devices: str
    population: PopulationPlan | None = None

    @property
    def columns(self) -> list[Column]:
        """The columns that are used, without codes of rows."""
        return [self.prior_of[name].column for name in self.request.used]

    @property
    def has_wildcards(self) -> bool:
        """Return whether missing values of the table, or of the population, match every value."""
        return bool(self.job.wildcards) or (self.population is not None and any(self.population.columns.wildcards))

    @property
    def in_one_partition(self) -> bool:
        """Return whether all rows have to be in one partition, because no cut keeps their cohorts whole."""
        return self.has_wildcards or not cohorts_stay_whole(self.job, self.request.any_known is not None)


def merged_columns(names: Sequence[Hashable], values: Sequence[ValueCounts | Column]) -> list[Column]:
    """Columns with these values, as the whole table has them, without codes of rows."""
    return [
        own if isinstance(own, Column) else merged_column(name, own, final_order(own.labels, ascending=True))
        for name, own in zip(names, values, strict=True)
    ]


def find_units(request: ReadRequest, names: list[Hashable], totals: ChunkTotals) -> Weights:
    """The sampling weights; raises what `make_plan` does for totals, and InputError for a bad weight."""
    check_totals(request, names, totals)
    columns = merged_columns(request.read, totals.values)
    return Weights(columns, read_weights(columns[request.read.index(request.weights)]))


def add_counts(*chunks: WeightedCounts) -> WeightedCounts:
    """The weighted counts of several chunks together."""
    return {name: sum(chunk[name] for chunk in chunks) for name in chunks[0]}


def make_plan(
    request: ScoreRequest,
    names: list[Hashable],
    totals: ChunkTotals,
    weights: Weights | None,
    counts: WeightedCounts | None,
    population: PopulationPlan | None = None,
    on_warning: Callable[[str, type[Warning]], None] = warn_clients,
) -> Plan:
    """The plan of a run, from the totals of all chunks.

    weights, counts: of rows that have weights. population: of the population, of more columns perhaps. on_warning:
    warns of columns that are nearly unique. Raises InputError for a table without rows, or with missing values where
    they are errors; PriorError; DeviceError for a measure of a library's functions where "auto" means different devices
    on different workers.
    """
    check_totals(request, names, totals)
    device, *others = totals.devices
    used = sorted(asked.device for asked in totals.devices)
    if others:
        _check_mixture(request, used)
        # A way of grouping, of GPUs, was not asked for: workers without one would have refused it.
        device = DeviceRequest("auto")
    columns = merged_columns(request.read, totals.values) if weights is None else weights.columns
    weighted = None
    if weights is not None and counts is not None:
        weighted = TableWeights(None, counts, weights.units.total, weights.units.unit)
    population = None if population is None else population.of(request.used)
    priors = None if population is None else population.columns.priors()
    job, prior_of = request.job(columns[: len(request.used)], totals.rows, "host", on_warning, weighted, priors)
    layout = job.layout if population is None else population.columns.layout
    total = totals.rows if weights is None else weights.units.total
    devices = " and ".join(used)
    return Plan(
        request, job, prior_of, layout, totals.rows, totals.distinct, weights, total, device, devices, population
    )


def _check_mixture(request: ScoreRequest, devices: Sequence[str]) -> None:
    """Raise DeviceError where scores may not be the same to the last bit on workers of these kinds."""
    named = [measure.name for measure in request.measures if measure.differs_by_processor]
    if named:
        raise DeviceError(
            f"device 'auto': is {' on some workers and '.join(devices)} on others. The last bits of "
            f"{named[0]}, of an order next to 1, differ between the two, those of all other measures do not: use "
            "gpupif.config(device='cpu') or device='cuda', or workers of one kind."
        )


def check_totals(request: ReadRequest, names: list[Hashable], totals: ChunkTotals) -> None:
    """Raise InputError for a table without rows, or with missing values where they are errors."""
    if totals.rows == 0:
        raise InputError(f"table: expected at least one row, got none (columns: {', '.join(map(str, names))}).")
    for name, values, row in zip(request.read, totals.values, totals.first_missing, strict=True):
        # A table that was encoded before has refused missing values itself, if they are errors.
        if request.missing == "error" and isinstance(values, ValueCounts) and values.missing:
            raise InputError(
                f"column {name!r}: {values.missing:,} missing value{'s' * (values.missing > 1)}, the first in row "
                f"{row} (from 0); missing='error' expects none. Fill or drop them, or use missing='category'."
            )


def find_weights(plan: Plan, sums: WeightSums) -> dict[str, list[float]]:
    """Weights of wCIG of the scored columns, by fold."""
    return sums.by_fold(plan.job, plan.total)


@dataclass(frozen=True)
class PopulationPlan:
    """Global metadata of the population, broadcast to all chunks.

    columns: that are used, of the table and the population, without codes of rows. rows: of the table; total: of the
    population; distinct: of these, counted by chunk.
    """

    columns: JoinedColumns
    rows: int
    total: int
    distinct: int

    def of(self, names: Sequence[Hashable]) -> PopulationPlan:
        """The plan for some of the columns."""
        return replace(self, columns=self.columns.some(names))

    def with_lacking(
        self, total: int, distinct: int, counts: Sequence[npt.NDArray[np.int64]], lacks: str
    ) -> PopulationPlan:
        """The population with so many rows more that it lacks, `counts` by column and joined value.

        lacks: see `JoinedColumns.settled`.
        """
        added = [own + more for own, more in zip(self.columns.counts, counts, strict=True)]
        columns = self.columns.settled(added, lacks)
        return replace(self, columns=columns, total=self.total + total, distinct=self.distinct + distinct)

    def own(self, codes: Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
        """Codes of joined values that the table has, as those of its columns."""
        # The table's values come first in both, missing ones last.
        return [np.minimum(own, mine.cardinality - 1) for own, mine in zip(codes, self.columns.sample, strict=True)]


def join(request: ScoreRequest, names: list[Hashable], table: ChunkTotals, population: ChunkTotals) -> PopulationPlan:
    """Both tables' values, without rows that the population lacks.

    request: with all columns that any attacker knows. Raises InputError for a table or a population without rows, and
    for columns whose types do not match.
    """
    check_totals(request, names, table)
    if population.rows == 0:
        raise InputError("population: expected at least one row, got none.")
    try:
        check_totals(replace(request, weights=None), names, population)
    except InputError as error:
        raise error.about("population") from None
    used = len(request.used)
    mine = merged_columns(request.read[:used], table.values[:used])
    columns = JoinedColumns.of(mine, merged_columns(request.used, population.values), request.missing)
    return PopulationPlan(columns, table.rows, population.rows, population.distinct)
