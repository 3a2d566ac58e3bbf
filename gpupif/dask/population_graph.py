"""The graph that matches a Dask frame with its population, in a shuffle of its own.

What the population counts, with rows that it lacks if these are to count, then goes the way of the table's rows.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from ..attack.joined_columns import POPULATION, SAMPLE
from ..attack.request import ScoreRequest
from ..engines.choose import DeviceRequest
from ..errors import InputError
from ..frames.dask_frame import check_dask_frame, is_dask
from ..frames.open import open_frame
from ..io.paths import find_input
from ..utils.validation import check_exist, check_unique
from . import partition as partition_tasks
from .graph import Graph, Result
from .one_part import check_matched_in_one_part
from .plan import PartitionTotals, PopulationPlan, join
from .population import (
    add_absent_rows,
    add_partitions,
    find_absent_rows,
    find_first_absent,
    joined_rows,
    match_rows,
    project_rows,
    send_joined_rows,
    settle_population,
)
from .read import read_files


@dataclass(frozen=True)
class PopulationGraph:
    """The tasks that match a table with its population, the same for all attackers.

    read: columns of the table; encoded: its partitions. population: settled, what all have to know; rows: of the
    population's partitions; added: of the parts in which rows met, those that count as the population's too.
    """

    graph: Graph
    read: list[Hashable]
    encoded: list[Result]
    population: Result
    rows: list[Result]
    added: list[Result]

    def sent(self, graph: Graph, planned: Result) -> tuple[list[Result], list[Result]]:
        """In the graph of an attacker, with a plan, `rows` and `added` as the plan has them."""
        people, added = (
            graph.each(stage, project_rows, self.population, planned, rows)
            for stage, rows in (("people", self.rows), ("added", self.added))
        )
        return people, added


def build_population_graph(
    read: Any, population: Any, request: ScoreRequest, names: list[Hashable], lacks: str, device: DeviceRequest
) -> PopulationGraph:
    """The graph that compares a table with its population. read: the table's columns that are needed."""
    graph = Graph()
    encoded = graph.each("encode", partition_tasks.encode_partition, request, device, graph.take(read))
    mine = graph.each("local", itemgetter(0), encoded)
    totals = partition_tasks.find_totals(graph, request, mine, "-met")
    meeting = add_matching_tasks(graph, mine, totals, population, request, names, device)
    compared = graph.each("compare", find_absent_rows, lacks, meeting.joined, meeting.matched)
    number = graph.each("number", attrgetter("number"), graph.each("index", itemgetter(1), encoded))
    several = graph.each("lacks", itemgetter(1), compared)
    settled = add_settling_tasks(graph, lacks, meeting, several, mine, number)
    added = graph.each("added-rows", itemgetter(0), compared)
    return PopulationGraph(graph, request.read, encoded, settled, meeting.rows, added)


class MatchingTasks(NamedTuple):
    """The tasks that match the rows of a table and its population.

    joined: what all have to know. rows: of the population's partitions. matched: the different rows that met in each
    part.
    """

    joined: Result
    rows: list[Result]
    matched: list[Result]


def add_matching_tasks(
    graph: Graph,
    mine: list[Result],
    totals: Result,
    population: Any,
    request: ScoreRequest,
    names: list[Hashable],
    device: DeviceRequest,
    overlapping: bool = False,
) -> MatchingTasks:
    """Add the tasks that match equal rows of a table and its population.

    mine, totals: of the table, its partitions by the columns of the request first, and their totals. overlapping:
    whether rows are matched, all in one part, where missing values match every value, too.
    """
    asked = replace(request, weights=None)
    given = _partitions(graph, population, request.used)
    others = graph.each("encode-people", partition_tasks.encode_partition, asked, device, given)
    theirs = graph.each("local-people", itemgetter(0), others)
    found = partition_tasks.find_totals(graph, asked, theirs, "-people")
    joined = graph.one("join", join, request, names, totals, found)
    if overlapping:
        joined = graph.one("room", checked_in_one_part, joined, totals)
    own = graph.each("joined-table", joined_rows, joined, SAMPLE, mine)
    people = graph.each("joined-people", joined_rows, joined, POPULATION, theirs)
    origins = [*[SAMPLE] * len(own), *[POPULATION] * len(people)]
    parts = range(len(origins))
    sent = graph.each("meet", send_joined_rows, len(parts), overlapping, joined, parts, [*own, *people], origins)
    matched = graph.each("met-rows", match_rows, joined, parts, graph.shuffle("met", sent))
    return MatchingTasks(joined, people, matched)


def add_settling_tasks(
    graph: Graph, lacks: str, matching: MatchingTasks, absent: list[Result], mine: list[Result], number: list[Result]
) -> Result:
    """Add the tasks that refuse what the population lacks, or have it count there; the settled population.

    absent: what it lacks, by part. mine, number: of the table, its encoded partitions, and of each row there which
    distinct row it is.
    """
    lacking = graph.tree("lacking", add_absent_rows, absent)
    first = None
    if lacks == "error":
        count = range(len(mine))
        each = graph.each("first-lacking", find_first_absent, matching.joined, lacking, count, mine, number)
        first = graph.tree("first", add_partitions, each)
    return graph.one("settle", settle_population, matching.joined, lacks, lacking, first)


def checked_in_one_part(population: PopulationPlan, totals: PartitionTotals) -> PopulationPlan:
    """The same; raises InputError as `check_matched_in_one_part`. totals: of the table."""
    check_matched_in_one_part(population, totals.distinct)
    return population


def open_dask_population(population: Any, used: Sequence[Hashable]) -> Any:
    """A population of any kind, with its columns checked: a Dask frame, or a table in memory. Raises InputError."""
    if isinstance(population, str | os.PathLike):
        given = find_input(Path(population))

        def pick(names: Sequence[str]) -> list[str]:
            check_exist("population", used, names, "the population")
            return [name for name in names if name in used]

        population = read_files("population", given, pick).frame
    if is_dask(population):
        check_dask_frame(population, "population")
        names = list(population.columns)
    else:
        try:
            names = list(open_frame(population).names)
        except InputError as error:
            raise error.about("population") from None
    check_unique(names, "population")
    check_exist("population", used, names, "the population")
    return population


def _partitions(graph: Graph, population: Any, used: Sequence[Hashable]) -> list[Result]:
    """The partitions of a population; one in memory is one."""
    if is_dask(population):
        narrow = population[list(used)] if list(population.columns) != list(used) else population
        return graph.take(narrow)
    return [graph.given("population", population)]
