"""The graph of `gpupif.score` for a Dask frame.

There are two shuffles, whatever the number of columns. In the first shuffle each chunk sends its distinct rows to the
partitions that hold their cohorts whole, once for each cut. A chunk is a partition of the Dask frame. The second
shuffle sends the scores back. Before the first shuffle, tree reductions find what all tasks need: the counted values of
the chunks, and a sample of their rows. Rows of a population are sent together with the table's rows, after a shuffle
that matches equal rows of both tables.
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
from ..results.score_outputs import ScoredAttacker, for_each_aggregate
from ..results.scores import Scores
from .dask_graph import Graph
from .dask_population import open_dask_population, population_chunks
from .lazy_explainer import TableTasks
from .lazy_scores import DaskBacking, LazyOutcome


def score_dask(
    table: Any, arguments: Arguments, device: DeviceRequest, origin: Mapping[str, Any] | None = None
) -> Scores:
    """Return the lazy scores of a Dask frame, see `gpupif.score`.

    origin: mapping. The origin of the table, if it is known; see `provenance`.

    Raises the errors that the names of columns show; Dask raises all others when it computes.
    """
    check_dask_frame(table)
    names, population = list(table.columns), arguments.population
    placed = arguments.distances if isinstance(arguments.distances, Mapping) else {}
    walks = any(measure.walks for measure in arguments.measures)
    orders = known_orders(table, [name for name in names if walks and name not in placed])
    request = arguments.make_request(names, orders=orders)
    requests = request.by_attacker()
    for one in requests.values():
        # Raise errors now if they do not depend on the number of rows.
        one.subsets(1)
    # A single selection of columns for all attackers, so that Dask reads it once if they are computed together.
    read = table[request.read] if request.read != names else table
    population_graph = None
    if population is not None:
        graph = Graph()
        others = population_chunks(graph, open_dask_population(population.table, request.used), request.used)
        population_graph = add_population(graph, graph.take(read), others, request, names, population.lacks, device)
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
    """Return the origin of a table, as scores describe it."""
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
    """Return the scores against one attacker.

    table: Dask frame. The table.
    read: Dask frame. The columns that the attackers need, perhaps more than this attacker needs.
    name: str. The name of the attacker.
    population_graph: PopulationGraph. None without population.
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
    by_aggregate = graph.one("weights-by-aggregate", _by_aggregate, weights)
    # Make frames after the last task: a frame gets the graph as it is at that time.
    frames = {}
    nothing = chunk_encoding.empty_index(table._meta)
    for measure, scores in zip(request.outputs, each, strict=True):
        empty = np.empty((len(request.scored_columns), 0), measure.type_in(request.dtype))
        meta = chunk_encoding.frame_of(empty, nothing, labels)
        frames[f"{attacker.prefix}{measure.name}"] = graph.frame(measure.name, scores, meta, table.divisions)
    later = graph.frame("weights-by-aggregate", [by_aggregate], _by_aggregate({"": []}), (None, None))
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
    """Add the tasks that make the plan.

    names: list. The names of all columns of the table.
    local: list of results. The encoded partitions.
    """
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
    """Add the tasks that send rows to partitions, score them there, and send the scores back.

    rows, indexes: list of results. The distinct rows and the `ChunkIndex` of each chunk of the table.
    counted: list of results. The rows with multiplicities, if they have weights and a measure needs both; else None.
    labels: index. The labels of the scored columns.

    Returns the scores of each chunk, and the weights of the scored columns by aggregate.
    """
    travelling, lacked = rows, None
    if population_graph is not None:
        # Rows of the population are sent too, and each partition of the matching adds the rows that the population
        # lacked.
        others, lacked = population_graph.sent(graph, planned)
        travelling = [*rows, *others]
        counted = None if counted is None else [*counted, *[graph.given("no-rows", None)] * len(others)]
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


def _by_aggregate(weights: Mapping[str, Sequence[float]]) -> pd.DataFrame:
    """Return the weights of the scored columns as a frame with a column for each aggregate."""
    return pd.DataFrame(for_each_aggregate(weights), dtype="float64")
