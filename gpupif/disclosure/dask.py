"""Disclosure risk of a Dask frame: the graph that finds it.

One shuffle: each partition sends its distinct rows, with their counts, to the parts in which their equivalence classes
lie whole. Before it, values are counted by a tree reduction; after it, what parts have found is put together by
another, and, for recursive (c,l)-diversity, the parts are looked at a second time. With a population there is another
shuffle, in which its rows meet the table's. Only what follows from all of that comes to the client.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..attack.population import Population
from ..attack.request import ScoreRequest
from ..dask.graph import Graph
from ..dask.population import open_dask_population, population_chunks
from ..dask.watch import compute
from ..encoding.column import Column
from ..encoding.merge import ValueCounts
from ..frames.dask_frame import check_dask_frame, known_orders
from ..pipeline import encoded_chunk as chunk_tasks
from ..pipeline import routes as shuffle
from ..pipeline import table_plan as plans
from ..pipeline.encoded_chunk import EncodedChunk
from ..pipeline.graph import Result
from ..pipeline.parcels import rows_in, unpack
from ..pipeline.population import AbsentRowTotals, MetRows, find_absent_rows
from ..pipeline.population_graph import add_matching_tasks, add_settling_tasks
from ..pipeline.routes import Routes
from ..pipeline.table_plan import ChunkTotals, Plan, PopulationPlan, WeightedCounts, Weights
from ..pipeline.task_resources import task_engine, task_workers, warn_clients
from ..rows.partition import Rows
from ..utils.progress import Reporter
from .cells import about_distance, as_score_request, check_columns, with_households
from .findings import ByAttribute, Stopwatch, combine
from .journalist import MatchedClasses
from .presence import PresenceRanking
from .request import RiskRequest
from .search import Assessed, RiskSearch, SecondLook
from .search_part import SearchTools
from .table_part import TablePart
from .with_population import classes_of_matched


def assess_dask(table: Any, request: RiskRequest, population: Population | None) -> Assessed:
    """`gpupif.disclosure.assess.assess` of a Dask frame; computes at once."""
    check_dask_frame(table)
    request.pick(list(table.columns))
    given = request.distance is not None
    walked = [] if given or not any(one.cell == "emd" for one in request.models) else request.sensitive
    score_request = as_score_request(request, known_orders(table, walked))
    people = None if population is None else open_dask_population(population.table, request.quasi_identifiers)
    graph = Graph()
    encoded = graph.each("encode", encode_rows, request, score_request, graph.take(table[request.read]))
    local, number = (graph.each(what, itemgetter(place), encoded) for place, what in enumerate(("local", "number")))
    names = list(table.columns)
    totals, weighing = chunk_tasks.count_values(graph, score_request, names, local)
    planned = graph.one("plan", plan_risk, request, score_request, names, totals, *weighing)
    search = graph.one("search", plan_search, request, score_request, planned, totals)
    last = _search(graph, request, planned, search, local)
    if population is not None:
        # Only by what is known rows are compared.
        known = request.quasi_identifiers
        compared = replace(score_request, used=known, scored_columns=[], known=known, weights=None)
        chunks = population_chunks(graph, people, known)
        totals = graph.one("totals-known", first_columns, len(known), totals)
        matching = add_matching_tasks(graph, local, totals, chunks, compared, names, request.device, overlapping=True)
        ranking = graph.one("presence-ranking", presence_ranking, request.groups, matching.joined)
        met = (planned, matching.joined, ranking, matching.matched)
        several = graph.each("compare", compare_classes, population.lacks, *met)
        absent, own = (
            graph.each(what, itemgetter(place), several) for place, what in enumerate(("lacks", "own-classes"))
        )
        settled = add_settling_tasks(graph, population.lacks, matching, absent, local, number)
        classes = graph.tree("classes", partial(MatchedClasses.total, request.groups), own)
        last = graph.one("with-classes", with_classes, last, settled, classes)
    watch = Stopwatch()
    with Reporter() as report, watch("compute"):
        found: Assessed = compute(graph.value(last), report)
    return replace(found, seconds=watch.seconds)


def _search(graph: Graph, request: RiskRequest, planned: Result, search: Result, local: list[Result]) -> Result:
    """Add the tasks that search the parts; what is found.

    planned, search, local: the `Plan`, the `RiskSearch`, and the encoded partitions.
    """
    count = range(len(local))
    rows = graph.each("rows", counted_rows, planned, local)
    sample = graph.tree("samples", shuffle.add_samples, graph.each("sample", sample_rows, rows))
    route = graph.one("routes", shuffle.plan_routes, planned, len(local), len(local), len(local), sample)

    arrived = graph.shuffle("out", graph.each("send", send, planned, route, count, rows), len(local))
    parts = (planned, search, route, count, arrived)
    groups = request.groups
    first = graph.tree("findings", partial(combine, groups), graph.each("find", find_part, *parts))
    second = graph.one("second", RiskSearch.second, search, first)
    again: Any = ByAttribute()
    if request.may_look_again:
        several = graph.each("find-again", find_part, *parts, second)
        again = graph.tree("findings-again", partial(combine, groups), several)
    return graph.one("conclude", conclude, planned, search, first, second, again)


def first_columns(known: int, totals: ChunkTotals) -> ChunkTotals:
    """Totals of so many columns of a table, those that come first."""
    return totals._replace(values=totals.values[:known], first_missing=totals.first_missing[:known])


def presence_ranking(most: int, people: PopulationPlan) -> PresenceRanking:
    """How classes are ranked by presence; most: how many are wanted."""
    return PresenceRanking.of(most, people.columns)


def compare_classes(
    lacks: str, plan: Plan, people: PopulationPlan, ranking: PresenceRanking, met: MetRows
) -> tuple[AbsentRowTotals, MatchedClasses]:
    """Of the rows that met in a part what the population lacks, and the classes of the table."""
    _, lacking = find_absent_rows(lacks, people, met)
    return lacking, classes_of_matched(people.columns, ranking, met.rows, task_engine(plan.device))


def with_classes(found: Assessed, settled: PopulationPlan, classes: MatchedClasses) -> Assessed:
    """What is found with the classes in the population, which lacks nothing of the table."""
    return replace(found, in_population=classes)


def encode_rows(
    request: RiskRequest, score_request: ScoreRequest, partition: Any
) -> tuple[EncodedChunk, npt.NDArray[Any]]:
    """The distinct rows of a partition; where there is no sensitive attribute, with a constant one.

    And for each row which distinct row it is.
    """
    local, index = chunk_tasks.encode_chunk(replace(score_request, used=request.columns), request.device, partition)
    if request.sensitive:
        return local, index.number
    rows, place = int(local.times.sum()), len(request.columns)
    constant = ValueCounts(pa.array([0][:rows], pa.int64()), np.array([rows][:rows]), 0)
    local = local._replace(
        codes=_with_item(local.codes, place, np.zeros(len(local.times), np.uint8)),
        values=_with_item(local.values, place, constant),
        first_missing=_with_item(local.first_missing, place, -1),
    )
    return local, index.number


def _with_item(items: list[Any], place: int, item: Any) -> list[Any]:
    return [*items[:place], item, *items[place:]]


def plan_risk(
    request: RiskRequest,
    score_request: ScoreRequest,
    names: list[Hashable],
    totals: ChunkTotals,
    weights: Weights | None,
    counts: WeightedCounts | None,
) -> Plan:
    """What all partitions have to know; raises InputError, DeviceError; warns."""
    with about_distance():
        plan = plans.make_plan(score_request, names, totals, weights, counts, on_warning=lambda *_: None)
    plan = replace(plan, job=with_households(plan.job, request.household_place))
    check_columns(_columns(score_request, plan, totals)[: len(request.columns)], plan.rows, request, warn_clients)
    return plan


def _columns(score_request: ScoreRequest, plan: Plan, totals: ChunkTotals) -> list[Column]:
    """The columns of the whole table, without codes."""
    if score_request.missing == "wildcard":
        # Priors know nothing of missing values then.
        return plans.merged_columns(score_request.read, totals.values)[: len(score_request.used)]
    return [plan.prior_of[name].column for name in score_request.used]


def plan_search(request: RiskRequest, score_request: ScoreRequest, plan: Plan, totals: ChunkTotals) -> RiskSearch:
    """What is looked for in parts."""
    return RiskSearch(request, _columns(score_request, plan, totals), plan.job, plan.rows).checked()


def counted_rows(plan: Plan, local: EncodedChunk) -> tuple[Rows, ...]:
    """The distinct rows of a partition, counted, and where rows have weights once more, counted by people."""
    rows = chunk_tasks.global_rows(plan, local)
    return (rows,) if plan.weights is None else (Rows(rows.keys, local.times), rows)


def sample_rows(rows: tuple[Rows, ...]) -> shuffle.Sample:
    """Some of the distinct rows of a partition."""
    return shuffle.sample_rows(rows[0])


def send(plan: Plan, ways: Routes, source: int, rows: tuple[Rows, ...]) -> pd.DataFrame:
    """The parcels in which the rows of a partition travel: twice, where they are counted in two ways."""
    return chunk_tasks.send(plan, ways, source, *rows)


def find_part(
    plan: Plan, search: RiskSearch, ways: Routes, part: int, frame: pd.DataFrame, second: SecondLook | None = None
) -> ByAttribute:
    """What is found in a part; second: at a second look, if one is needed."""
    if second is not None and not second.measures:
        return {}
    with task_workers() as workers:
        tools = SearchTools(task_engine(plan.device), workers, Reporter(visible=False), Stopwatch())
        again = () if second is None else second.measures
        return search.look(_table_parts(plan, search, ways, part, frame), tools, again)


def _table_parts(plan: Plan, search: RiskSearch, ways: Routes, part: int, frame: pd.DataFrame) -> Iterator[TablePart]:
    """What the rows that reached a part are looked at in: those of each cut for its attributes."""
    columns = list(range(len(search.columns)))
    for cut, group in groupby(unpack(frame, part), key=lambda parcel: parcel.cut):
        parcels = list(group)
        # The same rows, in the same order, counted in both ways.
        rows, by_people = (
            rows_in(some, plan.layout.words)
            for some in (
                [parcel for parcel in parcels if parcel.source < ways.chunks],
                [parcel for parcel in parcels if parcel.source >= ways.chunks],
            )
        )
        people = None if plan.weights is None else by_people.counts
        yield TablePart.of(search.job, ways.cuts[cut].scored_columns, columns, rows.keys, rows.counts, people)


def conclude(plan: Plan, search: RiskSearch, first: ByAttribute, second: SecondLook, again: ByAttribute) -> Assessed:
    """What goes to the client."""
    return search.conclude(first, second, again, plan.devices, {})
