"""The graph that matches a Dask frame with its population, in a shuffle of its own.

What the population counts, with rows that it lacks if these are to count, then goes the way of the table's rows.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import InputError
from ..frames.dask_frame import check_dask_frame, is_dask
from ..frames.open import open_frame
from ..io.paths import find_input
from ..utils.validation import check_exist, check_unique
from . import partition as partition_tasks
from . import plan
from .graph import Graph, Key, ref
from .plan import join
from .population import (
    POPULATION,
    TABLE,
    add_absent_rows,
    find_absent_rows,
    joined_rows,
    match_rows,
    project_rows,
    send_joined_rows,
    settle_population,
)
from .read import read_files

if TYPE_CHECKING:
    from ..attack.request import ScoreRequest


@dataclass(frozen=True)
class PopulationGraph:
    """The tasks that match a table with its population, the same for all attackers.

    read: columns of the table; encoded: its partitions. population: settled, what all have to know; rows: of the
    population's partitions; added: of the parts in which rows met, those that count as the population's too.
    """

    graph: Graph
    read: list[Hashable]
    encoded: Sequence[Key]
    population: Key
    rows: Sequence[Key]
    added: Sequence[Key]

    def sent(self, graph: Graph, planned: Any) -> tuple[list[Key], list[Key]]:
        """In the graph of an attacker, with a plan, the keys of `rows` and `added` as the plan has them."""
        several = []
        for stage, keys in (("people", self.rows), ("added", self.added)):
            given = ([ref(self.population)] * len(keys), [planned] * len(keys), list(map(ref, keys)))
            several.append(graph.each(stage, project_rows, *given))
        return several[0], several[1]


def build_population_graph(
    read: Any, population: Any, request: ScoreRequest, names: list[Hashable], lacks: str, device: str
) -> PopulationGraph:
    """The graph that compares a table with its population. read: the table's columns that are needed."""
    graph = Graph()
    encoded = graph.each(
        "encode", partial(partition_tasks.encode_partition, request, device), list(map(ref, graph.take(read)))
    )
    mine = list(map(ref, graph.each("local", itemgetter(0), list(map(ref, encoded)))))
    each = graph.each("totals-met-each", partition_tasks.totals, mine)
    totals = ref(graph.tree("totals-met", partial(plan.add_totals, request.read), each))
    meeting = add_matching_tasks(graph, mine, totals, population, request, names, device)
    several = [meeting.joined] * len(meeting.matched)
    compared = list(map(ref, graph.each("compare", find_absent_rows, several, meeting.matched)))
    lacking = ref(graph.tree("lacking", add_absent_rows, graph.each("lacks", itemgetter(1), compared)))
    settled = graph.one("settle", partial(settle_population, lacks), meeting.joined, lacking)
    added = graph.each("added-rows", itemgetter(0), compared)
    return PopulationGraph(graph, request.read, encoded, settled, meeting.rows, added)


class MatchingTasks(NamedTuple):
    """The tasks that match the rows of a table and its population.

    joined: as an argument of others, what all have to know. rows: of the population's partitions. matched: as arguments
    of others, the different rows that met in each part.
    """

    joined: Any
    rows: Sequence[Key]
    matched: Sequence[Any]


def add_matching_tasks(
    graph: Graph,
    mine: Sequence[Any],
    totals: Any,
    population: Any,
    request: ScoreRequest,
    names: list[Hashable],
    device: str,
) -> MatchingTasks:
    """Add the tasks that match equal rows of a table and its population.

    mine, totals: of the table, its partitions by the columns of the request first, and their totals.
    """
    asked = replace(request, weights=None)
    given = list(map(ref, _partitions(graph, population, request.used)))
    others = graph.each("encode-people", partial(partition_tasks.encode_partition, asked, device), given)
    theirs = list(map(ref, graph.each("local-people", itemgetter(0), list(map(ref, others)))))
    each = graph.each("totals-people-each", partition_tasks.totals, theirs)
    found = ref(graph.tree("totals-people", partial(plan.add_totals, asked.read), each))
    joined = ref(graph.one("join", partial(join, request, names), totals, found))
    rows, parts = [], range(len(mine) + len(theirs))
    for origin, local in ((TABLE, mine), (POPULATION, theirs)):
        many = range(len(local))
        rows += graph.each(f"joined-{origin}", joined_rows, [joined for _ in many], [origin for _ in many], local)
    several = [joined for _ in parts]
    origins = [TABLE if part < len(mine) else POPULATION for part in parts]
    sent = graph.each("meet", partial(send_joined_rows, len(parts)), several, parts, list(map(ref, rows)), origins)
    arrived = list(map(ref, graph.shuffle("met", sent)))
    matched = list(map(ref, graph.each("met-rows", match_rows, several, parts, arrived)))
    return MatchingTasks(joined, rows[len(mine) :], matched)


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
            raise InputError(f"population: {error}") from None
    check_unique(names, "population")
    check_exist("population", used, names, "the population")
    return population


def _partitions(graph: Graph, population: Any, used: Sequence[Hashable]) -> list[Key]:
    """The tasks that give the partitions of a population; one in memory is one."""
    if hasattr(population, "__dask_graph__"):
        narrow = population[list(used)] if list(population.columns) != list(used) else population
        return graph.take(narrow)
    return [graph.one("population", _itself, population)]


def _itself(population: Any) -> Any:
    return population
