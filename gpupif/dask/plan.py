"""What all partitions have to know of the whole table: its values, counted by tree reduction, and from them the job."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pandas as pd

from ..attack.weights import Units, Weighted, read_weights
from ..encoding.merge import Values, final_order, merged_column, total_values
from ..engines.part_jobs import weight_of
from ..errors import DeviceError, InputError
from ..rows.keys import KeyLayout
from ..utils.information import LogSum
from .worker import tell

if TYPE_CHECKING:
    from ..attack.priors import Prior
    from ..attack.request import Question
    from ..encoding.column import Column
    from ..engines.base import Job
    from .population import People


class Sums(NamedTuple):
    """Of a target sums over its cohorts and over groups of equal rows, in some parts of the table.

    weight: with wildcards, where all rows are in one part, the weight itself; over attackers who know any few columns,
    the lowest, and `mean_weight`.
    """

    cohorts: LogSum
    distinct: LogSum
    weight: float = 0.0
    mean_weight: float = 0.0


# By target.
TargetSizes = dict[int, Sums]


# What rows stand for, in units of weight, by column and code.
WeightedCounts = dict[Hashable, Any]


class Reads(Protocol):
    """What is to be read of a table."""

    @property
    def read(self) -> Sequence[Hashable]:
        """The columns."""

    @property
    def missing(self) -> str:
        """How missing values are taken: "category", or "error" for them to be refused."""


class ReadsWeights(Reads, Protocol):
    """What is to be read of a table whose rows have sampling weights."""

    @property
    def used(self) -> Sequence[Hashable]:
        """The columns but that of the weights, unless it is one of them."""

    @property
    def weights(self) -> Hashable:
        """The column of the weights."""


class Weights(NamedTuple):
    """Sampling weights of the whole table. columns: all that are read, without codes of rows."""

    columns: list[Column]
    units: Units


class Totals(NamedTuple):
    """Of some neighbouring partitions: rows; distinct rows, counted by partition; by column the values, and the first
    row with a missing one (-1: none); devices: where their workers would score.
    """

    rows: int
    distinct: int
    values: list[Values]
    first_missing: list[int]
    devices: frozenset[str]


def add_totals(names: Sequence[Hashable], *parts: Totals) -> Totals:
    """The totals of partitions that follow each other."""
    rows, first = 0, [-1] * len(names)
    for part in parts:
        first = [
            rows + there if here < 0 <= there else here for here, there in zip(first, part.first_missing, strict=True)
        ]
        rows += part.rows
    values = [total_values(name, [part.values[place] for part in parts]) for place, name in enumerate(names)]
    devices = frozenset[str]().union(*(part.devices for part in parts))
    return Totals(rows, sum(part.distinct for part in parts), values, first, devices)


@dataclass(frozen=True)
class Plan:
    """job: for the whole table, without codes. prior_of: by column. layout: of row keys. rows: of the table; distinct:
    counted by partition. device: where parts are to be scored, "auto" for where each worker would; devices: these, as
    reports name them. weights: of the rows, where they have them; total:
    what all rows stand for, in units, else how many they are. people: of the population of the columns used, if any:
    then keys are of its joined values.
    """

    question: Question
    job: Job
    prior_of: Mapping[Hashable, Prior]
    layout: KeyLayout
    rows: int
    distinct: int
    weights: Weights | None
    total: int
    device: str
    devices: str
    people: People | None = None


def merged_columns(names: Sequence[Hashable], values: Sequence[Values]) -> list[Column]:
    """Columns with these values, as the whole table has them, without codes of rows."""
    return [
        merged_column(name, own, final_order(own.labels, ascending=True))
        for name, own in zip(names, values, strict=True)
    ]


def find_units(question: ReadsWeights, names: list[Hashable], totals: Totals) -> Weights:
    """The sampling weights; raises what `make_plan` does for totals, and InputError for a bad weight."""
    check_totals(question, names, totals)
    columns = merged_columns(question.read, totals.values)
    return Weights(columns, read_weights(columns[question.read.index(question.weights)], None))


def add_counts(*parts: WeightedCounts) -> WeightedCounts:
    """What the rows of several partitions stand for."""
    return {name: sum(part[name] for part in parts) for name in parts[0]}


def make_plan(
    question: Question,
    names: list[Hashable],
    totals: Totals,
    weights: Weights | None = None,
    counts: WeightedCounts | None = None,
    people: People | None = None,
    tell: Callable[[str, type[Warning]], None] = tell,
) -> Plan:
    """What is to be done, from the totals of all partitions.

    weights, counts: of rows that have weights. people: of the population, of more columns perhaps. tell: warns of
    columns that are nearly unique. Raises InputError for a table without rows, or with missing values where they are
    errors; PriorError; DeviceError for a measure of a library's functions where "auto" means different devices on
    different workers.
    """
    check_totals(question, names, totals)
    device, mixed = next(iter(totals.devices)), len(totals.devices) > 1
    if mixed:
        _check_mixture(question, totals.devices)
        # A way of grouping, of GPUs, was not asked for: workers without one would have refused it.
        device = "auto"
    columns = merged_columns(question.read, totals.values) if weights is None else weights.columns
    weighted = None
    if weights is not None and counts is not None:
        nobody = None if weights.units.of_code.all() else -1
        weighted = Weighted(None, counts, weights.units.total, weights.units.unit, nobody)
    people = None if people is None else people.of(question.used)
    priors = None if people is None else people.priors()
    job, prior_of = question.job(
        columns[: len(question.used)], totals.rows, tell=tell, weighted=weighted, priors=priors
    )
    layout = KeyLayout.of([len(counts) for counts in job.counts]) if people is None else people.layout
    total = totals.rows if weights is None else weights.units.total
    used = " and ".join(sorted(totals.devices))
    return Plan(question, job, prior_of, layout, totals.rows, totals.distinct, weights, total, device, used, people)


def _check_mixture(question: Question, devices: frozenset[str]) -> None:
    """Raise DeviceError where scores may not be the same to the last bit on workers of these kinds."""
    named = [measure.name for measure in question.measures if measure.differs_by_processor]
    if named:
        raise DeviceError(
            f"device 'auto': is {' on some workers and '.join(sorted(devices))} on others. The last bits of "
            f"{named[0]}, of an order next to 1, differ between the two, those of all other measures do not: use "
            "device='cpu' or device='cuda', or workers of one kind."
        )


def check_totals(question: Reads, names: list[Hashable], totals: Totals) -> None:
    """Raise InputError for a table without rows, or with missing values where they are errors."""
    if totals.rows == 0:
        raise InputError(f"table: expected at least one row, got none (columns: {', '.join(map(str, names))}).")
    for name, values, row in zip(question.read, totals.values, totals.first_missing, strict=True):
        if question.missing == "error" and values.missing:
            raise InputError(
                f"column {name!r}: {values.missing:,} missing value{'s' * (values.missing > 1)}, the first in row "
                f"{row} (from 0); missing='error' expects none. Fill or drop them, or use missing='category'."
            )


def add_sizes(*parts: TargetSizes) -> TargetSizes:
    """Sums over cohorts, and over groups of equal rows, of several parts together."""
    targets = sorted({target for part in parts for target in part})
    found = {target: [part[target] for part in parts if target in part] for target in targets}
    return {
        target: Sums(
            LogSum.total(one.cohorts for one in several),
            LogSum.total(one.distinct for one in several),
            max(one.weight for one in several),
            max(one.mean_weight for one in several),
        )
        for target, several in found.items()
    }


def find_weights(plan: Plan, sizes: TargetSizes) -> pd.Series[float]:
    """Weight of wCIG of each scored column."""
    job = plan.job
    weights = [
        sizes[target].weight
        if job.wildcards or plan.question.any_known is not None
        else weight_of(job, plan.total, target, [sizes[target].cohorts], [sizes[target].distinct])
        for target in job.targets
    ]
    return pd.Series(weights, pd.Index(plan.question.targets, tupleize_cols=False), name="weight")


def find_mean_weights(plan: Plan, sizes: TargetSizes) -> pd.Series[float]:
    """The mean weight of each scored column over attackers who know any few columns."""
    weights = [sizes[target].mean_weight for target in plan.job.targets]
    return pd.Series(weights, pd.Index(plan.question.targets, tupleize_cols=False), name="weight")
