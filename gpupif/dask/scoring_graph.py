"""`gpupif.score` of a Dask frame: the graph that scores it.

There are two shuffles, whatever the number of columns. In the first, each chunk (a partition of the Dask frame) sends
its distinct rows to the partitions that hold their cohorts whole, once for each cut that they take part in. In the
second, the scores come home. Before the first, tree reductions find what all tasks have to know: the values of the
chunks, counted, and a sample of their rows. A population's rows travel with the table's, after a shuffle in which equal
rows of both meet.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..attack.arguments import Arguments
from ..attack.request import ScoreRequest
from ..engines.choose import DeviceRequest
from ..engines.partition_plan import WeightSums
from ..frames.dask_frame import check_dask_frame, is_dask, known_orders
from ..frames.open import open_frame
from ..io.paths import find_input
from ..pipeline import chunk_encoding, table_plan
from ..pipeline import partition_routes as routes
from ..pipeline.partition_scoring import score_partition
from ..pipeline.population_graph import PopulationGraph, add_population
from ..pipeline.received_scores import receive
from ..pipeline.task_graph import Result
from ..results.backing import RunDescription
from ..results.provenance import describe_files, describe_frame, describe_request
from ..results.score_outputs import ScoredAttacker, of_each_fold
from ..results.scores import Scores
from .dask_graph import Graph
from .dask_population import open_dask_population, population_chunks
from .lazy_explainer import TableTasks
from .lazy_scores import DaskBacking, LazyOutcome


def score_dask(
    table: Any, arguments: Arguments, device: DeviceRequest, origin: Mapping[str, Any] | None = None
) -> Scores:
    """See `gpupif.score`. Raises what the names of columns show at once; the rest is raised when Dask computes.

    origin: where the table came from, if that is known; see `provenance`.
    """
    check_dask_frame(table)
    names, population = list(table.columns), arguments.population
    placed = arguments.distances if isinstance(arguments.distances, Mapping) else {}
    walks = any(measure.walks for measure in arguments.measures)
    orders = known_orders(table, [name for name in names if walks and name not in placed])
    request = arguments.make_request(names, orders=orders)
    requests = request.by_attacker()
    for one in requests.values():
        # At once, for as far as the number of rows does not matter.
        one.subsets(1)
    # The same for all attackers, so that Dask reads it once for all that are computed together.
    read = table[request.read] if request.read != names else table
    population_graph = None
    if population is not None:
        graph = Graph()
        people = population_chunks(graph, open_dask_population(population.table, request.used), request.used)
        population_graph = add_population(graph, graph.take(read), people, request, names, population.lacks, device)
    outcomes = [_score(table, read, name, one, device, population_graph) for name, one in requests.items()]
    about = RunDescription(
        columns=request.scored_columns,
        measures=request.cell_measures,
        dtype=request.dtype,
        device=device.device,
        seconds={},
        request=describe_request(
            request,
            origin or _origin(table),
            None if population is None else _origin(population.table),
            "" if population is None else population.lacks,
        ),
    )
    return Scores(DaskBacking(table, about, outcomes))


def _origin(table: Any) -> dict[str, Any]:
    """Return where a table came from, as scores say it."""
    if isinstance(table, str | os.PathLike):
        given = find_input(Path(table))
        return describe_files(given.path, given.stamps())
    if is_dask(table):
        return {"partitions": table.npartitions}
    return describe_frame(open_frame(table))


def _score(
    table: Any,
    read: Any,
    name: str | None,
    request: ScoreRequest,
    device: DeviceRequest,
    population_graph: PopulationGraph[Graph] | None,
) -> LazyOutcome:
    """Scores against one attacker, of this name; read: the table's columns that are needed, or more.

    population_graph: None where there is no population.
    """
    graph = Graph() if population_graph is None else population_graph.graph.copy()
    if population_graph is not None and population_graph.read == request.read:
        encoded = population_graph.encoded
    else:
        encoded = graph.each("encode", chunk_encoding.encode_chunk, request, device, graph.take(read))
    local, indexes = (graph.each(stage, itemgetter(place), encoded) for place, stage in enumerate(("local", "index")))
    planned = _add_plan(graph, request, list(table.columns), local, population_graph)
    rows = graph.each("rows", chunk_encoding.global_rows, planned, local)
    labels = table._meta.columns.take([list(table.columns).index(column) for column in request.scored_columns])
    counted = None
    if request.weights is not None and any(measure.of_rows_and_people for measure in request.measures):
        counted = graph.each("rows-as-rows", chunk_encoding.rows_as_rows, local, rows)
    received, weights = _add_shuffles(graph, request, planned, rows, counted, indexes, labels, population_graph)
    attacker = ScoredAttacker(name, tuple(request.known), request.subsets(1))
    each = [graph.each(measure.name, itemgetter(measure.name), received) for measure in request.outputs]
    by_fold = graph.one("weights-by-fold", _by_fold, weights)
    # After the last task: each takes the graph as it is then.
    frames = {}
    nothing = chunk_encoding.empty_index(table._meta)
    for measure, scores in zip(request.outputs, each, strict=True):
        empty = np.empty((len(request.scored_columns), 0), measure.type_in(request.dtype))
        meta = chunk_encoding.frame_of(empty, nothing, labels)
        frames[f"{attacker.prefix}{measure.name}"] = graph.frame(measure.name, scores, meta, table.divisions)
    later = graph.frame("weights-by-fold", [by_fold], _by_fold({"": []}), (None, None))
    return LazyOutcome(
        attacker, frames, later, TableTasks(graph, planned, rows, counted, indexes, request.any_known is not None)
    )


def _add_plan(
    graph: Graph,
    request: ScoreRequest,
    names: list[Hashable],
    local: list[Result],
    population_graph: PopulationGraph[Graph] | None,
) -> Result:
    """Add the tasks that make the plan. names: of all columns of the table; local: its partitions, encoded."""
    totals, weights = chunk_encoding.count_values(graph, request, names, local)
    population = None if population_graph is None else population_graph.population
    return graph.one("plan", table_plan.make_plan, request, names, totals, *weights, population)


def _add_shuffles(
    graph: Graph,
    request: ScoreRequest,
    planned: Result,
    rows: list[Result],
    counted: list[Result] | None,
    indexes: list[Result],
    labels: pd.Index[Any],
    population_graph: PopulationGraph[Graph] | None,
) -> tuple[list[Result], Result]:
    """Add the tasks that bring rows to partitions, score them there, and bring the scores home.

    rows, indexes: of the chunks of the table; counted: the rows once more, by how often they occur, where they have
    weights and a measure needs both. labels: of the scored columns. Returns the scores of each partition, and
    the weights of the scored columns by fold.
    """
    travelling, lacked = rows, None
    if population_graph is not None:
        # The population's rows travel too, and with each partition those that it lacked.
        people, lacked = population_graph.sent(graph, planned)
        travelling = [*rows, *people]
        counted = None if counted is None else [*counted, *[graph.given("no-rows", None)] * len(people)]
    partitions = range(len(travelling))
    sample = graph.tree("samples", routes.add_samples, graph.each("sample", routes.sample_rows, travelling))
    route = graph.one("routes", routes.plan_routes, planned, len(rows), len(partitions), len(partitions), sample)
    several = (travelling, lacked, counted)
    sent = graph.each("send", chunk_encoding.send, planned, route, partitions, *several)
    there = graph.shuffle("out", sent, len(partitions))
    scored = graph.each("score", score_partition, planned, route, partitions, there)
    sums = graph.tree("sums", WeightSums.total, graph.each("cohorts", itemgetter(1), scored))
    weights = graph.one("weights", table_plan.find_weights, planned, sums)
    given = weights if any(measure.weighted for measure in request.measures) else None
    home = graph.shuffle("home", graph.each("leave", itemgetter(0), scored), len(partitions))[: len(rows)]
    count = range(len(rows))
    received = graph.each("receive", receive, planned, route, labels, given, count, indexes, rows, home)
    return received, weights


def _by_fold(weights: Mapping[str, Sequence[float]]) -> pd.DataFrame:
    """Weights of the scored columns, by fold."""
    return pd.DataFrame(of_each_fold(weights), dtype="float64")
