"""Tasks of the population of a Dask frame: its rows are matched with the table's, and those that it lacks found."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpupif.kernels import partition as kernels
from gpupif.kernels.codes import add_times

from ..attack.population import MatchedRows, absent_value_hint, lacks_error
from ..engines.block_scoring import pack_keys, unpack_keys
from ..rows.distinct import distinct_rows
from ..rows.partition import Rows
from . import partition as partition_tasks
from . import plan
from .parcels import Parcel, pack, unpack
from .plan import PopulationPlan
from .worker import task_workers

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd


# The table that rows are of, in joins and in parcels.
TABLE, POPULATION = 0, 1


def joined_rows(population: PopulationPlan, origin: int, local: partition_tasks.EncodedPartition) -> Rows:
    """The distinct rows of a partition of either table, by joined values; how often each occurs."""
    columns = [both[origin] for both in population.columns]
    # Without weights, which come last.
    used = local._replace(codes=local.codes[: len(columns)], values=local.values[: len(columns)])
    codes = population.joined(partition_tasks.global_codes(columns, used), origin)
    with task_workers() as workers:
        return Rows(pack_keys(codes, population.layout, workers), local.times)


def send_joined_rows(parts: int, population: PopulationPlan, source: int, rows: Rows, origin: int) -> pd.DataFrame:
    """The parcels in which rows travel to where equal ones are compared; none, where missing values are wildcards."""
    if not len(rows.keys) or any(population.wildcards):
        return pack([])
    to = np.zeros(len(rows.keys), np.uint32)
    kernels.partition_ids(rows.keys, population.layout.masks(population.layout.fields), parts, to)
    order = np.argsort(to, kind="stable")
    items = np.column_stack([rows.keys[order], rows.counts[order].astype(np.uint64)])
    edges = np.cumsum(np.bincount(to, minlength=parts)).tolist()
    stretches = enumerate(pairwise([0, *edges]))
    return pack([Parcel(part, source, origin, items[start:stop]) for part, (start, stop) in stretches if start < stop])


def match_rows(population: PopulationPlan, part: int, frame: pd.DataFrame) -> MatchedRows:
    """The distinct rows of both tables that were sent to a part, matched."""
    words = population.layout.words
    parcels = unpack(frame, part)
    items = np.concatenate([np.empty((0, words + 1), np.uint64), *(p.items.reshape(-1, words + 1) for p in parcels)])
    origin = np.repeat([p.cut for p in parcels], [p.items.size // (words + 1) for p in parcels])
    if not len(items):
        nothing = np.zeros(0, np.int64)
        return MatchedRows(items[:, :-1], nothing, nothing)
    with task_workers() as workers:
        return MatchedRows.of(
            np.ascontiguousarray(items[:, :-1]), items[:, -1].astype(np.int64), origin == TABLE, workers
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
    """The matched rows of a part that the population lacks, with multiplicities, and their totals."""
    short = matched.lacking()
    rows = Rows(short.keys, short.sampled - short.in_population)
    codes = unpack_keys(rows.keys, population.layout)
    counts = [np.zeros(len(values), np.int64) for values in population.values]
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
        names = [mine.name for mine, _ in population.columns]
        in_population = [int(counts[code]) for counts, code in zip(population.counts, lacking.codes, strict=True)]
        unknown = absent_value_hint(names, population.values, lacking.codes, in_population)
        raise lacks_error(lacking.rows, population.rows, None, lacking.in_population, lacking.sampled, unknown)
    return population.with_lacking(lacking.rows, lacking.distinct, lacking.counts, lacks)


def project_rows(whole: PopulationPlan, planned: plan.Plan, rows: Rows) -> Rows:
    """Rows of all columns as the distinct rows of a plan that uses some of them."""
    places = whole.places(planned.request.used)
    if len(places) == len(whole.columns):
        return rows
    codes = unpack_keys(rows.keys, whole.layout)
    with task_workers() as workers:
        keys = pack_keys([codes[place] for place in places], planned.layout, workers)
        return distinct_rows(Rows(keys, rows.counts), whole.total, workers).rows
