"""The tasks that find the disclosure risk of a table in chunks; a graph executes them here, with files, or on Dask.

Each chunk sends its distinct rows, counted, to the partitions in which their equivalence classes are whole. Before that
shuffle a tree reduction counts the values of the table. After it, another tree reduction combines the findings of
partitions. For recursive (c,l)-diversity the partitions are searched a second time. A population takes another shuffle,
in which its rows meet the rows of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..attack.request import ScoreRequest
from ..attack.weights import TableWeights, Units
from ..encoding.column import Column
from ..encoding.merge import ValueCounts
from ..errors import InputError
from ..out_of_core.table_chunks import TableChunks
from ..pipeline import chunk_encoding as chunk_tasks
from ..pipeline import partition_routes as route_tasks
from ..pipeline import table_plan as plans
from ..pipeline.chunk_encoding import EncodedChunk
from ..pipeline.fitting_rows import PartitionRows
from ..pipeline.partition_routes import Routes
from ..pipeline.population_graph import add_matching_tasks, add_settling_tasks
from ..pipeline.population_matching import AbsentRowTotals, MetRows, find_absent_rows
from ..pipeline.shuffle_messages import unpack
from ..pipeline.table_plan import ChunkTotals, Plan, PopulationPlan, WeightedCounts, Weights
from ..pipeline.task_graph import Graph, Result
from ..pipeline.task_resources import task_engine, task_rows, task_workers, warn_clients
from ..rows.partition import Rows
from .partition_search import ByAttribute, Partition, combine_findings
from .population_risks import MatchedClasses, PresenceRanking
from .request import NO_ATTRIBUTE, RiskRequest, about_distance, with_households
from .risk_search import Assessment, RiskSearch, SecondSearch

# With wildcards, rows of a table and of its population are compared with each other. Together they may be at most this
# share of the distinct rows that fit into memory.
MATCHED_SHARE = 0.5


@dataclass(frozen=True)
class RiskTasks:
    """A table in chunks, in a graph to which tasks are added.

    graph: the graph.
    request: the request of the assessment.
    score_request: `RiskRequest.score_request`.
    names: names of all columns of the table.
    local: for each chunk its `EncodedChunk`.
    number: for each chunk the number of the distinct row of each of its rows.
    totals: the `ChunkTotals` of the table.
    weighing: the `Weights` of the table and their sums by value; None twice without weights.
    encoded_before: True if the table was encoded, and its columns checked, before.
    """

    graph: Graph
    request: RiskRequest
    score_request: ScoreRequest
    names: list[Hashable]
    local: list[Result]
    number: list[Result]
    totals: Result
    weighing: tuple[Any, Any]
    encoded_before: bool

    @classmethod
    def from_chunks(
        cls,
        graph: Graph,
        request: RiskRequest,
        score_request: ScoreRequest,
        names: Sequence[Hashable],
        table: Any,
        weighed: tuple[Units, TableWeights] | None = None,
    ) -> RiskTasks:
        """Return the tasks that encode the chunks of a table.

        score_request: `RiskRequest.score_request`.
        names: names of all columns of the table.
        table: a table for `Graph.take`, with the columns that are read.
        weighed: the sampling weights of `TableChunks`, and their sums by value. None without weights.

        The columns of `TableChunks` were checked before, and their values are known without a pass over the chunks.
        """
        encoded = graph.each("encode", encode_rows, request, score_request, graph.take(table))
        local, number = (graph.each(name, itemgetter(place), encoded) for place, name in enumerate(("local", "number")))
        encoded_before = isinstance(table, TableChunks)
        if encoded_before:
            whole = table_totals(request, score_request, table)
            totals = graph.given("totals", whole)
            weighing = table_weights(score_request, whole, weighed)
        else:
            totals, weighing = chunk_tasks.count_values(graph, score_request, list(names), local)
        return cls(graph, request, score_request, list(names), local, number, totals, weighing, encoded_before)

    def add_search(self) -> Result:
        """Add the tasks that search the table; return the result: its `Assessment`."""
        graph, request, asked, local = self.graph, self.request, self.score_request, self.local
        warns = None if self.encoded_before else warn_clients
        planned = graph.one("plan", plan_risk, request, asked, self.names, warns, self.totals, *self.weighing)
        search = graph.one("search", plan_search, request, asked, planned, self.totals)
        rows = graph.each("rows", counted_rows, planned, local)
        chunks, partitions = len(local), graph.partitions(len(local), planned)
        if self.encoded_before:
            # No sample is needed to even out the partitions: a partition that is too large is cut finer.
            route = graph.one("routes", routes_by_hash, planned, chunks, partitions)
        else:
            sample = graph.tree("samples", route_tasks.add_samples, graph.each("sample", sample_rows, rows))
            route = graph.one("routes", route_tasks.plan_routes, planned, chunks, chunks, partitions, sample)
        sent = graph.each("send", send, planned, route, range(chunks), rows)
        inputs = (planned, search, route, range(partitions), graph.shuffle("out", sent, partitions))
        combine = partial(combine_findings, request.groups)
        first = graph.tree("findings", combine, graph.each("find", search_partition, *inputs))
        second = graph.one("second", RiskSearch.second, search, first)
        again: Any = ByAttribute()
        if request.may_look_again:
            again = graph.tree("findings-again", combine, graph.each("find-again", search_partition, *inputs, second))
        return graph.one("conclude", conclude, planned, search, first, second, again)

    def add_population(self, chunks: list[Result], lacks: str) -> Result:
        """Add the tasks that find the classes of the table in a population; return the result: its `MatchedClasses`.

        chunks: of the population. lacks: the way to treat rows that the population lacks, as in `gpupif.Population`.
        """
        graph, known, mine = self.graph, self.request.quasi_identifiers, self.local
        compared = replace(self.score_request, used=known, scored_columns=[], known=known, weights=None)
        totals = graph.one("totals-known", first_columns, len(known), self.totals)
        device, names = self.request.device, self.names
        matching = add_matching_tasks(graph, mine, totals, chunks, compared, names, device, overlapping=True)
        ranking = graph.one("presence-ranking", presence_ranking, self.request.groups, matching.joined)
        met = (device, matching.joined, ranking, matching.matched)
        matched = graph.each("compare", compare_classes, lacks, *met)
        absent, own = (
            graph.each(stage, itemgetter(place), matched) for place, stage in enumerate(("lacks", "own-classes"))
        )
        settled = add_settling_tasks(graph, lacks, matching, absent, mine, self.number)
        classes = graph.tree("classes", partial(MatchedClasses.total, self.request.groups), own)
        return graph.one("settled-classes", settled_classes, settled, classes)


def encode_rows(request: RiskRequest, score_request: ScoreRequest, chunk: Any) -> tuple[EncodedChunk, npt.NDArray[Any]]:
    """Return the distinct rows of a chunk, and for each of its rows the number of its distinct row.

    If no sensitive attribute is asked for, the distinct rows get a constant attribute.
    """
    local, index = chunk_tasks.encode_chunk(replace(score_request, used=request.columns), request.device, chunk)
    if request.sensitive or not score_request.scored_columns:
        return local, index.number
    constant, place = constant_values(int(local.multiplicities.sum())), len(request.columns)
    local = local._replace(
        codes=[*local.codes[:place], np.zeros(len(local.multiplicities), np.uint8), *local.codes[place:]],
        values=[*local.values[:place], constant, *local.values[place:]],
        first_missing=[*local.first_missing[:place], -1, *local.first_missing[place:]],
    )
    return local, index.number


def constant_values(rows: int) -> ValueCounts:
    """Return the values of `constant_column` in a chunk of `rows` rows."""
    return ValueCounts(pa.array([0][:rows], pa.int64()), np.array([rows][:rows]), 0)


def table_totals(request: RiskRequest, score_request: ScoreRequest, table: TableChunks) -> ChunkTotals:
    """Return the totals of a table that was encoded before. The number of its distinct rows, unknown, is its rows."""
    values: list[ValueCounts | Column] = list(table.columns)
    if not request.sensitive and score_request.scored_columns:
        values.insert(len(request.columns), constant_values(table.rows))
    return ChunkTotals(table.rows, table.rows, values, [-1] * len(values), frozenset([request.device]))


def table_weights(
    score_request: ScoreRequest, totals: ChunkTotals, weighed: tuple[Units, TableWeights] | None
) -> tuple[Weights | None, WeightedCounts | None]:
    """Return the weights of a table that was encoded before, and their sums by value; None twice without weights."""
    if weighed is None:
        return None, None
    units, weighted = weighed
    counts: WeightedCounts = {NO_ATTRIBUTE: np.array([weighted.total]), **weighted.counts}
    return Weights(plans.merged_columns(score_request.read, totals.values), units), counts


def plan_risk(
    request: RiskRequest,
    score_request: ScoreRequest,
    names: list[Hashable],
    warns: Callable[[str, type[Warning]], None] | None,
    totals: ChunkTotals,
    weights: Weights | None,
    counts: WeightedCounts | None,
) -> Plan:
    """Return the plan that all partitions need. Raises InputError, DeviceError.

    warns: gives warnings about columns to the client. None if the columns were checked before.
    """
    with about_distance():
        plan = plans.make_plan(score_request, names, totals, weights, counts, on_warning=lambda *_: None)
    plan = replace(plan, job=with_households(plan.job, request.household_column))
    if warns is not None:
        request.check_columns(_columns(score_request, plan, totals), plan.rows, warns)
    return plan


def _columns(score_request: ScoreRequest, plan: Plan, totals: ChunkTotals) -> list[Column]:
    """Return the columns of the whole table, without codes."""
    if score_request.missing == "wildcard":
        # Priors leave missing values out then, and the search needs them.
        return plans.merged_columns(score_request.read, totals.values)[: len(score_request.used)]
    return [plan.prior_of[name].column for name in score_request.used]


def plan_search(request: RiskRequest, score_request: ScoreRequest, plan: Plan, totals: ChunkTotals) -> RiskSearch:
    """Return the search of partitions."""
    return RiskSearch(request, _columns(score_request, plan, totals), plan.job, plan.rows).checked()


def counted_rows(plan: Plan, local: EncodedChunk) -> tuple[Rows, ...]:
    """Return the distinct rows of a chunk with their multiplicities; with weights also with their units of weight."""
    rows = chunk_tasks.global_rows(plan, local)
    return (rows,) if plan.weights is None else (Rows(rows.keys, local.multiplicities), rows)


def sample_rows(rows: tuple[Rows, ...]) -> route_tasks.Sample:
    """Return a sample of the distinct rows of a chunk."""
    return route_tasks.sample_rows(rows[0])


def routes_by_hash(plan: Plan, chunks: int, partitions: int) -> Routes:
    """Return routes to partitions by the hash of the quasi-identifiers."""
    places = np.arange(partitions, dtype=np.int32)
    by_known = route_tasks.RoutedPass(list(plan.job.scored_columns), list(plan.job.known), places, [])
    return Routes([by_known], [0], partitions, chunks, chunks)


def send(plan: Plan, routes: Routes, source: int, rows: tuple[Rows, ...]) -> pd.DataFrame:
    """Return the messages with the rows of a chunk: with weights, each row travels twice, with its two counts."""
    return chunk_tasks.send(plan, routes, source, *rows)


def search_partition(
    plan: Plan,
    search: RiskSearch,
    routes: Routes,
    partition: int,
    arrived: Any,
    second: SecondSearch | None = None,
) -> ByAttribute:
    """Return the findings of a partition. second: the measures of a second search; None in the first search."""
    if second is not None and not second.measures:
        return {}
    engine, again = task_engine(plan.device), () if second is None else second.measures
    with task_workers() as workers:
        result: ByAttribute = {}
        for rows, scored_columns in _rows_by_cut(plan, routes, partition, arrived, workers):
            for fitting in rows.fitting(scored_columns):
                columns = list(range(len(search.columns)))
                own = Partition.from_keys(search.job, fitting.scored_columns, columns, fitting.keys, *fitting.counts)
                result = combine_findings(search.request.groups, result, search.search([own], engine, workers, again))
        return result


def _rows_by_cut(
    plan: Plan, routes: Routes, partition: int, arrived: Any, workers: Any
) -> Iterator[tuple[PartitionRows, list[int]]]:
    """Yield the rows that reached a partition, and the scored columns that they are for, cut by cut."""
    limit = task_rows(plan.job)
    for cut, group in groupby(unpack(arrived, partition), key=lambda message: message.cut):
        sent = list(group)
        counts = 1 if plan.weights is None else 2
        # The second half of the messages has the rows of the first half, in the same order, with their other count.
        half = len(sent) // counts
        messages = list(zip(*(sent[count * half : (count + 1) * half] for count in range(counts)), strict=True))
        own = routes.cuts[cut]
        rows = PartitionRows(messages, plan.layout, plan.job.known, own.by, len(own.places), limit, workers)
        yield rows, own.scored_columns


def conclude(
    plan: Plan, search: RiskSearch, first: ByAttribute, second: SecondSearch, again: ByAttribute
) -> Assessment:
    """Return the result of the whole table."""
    return search.conclude(first, second, again, plan.devices, {})


def too_many_to_compare(limit: int, rows: int) -> InputError:
    """Return the error for more than `limit` distinct rows of a table whose missing values match every value."""
    return InputError(
        f"missing: 'wildcard' compares all distinct rows with each other, and these have to fit into memory: they are "
        f"more than {limit:,} of the {rows:,} rows, the most that the memory limit has room for. Raise memory_limit, "
        "name fewer quasi-identifiers or sensitive attributes, or use missing='category'."
    )


def first_columns(known_count: int, totals: ChunkTotals) -> ChunkTotals:
    """Return the totals of the first `known_count` columns of a table, its quasi-identifiers."""
    return totals._replace(values=totals.values[:known_count], first_missing=totals.first_missing[:known_count])


def presence_ranking(most: int, people: PopulationPlan) -> PresenceRanking:
    """Return the ranking of classes by presence. most: how many are wanted."""
    return PresenceRanking.from_columns(most, people.columns)


def compare_classes(
    lacks: str, device: Any, people: PopulationPlan, ranking: PresenceRanking, met: MetRows
) -> tuple[AbsentRowTotals, MatchedClasses]:
    """Return the totals of rows of a partition that the population lacks, and the classes of the table in it."""
    _, lacking = find_absent_rows(lacks, people, met)
    if any(people.columns.wildcards):
        limit = max(1.0, MATCHED_SHARE * task_rows(people.columns.classes_job()))
        if len(met.rows.keys) > limit:
            raise too_many_to_compare(int(limit), people.rows + people.total)
    return lacking, MatchedClasses.from_matched(people.columns, ranking, met.rows, task_engine(device))


def settled_classes(settled: PopulationPlan, classes: MatchedClasses) -> MatchedClasses:
    """Return the classes, once it is settled that the population lacks no row that it must have."""
    return classes
