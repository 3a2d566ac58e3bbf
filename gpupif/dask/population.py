"""Tasks of the population of a Dask frame: its rows are matched with the table's, and those that it lacks found."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels.codes import add_times

from ..attack.joined_columns import SAMPLE
from ..attack.population import MatchedRows, lacks_error
from ..rows.distinct import distinct_rows
from ..rows.partition import Rows
from . import partition as partition_tasks
from . import plan
from .parcels import pack, parcel_rows, part_of_keys, rows_in, unpack
from .plan import PopulationPlan
from .worker import task_workers

if TYPE_CHECKING:
    import pandas as pd


def joined_rows(population: PopulationPlan, origin: int, local: partition_tasks.EncodedPartition) -> Rows:
    """The distinct rows of a partition of either table, by joined values; how often each occurs."""
    joined = population.columns
    columns = joined.sample if origin == SAMPLE else joined.population
    # Without weights, which come last.
    used = local._replace(codes=local.codes[: len(columns)], values=local.values[: len(columns)])
    codes = joined.codes(partition_tasks.global_codes(columns, used), origin)
    with task_workers() as workers:
        return Rows(joined.layout.pack(codes, workers), local.times)


def send_joined_rows(
    parts: int, overlapping: bool, population: PopulationPlan, source: int, rows: Rows, origin: int
) -> pd.DataFrame:
    """The parcels in which rows travel to where equal ones are compared.

    Where missing values are wildcards, all to one part if `overlapping` classes are compared, else none.
    """
    wildcards = any(population.columns.wildcards)
    if not len(rows.keys) or (wildcards and not overlapping):
        return pack([])
    layout = population.columns.layout
    to = np.zeros(len(rows.keys), np.uint32) if wildcards else part_of_keys(rows.keys, layout, layout.fields, parts)
    return pack(parcel_rows(rows.keys, rows.counts, to, parts, source, origin))


def match_rows(population: PopulationPlan, part: int, frame: pd.DataFrame) -> MatchedRows:
    """The distinct rows of both tables that were sent to a part, matched."""
    words, parcels = population.columns.layout.words + 1, unpack(frame, part)
    items = rows_in(parcels, words)
    origin = np.repeat([one.cut for one in parcels], [one.items.size // words for one in parcels])
    if not len(items):
        nothing = np.zeros(0, np.int64)
        return MatchedRows(items[:, :-1], nothing, nothing)
    with task_workers() as workers:
        return MatchedRows.of(
            np.ascontiguousarray(items[:, :-1]), items[:, -1].astype(np.int64), origin == SAMPLE, workers
        )


class AbsentRowTotals(NamedTuple):
    """Rows of the table that the population lacks: how many; distinct ones; of one kind, its codes, how many the
    population has and how many the table has; by column, how many have each joined value.
    """

    rows: int
    distinct: int
    codes: list[int]
    in_population: int
    sampled: int
    counts: list[npt.NDArray[np.int64]]


def find_absent_rows(population: PopulationPlan, matched: MatchedRows) -> tuple[Rows, AbsentRowTotals]:
    """The matched rows of a part that the population lacks, with multiplicities, and their totals.

    Where missing values are wildcards no row is known to be lacking.
    """
    short = matched.lacking()
    if any(population.columns.wildcards):
        short = MatchedRows(short.keys[:0], short.sampled[:0], short.in_population[:0])
    rows = Rows(short.keys, short.sampled - short.in_population)
    codes = population.columns.layout.unpack(rows.keys)
    counts = [np.zeros(len(values), np.int64) for values in population.columns.values]
    for own, total in zip(codes, counts, strict=True):
        add_times(own, rows.counts, total)
    one = (int(short.in_population[0]), int(short.sampled[0])) if len(short.keys) else (0, 0)
    first = [int(own[0]) for own in codes if len(own)]
    return rows, AbsentRowTotals(int(rows.counts.sum()), len(rows.keys), first, *one, counts)


def add_absent_rows(*parts: AbsentRowTotals) -> AbsentRowTotals:
    """The totals of several parts together."""
    one = next((part for part in parts if part.rows), parts[0])
    counts = [np.sum(several, axis=0) for several in zip(*(part.counts for part in parts), strict=True)]
    rows, distinct = (sum(several) for several in zip(*((part.rows, part.distinct) for part in parts), strict=True))
    return one._replace(rows=rows, distinct=distinct, counts=counts)


def settle_population(lacks: str, population: PopulationPlan, lacking: AbsentRowTotals) -> PopulationPlan:
    """The population with the rows, or values, that it lacked; raises InputError where that is an error."""
    if lacks == "error" and lacking.rows:
        unknown = population.columns.absent_value_hint(lacking.codes)
        raise lacks_error(lacking.rows, population.rows, None, lacking.in_population, lacking.sampled, unknown)
    return population.with_lacking(lacking.rows, lacking.distinct, lacking.counts, lacks)


def project_rows(whole: PopulationPlan, planned: plan.Plan, rows: Rows) -> Rows:
    """Rows of all columns as the distinct rows of a plan that uses some of them."""
    names = whole.columns.names
    places = [names.index(name) for name in planned.request.used]
    if len(places) == len(names):
        return rows
    codes = whole.columns.layout.unpack(rows.keys)
    with task_workers() as workers:
        keys = planned.layout.pack([codes[place] for place in places], workers)
        return distinct_rows(Rows(keys, rows.counts), whole.total, workers).rows
