"""The plan of a run, sent to all chunks: values of the table, counted by tree reduction, and the job."""

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

# Arrays by column: the sum of the weights of each code, in units.
WeightedCounts = dict[Hashable, Any]


class ReadRequest(Protocol):
    """Columns to be read of a table, whose rows may have sampling weights."""

    @property
    def read(self) -> Sequence[Hashable]:
        """The names of the columns to read."""

    @property
    def used(self) -> Sequence[Hashable]:
        """The names of the columns without the column of weights, unless it is also scored or known."""

    @property
    def weights(self) -> Hashable:
        """The name of the column of weights; None without weights."""

    @property
    def missing(self) -> str:
        """The treatment of missing values: "category", "wildcard", or "error", which refuses them."""


class Weights(NamedTuple):
    """The sampling weights of the whole table.

    columns: list of Column. All columns that are read, without codes of rows.
    units: Units. The weights as whole numbers of units.
    """

    columns: list[Column]
    units: Units


class ChunkTotals(NamedTuple):
    """Metadata of neighbouring chunks, to be combined into the plan.

    rows: int. The number of rows.
    distinct: int. The sum of the numbers of distinct rows in each chunk.
    values: list, one for each column. The values of the column.
    first_missing: list of int, one for each column. The first row with a missing value; -1 if there is none.
    devices: set. The devices that the workers of these chunks would score on.
    """

    rows: int
    distinct: int
    values: list[ValueCounts | Column]
    first_missing: list[int]
    devices: frozenset[DeviceRequest]


def add_totals(names: Sequence[Hashable], *chunks: ChunkTotals) -> ChunkTotals:
    """Return the totals of chunks that follow each other."""
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
    """The plan of a run.

    request: ScoreRequest. The request for one attacker.
    job: Job. The job for the whole table, without codes.
    prior_of: by column name. The prior distribution.
    layout: KeyLayout. The layout of row keys; with a population, of keys of joined values.
    rows: int. The number of rows of the table.
    distinct: int. The sum of the numbers of distinct rows in each chunk.
    weights: Weights. The sampling weights; None without weights.
    total: int. The sum of the weights of all rows, in units; without weights the number of rows.
    device: DeviceRequest. The device that scores partitions; "auto" leaves the choice to each worker.
    devices: str. The devices for reports, such as "cpu and cuda".
    population: PopulationPlan. The population, with the used columns; None without population.
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
        """The used columns, without codes of rows."""
        return [self.prior_of[name].column for name in self.request.used]

    @property
    def has_wildcards(self) -> bool:
        """True if missing values of the table or its population match every value."""
        return bool(self.job.wildcards) or (self.population is not None and any(self.population.columns.wildcards))

    @property
    def in_one_partition(self) -> bool:
        """True if all rows have to be in one partition, because no cut keeps their cohorts whole."""
        return self.has_wildcards or not cohorts_stay_whole(self.job, self.request.any_known is not None)


def merged_columns(names: Sequence[Hashable], values: Sequence[ValueCounts | Column]) -> list[Column]:
    """Return columns with these values as the whole table has them, without codes of rows."""
    return [
        own if isinstance(own, Column) else merged_column(name, own, final_order(own.labels, ascending=True))
        for name, own in zip(names, values, strict=True)
    ]


def find_units(request: ReadRequest, names: list[Hashable], totals: ChunkTotals) -> Weights:
    """Return the sampling weights; raise InputError for a bad weight, and as `check_totals` does."""
    check_totals(request, names, totals)
    columns = merged_columns(request.read, totals.values)
    return Weights(columns, read_weights(columns[request.read.index(request.weights)]))


def add_counts(*chunks: WeightedCounts) -> WeightedCounts:
    """Return the weighted counts of several chunks."""
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
    """Return the plan of a run, from the totals of all chunks.

    names: list. The names of all columns of the table.
    weights, counts: Weights and WeightedCounts; None without weights.
    population: PopulationPlan. It may have more columns than the request uses. None without population.
    on_warning: function that warns of nearly unique columns.

    Raises InputError for a table without rows, or with missing values if they are errors. Raises PriorError. Raises
    DeviceError if "auto" means different devices and a measure differs between them in the last bits.
    """
    check_totals(request, names, totals)
    device, *others = totals.devices
    used = sorted(asked.device for asked in totals.devices)
    if others:
        _check_mixture(request, used)
        # A way to group rows on GPUs was not requested: workers without a GPU would have refused it.
        device = DeviceRequest("auto")
    columns = merged_columns(request.read, totals.values) if weights is None else weights.columns
    weighted = None
    if weights is not None and counts is not None:
        weighted = TableWeights(None, counts, weights.units.total, weights.units.unit)
    population = None if population is None else population.for_columns(request.used)
    priors = None if population is None else population.columns.priors()
    job, prior_of = request.job(columns[: len(request.used)], totals.rows, "host", on_warning, weighted, priors)
    layout = job.layout if population is None else population.columns.layout
    total = totals.rows if weights is None else weights.units.total
    devices = " and ".join(used)
    return Plan(
        request, job, prior_of, layout, totals.rows, totals.distinct, weights, total, device, devices, population
    )


def _check_mixture(request: ScoreRequest, devices: Sequence[str]) -> None:
    """Raise DeviceError if a measure's last bits differ between these kinds of workers."""
    named = [measure.name for measure in request.measures if measure.differs_by_processor]
    if named:
        raise DeviceError(
            f"device 'auto': is {' on some workers and '.join(devices)} on others. The last bits of "
            f"{named[0]}, of an order next to 1, differ between the two, those of all other measures do not: use "
            "gpupif.config(device='cpu') or device='cuda', or workers of one kind."
        )


def check_totals(request: ReadRequest, names: list[Hashable], totals: ChunkTotals) -> None:
    """Raise InputError for a table without rows, or with missing values if they are errors."""
    if totals.rows == 0:
        raise InputError(f"table: expected at least one row, got none (columns: {', '.join(map(str, names))}).")
    for name, values, row in zip(request.read, totals.values, totals.first_missing, strict=True):
        # A table that was encoded before has refused missing values then.
        if request.missing == "error" and isinstance(values, ValueCounts) and values.missing:
            raise InputError(
                f"column {name!r}: {values.missing:,} missing value{'s' * (values.missing > 1)}, the first in row "
                f"{row} (from 0); missing='error' expects none. Fill or drop them, or use missing='category'."
            )


def find_weights(plan: Plan, sums: WeightSums) -> dict[str, list[float]]:
    """Return the weights of wCIG of the scored columns, by aggregate."""
    return sums.by_aggregate(plan.job, plan.total)


@dataclass(frozen=True)
class PopulationPlan:
    """Metadata of the population, sent to all chunks.

    columns: JoinedColumns. The used columns of the table and the population, without codes of rows.
    rows: int. The number of rows of the table.
    total: int. The number of rows of the population.
    distinct: int. The sum of the numbers of the population's distinct rows in each chunk.
    """

    columns: JoinedColumns
    rows: int
    total: int
    distinct: int

    def for_columns(self, names: Sequence[Hashable]) -> PopulationPlan:
        """Return the plan for fewer columns."""
        return replace(self, columns=self.columns.some(names))

    def with_lacking(
        self, total: int, distinct: int, counts: Sequence[npt.NDArray[np.int64]], lacks: str
    ) -> PopulationPlan:
        """Return the population with rows added that it lacked.

        total, distinct: int. The numbers of added rows and distinct rows.
        counts: list of arrays, one for each column. The number of added rows with each joined value.
        lacks: str. See `JoinedColumns.settled`.
        """
        added = [own + more for own, more in zip(self.columns.counts, counts, strict=True)]
        columns = self.columns.settled(added, lacks)
        return replace(self, columns=columns, total=self.total + total, distinct=self.distinct + distinct)

    def own(self, codes: Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
        """Return codes of joined values as codes of the table's columns; the table has all these values."""
        # The table's values come first among joined values; the missing value is last in both.
        return [np.minimum(own, mine.cardinality - 1) for own, mine in zip(codes, self.columns.sample, strict=True)]


def join(request: ScoreRequest, names: list[Hashable], table: ChunkTotals, population: ChunkTotals) -> PopulationPlan:
    """Return the joined values of a table and its population, before rows are added that the population lacks.

    request: ScoreRequest. Its columns are all columns that any attacker knows.

    Raises InputError for a table or a population without rows, and for columns whose types do not match.
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
    columns = JoinedColumns.join(mine, merged_columns(request.used, population.values), request.missing)
    return PopulationPlan(columns, table.rows, population.rows, population.distinct)
