"""The tasks that match a table with its population, in a shuffle of their own.

Afterwards the rows of the population are sent to partitions like the rows of the table. Rows that the population lacked
are sent too, if they are to count.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from operator import attrgetter, itemgetter
from typing import Generic, NamedTuple, TypeVar

from ..attack.joined_columns import POPULATION, SAMPLE
from ..attack.request import ScoreRequest
from ..engines.base import Job
from ..engines.choose import DeviceRequest
from . import chunk_encoding
from .one_partition_memory import check_matched_in_one_partition
from .population_matching import (
    add_absent_rows,
    add_chunks,
    find_absent_rows,
    find_first_absent,
    joined_rows,
    match_rows,
    project_rows,
    send_joined_rows,
    settle_population,
)
from .table_plan import PopulationPlan, join
from .task_graph import Graph, Result

AnyGraph = TypeVar("AnyGraph", bound=Graph)


@dataclass(frozen=True)
class PopulationGraph(Generic[AnyGraph]):
    """The tasks that match a table with its population; all attackers share them.

    graph: Graph. The graph of these tasks.
    read: list. The columns that are read of the table.
    encoded: list of results. The encoded chunks of the table.
    population: result. The `PopulationPlan`, with absent rows settled.
    rows: list of results. The rows of each chunk of the population.
    added: list of results. The rows of each partition that were absent and are added to the population.
    """

    graph: AnyGraph
    read: list[Hashable]
    encoded: list[Result]
    population: Result
    rows: list[Result]
    added: list[Result]

    def sent(self, graph: Graph, planned: Result) -> tuple[list[Result], list[Result]]:
        """Return `rows` and `added` with the columns of one attacker's plan, as tasks of the attacker's graph."""
        others, added = (
            graph.each(stage, project_rows, self.population, planned, rows)
            for stage, rows in (("people", self.rows), ("added", self.added))
        )
        return others, added


def add_population(
    graph: AnyGraph,
    chunks: list[Result],
    population: list[Result],
    request: ScoreRequest,
    names: list[Hashable],
    lacks: str,
    device: DeviceRequest,
) -> PopulationGraph[AnyGraph]:
    """Add the tasks that compare a table with its population.

    chunks, population: list of results. The chunks of the table and of its population, with the columns to read.
    lacks: str. "error" or "count", for rows that the population lacks.
    """
    encoded = graph.each("encode", chunk_encoding.encode_chunk, request, device, chunks)
    mine = graph.each("local", itemgetter(0), encoded)
    totals = chunk_encoding.find_totals(graph, request, mine, "-met")
    meeting = add_matching_tasks(graph, mine, totals, population, request, names, device)
    compared = graph.each("compare", find_absent_rows, lacks, meeting.joined, meeting.matched)
    number = graph.each("number", attrgetter("number"), graph.each("index", itemgetter(1), encoded))
    several = graph.each("lacks", itemgetter(1), compared)
    settled = add_settling_tasks(graph, lacks, meeting, several, mine, number)
    added = graph.each("added-rows", itemgetter(0), compared)
    return PopulationGraph(graph, request.read, encoded, settled, meeting.rows, added)


class MatchingTasks(NamedTuple):
    """The tasks that match the rows of a table and its population.

    joined: result. The `PopulationPlan`.
    rows: list of results. The rows of each chunk of the population.
    matched: list of results. The distinct rows of both tables in each partition.
    """

    joined: Result
    rows: list[Result]
    matched: list[Result]


def add_matching_tasks(
    graph: Graph,
    mine: list[Result],
    totals: Result,
    population: list[Result],
    request: ScoreRequest,
    names: list[Hashable],
    device: DeviceRequest,
    overlapping: bool = False,
) -> MatchingTasks:
    """Add the tasks that match equal rows of a table and its population.

    mine: list of results. The encoded chunks of the table; their first columns are those of the request.
    totals: result. The `ChunkTotals` of the table.
    population: list of results. The chunks of the population.
    overlapping: bool. Whether rows are also matched if missing values are wildcards; all are then in one partition.
    """
    asked = replace(request, weights=None)
    others = graph.each("encode-people", chunk_encoding.encode_chunk, asked, device, population)
    theirs = graph.each("local-people", itemgetter(0), others)
    found = chunk_encoding.find_totals(graph, asked, theirs, "-people")
    joined = graph.one("join", join, request, names, totals, found)
    if overlapping:
        joined = graph.one("room", check_matched_in_one_partition, joined, totals)
    own = graph.each("joined-table", joined_rows, joined, SAMPLE, mine)
    rows = graph.each("joined-people", joined_rows, joined, POPULATION, theirs)
    origins = [*[SAMPLE] * len(own), *[POPULATION] * len(rows)]
    sizes = graph.one("rows-to-match", rows_to_match, request, joined)
    partitions = range(graph.partitions(len(origins), sizes))
    sent = graph.each(
        "meet", send_joined_rows, len(partitions), overlapping, joined, range(len(origins)), [*own, *rows], origins
    )
    matched = graph.each("met-rows", match_rows, joined, partitions, graph.shuffle("met", sent, len(partitions)))
    return MatchingTasks(joined, rows, matched)


def add_settling_tasks(
    graph: Graph, lacks: str, matching: MatchingTasks, absent: list[Result], mine: list[Result], number: list[Result]
) -> Result:
    """Add the tasks that refuse rows that the population lacks, or add them to it; return the settled population.

    absent: list of results. The `AbsentRowTotals` of each partition.
    mine: list of results. The encoded chunks of the table.
    number: list of results. The distinct row of each row of a chunk.
    """
    lacking = graph.tree("lacking", add_absent_rows, absent)
    first = None
    if lacks == "error":
        count = range(len(mine))
        each = graph.each("first-lacking", find_first_absent, matching.joined, lacking, count, mine, number)
        first = graph.tree("first", add_chunks, each)
    return graph.one("settle", settle_population, matching.joined, lacks, lacking, first)


class RowsToMatch(NamedTuple):
    """The size of the matching shuffle, from which a graph plans partitions.

    job: Job. A job with the columns of the rows.
    rows: int. The number of rows of both tables.
    in_one_partition: bool. Whether all rows have to be in one partition.
    """

    job: Job
    rows: int
    in_one_partition: bool


def rows_to_match(request: ScoreRequest, population: PopulationPlan) -> RowsToMatch:
    """Return the size of the shuffle that matches a table and its population."""
    columns = population.columns
    return RowsToMatch(columns.sizes_job(request), population.rows + population.total, any(columns.wildcards))
